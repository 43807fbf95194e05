"""Pools: extremes and sums of windows, one pass of the whole array for each position within the window."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorcore.backend.windows import beyond_edges, even_windows, reach, taps, window_sizes
from tensorcore.dtypes import from_numpy_dtype

if TYPE_CHECKING:
    from tensorcore.backend.base import Kernel, Native
    from tensorcore.backend.xp import XPBackend

__all__ = ["kernels"]


def kernels(backend: XPBackend) -> dict[str, Kernel]:
    """The family's kernels for one backend. Arrays are (batch, channels, *sizes); ``counts`` is how many windows there are."""
    xp = backend.xp

    def lowest(dtype: Any) -> Any:
        if dtype.kind in "iu":
            return np.iinfo(dtype).min
        return False if dtype.kind == "b" else -np.inf

    def max_pool(x: Native, *, counts: Any, kernel: Any, stride: Any, padding: Any, dilation: Any) -> Native:
        """The largest value of each window; NaN where it has one."""
        made = xp.empty((*x.shape[:2], *counts), x.dtype)
        filled = False
        for _, outputs, inputs in taps(x.shape[2:], counts, kernel, stride, padding, dilation):
            part = x[(slice(None), slice(None), *inputs)]
            if not filled:
                # A first position that every window has needs no comparison with minus infinity.
                filled = True
                if part.shape == made.shape:
                    made[...] = part
                    continue
                made.fill(lowest(x.dtype))
            into = made[(slice(None), slice(None), *outputs)]
            xp.maximum(into, part, out=into)
        return made

    def positions(x: Native, made: Native, options: dict[str, Any]) -> Native:
        """Which position of each window its maximum has: the first of equal ones, the last NaN."""
        all_taps = list(taps(x.shape[2:], options["counts"], options["kernel"], options["stride"], options["padding"],
                             options["dilation"]))  # fmt: skip
        kind = np.uint8 if len(all_taps) < 256 else np.int32
        where = xp.zeros(made.shape, kind)
        # Arithmetic with masks: NumPy's writes under ``where=`` take five times as long.
        free = xp.ones(made.shape, np.bool_)
        for i, (_, outputs, inputs) in enumerate(all_taps):
            key = (slice(None), slice(None), *outputs)
            found = x[(slice(None), slice(None), *inputs)] == made[key]
            found &= free[key]
            free[key] ^= found
            where[key] += found.view(np.uint8) * kind(i)
        if x.dtype.kind not in "iub" and xp.isnan(made).any():
            for i, (_, outputs, inputs) in enumerate(all_taps):
                part = x[(slice(None), slice(None), *inputs)]
                xp.copyto(where[(slice(None), slice(None), *outputs)], i, where=part != part)
        return where

    def max_pool_gradient(g: Native, x: Native, made: Native, **options: Any) -> Native:
        """The adjoint of reading each window's maximum: ``g`` added up where the maxima are."""
        where = positions(x, made, options)
        back = xp.zeros(x.shape, g.dtype)
        stride, kernel, dilation = options["stride"], options["kernel"], options["dilation"]
        apart = all(s >= d * (k - 1) + 1 for s, k, d in zip(stride, kernel, dilation, strict=True))
        for i, (_, outputs, inputs) in enumerate(
            taps(x.shape[2:], options["counts"], kernel, stride, options["padding"], dilation)
        ):
            key, at = (slice(None), slice(None), *outputs), (slice(None), slice(None), *inputs)
            if apart:
                back[at] = masked(g[key], where[key] == i)
            else:
                back[at] += masked(g[key], where[key] == i)
        return back

    def masked(g: Native, mask: Native) -> Native:
        """``g`` where the mask is set, else 0, bit by bit: an infinity times 0 would be NaN."""
        bits = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}[g.itemsize]
        return (g.view(bits) & -mask.astype(bits)).view(g.dtype)

    def max_pool_pick(x: Native, source: Native, made: Native, **options: Any) -> Native:
        """The value of ``x`` where the maxima ``made`` of the windows of ``source`` are."""
        where = positions(source, made, options)
        picked = xp.zeros(made.shape, x.dtype)
        for i, (_, outputs, inputs) in enumerate(taps(x.shape[2:], options["counts"], options["kernel"], options["stride"],
                                                      options["padding"], options["dilation"])):  # fmt: skip
            key = (slice(None), slice(None), *outputs)
            xp.copyto(picked[key], x[(slice(None), slice(None), *inputs)], where=where[key] == i)
        return picked

    def max_pool_indices(x: Native, made: Native, **options: Any) -> Native:
        """The flat index within a channel of each window's maximum, int64."""
        where = positions(x, made, options).astype(np.int64)
        flat = xp.zeros(made.shape, np.int64)
        below = 1
        for i in range(len(options["kernel"]) - 1, -1, -1):
            where, at = xp.divmod(where, options["kernel"][i])
            starts = xp.arange(options["counts"][i]) * options["stride"][i] - options["padding"][i]
            shape = [1] * made.ndim
            shape[i + 2] = -1
            flat += (starts.reshape(shape) + at * options["dilation"][i]) * below
            below *= x.shape[i + 2]
        return flat

    def adaptive_max(x: Native, *, counts: Any) -> tuple[Native, Native]:
        """The largest element of each of the windows that cover it evenly, and its flat index within a channel."""
        reaches = []
        for n, count in zip(x.shape[2:], counts, strict=True):
            starts, stops = np.array(even_windows(n, count), np.int64).reshape(-1, 2).T
            longest = int((stops - starts).max(initial=1))
            at = np.minimum(starts[:, None] + np.arange(longest), stops[:, None] - 1)
            reaches.append(xp.asarray(at[None, None]))
        return largest(x, reaches)

    def fractional_max(x: Native, drawn: Native, *, counts: Any, kernel: Any) -> tuple[Native, Native]:
        """The same for windows of one size, whose places are drawn: (batch, channels, dims) in [0, 1)."""
        reaches, dims = [], len(counts)
        for i, (n, k, count) in enumerate(zip(x.shape[2:], kernel, counts, strict=True)):
            sample = drawn[..., 1 - i if dims == 2 else i, None]
            starts = xp.full((*drawn.shape[:2], count), n - k, np.int64)
            if count > 1:
                alpha = drawn.dtype.type(n - k) / drawn.dtype.type(count - 1)
                at = xp.arange(count - 1).astype(drawn.dtype)
                starts[..., :-1] = ((at + sample) * alpha).astype(np.int64) - (sample * alpha).astype(np.int64)
            reaches.append(xp.clip(starts, 0, n - k)[..., None] + xp.arange(k))
        return largest(x, reaches)

    def largest(x: Native, reaches: list[Native]) -> tuple[Native, Native]:
        """Of the windows with those places along each dim, (batch, channels, counts, elements), the first of the largest elements,
        the last NaN, and their flat indices."""
        dims, flat = len(reaches), xp.zeros((1,) * (2 + 2 * len(reaches)), np.int64)
        for i, (at, n) in enumerate(zip(reaches, x.shape[2:], strict=True)):
            shape = [*at.shape[:2], *[1] * (2 * dims)]
            shape[2 + i], shape[2 + dims + i] = at.shape[2:]
            flat = flat * n + at.reshape(shape)
        counts = flat.shape[2 : 2 + dims]
        flat = xp.broadcast_to(flat, (*x.shape[:2], *flat.shape[2:])).reshape(*x.shape[:2], prod(counts), -1)
        values = xp.take_along_axis(x.reshape(*x.shape[:2], 1, prod(x.shape[2:])), flat, 3)
        chosen, nans = values.argmax(3), xp.isnan(values)
        chosen = xp.where(nans.any(3), flat.shape[3] - 1 - nans[..., ::-1].argmax(3), chosen)
        found = [xp.take_along_axis(one, chosen[..., None], 3).reshape(*x.shape[:2], *counts) for one in (values, flat)]
        return found[0], found[1]

    def avg_pool(
        x: Native, *, counts: Any, kernel: Any, stride: Any, padding: Any, count_padding: bool, divisor: Any
    ) -> Native:
        """Means of windows: sums dim by dim, since a box is a product of intervals."""
        full = kernel
        made = x if x.itemsize > 2 or x.dtype.kind in "iu" else x.astype(np.float32)
        if kernel == tuple(x.shape[2:]) and not any(padding) and prod(counts) == 1:
            made = xp.add.reduce(made, tuple(range(2, x.ndim)), keepdims=True)
            kernel = ()
        for i in range(len(kernel) - 1, -1, -1):
            front = (slice(None),) * (i + 2)
            made_shape = (*made.shape[: i + 2], counts[i], *made.shape[i + 3 :])
            summed = None
            for k in range(kernel[i]):
                outputs, inputs = reach(made.shape[i + 2], counts[i], k - padding[i], stride[i])
                part = made[(*front, inputs)]
                if summed is None and part.shape == made_shape:
                    summed = part.copy()
                    continue
                summed = xp.zeros(made_shape, made.dtype) if summed is None else summed
                summed[(*front, outputs)] += part
            made = summed
        by = divisor or xp.asarray(window_sizes(x.shape[2:], counts, full, stride, padding, count_padding))
        if made.dtype.kind in "iu":
            if made.dtype == np.uint64 and not divisor:
                by = by.astype(np.uint64)  # with int64 NumPy would divide in float64
            # Cut off at the point as in C, not rounded down.
            whole = xp.sign(made) * (xp.abs(made) // abs(by))
            return (-whole if divisor and divisor < 0 else whole).astype(x.dtype)
        made /= by if divisor else xp.asarray(by, made.dtype)
        return made.astype(x.dtype, copy=False)

    def avg_pool_gradient(g: Native, *, shape: Any, counts: Any, kernel: Any, stride: Any, padding: Any, count_padding: bool,
                          divisor: Any) -> Native:  # fmt: skip
        """The adjoint of ``avg_pool``."""
        by = divisor or xp.asarray(window_sizes(shape[2:], counts, kernel, stride, padding, count_padding))
        wide = g if g.itemsize > 2 else g.astype(np.float32)
        back = wide / (by if divisor else by.astype(wide.dtype))
        for i in range(len(kernel)):
            front = (slice(None),) * (i + 2)
            spread = xp.zeros((*back.shape[: i + 2], shape[i + 2], *back.shape[i + 3 :]), back.dtype)
            for k in range(kernel[i]):
                outputs, inputs = reach(shape[i + 2], counts[i], k - padding[i], stride[i])
                spread[(*front, inputs)] += back[(*front, outputs)]
            back = spread
        return back.astype(g.dtype, copy=False)

    def adaptive_avg_pool(x: Native, *, counts: Any) -> Native:
        """Means of as many windows as ``counts`` says, spread over the sizes evenly."""
        made = x if x.itemsize > 2 else x.astype(np.float32)
        for dim, count in enumerate(counts, 2):
            front, windows = (slice(None),) * dim, even_windows(made.shape[dim], count)
            means = xp.empty((*made.shape[:dim], count, *made.shape[dim + 1 :]), made.dtype)
            for i, (start, stop) in enumerate(windows):
                means[(*front, i)] = made[(*front, slice(start, stop))].sum(dim)
            made = means / lengths(windows, means, dim)
        return made.astype(x.dtype, copy=False)

    def adaptive_avg_pool_gradient(g: Native, *, shape: Any) -> Native:
        """The adjoint of ``adaptive_avg_pool``."""
        back = g if g.itemsize > 2 else g.astype(np.float32)
        for dim, size in enumerate(shape[2:], 2):
            front, windows = (slice(None),) * dim, even_windows(size, back.shape[dim])
            share = back / lengths(windows, back, dim)
            back = xp.zeros((*back.shape[:dim], size, *back.shape[dim + 1 :]), back.dtype)
            for i, (start, stop) in enumerate(windows):
                back[(*front, slice(start, stop))] += share[(*front, slice(i, i + 1))]
        return back.astype(g.dtype, copy=False)

    def lengths(windows: Any, like: Native, dim: int) -> Native:
        """How many elements each of some windows has, along a dim of as many dims as ``like``."""
        found = xp.asarray([stop - start for start, stop in windows], like.dtype)
        return found.reshape(-1, *[1] * (like.ndim - 1 - dim))

    def take_rows(x: Native, *, dim: int, index: np.ndarray, size: int) -> Native:
        """The slices of ``x``, ``size`` of them along ``dim``, in the order of ``index``."""
        return xp.take(x, xp.asarray(index), axis=dim)

    def add_rows(x: Native, *, dim: int, index: np.ndarray, size: int) -> Native:
        """The adjoint of ``take_rows``: slices added up where ``index`` says."""
        made = xp.zeros((*x.shape[:dim], size, *x.shape[dim + 1 :]), x.dtype)
        if index.size and x.size:
            order = np.argsort(index, kind="stable")
            rows, starts = np.unique(index[order], return_index=True)
            ordered = x if (order[1:] > order[:-1]).all() else xp.take(x, xp.asarray(order), axis=dim)
            front = (slice(None),) * dim
            if len(rows) == len(index):
                made[(*front, xp.asarray(rows))] = ordered
            else:
                wide = (
                    ordered.astype(np.float32) if ordered.itemsize == 2 and ordered.dtype.kind not in "iu" else ordered
                )
                made[(*front, xp.asarray(rows))] = xp.add.reduceat(wide, xp.asarray(starts), axis=dim)
        return made

    def max_unpool(x: Native, indices: Native, *, shape: Any) -> Native:
        """Zeros of ``shape`` with each value at its flat index within a channel."""
        made = xp.zeros(shape, x.dtype)
        rows, count = made.reshape(*shape[:2], prod(shape[2:])), prod(x.shape[2:])
        xp.put_along_axis(rows, indices.reshape(*shape[:2], count), x.reshape(*shape[:2], count), axis=2)
        return made

    def max_unpool_gradient(g: Native, indices: Native) -> Native:
        """The adjoint of ``max_unpool``: each value read at its flat index within a channel."""
        rows = g.reshape(*g.shape[:2], prod(g.shape[2:]))
        return xp.take_along_axis(rows, indices.reshape(*g.shape[:2], prod(indices.shape[2:])), axis=2).reshape(
            indices.shape
        )

    def constant_pad(x: Native, *, shape: Any, key: Any, value: Any) -> Native:
        """``x`` at ``key`` within an array of one value."""
        made = backend.allocate(shape, from_numpy_dtype(x.dtype))
        made.fill(value)
        made[key] = x
        return made

    def edge_pad(x: Native, *, mode: str, pads: Any, shape: Any) -> Native:
        """The last dims of ``x`` padded by what is within their edges."""
        for dim, (before, after) in enumerate(zip(pads[::2], pads[1::2], strict=True), x.ndim - len(pads) // 2):
            if before or after:
                x = take_rows(x, dim=dim, index=beyond_edges(mode, x.shape[dim], before, after), size=x.shape[dim])
        return x

    def edge_pad_gradient(g: Native, *, mode: str, pads: Any, shape: Any) -> Native:
        """The adjoint of ``edge_pad``."""
        if g.itemsize == 2 and g.dtype.kind not in "iu":
            return edge_pad_gradient(g.astype(np.float32), mode=mode, pads=pads, shape=shape).astype(g.dtype)
        for dim, (before, after) in enumerate(zip(pads[::2], pads[1::2], strict=True), g.ndim - len(pads) // 2):
            if before or after:
                g = add_rows(g, dim=dim, index=beyond_edges(mode, shape[dim], before, after), size=shape[dim])
        return g

    def blend(x: Native, index: Native, weights: Native, *, dim: int) -> Native:
        """The slices of ``x`` that each row of ``index`` numbers, times the weights in the same place, added up."""
        across = (-1,) + (1,) * (x.ndim - 1 - dim)
        made = xp.take(x, index[0], axis=dim) * weights[0].reshape(across)
        for at, weight in zip(index[1:], weights[1:], strict=True):
            made += xp.take(x, at, axis=dim) * weight.reshape(across)
        return made

    def blend_gradient(g: Native, index: Native, weights: Native, *, dim: int, size: int) -> Native:
        """The adjoint of ``blend``, from ``size`` slices."""
        across = (-1,) + (1,) * (g.ndim - 1 - dim)
        made = xp.zeros((*g.shape[:dim], size, *g.shape[dim + 1 :]), g.dtype)
        for at, weight in zip(backend.to_host(index), weights, strict=True):
            made += add_rows(g * weight.reshape(across), dim=dim, index=at, size=size)
        return made

    def index_bounds(x: Native) -> tuple[int, int]:
        """The smallest and the largest of some indices; (0, -1) of none."""
        return (int(x.min()), int(x.max())) if x.size else (0, -1)

    def embedding(weight: Native, indices: Native, *, padding: int | None, by_count: bool) -> Native:
        return xp.take(weight, indices, axis=0)

    def per_row(indices: Native, rows: int) -> Native:
        return xp.maximum(xp.bincount(indices.reshape(-1), minlength=rows), 1)

    def bag(
        weight: Native, indices: Native, offsets: Native, scales: Native | None = None, *, mode: str, last: bool,
        padding: int | None = None,
    ) -> Native:  # fmt: skip
        """The rows that each bag numbers, from one of the ``offsets`` to the next, added up, averaged, or the largest of them.

        Indices that are ``padding`` count for nothing.
        """
        if padding is not None:
            counted = indices != padding
            before = xp.concatenate([xp.zeros(1, np.int64), xp.cumsum(counted, dtype=np.int64)])
            indices, offsets, scales = indices[counted], before[offsets], None if scales is None else scales[counted]
        if weight.itemsize == 2:  # rounded once
            by = None if scales is None else scales.astype(np.float32)
            return bag(weight.astype(np.float32), indices, offsets, by, mode=mode, last=last).astype(weight.dtype)
        starts = backend.to_host(offsets)
        count, n = len(starts) - last, len(indices)
        owner = np.searchsorted(starts[:count], np.arange(starts[-1] if last else n), side="right") - 1
        rows = xp.take(weight, indices[: len(owner)], axis=0)
        many = np.bincount(owner, minlength=count)
        if mode == "max":
            made = xp.zeros((count, weight.shape[1]), weight.dtype)
            made[xp.asarray(many > 0)] = -np.inf
            xp.maximum.at(made, xp.asarray(owner), rows)
            return made
        rows = rows if scales is None else rows * scales[: len(owner), None]
        made = add_rows(rows, dim=0, index=owner, size=count)
        return made / xp.asarray(np.maximum(many, 1), weight.dtype)[:, None] if mode == "mean" else made

    def embedding_gradient(g: Native, indices: Native, *, rows: int, padding: int | None, by_count: bool) -> Native:
        """Rows of ``g`` added up where their indices say; ``by_count`` makes that a mean."""
        if g.itemsize == 2:  # rounded once
            wide = embedding_gradient(g.astype(np.float32), indices, rows=rows, padding=padding, by_count=by_count)
            return wide.astype(g.dtype)
        made = add_rows(
            g.reshape(indices.size, g.shape[-1]), dim=0, index=backend.to_host(indices).reshape(-1), size=rows
        )
        if by_count:
            made /= per_row(indices, rows)[:, None].astype(made.dtype)
        if padding is not None:
            made[padding] = 0
        return made

    def embedding_pick(weight: Native, indices: Native, *, padding: int | None, by_count: bool) -> Native:
        """The adjoint of ``embedding_gradient``."""
        made = xp.take(weight, indices, axis=0)
        if by_count:
            made /= per_row(indices, weight.shape[0])[indices][..., None].astype(made.dtype)
        if padding is not None:
            made[indices == padding] = 0
        return made

    return {function.__name__: function for function in (
        constant_pad, edge_pad, edge_pad_gradient, blend, blend_gradient,
        index_bounds, embedding, bag, embedding_gradient, embedding_pick, max_pool, max_pool_gradient,
        max_pool_pick, max_pool_indices, adaptive_max, fractional_max, avg_pool, avg_pool_gradient, adaptive_avg_pool,
        adaptive_avg_pool_gradient, take_rows, add_rows, max_unpool, max_unpool_gradient,
    )}  # fmt: skip
