"""Layer, group, instance, RMS and batch normalisation as ``standardize``, both ways, and running statistics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any, NamedTuple

import numpy as np

from tensorcore_cuda.kernels.launch import C_TYPES, WIDE, Driver, family, vector_of
from tensorcore_cuda.kernels.pointwise import Body, Pointwise
from tensorcore_cuda.kernels.reduce import Reducer
from tensorcore_cuda.kernels.rows import dense, teams

__all__ = ["kernels"]

Native = Any
Run = Callable[..., Any]


class _Rows(NamedTuple):
    """Statistics over trailing dims: ``rows`` of ``n`` elements; a weight is ``span`` neighbours', every ``groups`` rows."""

    rows: int
    n: int
    groups: int
    per_row: int
    span: int


class _Channels(NamedTuple):
    """Statistics over all dims but the second: (batch, channels, span)."""

    batch: int
    channels: int
    span: int


def kernels(driver: Driver, table: Mapping[str, Run]) -> dict[str, Run]:
    """The family's kernels; what they do not take goes to the table's."""
    find = family(driver, "norm.cu")
    contiguous = table["contiguous"]
    empty, pointwise, reduce = driver.empty, Pointwise(driver), Reducer(driver)

    def plan(
        x: Native, weight: Any, bias: Any, view: Any, dims: Any, affine: Any, centre: bool
    ) -> _Rows | _Channels | None:
        """How the kernels see a call; None where they do not take it."""
        given = [one for one in (weight, bias) if one is not None]
        if x.dtype not in WIDE or not x.size or any([one.dtype not in (x.dtype, WIDE[x.dtype]) for one in given]):
            return None
        if len({one.dtype for one in given}) > 1 or any([not one.flags.c_contiguous for one in given]):
            return None
        affine = (1,) * (len(view) - len(affine)) + tuple(affine)
        if tuple(dims) == tuple(range(len(view) - len(dims), len(view))) and dims:
            return _as_rows(tuple(view), len(view) - len(dims), affine)
        if tuple(dims) == (0, *range(2, len(view))) and centre and prod(affine) == affine[1] == view[1]:
            return _Channels(view[0], view[1], prod(view[2:]))
        return None

    # Forward

    def standardize(
        x: Native, weight: Any, bias: Any, *, view: Any, dims: Any, affine: Any, eps: float, centre: bool
    ) -> Any:
        how = plan(x, weight, bias, view, dims, affine, centre)
        if how is None:
            return table["standardize"](x, weight, bias, view=view, dims=dims, affine=affine, eps=eps, centre=centre)
        x = dense(x, contiguous)
        made, kind = empty(x.shape, x.dtype), WIDE[x.dtype]
        if isinstance(how, _Channels):
            var, mean = reduce("var_mean_of", x.reshape(how), (0, 2), True, kind, second=kind)
            normalise(x.reshape(how), mean, var, weight, bias, eps, made.reshape(how))
            shape = _kept(view, dims)
            return made, mean.reshape(shape), var.reshape(shape)
        shape = _kept(view, dims)
        mean, var = (empty(shape, kind) if centre else None), empty(shape, kind)
        pointers = [0 if one is None else one.data.ptr for one in (x, weight, bias, made, mean, var)]
        parameter = weight if weight is not None else bias
        kernel, grid, block = rows_kernel("standardize", x, parameter, how, [pointers[0], made.data.ptr], pointers[1:3])
        kernel(grid, block, 0, *pointers, *how, eps, centre)
        return made, mean, var

    def rows_kernel(
        name: str, x: Native, parameter: Any, how: _Rows, pointers: list[int], parameters: list[int]
    ) -> Any:
        kind = x.dtype if parameter is None else parameter.dtype
        through_packs = how.span == 1
        pack = vector_of(x.dtype.itemsize, how.n, *pointers)
        while through_packs and parameter is not None and any([one % (pack * kind.itemsize) for one in parameters]):
            pack //= 2
        team, grid, block = teams(driver, how.rows, how.n // pack)
        types = f"{C_TYPES[x.dtype]}, {C_TYPES[kind]}, {pack}, {team}, {str(through_packs).lower()}"
        return find(f"{name}<{types}>", "PPPPPPqqqqqdi"), grid, block

    def normalise(x: Native, mean: Native, var: Native, weight: Any, bias: Any, eps: float, made: Native) -> None:
        """By statistics of each channel, dim 1 of three."""
        arrays = [x, mean, var, *[one.reshape(-1, 1) for one in (weight, bias) if one is not None]]
        lines = "auto y = (x0 - x1) * (W(1) / sqrt(x2 + W(n0)));"
        if weight is not None:
            lines += " y *= W(x3);"
        if bias is not None:
            lines += f" y += W(x{len(arrays) - 1});"
        pointwise.run(_body(arrays, made, lines), made.shape, arrays, [eps], [made])

    def standardize_by(x: Native, mean: Native, var: Native, weight: Any, bias: Any, *, eps: float) -> Native:
        given = [one for one in (mean, var, weight, bias) if one is not None]
        if x.dtype not in WIDE or any([one.dtype not in WIDE or one.ndim != 1 for one in given]):
            return table["standardize_by"](x, mean, var, weight, bias, eps=eps)
        x = dense(x, contiguous)
        view = (x.shape[0], x.shape[1], prod(x.shape[2:]))
        made = empty(x.shape, x.dtype)
        if x.size:
            normalise(x.reshape(view), mean.reshape(-1, 1), var.reshape(-1, 1), weight, bias, eps, made.reshape(view))
        return made

    # Backward

    def standardize_backward(
        g: Native, x: Native, weight: Any, bias: Any, mean: Any, var: Native,
        *, needs: Any, view: Any, dims: Any, affine: Any, eps: float, centre: bool,
    ) -> Any:  # fmt: skip
        how = plan(x, weight, bias, view, dims, affine, centre)
        if how is None or g.dtype != x.dtype or var.dtype != WIDE[x.dtype]:
            return table["standardize_backward"](
                g, x, weight, bias, mean, var, needs=needs, view=view, dims=dims, affine=affine, eps=eps, centre=centre
            )
        g, x = dense(g, contiguous), dense(x, contiguous)
        wanted = [one is not None and need for one, need in zip((weight, bias), needs[1:], strict=True)]
        if isinstance(how, _Channels):
            return through_channels(g, x, weight, bias, mean, var, how, needs[0], wanted, eps)
        back = None
        if needs[0]:
            back = empty(x.shape, x.dtype)
            pointers = [0 if one is None else one.data.ptr for one in (g, x, weight, mean, var, back)]
            moved = [pointers[0], pointers[1], pointers[5]]
            kernel, grid, block = rows_kernel("standardize_backward", x, weight, how, moved, pointers[2:3])
            kernel(grid, block, 0, *pointers, *how, eps, centre)
        gradients: list[Any] = [None, None]
        if any(wanted):
            channels = how.groups * how.per_row
            seen = _Channels(how.rows // how.groups, channels, how.span)
            parts, pieces = sums(g, x, mean, var, seen, how.groups, how.per_row, eps)
            gradients, _ = joined(parts, pieces, channels, x, (weight, bias), wanted, False)
        return back, *gradients

    def through_channels(
        g: Native, x: Native, weight: Any, bias: Any, mean: Native, var: Native, how: _Channels, needed: bool,
        wanted: list[bool], eps: float,
    ) -> Any:  # fmt: skip
        parts, pieces = sums(g, x, mean, var, how, 0, 1, eps)
        gradients, (total, mixed) = joined(parts, pieces, how.channels, x, (weight, bias), wanted, True)
        back = None
        if needed:
            back = empty(x.shape, x.dtype)
            column = (-1, 1)
            arrays = [g.reshape(how), x.reshape(how), *[one.reshape(column) for one in (mean, var, total, mixed)]]
            if weight is not None:
                arrays.append(weight.reshape(column))
            lines = (
                "const W scale = W(1) / sqrt(x3 + W(n0)); "
                "auto y = (x0 - (x4 + (x1 - x2) * scale * x5) * W(n1)) * scale;"
                + (" y *= W(x6);" if weight is not None else "")
            )
            made = back.reshape(how)
            pointwise.run(_body(arrays, made, lines, 2), made.shape, arrays, [eps, how.channels / x.size], [made])
        return back, *gradients

    def sums(
        g: Native, x: Native, mean: Any, var: Native, how: _Channels, per_batch: int, share: int, eps: float
    ) -> tuple[Native, int]:
        """Sums over each channel of g and of its product with the standardized x, in pieces."""
        c_type, kind = C_TYPES[x.dtype], WIDE[x.dtype]
        columns = how.span == 1
        jobs = -(-how.channels // 32) if columns else how.channels
        pieces = max(1, min(how.batch // (64 if columns else 1), 1024 // jobs))
        parts = empty((pieces, how.channels, 2), kind)
        pointers = [g.data.ptr, x.data.ptr, 0 if mean is None else mean.data.ptr, var.data.ptr, parts.data.ptr]
        grid = (min(jobs * pieces, 1 << 30), 1, 1)
        if columns:
            kernel = find(f"column_sums<{c_type}>", "PPPPPqqqqid")
            kernel(grid, (32, 8, 1), 0, *pointers, how.batch, how.channels, per_batch, share, pieces, eps)
        else:
            kernel = find(f"channel_sums<{c_type}>", "PPPPPqqqqqid")
            kernel(grid, (256, 1, 1), 0, *pointers, *how, per_batch, share, pieces, eps)
        return parts, pieces

    def joined(
        parts: Native, pieces: int, channels: int, x: Native, parameters: Any, wanted: list[bool], keep: bool
    ) -> Any:
        """The gradients of weight and bias that are wanted, and, to keep, both sums as they are."""
        kind = WIDE[x.dtype]
        given = [one.dtype for one in parameters if one is not None]
        dtype = given[0] if given else x.dtype
        made = [empty(one.shape, dtype) if want else None for one, want in zip(parameters, wanted, strict=True)]
        wide = [empty((channels,), kind) if keep else None for _ in range(2)]
        pointers = [0 if one is None else one.data.ptr for one in (*made, *wide)]
        kernel = find(f"join_channels<{C_TYPES[kind]}, {C_TYPES[dtype]}>", "PPPPPqi")
        kernel((driver.blocks(-(-channels // 256)), 1, 1), (256, 1, 1), 0, parts.data.ptr, *pointers, channels, pieces)
        return made, wide

    # Running statistics

    def track_statistics(
        running_mean: Any, running_var: Any, mean: Native, var: Native, *, momentum: float, count: int
    ) -> None:
        given = [one for one in (running_mean, running_var) if one is not None]
        if mean.dtype not in WIDE or var.dtype not in WIDE or any([one.dtype not in WIDE for one in given]):
            table["track_statistics"](running_mean, running_var, mean, var, momentum=momentum, count=count)
            return
        for running, now, factor in ((running_mean, mean, 1.0), (running_var, var, count / max(count - 1, 1))):
            if running is None or not running.size:
                continue
            share = now.reshape(-1, running.size)
            if share.shape[0] != 1:
                share = reduce("mean_of", share, (0,), True, share.dtype)
            lines = "const auto y = x0 * W(n0) + W(x1) * W(n1);"
            arrays = [running, share.reshape(running.shape)]
            pointwise.run(
                _body(arrays, running, lines, 2), running.shape, arrays, [1.0 - momentum, momentum * factor], [running]
            )

    return {
        "standardize": standardize,
        "standardize_backward": standardize_backward,
        "standardize_by": standardize_by,
        "track_statistics": track_statistics,
    }


def _kept(view: Any, dims: Any) -> tuple[int, ...]:
    return tuple([1 if i in dims else size for i, size in enumerate(view)])


def _as_rows(view: tuple[int, ...], first: int, affine: tuple[int, ...]) -> _Rows | None:
    """Rows of the dims from ``first`` on, where weights follow one another in a way that two divisions describe."""
    outer, inner = affine[:first], affine[first:]
    groups, per_row = prod(outer), prod(inner)
    # In front of the rows' dims: ones, then whole dims; within a row: whole dims, then ones.
    if groups != prod(outer[len(outer) - _whole(outer[::-1], view[:first][::-1]) :]):
        return None
    if per_row != prod(inner[: _whole(inner, view[first:])]):
        return None
    n = prod(view[first:])
    return _Rows(prod(view[:first]), n, groups, per_row, n // per_row)


def _whole(affine: tuple[int, ...], view: tuple[int, ...]) -> int:
    """How many dims from the start on are as large in both."""
    count = 0
    for one, size in zip(affine, view, strict=True):
        if one != size:
            break
        count += 1
    return count


def _body(arrays: list[Native], made: Native, lines: str, numbers: int = 1) -> Body:
    """A body that ends in ``y``, computed in the type that ``made`` is computed in."""
    kind = np.dtype(WIDE[made.dtype])
    number = "double" if kind.itemsize == 8 else "float"
    c_type = C_TYPES[made.dtype]
    return Body(
        tuple([C_TYPES[one.dtype] for one in arrays]), (number,) * numbers, (c_type,),
        f"typedef wide<{c_type}> W; {lines} y0 = y;",
    )  # fmt: skip
