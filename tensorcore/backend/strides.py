"""Strides of views: which steps through memory show it in another shape. Plain tuples in and out, in elements."""

from __future__ import annotations

import functools
from math import prod

__all__ = ["column_strides", "contiguous_strides", "may_overlap", "memory_order", "ordered_strides", "view_strides"]

Shape = tuple[int, ...]


def contiguous_strides(shape: Shape) -> tuple[int, ...]:
    """Row-major strides in elements, as PyTorch gives them (sizes of 0 count as 1)."""
    strides = [1] * len(shape)
    for i in range(len(shape) - 2, -1, -1):
        strides[i] = strides[i + 1] * max(shape[i + 1], 1)
    return tuple(strides)


def ordered_strides(shape: Shape, order: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of a dense array whose dims lie in ``order``, from the largest stride to the smallest."""
    strides, step = [1] * len(shape), 1
    for dim in reversed(order):
        strides[dim] = step
        step *= max(shape[dim], 1)
    return tuple(strides)


def may_overlap(shape: Shape, strides: tuple[int, ...]) -> bool:
    """Whether two elements of an array of this shape and these strides may share a place."""
    reach = 0
    for step, n in sorted((step, n) for n, step in zip(shape, strides, strict=True) if n > 1):
        if step <= reach:
            return True
        reach += step * (n - 1)
    return False


def memory_order(strides: tuple[int, ...]) -> tuple[int, ...]:
    """The dims from the one with the largest step to the one with the smallest: how a tensor lies in memory."""
    return tuple(sorted(range(len(strides)), key=lambda i: -strides[i]))


@functools.lru_cache(1024)
def view_strides(shape: Shape, strides: tuple[int, ...], new: Shape) -> tuple[int, ...] | None:
    """The strides that show the same memory in the shape ``new``, None where only a copy could.

    Dims that are contiguous with one another form a chunk; each chunk must be filled exactly by
    consecutive new dims.
    """
    if prod(shape) == 0:
        return strides if shape == new else contiguous_strides(new)
    if not shape:
        return (1,) * len(new)
    result = [0] * len(new)
    at = len(new) - 1
    chunk, base = 1, strides[-1]
    for i in range(len(shape) - 1, -1, -1):
        chunk *= shape[i]
        ends = i == 0 or (shape[i - 1] != 1 and strides[i - 1] != chunk * base)
        if not ends:
            continue
        filled = 1
        while at >= 0 and (filled < chunk or new[at] == 1):
            result[at] = filled * base
            filled *= new[at]
            at -= 1
        if filled != chunk:
            return None
        if i > 0:
            chunk, base = 1, strides[i - 1]
    return tuple(result) if at < 0 else None


def column_strides(shape: Shape) -> Shape:
    """The strides of matrices that lie column after column."""
    *front, down, across = contiguous_strides((*shape[:-2], shape[-1], shape[-2]))
    return (*front, across, down)
