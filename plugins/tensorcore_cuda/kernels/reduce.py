"""Reductions over any dims: sums, means, products, extremes, variances, norms, logical ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod as product
from typing import Any, NamedTuple

import numpy as np

from tensorcore_cuda.kernels.launch import (
    C_TYPES,
    DIMS,
    LAYOUT_BYTES,
    WIDE,
    Driver,
    Kernel,
    family,
    layout_of,
    merged,
    vector_of,
)
from tensorcore_cuda.kernels.pointwise import strides_of

__all__ = ["Reducer", "kernels"]

Native = Any
Run = Callable[..., Any]
Dims = Sequence[int] | None

_INT64 = np.dtype(np.int64)
_BOOL = np.dtype(np.bool_)
# Blocks of a reduction to few results: a number that no device changes, so that all sum in the same order.
_BLOCKS = 1024
_PIECE = 2048  # elements of a piece, at least
_PLANS = 4096  # layouts that are remembered
_BYTE = np.dtype(np.uint8)
_FEW = 64  # up to so many elements, one thread after the other has a result of its own
_PARAMETERS = f"PPPPqqid{LAYOUT_BYTES}s{LAYOUT_BYTES}s"


def kernels(driver: Driver, table: Mapping[str, Run]) -> dict[str, Run]:
    """The family's kernels; what they do not take goes to the table's."""
    reduce = Reducer(driver)

    def floating(x: Native) -> bool:
        return x.dtype in WIDE

    def sum(x: Native, *, dim: Dims = None, keepdim: bool = False, dtype: Any = None) -> Native:
        wanted = None if dtype is None else dtype.numpy
        return added("sum", x, dim, keepdim, wanted, dict(dtype=dtype))

    def prod(x: Native, *, dim: Dims = None, keepdim: bool = False, dtype: Any = None) -> Native:
        wanted = None if dtype is None else dtype.numpy
        return added("prod", x, dim, keepdim, wanted, dict(dtype=dtype))

    def added(name: str, x: Native, dim: Dims, keepdim: bool, wanted: Any, options: dict[str, Any]) -> Native:
        if wanted is not None and wanted in WIDE and wanted != x.dtype and x.dtype in C_TYPES:
            x = table["cast"](x, dtype=options["dtype"])
        answer = wanted or (x.dtype if x.dtype in WIDE else _INT64)
        if x.dtype not in C_TYPES or answer not in C_TYPES or not reduce.takes(x, dim):
            return table[name](x, dim=dim, keepdim=keepdim, **options)
        operation = f"{name}_of" if x.dtype in WIDE else f"long_{name}_of"
        return reduce(operation, x, dim, keepdim, answer)

    def simple(
        name: str, operation: str | None = None, answer: Any = None, *, empty: bool = True, kinds: Any = C_TYPES
    ) -> Run:
        operation = operation or f"{name}_of"

        def kernel(x: Native, *, dim: Dims = None, keepdim: bool = False) -> Native:
            if x.dtype not in kinds or not reduce.takes(x, dim) or (not empty and not x.size):
                return table[name](x, dim=dim, keepdim=keepdim)
            return reduce(operation, x, dim, keepdim, answer or x.dtype)

        kernel.__name__ = name
        return kernel

    def count_nonzero(x: Native, *, dim: Dims = None) -> Native:
        if x.dtype not in C_TYPES or not reduce.takes(x, dim):
            return table["count_nonzero"](x, dim=dim)
        return reduce("count_nonzero_of", x, dim, False, _INT64)

    def var_mean(x: Native, *, dim: Dims, keepdim: bool, correction: float, root: bool) -> Any:
        if not floating(x) or not reduce.takes(x, dim):
            return table["var_mean"](x, dim=dim, keepdim=keepdim, correction=correction, root=root)
        operation = "std_mean_of" if root else "var_mean_of"
        return reduce(operation, x, dim, keepdim, x.dtype, second=x.dtype, option=float(correction))

    def var(x: Native, *, dim: Dims, keepdim: bool, correction: float, root: bool) -> Native:
        if not floating(x) or not reduce.takes(x, dim):
            return table["var"](x, dim=dim, keepdim=keepdim, correction=correction, root=root)
        operation = "std_mean_of" if root else "var_mean_of"
        return reduce(operation, x, dim, keepdim, x.dtype, option=float(correction))

    def norm(x: Native, *, p: float, dim: Dims = None, keepdim: bool = False) -> Native:
        operation = {0: "norm_0_of", 1: "norm_1_of", 2: "norm_2_of", np.inf: "size_max_of"}.get(p)
        if operation is None or not floating(x) or not reduce.takes(x, dim) or (p == np.inf and not x.size):
            return table["norm"](x, p=p, dim=dim, keepdim=keepdim)
        return reduce(operation, x, dim, keepdim, x.dtype)

    def where_extreme(name: str, operation: str) -> Run:
        def kernel(x: Native, *, dim: int | None = None, keepdim: bool = False) -> Native:
            dims = None if dim is None else (dim,)
            if x.dtype not in C_TYPES or not x.size or not reduce.takes(x, dims):
                return table[name](x, dim=dim, keepdim=keepdim)
            return reduce(operation, x, dims, keepdim, None, second=_INT64)[1]

        kernel.__name__ = name
        return kernel

    def extreme_dim(name: str) -> Run:
        def kernel(x: Native, *, dim: int, keepdim: bool = False) -> Any:
            if x.dtype not in C_TYPES or not x.size or not reduce.takes(x, (dim,)):
                return table[name](x, dim=dim, keepdim=keepdim)
            return reduce(f"{name}_of", x, (dim,) if x.ndim else None, keepdim, x.dtype, second=_INT64)

        kernel.__name__ = name
        return kernel

    return {
        "sum": sum,
        "prod": prod,
        "mean": simple("mean", kinds=WIDE),
        "nansum": simple("nansum", kinds=WIDE),
        "amax": simple("amax", empty=False),
        "amin": simple("amin", empty=False),
        "all": simple("all", answer=_BOOL),
        "any": simple("any", answer=_BOOL),
        "logsumexp": simple("logsumexp", kinds=WIDE),
        "count_nonzero": count_nonzero,
        "var_mean": var_mean,
        "var": var,
        "norm": norm,
        "argmax": where_extreme("argmax", "max_dim_of"),
        "argmin": where_extreme("argmin", "min_dim_of"),
        "max_dim": extreme_dim("max_dim"),
        "min_dim": extreme_dim("min_dim"),
    }


class _Plan(NamedTuple):
    """How a reduction of one layout runs."""

    shape: tuple[int, ...]
    parts: int  # bytes of partial results between two launches; 0 where one is enough
    first: Kernel | None  # None where there is no result
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    sizes: tuple[int, int, int]  # elements of a result, results, pieces
    layouts: tuple[bytes, bytes]
    second: Kernel | None


class Reducer:
    """Launches reductions on one device."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.family = family(driver, "reduce.cu")
        self.plans: dict[Any, _Plan] = {}

    def takes(self, x: Native, dim: Dims) -> bool:
        """Whether the layout of ``x`` can be described to a kernel."""
        return x.ndim <= DIMS and max(x.shape[1:], default=0) < 1 << 31

    def __call__(
        self, operation: str, x: Native, dim: Dims, keepdim: bool, answer: np.dtype[Any] | None, *,
        second: np.dtype[Any] | None = None, option: float = 0.0,
    ) -> Any:  # fmt: skip
        """The result, of dtype ``answer`` (none if that is None), with a second array if that has a dtype."""
        driver, address = self.driver, x.data.ptr
        key = (
            operation,
            x.dtype,
            x.shape,
            x.strides,
            dim if dim is None else tuple(dim),
            keepdim,
            answer,
            address % 16,
        )
        plan = self.plans.get(key)
        if plan is None:
            if len(self.plans) >= _PLANS:
                self.plans.clear()
            plan = self.plans[key] = self.plan(operation, x, dim, keepdim, answer)
        made = None if answer is None else driver.empty(plan.shape, answer)
        other = None if second is None else driver.empty(plan.shape, second)
        if plan.first is not None:
            parts = driver.empty((plan.parts,), _BYTE) if plan.parts else None
            pointers = [0 if one is None else one.data.ptr for one in (made, other, parts)]
            plan.first(plan.grid, plan.block, 0, address, *pointers, *plan.sizes, option, *plan.layouts)
            if plan.second is not None:
                grid = (-(-plan.sizes[1] // 8), 1, 1)
                plan.second(grid, (256, 1, 1), 0, *pointers, *plan.sizes, option)
        return made if second is None else (made, other)

    def plan(self, operation: str, x: Native, dim: Dims, keepdim: bool, answer: np.dtype[Any] | None) -> _Plan:
        """The launches for one layout."""
        ndim, itemsize = x.ndim, x.dtype.itemsize
        dims = range(ndim) if dim is None else dim
        strides = strides_of(x)
        kept = [i for i in range(ndim) if i not in dims]
        shape = tuple([1 if i in dims else size for i, size in enumerate(x.shape)]) if keepdim else tuple(
            [x.shape[i] for i in kept]
        )  # fmt: skip
        results, count = product(shape), product([x.shape[i] for i in range(ndim) if i in dims])
        inside = sorted(dims)
        sizes, (steps,) = merged([x.shape[i] for i in kept], [strides[i] for i in kept])
        along, (along_steps,) = merged([x.shape[i] for i in inside], [strides[i] for i in inside])
        c_type = C_TYPES[x.dtype]
        types = f"<{operation}<{c_type}>, {c_type}, {c_type if answer is None else C_TYPES[answer]}"
        inner = min(map(abs, steps), default=1 << 62) > min(map(abs, along_steps), default=1 << 62)
        by_rows = results == 1 or (count > _FEW and (inner or results < 32))
        pack = 1
        if by_rows and along_steps in ([], [1]) and count >= _FEW:
            pack = vector_of(itemsize, count, x.data.ptr, *[step * itemsize for step in steps])
        jobs = results if by_rows else -(-results // 32)
        splits = max(1, min(_BLOCKS // max(jobs, 1), count // (_PIECE if by_rows else 256)))
        first = second = None
        if results:
            name = f"rows{types}, {pack}>" if by_rows else f"columns{types}>"
            first = self.family(name, _PARAMETERS)
            second = self.family(f"join_parts{types}>", "PPPqqid") if splits > 1 else None
        return _Plan(
            shape=shape,
            parts=results * splits * _part_bytes(operation, x.dtype) if splits > 1 else 0,
            first=first,
            grid=(max(1, min(jobs * splits, 1 << 30)), 1, 1),
            block=(max(32, min(256, -(-count // (pack * splits * 32)) * 32)), 1, 1) if by_rows else (32, 8, 1),
            sizes=(count, results, splits),
            layouts=(layout_of(sizes, steps), layout_of(along, along_steps)),
            second=second,
        )


def _part_bytes(operation: str, dtype: np.dtype[Any]) -> int:
    wide = WIDE.get(dtype, dtype).itemsize
    if operation in ("max_dim_of", "min_dim_of"):
        return 16
    if operation in ("var_mean_of", "std_mean_of"):
        return 3 * wide
    if operation == "logsumexp_of":
        return 2 * wide
    if operation in ("all_of", "any_of"):
        return 4
    return 8 if operation.startswith(("long", "count")) else wide
