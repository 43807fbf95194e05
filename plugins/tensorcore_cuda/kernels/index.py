"""Reading and writing at places that arrays name: index_select, embedding, gather, scatter, index_add and their like.

An index outside its dim is found on the device; ``Faults`` in launch.py raises for it at the next synchronisation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tensorcore.plugin import dtypes
from tensorcore_cuda.kernels.launch import C_TYPES, DIMS, LAYOUT_BYTES, WIDE, Driver, family, layout_of
from tensorcore_cuda.kernels.pointwise import strides_of
from tensorcore_cuda.kernels.rows import dense, spans

__all__ = ["NONDETERMINISTIC", "kernels"]

Native = Any
Run = Callable[..., Any]

_INDEX = {np.dtype(np.int64): "int64", np.dtype(np.int32): "int"}
_UNITS = {16: "pack<int64, 2>", 8: "int64", 4: "int", 2: "short", 1: "signed char"}
_FLOAT32 = np.dtype(np.float32)
_ADDED = {np.dtype(np.float32), np.dtype(np.float64)}  # what atomicAdd is used on; half types by way of float32

# Kernels that add in whatever order threads come, and those that take their place: slower, in one order.
NONDETERMINISTIC = {
    name: f"{name}_in_order" for name in ("index_add", "embedding_gradient", "put_picked", "scatter_reduce")
}


def kernels(driver: Driver, table: Mapping[str, Run]) -> dict[str, Run]:
    """The family's kernels; what they do not take goes to the table's."""
    find = family(driver, "index.cu")
    contiguous, copy, cast, empty = table["contiguous"], table["copy"], table["cast"], driver.empty

    def grid(count: int) -> tuple[int, int, int]:
        return driver.blocks(-(-count // 256)), 1, 1

    # Whole slices

    def selected(x: Native, index: Native, dim: int, shape: tuple[int, ...], negative: bool = False) -> Native:
        x, index = dense(x, contiguous), dense(index, contiguous)
        outer, size, inner = spans(x.shape, dim)
        made = empty(shape, x.dtype)
        unit = inner * x.dtype.itemsize & -(inner * x.dtype.itemsize) or 1
        unit = min(16, unit)
        while x.data.ptr % unit or made.data.ptr % unit:
            unit //= 2
        length = inner * x.dtype.itemsize // unit
        count = outer * index.size * length
        if count:
            kernel = find(f"select<{_UNITS[unit]}, {_INDEX[index.dtype]}>", "PPPPqqqqi")
            pointers = x.data.ptr, index.data.ptr, made.data.ptr, driver.faults.pointer
            kernel(grid(count), (256, 1, 1), 0, *pointers, count, index.size, length, size, negative)
        return made

    def index_select(x: Native, index: Native, *, dim: int) -> Native:
        if index.dtype not in _INDEX or not x.ndim or x.dtype.itemsize not in _UNITS:
            return table["index_select"](x, index, dim=dim)
        return selected(x, index, dim, (*x.shape[:dim], index.size, *x.shape[dim + 1 :]))

    def embedding(weight: Native, indices: Native, *, padding: int | None, by_count: bool) -> Native:
        if indices.dtype not in _INDEX or weight.dtype.itemsize not in _UNITS:
            return table["embedding"](weight, indices, padding=padding, by_count=by_count)
        return selected(weight, indices, 0, (*indices.shape, *weight.shape[1:]))

    def index_tensors(x: Native, *, indices: Any) -> Native:
        dims = [i for i, one in enumerate(indices) if one is not None]
        if len(dims) != 1 or indices[dims[0]].dtype not in _INDEX or x.dtype.itemsize not in _UNITS:
            return table["index_tensors"](x, indices=indices)
        dim, index = dims[0], indices[dims[0]]
        return selected(x, index, dim, (*x.shape[:dim], *index.shape, *x.shape[dim + 1 :]), negative=True)

    def added(
        made: Native,
        index: Native,
        source: Native,
        dim: int,
        alpha: float = 1.0,
        skipped: int = -1,
        negative: bool = False,
    ) -> None:
        """Into contiguous memory of a dtype that can be added to."""
        index, source = dense(index, contiguous), dense(source, contiguous)
        _, size, inner = spans(made.shape, dim)
        if source.size:
            types = f"{C_TYPES[source.dtype]}, {C_TYPES[made.dtype]}, {_INDEX[index.dtype]}"
            pointers = made.data.ptr, index.data.ptr, source.data.ptr, driver.faults.pointer
            kernel = find(f"add<{types}>", "PPPPqqqqqid")
            sizes = source.size, index.size, inner, size, skipped
            kernel(grid(source.size), (256, 1, 1), 0, *pointers, *sizes, negative, alpha)

    def index_add(
        x: Native, index: Native, source: Native, *, dim: int, alpha: Any = 1, out: Native | None = None
    ) -> Native:
        if x.dtype not in WIDE or source.dtype != x.dtype or index.dtype not in _INDEX or not x.ndim or not source.ndim:
            return table["index_add"](x, index, source, dim=dim, alpha=alpha, out=out)
        wide = x.dtype if x.dtype in _ADDED else _FLOAT32
        direct = out is not None and out.dtype == wide and out.flags.c_contiguous
        sums = out if direct else copy(empty(x.shape, wide), x)
        added(sums, index, source, dim, float(alpha))
        if direct:
            return out
        if out is not None:
            return copy(out, sums)
        return sums if wide == x.dtype else cast(sums, dtype=dtypes.from_numpy_dtype(x.dtype))

    def embedding_gradient(g: Native, indices: Native, *, rows: int, padding: int | None, by_count: bool) -> Native:
        if g.dtype not in WIDE or by_count or indices.dtype not in _INDEX:
            return table["embedding_gradient"](g, indices, rows=rows, padding=padding, by_count=by_count)
        wide = g.dtype if g.dtype in _ADDED else _FLOAT32
        made = driver.zeros((rows, g.shape[-1]), wide)
        added(made, indices, g, 0, skipped=-1 if padding is None else padding % max(rows, 1))
        return made if wide == g.dtype else cast(made, dtype=dtypes.from_numpy_dtype(g.dtype))

    # Along a dim

    def along(x: Native, shape: tuple[int, ...], dim: int) -> tuple[int, int, bytes]:
        """The size and the step of a dim, and the layout of the rest in the shape of the indices."""
        steps = strides_of(x)
        step, steps[dim] = steps[dim], 0
        return x.shape[dim], step, layout_of(shape, steps)

    def describable(x: Native, index: Native) -> bool:
        return (
            0 < x.ndim <= DIMS and index.ndim == x.ndim and index.dtype in _INDEX
            and max((*x.shape, *index.shape)) < 1 << 31
        )  # fmt: skip

    def gather(x: Native, index: Native, *, dim: int) -> Native:
        if not describable(x, index) or x.dtype.itemsize not in _UNITS:
            return table["gather"](x, index, dim=dim)
        index = dense(index, contiguous)
        made = empty(index.shape, x.dtype)
        if made.size:
            kernel = find(f"gather<{_UNITS[x.dtype.itemsize]}, {_INDEX[index.dtype]}>", f"PPPPqqq{LAYOUT_BYTES}s")
            pointers = x.data.ptr, index.data.ptr, made.data.ptr, driver.faults.pointer
            kernel(grid(made.size), (256, 1, 1), 0, *pointers, made.size, *along(x, index.shape, dim))
        return made

    def written(made: Native, index: Native, source: Native, dim: int, sums: bool) -> None:
        """Into ``made`` at ``index``, whose part of ``source`` counts."""
        index = dense(index, contiguous)
        if not index.size:
            return
        types = f"{_UNITS[made.dtype.itemsize]}, {_INDEX[index.dtype]}"
        if sums:
            types = f"{C_TYPES[source.dtype]}, {C_TYPES[made.dtype]}, {_INDEX[index.dtype]}"
        kernel = find(f"scatter{'_add' * sums}<{types}>", f"PPPPqqq{LAYOUT_BYTES}s{LAYOUT_BYTES}s")
        pointers = made.data.ptr, index.data.ptr, source.data.ptr, driver.faults.pointer
        layouts = *along(made, index.shape, dim), layout_of(index.shape, strides_of(source))
        kernel(grid(index.size), (256, 1, 1), 0, *pointers, index.size, *layouts)

    def scatter(x: Native, index: Native, src: Any, *, dim: int, out: Native | None = None) -> Native:
        array = isinstance(src, driver.xp.ndarray)
        if (
            not array
            or not describable(x, index)
            or src.ndim != index.ndim
            or src.dtype != x.dtype
            or (x.dtype.itemsize not in _UNITS)
        ):
            return table["scatter"](x, index, src, dim=dim, out=out)
        made = contiguous(x) if out is None else out
        written(made, index, src, dim, False)
        return made

    def scatter_reduce(
        x: Native,
        index: Native,
        src: Any,
        *,
        dim: int,
        reduce: str,
        include_self: bool = True,
        out: Native | None = None,
    ) -> Native:
        array = isinstance(src, driver.xp.ndarray)
        if (
            not array
            or reduce != "sum"
            or not include_self
            or not describable(x, index)
            or src.ndim != index.ndim
            or (src.dtype != x.dtype or x.dtype not in WIDE)
        ):
            return table["scatter_reduce"](x, index, src, dim=dim, reduce=reduce, include_self=include_self, out=out)
        wide = x.dtype if x.dtype in _ADDED else _FLOAT32
        sums = copy(empty(x.shape, wide), x)
        written(sums, index, src, dim, True)
        if out is not None:
            return copy(out, sums)
        return sums if wide == x.dtype else cast(sums, dtype=dtypes.from_numpy_dtype(x.dtype))

    def pick(x: Native, at: Native, *, dim: int) -> Native:
        return gather(x, at, dim=dim) if x.ndim and describable(x, at) else table["pick"](x, at, dim=dim)

    def put_picked(x: Native, at: Native, *, dim: int, size: int, unique: bool = True) -> Native:
        shape = (*x.shape[:dim], size, *x.shape[dim + 1 :])
        if (
            not x.ndim
            or not describable(x, at)
            or x.dtype.itemsize not in _UNITS
            or (not unique and x.dtype not in _ADDED)
        ):
            return table["put_picked"](x, at, dim=dim, size=size, unique=unique)
        made = driver.zeros(shape, x.dtype)
        written(made, at, x, dim, not unique)
        return made

    made = {
        function.__name__: function
        for function in (
            index_select, embedding, index_tensors, index_add, embedding_gradient, gather, scatter, scatter_reduce, pick,
            put_picked,
        )
    }  # fmt: skip
    return {**made, **{stead: table[name] for name, stead in NONDETERMINISTIC.items()}}
