"""Images read at any places between and beyond their elements, and the gradients of both."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tensorcore.backend.base import Kernel, Native
    from tensorcore.backend.xp import XPBackend

__all__ = ["kernels"]

# What a step on the way to a place is rounded by.
Step = Callable[[Any], Any]
# For each element that a place is between along a dim: whole places, -1 where there is none, weights, and their slopes.
Line = list[tuple[Any, Any, Any]]


def kernels(backend: XPBackend) -> dict[str, Kernel]:
    """The family's kernels for one backend: what they take stands with the op, ops/layers/grid_sample.py."""
    xp = backend.xp

    def padded(x: Native, n: int, padding_mode: str, corners: bool, step: Step) -> tuple[Native, Any]:
        """The places inside that those outside stand for, and the slopes of that: 0 at the bounds, as in PyTorch."""
        end = step(x.dtype.type(n - 1))
        if padding_mode == "zeros":
            return x, 1
        slope: Any = 1
        if padding_mode == "reflection":
            low, span = (0.0, n - 1) if corners else (-0.5, n)
            if span == 0:
                return xp.zeros_like(x), 0
            away = xp.abs(step(x - low))
            flips = xp.floor(step(away / span))
            extra = step(away - step(flips * span))
            even = flips % 2 == 0
            slope = xp.where((x < low) == even, -1, 1)
            x = step(xp.where(even, extra, step(span - extra)) + low)
        slope = xp.where((x > 0) & (x < end), slope, 0)
        return xp.clip(xp.where(x == x, x, 0), 0, end).astype(x.dtype), slope

    def inside(x: Native, n: int) -> Native:
        """Whole floating places as indices, -1 for those that are none of the image's."""
        return xp.where((x >= 0) & (x < n), x, -1).astype(np.int64)

    def line(x: Native, n: int, mode: str, padding_mode: str, corners: bool, step: Step) -> Line:
        scale = (n - 1) / 2 if corners else n / 2
        x = step(step(x + 1) * scale)
        x = x if corners else step(x - 0.5)
        if mode != "bicubic":
            x, slope = padded(x, n, padding_mode, corners, step)
            slope = (slope * scale) * xp.ones_like(x)
        if mode == "nearest":
            return [(inside(xp.rint(x), n), xp.ones_like(x), xp.zeros_like(x))]
        low = xp.floor(x)
        t = x - low
        if mode == "bilinear":
            return [(inside(low, n), 1 - t, -slope), (inside(low + 1, n), t, slope)]
        # Keys' kernel at the distances 1 + t, t, 1 - t and 2 - t.
        a, found = -0.75, []
        for k, away in enumerate((step(t + 1), t, step(1 - t), step(2 - t))):
            if k in (1, 2):
                by = step(step(step(step(step((a + 2) * away) - (a + 3)) * away) * away) + 1)
                slope = (3 * (a + 2) * away - 2 * (a + 3)) * away
            else:
                by = step(step(step(step(step(step(a * away) - 5 * a) * away) + 8 * a) * away) - 4 * a)
                slope = (3 * a * away - 10 * a) * away + 8 * a
            at = inside(padded(step(low + (k - 1)), n, padding_mode, corners, step)[0], n)
            found.append((at, by, slope * (scale if k < 2 else -scale)))
        return found

    def lines(grid: Native, sizes: Any, mode: str, padding_mode: str, align_corners: bool) -> list[Line]:
        """A line for each dim of the image; in each, places are (batch, places)."""
        flat = grid.reshape(grid.shape[0], prod(grid.shape[1:-1]), len(sizes))
        last = len(sizes) - 1
        narrow = flat.dtype if flat.itemsize == 2 else None
        step: Step = (lambda x: x) if narrow is None else (lambda x: x.astype(narrow).astype(np.float32))
        wide = flat if narrow is None else flat.astype(np.float32)
        return [line(wide[..., last - i], n, mode, padding_mode, align_corners, step) for i, n in enumerate(sizes)]

    def flat_places(chosen: Any, sizes: Any) -> tuple[Native, Native]:
        """Flat indices of a plane, 0 for what is outside, and what is inside."""
        flat, there = 0, True
        for (at, _, _), n in zip(chosen, sizes, strict=True):
            flat, there = flat * n + at, there & (at >= 0)
        return xp.where(there, flat, 0), there

    def weight(chosen: Any, leave: int = -1) -> Any:
        """The product of the weights, in which that of dim ``leave`` is its slope."""
        return prod([slope if i == leave else by for i, (_, by, slope) in enumerate(chosen)])

    def read(planes: Native, flat: Native, there: Native) -> Native:
        """The elements of (batch, channels, plane) at (batch, places); 0 outside."""
        found = xp.take_along_axis(planes, flat[:, None], 2)
        return xp.where(there[:, None], found, xp.zeros((), found.dtype))

    def wide(x: Native) -> Native:
        """Narrow floats as those that they are computed in."""
        return x.astype(np.float32) if x.itemsize == 2 else x

    def grid_sample(input: Native, grid: Native, **options: Any) -> Native:
        """The values of images at places: (batch, channels, *places)."""
        sizes = input.shape[2:]
        planes = wide(input).reshape(*input.shape[:2], prod(sizes))
        made: Any = xp.zeros((*input.shape[:2], prod(grid.shape[1:-1])), planes.dtype)
        if options["mode"] == "nearest":
            (chosen,) = product(*lines(grid, sizes, **options))
            made = read(planes, *flat_places(chosen, sizes)) if made.size else made
        elif made.size:
            for chosen in product(*lines(grid, sizes, **options)):
                made += read(planes, *flat_places(chosen, sizes)) * weight(chosen)[:, None]
        return made.astype(input.dtype, copy=False).reshape(*input.shape[:2], *grid.shape[1:-1])

    def grid_sample_backward(g: Native, input: Native, grid: Native, *, needs: Any, **options: Any) -> Any:
        """The gradients of the images and of the places, None where they are not needed."""
        (batch, channels), sizes = input.shape[:2], input.shape[2:]
        size = prod(sizes)
        planes = wide(input).reshape(batch, channels, size)
        g = wide(g).reshape(batch, channels, prod(grid.shape[1:-1]))
        image = xp.zeros(batch * channels * size, planes.dtype)
        places: Any = xp.zeros((len(sizes), *g.shape[::2]), planes.dtype)
        first = (xp.arange(batch * channels) * size).reshape(batch, channels, 1)
        for chosen in product(*lines(grid, sizes, **options)) if g.size else ():
            flat, there = flat_places(chosen, sizes)
            if needs[0]:
                sent = xp.where(there[:, None], g * weight(chosen)[:, None], xp.zeros((), g.dtype))
                xp.add.at(image, (first + flat[:, None]).reshape(-1), sent.reshape(-1))
            if needs[1] and options["mode"] != "nearest":
                dots = (g * read(planes, flat, there)).sum(1)
                for i in range(len(sizes)):
                    places[len(sizes) - 1 - i] += dots * weight(chosen, i)
        return (
            image.astype(input.dtype, copy=False).reshape(input.shape) if needs[0] else None,
            xp.moveaxis(places, 0, -1).astype(grid.dtype, copy=False).reshape(grid.shape) if needs[1] else None,
        )

    return {function.__name__: function for function in (grid_sample, grid_sample_backward)}
