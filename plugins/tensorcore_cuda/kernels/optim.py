"""Optimizer steps and the unscaling of gradients: many parameters in one launch."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import sqrt
from typing import Any

import numpy as np

from tensorcore_cuda.kernels.launch import C_TYPES, WIDE, Driver, family, vector_of

__all__ = ["kernels"]

Native = Any
Run = Callable[..., Any]

# As in optim.cu
_MOST = 32
_CHUNK = 8192
_BOOL = np.dtype(np.bool_)


def kernels(driver: Driver, table: Mapping[str, Run]) -> dict[str, Run]:
    """The family's kernels; what they do not take goes to the table's."""
    find = family(driver, "optim.cu")

    def takes(kinds: Sequence[Sequence[Native]]) -> bool:
        for some in zip(*kinds, strict=True):
            dtype = some[0].dtype
            if dtype not in WIDE or any([one.dtype != dtype or not one.flags.c_contiguous for one in some]):
                return False
        return True

    def launch(name: str, kinds: Sequence[Sequence[Native]], numbers: Any, flag: str, format: str, *rest: Any) -> None:
        """One launch for each group of arrays of one dtype; ``numbers`` are two for each."""
        by_dtype: dict[Any, list[int]] = {}
        for i, one in enumerate(kinds[0]):
            if one.size:
                by_dtype.setdefault(one.dtype, []).append(i)
        for dtype, places in by_dtype.items():
            for start in range(0, len(places), _MOST):
                some = places[start : start + _MOST]
                addresses = [[kind[i].data.ptr for i in some] for kind in kinds]
                pack = vector_of(dtype.itemsize, 16, *[one for kind in addresses for one in kind])
                packed, blocks = _group(addresses, [kinds[0][i].size for i in some], [numbers[i] for i in some])
                kernel = find(f"{name}<{C_TYPES[dtype]}, {pack}{flag}>", f"{len(packed)}s{format}")
                kernel((blocks, 1, 1), (256, 1, 1), 0, packed, *rest)

    def adam_step(
        params: Any, grads: Any, averages: Any, squares: Any, maxima: Any, *, steps: Any, lr: float, beta1: float,
        beta2: float, eps: float, weight_decay: float = 0.0, decoupled: bool = False, maximize: bool = False,
    ) -> None:  # fmt: skip
        kinds = [params, grads, averages, squares, *([] if maxima is None else [maxima])]
        if not takes(kinds):
            table["adam_step"](
                params, grads, averages, squares, maxima, steps=steps, lr=lr, beta1=beta1, beta2=beta2, eps=eps,
                weight_decay=weight_decay, decoupled=decoupled, maximize=maximize,
            )  # fmt: skip
            return
        numbers = [(lr / (1.0 - beta1 ** float(one)), sqrt(1.0 - beta2 ** float(one))) for one in steps]
        flag = f", {str(maxima is not None).lower()}"
        launch("adam_step", kinds, numbers, flag, "dddddii", lr, beta1, beta2, eps, weight_decay, decoupled, maximize)

    def sgd_step(
        params: Any, grads: Any, momenta: Any, *, lr: float, momentum: float = 0.0, dampening: float = 0.0,
        weight_decay: float = 0.0, nesterov: bool = False, maximize: bool = False, first: bool = False,
    ) -> None:  # fmt: skip
        kinds = [params, grads, *([] if momenta is None else [momenta])]
        if not takes(kinds):
            table["sgd_step"](
                params, grads, momenta, lr=lr, momentum=momentum, dampening=dampening, weight_decay=weight_decay,
                nesterov=nesterov, maximize=maximize, first=first,
            )  # fmt: skip
            return
        flag = f", {str(momenta is not None).lower()}"
        numbers = [(0.0, 0.0)] * len(params)
        options = lr, momentum, dampening, weight_decay, nesterov, maximize, first
        launch("sgd_step", kinds, numbers, flag, "ddddiii", *options)

    def unscale(grads: Any, *, factor: float) -> Native:
        if not takes([grads]):
            return table["unscale"](grads, factor=factor)
        found = driver.zeros((), _BOOL)
        launch("unscale", [grads], [(0.0, 0.0)] * len(grads), "", "Pd", found.data.ptr, factor)
        return found

    return {"adam_step": adam_step, "sgd_step": sgd_step, "unscale": unscale}


def _group(addresses: list[list[int]], sizes: list[int], numbers: list[tuple[float, float]]) -> tuple[bytes, int]:
    """A ``group`` of optim.cu, and how many blocks it takes."""
    rest = _MOST - len(sizes)
    first = [0]
    for size in sizes:
        first.append(first[-1] + -(-size // _CHUNK))
    blocks = first[-1]
    values: Iterator[Any] = iter(
        [one for kind in addresses for one in (*kind, *[0] * rest)]
        + [*sizes, *[0] * rest]
        + [one for k in range(2) for one in (*[pair[k] for pair in numbers], *[0.0] * rest)]
        + [*first, *[blocks] * rest, len(sizes)]
    )
    format = f"@{len(addresses) * _MOST}Q{_MOST}q{2 * _MOST}d{_MOST + 1}ii0q"
    return struct.pack(format, *values), blocks
