"""Pools and columns of windows: one pass of the whole array for each position within the window."""

from __future__ import annotations

from math import inf, prod
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorcore import dtypes
from tensorcore.backend.windows import even_windows, taps, window_sizes

if TYPE_CHECKING:
    from tensorcore.backend.base import Native
    from tensorcore.backend.composed.kernels import Kernels

__all__ = [
    "adaptive_avg_pool", "adaptive_avg_pool_gradient", "avg_pool", "avg_pool_gradient", "fold", "max_pool",
    "max_pool_gradient", "max_pool_indices", "max_pool_pick", "unfold",
]  # fmt: skip

ALL = (slice(None), slice(None))


def _lowest(k: Kernels, x: Native) -> Any:
    kind = k.kind(x)
    return -inf if kind == "floating" else False if kind == "bool" else int(np.iinfo(k.dtype(x).numpy).min)


def max_pool(k: Kernels, x: Native, *, counts: Any, kernel: Any, stride: Any, padding: Any, dilation: Any) -> Native:
    """The largest value of each window; NaN where it has one."""
    made = k.full((*x.shape[:2], *counts), _lowest(k, x), dtype=k.dtype(x))
    for _, outputs, inputs in taps(tuple(x.shape[2:]), counts, kernel, stride, padding, dilation):
        into = k.index(made, key=(*ALL, *outputs))
        k.copy(into, k.maximum(into, k.index(x, key=(*ALL, *inputs))))
    return made


def max_pool_gradient(k: Kernels, g: Native, x: Native, made: Native, **options: Any) -> Native:
    """``g`` added up where the maxima are: at the first of equal ones, and at the last NaN."""
    where, places = _maxima(k, x, made, options)
    back = k.zeros(tuple(x.shape), g)
    for i, (_, outputs, inputs) in enumerate(places):
        into = k.index(back, key=(*ALL, *inputs))
        chosen = k.eq(k.index(where, key=(*ALL, *outputs)), i)
        k.copy(into, k.add(into, k.where(chosen, k.index(g, key=(*ALL, *outputs)), k.zeros((), g))))
    return back


def max_pool_pick(k: Kernels, x: Native, source: Native, made: Native, **options: Any) -> Native:
    """The value of ``x`` where the maxima are."""
    where, places = _maxima(k, source, made, options)
    picked = k.zeros(tuple(made.shape), x)
    for i, (_, outputs, inputs) in enumerate(places):
        into = k.index(picked, key=(*ALL, *outputs))
        chosen = k.eq(k.index(where, key=(*ALL, *outputs)), i)
        k.copy(into, k.where(chosen, k.index(x, key=(*ALL, *inputs)), into))
    return picked


def max_pool_indices(k: Kernels, x: Native, made: Native, **options: Any) -> Native:
    """The flat index within a channel of each maximum."""
    sizes = tuple(x.shape[2:])
    flat = k.host(np.arange(prod(sizes)).reshape(1, 1, *sizes))
    return max_pool_pick(k, k.expand(flat, shape=tuple(x.shape)), x, made, **options)


def _maxima(k: Kernels, x: Native, made: Native, options: dict[str, Any]) -> tuple[Native, Any]:
    """For each window the number of the tap that has its maximum, and the taps."""
    places = taps(
        tuple(x.shape[2:]), *[options[name] for name in ("counts", "kernel", "stride", "padding", "dilation")]
    )
    where = k.full(tuple(made.shape), -1, dtype=dtypes.int64)
    for i, (_, outputs, inputs) in enumerate(places):
        at, part = k.index(where, key=(*ALL, *outputs)), k.index(x, key=(*ALL, *inputs))
        found = k.logical_and(k.eq(part, k.index(made, key=(*ALL, *outputs))), k.lt(at, 0))
        k.copy(at, k.where(k.logical_or(found, k.ne(part, part)), i, at))
    return where, places


def _wide(k: Kernels, x: Native) -> Native:
    dtype = k.dtype(x)
    return k.cast(x, dtype=dtypes.float32) if dtype.itemsize <= 2 and dtype.kind == "floating" else x


