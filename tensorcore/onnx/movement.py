"""Kernels that make, move and pick values as ONNX nodes. Opset 18."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorcore.errors import UsageError
from tensorcore.onnx.kernels import number_of, shape_of
from tensorcore.onnx.tracer import Trace, handler

__all__: list[str] = []


@handler("view")
def _view(t: Trace, result: Any, x: Any, *, shape: Any) -> str:
    return t.node("Reshape", x, shape_of(t, shape), allowzero=int(0 in shape))


@handler("expand")
def _expand(t: Trace, result: Any, x: Any, *, shape: Any) -> str:
    return t.node("Expand", x, shape_of(t, shape))


@handler("permute")
def _permute(t: Trace, result: Any, x: Any, *, dims: Any) -> str:
    return t.node("Transpose", x, perm=list(dims))


@handler("unsqueeze")
def _unsqueeze(t: Trace, result: Any, x: Any, *, dim: int, step: Any = None) -> str:
    return t.node("Unsqueeze", x, t.name(np.asarray([dim], np.int64)))


@handler("index")
def _index(t: Trace, result: Any, x: Any, *, key: Any) -> str:
    made, gone = t.name(x), []
    for dim, one in enumerate(key):
        if isinstance(one, slice):
            start, stop, step = one.indices(x.shape[dim])
            if (start, stop, step) == (0, x.shape[dim], 1):
                continue
            made = t.node(
                "Slice", made, t.sizes(start), t.sizes(stop), t.name(np.asarray([dim])), t.name(np.asarray([step]))
            )
        else:
            place = one % max(x.shape[dim], 1)
            made = t.node("Slice", made, t.sizes(place), t.sizes(place + 1), t.name(np.asarray([dim])))
            gone.append(dim)
    if gone:
        made = t.node("Squeeze", made, t.name(np.asarray(gone)))
    return t.node("Identity", made) if made == t.name(x) else made


@handler("flip")
def _flip(t: Trace, result: Any, x: Any, *, dims: Any) -> str:
    made = t.name(x)
    for dim in dims:
        made = t.node("Slice", made, t.name(np.asarray([-1])), t.name(np.asarray([np.iinfo(np.int64).min])),
                      t.name(np.asarray([dim])), t.name(np.asarray([-1])))  # fmt: skip
    return made


@handler("roll")
def _roll(t: Trace, result: Any, x: Any, *, shifts: Any, dims: Any) -> str:
    if dims is None:
        flat = t.node("Reshape", x, t.name(np.asarray([-1], np.int64)))
        return t.node("Reshape", _rolled(t, flat, shifts, 0, x.size), shape_of(t, x.shape))
    made = t.name(x)
    pairs = zip(shifts, dims, strict=True) if isinstance(dims, (tuple, list)) else [(shifts, dims)]
    for shift, dim in pairs:
        made = _rolled(t, made, shift, dim, x.shape[dim])
    return made


def _rolled(t: Trace, source: str, shift: int, dim: int, size: int) -> str:
    cut, axis = t.sizes(size - shift % max(size, 1)), t.name(np.asarray([dim], np.int64))
    back = t.node("Slice", source, cut, t.sizes(size), axis)
    return t.node("Concat", back, t.node("Slice", source, t.name(np.asarray([0], np.int64)), cut, axis), axis=dim)


@handler("cat")
def _cat(t: Trace, result: Any, xs: Any, *, dim: int, shape: Any) -> str:
    return t.node("Concat", *[one for one in xs if one.ndim == len(shape)], axis=dim)


@handler("stack")
def _stack(t: Trace, result: Any, xs: Any, *, dim: int) -> str:
    at = t.name(np.asarray([dim], np.int64))
    return t.node("Concat", *[t.node("Unsqueeze", one, at) for one in xs], axis=dim)


@handler("repeat")
def _repeat(t: Trace, result: Any, x: Any, *, repeats: Any) -> str:
    extra = len(repeats) - x.ndim
    source = t.node("Unsqueeze", x, t.name(np.arange(extra))) if extra > 0 else x
    return t.node("Tile", source, t.sizes(*repeats))


@handler("tri")
def _tri(t: Trace, result: Any, x: Any, *, diagonal: int, upper: bool) -> str:
    if x.dtype.kind == "b":
        number = t.node("Cast", x, to=number_of(np.dtype(np.int64)))
        made = t.node("Trilu", number, t.name(np.asarray(diagonal, np.int64)), upper=int(upper))
        return t.node("Cast", made, to=number_of(x.dtype))
    return t.node("Trilu", x, t.name(np.asarray(diagonal, np.int64)), upper=int(upper))


@handler("full")
def _full(t: Trace, result: Any, shape: Any, value: Any, *, dtype: Any) -> str:
    return t.node("Expand", t.name(np.asarray(value, result.dtype)), shape_of(t, shape))


@handler("arange")
def _arange(t: Trace, result: Any, start: Any, step: Any, length: int, *, dtype: Any) -> str:
    count = t.node("Squeeze", t.sizes(length), t.name(np.asarray([0])))
    made = t.node("Range", t.name(np.asarray(0, np.int64)), count, t.name(np.asarray(1, np.int64)))
    if (start, step) != (0, 1):
        made = t.node("Cast", made, to=number_of(np.dtype(np.float64)))
        made = t.node(
            "Add", t.node("Mul", made, t.name(np.asarray(step, np.float64))), t.name(np.asarray(start, np.float64))
        )
    return t.node("Cast", made, to=number_of(result.dtype))


@handler("eye")
def _eye(t: Trace, result: Any, rows: int, columns: int, *, dtype: Any) -> str:
    zeros = t.node("Expand", t.name(np.asarray(0, result.dtype)), t.sizes(rows, columns))
    return t.node("EyeLike", zeros)


@handler("copy")
def _copy(t: Trace, result: Any, target: Any, source: Any) -> str:
    made = t.name(source, target)
    if getattr(source, "dtype", target.dtype) != target.dtype:
        made = t.node("Cast", made, to=number_of(target.dtype))
    return (
        t.node("Expand", made, shape_of(t, target.shape))
        if np.shape(source) != target.shape
        else t.node("Identity", made)
    )


@handler("fill")
def _fill(t: Trace, result: Any, target: Any, value: Any) -> str:
    return t.node("Expand", t.name(value, target), shape_of(t, target.shape))


# Indices


@handler("gather")
def _gather(t: Trace, result: Any, x: Any, index: Any, *, dim: int) -> str:
    made = t.name(x)
    for i, n in enumerate(index.shape):
        if i != dim and n != x.shape[i]:
            made = t.node("Slice", made, t.sizes(0), t.sizes(n), t.name(np.asarray([i])))
    return t.node("GatherElements", made, index, axis=dim)


@handler("scatter")
def _scatter(t: Trace, result: Any, x: Any, index: Any, src: Any, *, dim: int) -> str:
    values = src if isinstance(src, np.ndarray) else t.node("Expand", t.name(src, x), shape_of(t, index.shape))
    return t.node("ScatterElements", x, index, values, axis=dim)


@handler("index_select")
def _index_select(t: Trace, result: Any, x: Any, index: Any, *, dim: int) -> str:
    return t.node("Gather", x, index, axis=dim)


@handler("take_rows")
def _take_rows(t: Trace, result: Any, x: Any, *, dim: int, index: Any, size: int) -> str:
    return t.node("Gather", x, t.name(np.asarray(index, np.int64)), axis=dim)


@handler("embedding")
def _embedding(t: Trace, result: Any, weight: Any, indices: Any, *, padding: Any, by_count: bool) -> str:
    return t.node("Gather", weight, indices, axis=0)


@handler("index_tensors")
def _index_tensors(t: Trace, result: Any, x: Any, *, indices: Any) -> str:
    dims = [i for i, one in enumerate(indices) if one is not None]
    if len(dims) == 1:
        return t.node("Gather", x, indices[dims[0]], axis=dims[0])
    if dims != list(range(len(dims))):
        raise UsageError(
            "onnx.export: expected indices of the first dims, or of one, got others; permute the dims first"
        )
    shape = np.broadcast_shapes(*[one.shape for one in indices[: len(dims)]])
    last = t.name(np.asarray([len(shape)], np.int64))
    parts = []
    for one in indices[: len(dims)]:
        wide = t.node("Expand", one, shape_of(t, shape)) if one.shape != shape else one
        parts.append(t.node("Unsqueeze", wide, last))
    return t.node("GatherND", x, t.node("Concat", *parts, axis=-1))
