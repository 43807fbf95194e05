"""Sorting rows of up to 2048 elements, and the k largest of any row for a k of up to 1024; larger ones are CuPy's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tensorcore_cuda.kernels.launch import C_TYPES, Driver, family
from tensorcore_cuda.kernels.rows import dense, spans

__all__ = ["kernels"]

Native = Any
Run = Callable[..., Any]

_INT64 = np.dtype(np.int64)
_MOST = 2048  # as in sort.cu


def kernels(driver: Driver, table: Mapping[str, Run]) -> dict[str, Run]:
    """The family's kernels; what they do not take goes to the table's."""
    find = family(driver, "sort.cu")
    contiguous, empty = table["contiguous"], driver.empty

    def run(x: Native, dim: int, wanted: int, descending: bool) -> tuple[Native, Native]:
        x = dense(x, contiguous)
        outer, n, inner = spans(x.shape, dim)
        shape = (*x.shape[:dim], wanted, *x.shape[dim + 1 :])
        made, places = empty(shape, x.dtype), empty(shape, _INT64)
        if made.size:
            size = min(_MOST, 1 << max(n - 1, 1).bit_length())
            threads = max(32, min(1024, size // 2))
            kernel = find(f"first_in_order<{C_TYPES[x.dtype]}>", "PPPqiqiii")
            rows = outer * inner
            pointers = x.data.ptr, made.data.ptr, places.data.ptr
            kernel((min(rows, 1 << 30), 1, 1), (threads, 1, 1), 0, *pointers, rows, n, inner, wanted, size, descending)
        return made, places

    def sort(x: Native, *, dim: int, descending: bool = False, stable: bool = False) -> tuple[Native, Native]:
        if x.dtype not in C_TYPES or not x.ndim or x.shape[dim] > _MOST:
            return table["sort"](x, dim=dim, descending=descending, stable=stable)
        return run(x, dim, x.shape[dim], descending)

    def topk(x: Native, *, k: int, dim: int, largest: bool = True, sorted: bool = True) -> tuple[Native, Native]:
        if x.dtype not in C_TYPES or not x.ndim or (k > _MOST // 2 and x.shape[dim] > _MOST) or x.shape[dim] >= 1 << 30:
            return table["topk"](x, k=k, dim=dim, largest=largest, sorted=sorted)
        return run(x, dim, k, largest)

    return {"sort": sort, "topk": topk}