def avg_pool(
    k: Kernels, x: Native, *, counts: Any, kernel: Any, stride: Any, padding: Any, count_padding: bool, divisor: Any
) -> Native:
    wide = _wide(k, x)
    made = k.zeros((*x.shape[:2], *counts), wide)
    for _, outputs, inputs in taps(tuple(x.shape[2:]), counts, kernel, stride, padding, (1,) * len(kernel)):
        into = k.index(made, key=(*ALL, *outputs))
        k.copy(into, k.add(into, k.index(wide, key=(*ALL, *inputs))))
    by = divisor or k.host(window_sizes(x.shape[2:], counts, kernel, stride, padding, count_padding))
    if k.kind(x) == "integer":
        # Cut off at the point as in C, not rounded down.
        by = by if divisor else k.cast(by, dtype=k.dtype(x))
        return k.mul(k.sign(made), k.floor_divide(k.abs(made), by))
    return k.cast(k.div(made, by if divisor else k.cast(by, dtype=k.dtype(made))), dtype=k.dtype(x))


def avg_pool_gradient(
    k: Kernels, g: Native, *, shape: Any, counts: Any, kernel: Any, stride: Any, padding: Any, count_padding: bool,
    divisor: Any,
) -> Native:  # fmt: skip
    wide = _wide(k, g)
    by = divisor or k.cast(
        k.host(window_sizes(shape[2:], counts, kernel, stride, padding, count_padding)), dtype=k.dtype(wide)
    )
    share, back = k.div(wide, by), k.zeros(tuple(shape), wide)
    for _, outputs, inputs in taps(tuple(shape[2:]), counts, kernel, stride, padding, (1,) * len(kernel)):
        into = k.index(back, key=(*ALL, *inputs))
        k.copy(into, k.add(into, k.index(share, key=(*ALL, *outputs))))
    return k.cast(back, dtype=k.dtype(g))


def adaptive_avg_pool(k: Kernels, x: Native, *, counts: Any) -> Native:
    """Means of as many windows as ``counts`` says, spread over the sizes evenly."""
    made = _wide(k, x)
    for dim, count in enumerate(counts, 2):
        means = k.zeros((*made.shape[:dim], count, *made.shape[dim + 1 :]), made)
        for i, (start, stop) in enumerate(even_windows(made.shape[dim], count)):
            into = k.index(means, key=(*_front(dim), i))
            for at in range(start, stop):
                k.copy(into, k.add(into, k.index(made, key=(*_front(dim), at))))
            k.copy(into, k.div(into, stop - start))
        made = means
    return k.cast(made, dtype=k.dtype(x))


def adaptive_avg_pool_gradient(k: Kernels, g: Native, *, shape: Any) -> Native:
    """The adjoint of ``adaptive_avg_pool``."""
    made = _wide(k, g)
    for dim, size in enumerate(shape[2:], 2):
        back = k.zeros((*made.shape[:dim], size, *made.shape[dim + 1 :]), made)
        for i, (start, stop) in enumerate(even_windows(size, made.shape[dim])):
            share = k.div(k.index(made, key=(*_front(dim), i)), stop - start)
            for at in range(start, stop):
                into = k.index(back, key=(*_front(dim), at))
                k.copy(into, k.add(into, share))
        made = back
    return k.cast(made, dtype=k.dtype(g))


def _front(dim: int) -> tuple[slice, ...]:
    return (slice(None),) * dim


def unfold(k: Kernels, x: Native, *, counts: Any, kernel: Any, stride: Any, padding: Any, dilation: Any) -> Native:
    """Each window as a column: (batch, channels * taps, windows)."""
    batch, channels = x.shape[:2]
    made = k.zeros((batch, channels, prod(kernel), *counts), x)
    for i, (_, outputs, inputs) in enumerate(taps(tuple(x.shape[2:]), counts, kernel, stride, padding, dilation)):
        k.copy(k.index(made, key=(*ALL, i, *outputs)), k.index(x, key=(*ALL, *inputs)))
    return k.reshape(made, (batch, channels * prod(kernel), prod(counts)))


def fold(
    k: Kernels, g: Native, *, shape: Any, counts: Any, kernel: Any, stride: Any, padding: Any, dilation: Any
) -> Native:
    """Columns added up where their windows lie in ``shape``."""
    wide = _wide(k, g)
    columns = k.reshape(wide, (*shape[:2], prod(kernel), *counts))
    made = k.zeros(tuple(shape), wide)
    for i, (_, outputs, inputs) in enumerate(taps(tuple(shape[2:]), counts, kernel, stride, padding, dilation)):
        into = k.index(made, key=(*ALL, *inputs))
        k.copy(into, k.add(into, k.index(columns, key=(*ALL, i, *outputs))))
    return k.cast(made, dtype=k.dtype(g))
