"""Products of a sparse matrix and a dense one, and their gradients.

A matrix stored row by row is multiplied row by row. Elements in any order are added as they come, or, where a program asks
for determinism, sorted first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tensorcore.plugin import dtypes
from tensorcore_cuda.kernels.launch import C_TYPES, WIDE, Driver, family
from tensorcore_cuda.kernels.rows import dense

__all__ = ["NONDETERMINISTIC", "kernels"]

Native = Any
Run = Callable[..., Any]

NONDETERMINISTIC = {name: f"{name}_in_order" for name in ("sparse_matmul", "sparse_matmul_backward")}
_INT64 = np.dtype(np.int64)
_INDEX = {_INT64: "int64", np.dtype(np.int32): "int"}
_FLOAT32 = np.dtype(np.float32)
_ADDED = {_FLOAT32, np.dtype(np.float64)}  # what atomicAdd is used on; half types by way of float32
_FEW = 8  # columns: with fewer, the lanes of a warp share the elements of a row


def kernels(driver: Driver, table: Mapping[str, Run]) -> dict[str, Run]:
    """The family's kernels. Complex numbers and integers are gathered, multiplied and added up by the table's."""
    find = family(driver, "sparse.cu")
    contiguous, cast, empty, fault = table["contiguous"], table["cast"], driver.empty, driver.faults.pointer

    def grid(count: int, each: int = 256) -> tuple[int, int, int]:
        return driver.blocks(-(-count // each)), 1, 1

    def indices(*given: Native) -> list[Native]:
        """Dense and of one dtype that the kernels have."""
        if any([one.dtype != given[0].dtype or one.dtype not in _INDEX for one in given]):
            given = tuple([cast(one, dtype=dtypes.int64) for one in given])
        return [dense(one, contiguous) for one in given]

    def expanded(starts: Native, elements: int) -> Native:
        """The row of each element."""
        made = empty((elements,), starts.dtype)
        if elements:
            kernel = find(f"expand<{_INDEX[starts.dtype]}>", "PPq")
            kernel(grid(starts.size - 1, 8), (256, 1, 1), 0, starts.data.ptr, made.data.ptr, starts.size - 1)
        return made

    def by_rows(starts: Native, columns: Native, values: Native, x: Native, count: int) -> Native:
        """The product of a matrix of ``count`` rows that begin at ``starts``."""
        n, made = x.shape[1], empty((count, x.shape[1]), x.dtype)
        team = 32 if n < _FEW else 1
        if made.size:
            kernel = find(f"product<{C_TYPES[x.dtype]}, {_INDEX[starts.dtype]}, {team}>", "PPPPPPqqq")
            pointers = [one.data.ptr for one in (starts, columns, values, x, made)]
            kernel(grid(made.size, 256 // team), (256, 1, 1), 0, *pointers, fault, made.size, n, x.shape[0])
        return made

    def in_any_order(to: Native, source: Native, values: Native, x: Native, count: int) -> Native:
        """For each element its row of ``x`` at ``source`` is added to the row ``to`` of ``count``."""
        wide = x.dtype if x.dtype in _ADDED else _FLOAT32
        n, made = x.shape[1], driver.zeros((count, x.shape[1]), wide)
        elements = values.size * n
        if elements and count:
            kernel = find(f"add<{C_TYPES[x.dtype]}, {C_TYPES[wide]}, {_INDEX[to.dtype]}>", "PPPPPPqqqq")
            pointers = [one.data.ptr for one in (to, source, values, x, made)]
            kernel(grid(elements), (256, 1, 1), 0, *pointers, fault, elements, n, count, x.shape[0])
        return made if wide == x.dtype else cast(made, dtype=dtypes.from_numpy_dtype(x.dtype))

    def sorted_first(to: Native, source: Native, values: Native, x: Native, count: int) -> Native:
        """The same, always in one order."""
        to, order = table["sort"](to, dim=0, stable=True)
        source, values = [table["index_select"](one, order, dim=0) for one in (source, values)]
        starts = empty((count + 1,), to.dtype)
        kernel = find(f"begin<{_INDEX[to.dtype]}>", "PPqq")
        kernel(grid(count + 1), (256, 1, 1), 0, to.data.ptr, starts.data.ptr, count + 1, to.size)
        return by_rows(starts, source, values, x, count)

    def gathered(to: Native, source: Native, values: Native, x: Native, count: int) -> Native:
        """The same of any numbers, by kernels of the table."""
        made = driver.zeros((count, x.shape[1]), x.dtype)
        return table["index_add"](made, to, values[:, None] * table["index_select"](x, source, dim=0), dim=0)

    def made_of(added: Run) -> tuple[Run, Run]:
        """The product and its gradients, where ``added`` adds up elements that lie in any order."""

        def sparse_matmul(
            rows: Native, columns: Native, values: Native, x: Native, *, count: int, compressed: bool
        ) -> Native:
            rows, columns = indices(rows, columns)
            values, x = dense(values, contiguous), dense(x, contiguous)
            if x.dtype not in WIDE:
                return gathered(expanded(rows, values.size) if compressed else rows, columns, values, x, count)
            return (by_rows if compressed else added)(rows, columns, values, x, count)

        def sparse_matmul_backward(
            g: Native, rows: Native, columns: Native, values: Native, x: Native, *,
            needs: tuple[bool, ...], count: int, compressed: bool,
        ) -> tuple[Any, ...]:  # fmt: skip
            rows, columns = indices(rows, columns)
            g, values, x = [dense(one, contiguous) for one in (g, values, x)]
            of = expanded(rows, values.size) if compressed else rows
            mine = other = None
            if x.dtype not in WIDE:
                if needs[2]:
                    met = table["index_select"](x, columns, dim=0).conj()
                    mine = (table["index_select"](g, of, dim=0) * met).sum(1)
                if needs[3]:
                    other = gathered(columns, of, values.conj(), g, x.shape[0])
                return None, None, mine, other
            if needs[2]:
                mine = empty(values.shape, values.dtype)
                if mine.size:
                    kernel = find(f"pairs<{C_TYPES[x.dtype]}, {_INDEX[of.dtype]}>", "PPPPPPqqq")
                    pointers = [one.data.ptr for one in (of, columns, g, x, mine)]
                    kernel(grid(mine.size, 8), (256, 1, 1), 0, *pointers, fault, mine.size, x.shape[1], x.shape[0])
            if needs[3]:
                other = added(columns, of, values, g, x.shape[0])
            return None, None, mine, other

        return sparse_matmul, sparse_matmul_backward

    made = dict(zip(NONDETERMINISTIC, made_of(in_any_order), strict=True))
    return {**made, **dict(zip(NONDETERMINISTIC.values(), made_of(sorted_first), strict=True))}
