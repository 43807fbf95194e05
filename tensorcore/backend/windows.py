"""Where the windows of convolutions and pools lie, as slices, and which elements lie beyond the edges."""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

__all__ = ["beyond_edges", "even_windows", "reach", "taps", "window_sizes"]

Slices = tuple[slice, ...]


def reach(size: int, count: int, start: int, step: int) -> tuple[slice, slice]:
    """The outputs whose input ``start + step * output`` lies within ``size``, and those inputs.

    Slices in place of a padded copy: what would read the padding is left out.
    """
    first = 0 if start >= 0 else -(start // step)
    last = min(count, (size - 1 - start) // step + 1) if size > start else 0
    if last <= first:
        return slice(0, 0), slice(0, 0)
    return slice(first, last), slice(start + first * step, start + (last - 1) * step + 1, step)


@lru_cache(maxsize=512)
def taps(
    sizes: tuple[int, ...], counts: tuple[int, ...], kernel: tuple[int, ...], stride: tuple[int, ...],
    padding: tuple[int, ...], dilation: tuple[int, ...],
) -> tuple[tuple[tuple[int, ...], Slices, Slices], ...]:  # fmt: skip
    """For each position within the window, row by row: the position, the outputs that have it, the inputs they read there."""
    per_dim = [
        [reach(size, count, k * d - p, s) for k in range(kernel_size)]
        for size, count, kernel_size, s, p, d in zip(sizes, counts, kernel, stride, padding, dilation, strict=True)
    ]
    found = []
    for position in product(*map(range, kernel)):
        pairs = [one[k] for one, k in zip(per_dim, position, strict=True)]
        found.append((position, tuple([out for out, _ in pairs]), tuple([at for _, at in pairs])))
    return tuple(found)


@lru_cache(maxsize=512)
def even_windows(size: int, count: int) -> tuple[tuple[int, int], ...]:
    """Where each of ``count`` windows that cover ``size`` evenly begins and ends; neighbours may share an element.

    Window i reaches from floor(i * size / count) to ceil((i + 1) * size / count).
    """
    return tuple([(i * size // count, -(-(i + 1) * size // count)) for i in range(count)])


def window_sizes(
    sizes: tuple[int, ...], counts: tuple[int, ...], kernel: tuple[int, ...], stride: tuple[int, ...],
    padding: tuple[int, ...], count_padding: bool,
) -> np.ndarray:  # fmt: skip
    """How many elements the mean of each window is over."""
    found: Any = 1
    for i, (n, c, k, s, p) in enumerate(zip(sizes, counts, kernel, stride, padding, strict=True)):
        start = np.arange(c) * s - p
        stop = np.minimum(start + k, n + p)
        length = stop - start if count_padding else np.minimum(stop, n) - np.maximum(start, 0)
        found = found * length.reshape(-1, *[1] * (len(sizes) - 1 - i))
    return found  # type: ignore[no-any-return]


def beyond_edges(mode: str, n: int, before: int, after: int) -> np.ndarray:
    """The places of a dim of ``n`` elements in the order in which they stand once it is padded; negative amounts take away.

    Args:
        mode: ``reflect`` (without the edge), ``replicate`` (the edge) or ``circular``.
    """
    if mode == "replicate":
        return np.clip(np.arange(-before, n + after), 0, n - 1)
    if mode == "reflect":
        at = np.abs(np.arange(-before, n + after))
        return np.where(at >= n, 2 * (n - 1) - at, at)
    # What is taken away is gone before the rest goes around.
    left = np.arange(max(-before, 0), n - max(-after, 0))
    return left[np.arange(-max(before, 0), len(left) + max(after, 0)) % max(len(left), 1)]
