"""Scans along a dim: running sums, products, extremes and logarithms of sums."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tensorcore_cuda.kernels.launch import C_TYPES, WIDE, Driver, family
from tensorcore_cuda.kernels.rows import dense, spans

__all__ = ["kernels"]

Native = Any
Run = Callable[..., Any]

_INT64 = np.dtype(np.int64)


def kernels(driver: Driver, table: Mapping[str, Run]) -> dict[str, Run]:
    """The family's kernels; what they do not take goes to the table's."""
    find = family(driver, "scan.cu")
    contiguous, empty = table["contiguous"], driver.empty

    def run(operation: str, x: Native, dim: int, answer: Any, *, back: bool = False, places: bool = False) -> Any:
        x = dense(x, contiguous)
        made, where = empty(x.shape, answer), empty(x.shape, _INT64) if places else None
        outer, n, inner = spans(x.shape, dim)
        if x.size:
            c_type = C_TYPES[x.dtype]
            types = f"{operation}<{c_type}>, {c_type}, {C_TYPES[answer]}, {str(back).lower()}"
            pointers = x.data.ptr, made.data.ptr, 0 if where is None else where.data.ptr
            if inner == 1:
                threads = min(256, -(-n // 32) * 32)
                kernel = find(f"rows<{types}>", "PPPqq")
                kernel((min(outer, 1 << 30), 1, 1), (threads, 1, 1), 0, *pointers, outer, n)
            else:
                kernel = find(f"columns<{types}>", "PPPqqq")
                count = outer * inner
                kernel((driver.blocks(-(-count // 256)), 1, 1), (256, 1, 1), 0, *pointers, count, n, inner)
        return (made, where) if places else made

    def added(name: str, operation: str) -> Run:
        def kernel(x: Native, *, dim: int, dtype: Any = None) -> Native:
            answer = x.dtype if dtype is None else dtype.numpy
            if x.dtype in C_TYPES and answer in WIDE and answer != x.dtype and x.ndim:
                x = table["cast"](x, dtype=dtype)
            if x.dtype not in C_TYPES or answer not in C_TYPES or not x.ndim:
                return table[name](x, dim=dim, dtype=dtype)
            return run(operation if x.dtype in WIDE else f"long_{operation}", x, dim, answer)

        kernel.__name__ = name
        return kernel

    def cumsum_back(x: Native, *, dim: int) -> Native:
        if x.dtype not in C_TYPES or not x.ndim:
            return table["cumsum_back"](x, dim=dim)
        return run("sum_of" if x.dtype in WIDE else "long_sum_of", x, dim, x.dtype, back=True)

    def logcumsumexp(x: Native, *, dim: int) -> Native:
        if x.dtype not in WIDE or not x.ndim:
            return table["logcumsumexp"](x, dim=dim)
        return run("logsumexp_of", x, dim, x.dtype)

    def extreme(name: str, operation: str) -> Run:
        def kernel(x: Native, *, dim: int) -> Any:
            if x.dtype not in C_TYPES or not x.ndim:
                return table[name](x, dim=dim)
            return run(operation, x, dim, x.dtype, places=True)

        kernel.__name__ = name
        return kernel

    return {
        "cumsum": added("cumsum", "sum_of"),
        "cumprod": added("cumprod", "prod_of"),
        "cumsum_back": cumsum_back,
        "logcumsumexp": logcumsumexp,
        "cummax": extreme("cummax", "max_of"),
        "cummin": extreme("cummin", "min_of"),
    }
