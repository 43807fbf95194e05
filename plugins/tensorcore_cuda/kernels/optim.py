"""Optimizer steps and the unscaling of gradients: many parameters in one launch."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import sqrt
from typing import Any

import numpy as np

from tensorcore_cuda.kernels.formulas import Traced, traced
from tensorcore_cuda.kernels.launch import C_TYPES, WIDE, Driver, Kernel, family, vector_of

__all__ = ["kernels"]

Native = Any
Run = Callable[..., Any]

# As in many.cuh
_MOST = 32
_CHUNK = 8192
_BOUNDS = struct.Struct(f"@{_MOST + 1}ii")
_POWERS = {1.0: 1, 2.0: 2, float("inf"): 0}  # of norms
_PLAIN = (bool, int, float, type(None))
_NONE = ((0.0, 0.0),) * _MOST
_BOOL, _FLOAT32, _FLOAT64 = map(np.dtype, (np.bool_, np.float32, np.float64))
_PARTS = {np.dtype(np.complex64): _FLOAT32, np.dtype(np.complex128): _FLOAT64}


def kernels(driver: Driver, table: Mapping[str, Run]) -> dict[str, Run]:
    """The family's kernels; what they do not take goes to the table's."""
    find = family(driver, "optim.cu")
    written: dict[tuple[Traced, str], Kernel] = {}

    def takes(kinds: Sequence[Sequence[Native]]) -> bool:
        for some in zip(*kinds, strict=True):
            dtype = some[0].dtype
            if dtype not in WIDE or any([one.dtype != dtype or not one.flags.c_contiguous for one in some]):
                return False
        return True

    def groups(kinds: Sequence[Sequence[Native]]) -> Iterator[tuple[Any, list[int]]]:
        """Which arrays go through one launch: they have one dtype."""
        by_dtype: dict[Any, list[int]] = {}
        for i, one in enumerate(kinds[0]):
            if one.size:
                by_dtype.setdefault(one.dtype, []).append(i)
        for dtype, places in by_dtype.items():
            for start in range(0, len(places), _MOST):
                yield dtype, places[start : start + _MOST]

    def launch(
        name: str, dtype: Any, kinds: Sequence[Sequence[Native]], some: list[int], numbers: Any, flag: str, format: str,
        *rest: Any, formula: Traced | None = None,
    ) -> None:  # fmt: skip
        pointers = [[kind[i].data.ptr for i in some] for kind in kinds]
        pack = vector_of(dtype.itemsize, 16, *[one for kind in pointers for one in kind])
        packed, blocks = _group(pointers, [kinds[0][i].size for i in some], numbers)
        expression, parameters = f"{name}<{C_TYPES[dtype]}, {pack}{flag}>", f"{len(packed)}s{format}"
        kernel = find(expression, parameters) if formula is None else find_formula(formula, expression, parameters)
        kernel((blocks, 1, 1), (256, 1, 1), 0, packed, *rest)

    def find_formula(formula: Traced, expression: str, parameters: str) -> Kernel:
        found = written.get((formula, expression))
        if found is None:
            found = written[formula, expression] = driver.kernel(formula.source(), expression, parameters)
        return found

    def adam_step(
        params: Any, grads: Any, averages: Any, squares: Any, maxima: Any, counts: Any = None, grad_scale: Any = None,
        found_inf: Any = None, *, lr: float, beta1: float, beta2: float, eps: float, steps: Any = (),
        weight_decay: float = 0.0, decoupled: bool = False, maximize: bool = False,
    ) -> None:  # fmt: skip
        kinds = [params, grads, averages, squares, *([] if maxima is None else [maxima])]
        if not takes(kinds) or not _are_numbers(*(counts or ()), grad_scale, found_inf):
            table["adam_step"](
                params, grads, averages, squares, maxima, counts, grad_scale, found_inf, steps=steps, lr=lr, beta1=beta1,
                beta2=beta2, eps=eps, weight_decay=weight_decay, decoupled=decoupled, maximize=maximize,
            )  # fmt: skip
            return
        flag = f", {str(maxima is not None).lower()}"
        options = lr, beta1, beta2, eps, weight_decay, decoupled, maximize
        for dtype, some in groups(kinds):
            if counts is None:
                counted, pairs = None, [(lr / (1.0 - beta1 ** steps[i]), sqrt(1.0 - beta2 ** steps[i])) for i in some]
            else:
                counted, pairs = count([counts[i] for i in some], found_inf, lr, beta1, beta2), _NONE[: len(some)]
            given = map(_address, (counted, grad_scale, found_inf))
            launch("adam_step", dtype, kinds, some, pairs, flag, "dddddiiPPP", *options, *given)

    def count(counts: list[Native], found_inf: Any, lr: float, beta1: float, beta2: float) -> Native:
        """Count a step of each, on the device, and the two numbers of it that ``adam_step`` takes."""
        numbers = driver.empty((len(counts), 2), _FLOAT64)
        packed = struct.pack(f"@{_MOST}Qq", *map(_address, counts), *[0] * (_MOST - len(counts)), len(counts))
        kernel = find("count_steps<float>", f"{len(packed)}sPdddP")
        kernel((1, 1, 1), (_MOST, 1, 1), 0, packed, numbers.data.ptr, lr, beta1, beta2, _address(found_inf))
        return numbers

    def sgd_step(
        params: Any, grads: Any, momenta: Any, grad_scale: Any = None, found_inf: Any = None, *, lr: float,
        momentum: float = 0.0, dampening: float = 0.0, weight_decay: float = 0.0, nesterov: bool = False,
        maximize: bool = False, first: bool = False,
    ) -> None:  # fmt: skip
        kinds = [params, grads, *([] if momenta is None else [momenta])]
        if not takes(kinds) or not _are_numbers(grad_scale, found_inf):
            table["sgd_step"](
                params, grads, momenta, grad_scale, found_inf, lr=lr, momentum=momentum, dampening=dampening,
                weight_decay=weight_decay, nesterov=nesterov, maximize=maximize, first=first,
            )  # fmt: skip
            return
        flag = f", {str(momenta is not None).lower()}"
        options = lr, momentum, dampening, weight_decay, nesterov, maximize, first
        given = [_address(grad_scale), _address(found_inf)]
        for dtype, some in groups(kinds):
            launch("sgd_step", dtype, kinds, some, _NONE[: len(some)], flag, "ddddiiiPP", *options, *given)

    def step(
        formula: Callable[..., None], arrays: Sequence[Sequence[Native]], numbers: Sequence[dict[str, Any]]
    ) -> None:
        # Those that have the same numbers, in a group mostly all, go through a launch together.
        together: dict[Any, list[list[Native]]] = {}
        for some, named in zip(arrays, numbers, strict=True):
            real = _as_real(some)
            if takes([[one] for one in real]) and all([type(one) in _PLAIN for one in named.values()]):
                together.setdefault((len(real), *named.items()), []).append(real)
            else:
                table["step"](formula, [some], [named])
        for (count, *named), rows in together.items():
            what, values = traced(formula, count, dict(named))
            kinds = list(zip(*rows, strict=True))
            for dtype, places in groups(kinds):
                launch(
                    "formula_step",
                    dtype,
                    kinds,
                    places,
                    _NONE[: len(places)],
                    "",
                    "d" * len(values),
                    *values,
                    formula=what,
                )

    def unscale(grads: Any, *, factor: Any) -> Native:
        there = None if isinstance(factor, float) else factor
        if not takes([grads]) or not _are_numbers(there):
            return table["unscale"](grads, factor=factor)
        found = driver.zeros((), _BOOL)
        number = factor if there is None else 1.0
        for dtype, some in groups([grads]):
            launch(
                "unscale", dtype, [grads], some, _NONE[: len(some)], "", "PdP", found.data.ptr, number, _address(there)
            )
        return found

    def norms(arrays: Sequence[Native], *, p: float) -> Native | None:
        power = _POWERS.get(p)
        dtype = arrays[0].dtype
        if (
            power is None
            or not takes([arrays])
            or any([one.dtype != dtype or not (one.size or power) for one in arrays])
        ):
            return None  # nothing is the largest of no elements
        made, c_type = driver.empty((len(arrays),), dtype), C_TYPES[dtype]
        for start in range(0, len(arrays), _MOST):
            some = arrays[start : start + _MOST]
            pack = vector_of(dtype.itemsize, 16, *[one.data.ptr for one in some])
            packed, blocks = _group([[one.data.ptr for one in some]], [one.size for one in some], _NONE[: len(some)])
            parts = driver.empty((blocks,), WIDE[dtype])
            if blocks:
                kernel = find(f"norm_parts<{c_type}, {pack}, {power}>", f"{len(packed)}sP")
                kernel((blocks, 1, 1), (256, 1, 1), 0, packed, parts.data.ptr)
            kernel = find(f"join_norms<{c_type}, {power}>", f"{_BOUNDS.size}sPP")
            bounds = _BOUNDS.pack(*_firsts([one.size for one in some]), len(some))
            threads = 32 * len(some)
            kernel((1, 1, 1), (threads, 1, 1), 0, bounds, parts.data.ptr, made.data.ptr + start * dtype.itemsize)
        return made

    return {"adam_step": adam_step, "sgd_step": sgd_step, "step": step, "unscale": unscale, "norms": norms}


def _as_real(arrays: Sequence[Native]) -> list[Native]:
    """Complex numbers as the pairs of real ones that they move like."""
    part = _PARTS.get(arrays[0].dtype)
    if part is None or not all([one.flags.c_contiguous for one in arrays]):
        return list(arrays)
    return [one.reshape(-1).view(part) for one in arrays]


def _are_numbers(*given: Native | None) -> bool:
    """Whether what is there are arrays of one float32, as the kernels read them."""
    return all([one is None or (one.dtype == _FLOAT32 and one.size == 1) for one in given])


def _address(given: Native | None) -> int:
    return 0 if given is None else given.data.ptr


def _firsts(sizes: list[int]) -> list[int]:
    """The first block of each array, and the number of all of them behind the last."""
    first = [0]
    for size in sizes:
        first.append(first[-1] + -(-size // _CHUNK))
    return first + [first[-1]] * (_MOST - len(sizes))


def _group(addresses: list[list[int]], sizes: list[int], numbers: Sequence[tuple[float, float]]) -> tuple[bytes, int]:
    """A ``group`` of optim.cu, and how many blocks it takes."""
    rest, first = _MOST - len(sizes), _firsts(sizes)
    blocks = first[-1]
    values: Iterator[Any] = iter(
        [one for kind in addresses for one in (*kind, *[0] * rest)]
        + [*sizes, *[0] * rest]
        + [one for k in range(2) for one in (*[pair[k] for pair in numbers], *[0.0] * rest)]
        + [*first, len(sizes)]
    )
    format = f"@{len(addresses) * _MOST}Q{_MOST}q{2 * _MOST}d{_MOST + 1}ii0q"
    return struct.pack(format, *values), blocks
