"""Memory made, copied and rearranged without computing."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorcore.backend.places import in_memory, kept_strides
from tensorcore.backend.strides import contiguous_strides

if TYPE_CHECKING:
    from tensorcore.backend.base import Native
    from tensorcore.backend.composed.kernels import Kernels
    from tensorcore.dtypes import dtype

__all__ = [
    "arange", "clone", "constant_pad", "contiguous", "eye", "fill", "flip", "full", "linspace", "regather", "repeat",
    "repeat_interleave", "roll", "rot90", "shared", "stack", "tri", "triangle_indices", "undiagonal", "unindex", "unwindows",
]  # fmt: skip

Shape = tuple[int, ...]


# Creation: on the host


@lru_cache
def _reference() -> dict[str, Any]:
    from tensorcore.backend.xp import XPBackend

    return XPBackend(np).table


def full(k: Kernels, shape: Shape, value: Any, *, dtype: dtype) -> Native:
    """One value sent over, then spread out."""
    return fill(k, k.backend.allocate(shape, dtype), value)


def fill(k: Kernels, target: Native, value: Any) -> Native:
    """The same into memory that is there; ``value`` may be a 0-d array."""
    if type(value) is not k.backend.array:
        value = k.backend.from_host(_reference()["full"]((), value, dtype=k.dtype(target)))
    return k.copy(target, value)


def arange(k: Kernels, start: Any, step: Any, length: int, *, dtype: dtype) -> Native:
    return k.backend.from_host(_reference()["arange"](start, step, length, dtype=dtype))


def linspace(k: Kernels, start: Any, end: Any, steps: int, *, base: float | None, dtype: dtype) -> Native:
    return k.backend.from_host(_reference()["linspace"](start, end, steps, base=base, dtype=dtype))


def eye(k: Kernels, rows: int, columns: int, *, dtype: dtype) -> Native:
    return k.backend.from_host(_reference()["eye"](rows, columns, dtype=dtype))


def triangle_indices(k: Kernels, rows: int, columns: int, offset: int, *, upper: bool, dtype: dtype) -> Native:
    return k.backend.from_host(_reference()["triangle_indices"](rows, columns, offset, upper=upper, dtype=dtype))


# Copies


def contiguous(k: Kernels, x: Native) -> Native:
    """A copy in row-major order."""
    return k.copy(k.backend.allocate(tuple(x.shape), k.dtype(x)), x)


def clone(k: Kernels, x: Native) -> Native:
    """A copy with the strides of ``x`` where it is dense."""
    shape = tuple(x.shape)
    strides = kept_strides(shape, [(shape, k.backend.strides(x))])
    if strides == contiguous_strides(shape):
        return k.contiguous(x)
    memory = k.backend.allocate((prod(shape),), k.dtype(x))
    return k.copy(k.backend.as_strided(memory, shape, strides, 0), x)


def tri(k: Kernels, x: Native, *, diagonal: int, upper: bool) -> Native:
    rows, columns = x.shape[-2:]
    below = np.arange(columns) - np.arange(rows)[:, None] <= diagonal - upper
    return k.where(k.host(below != upper), x, k.zeros((), x))


def flip(k: Kernels, x: Native, *, dims: Shape) -> Native:
    made = x
    for dim in dims:
        made = k.index_select(made, k.host(np.arange(x.shape[dim])[::-1].copy()), dim=dim)
    return k.contiguous(x) if made is x else made


def roll(k: Kernels, x: Native, *, shifts: Any, dims: Any) -> Native:
    """Along ``dims``; one shift of all elements in a row where that is None."""
    if not x.shape:
        return k.clone(x)
    made = x
    if dims is None:
        made, dims = k.reshape(x, (-1,)), (0,)
    shifts, dims = ((one,) if isinstance(one, int) else tuple(one) for one in (shifts, dims))
    for shift, dim in zip(shifts * len(dims) if len(shifts) == 1 else shifts, dims, strict=True):
        size = made.shape[dim]
        made = k.index_select(made, k.host((np.arange(size) - shift) % max(size, 1)), dim=dim)
    return k.reshape(made if made is not x else k.contiguous(x), tuple(x.shape))


def rot90(kernels: Kernels, x: Native, *, k: int, dims: tuple[int, int]) -> Native:
    """Quarter turns: flipped, and at odd counts with two dims exchanged."""
    if k % 2 == 0:
        return kernels.flip(x, dims=dims if k else ())
    order = list(range(len(x.shape)))
    order[dims[0]], order[dims[1]] = order[dims[1]], order[dims[0]]
    return kernels.permute(kernels.flip(x, dims=(dims[1] if k == 1 else dims[0],)), dims=tuple(order))


def stack(k: Kernels, xs: list[Native], *, dim: int) -> Native:
    shape = tuple(xs[0].shape)
    parts = [k.reshape(x, (*shape[:dim], 1, *shape[dim:])) for x in xs]
    return k.cat(parts, dim=dim, shape=(*shape[:dim], len(xs), *shape[dim:]))


def repeat(k: Kernels, x: Native, *, repeats: Shape) -> Native:
    """Each dim as a pair of how often and what, the first of which is only seen as often."""
    sizes = (1,) * (len(repeats) - len(x.shape)) + tuple(x.shape)
    pairs = tuple(one for size in sizes for one in (1, size))
    spread = tuple(one for times, size in zip(repeats, sizes, strict=True) for one in (times, size))
    made = k.contiguous(k.expand(k.reshape(x, pairs), shape=spread))
    return k.reshape(made, tuple(times * size for times, size in zip(repeats, sizes, strict=True)))


def repeat_interleave(k: Kernels, x: Native, *, repeats: Any, dim: int) -> Native:
    times = repeats if isinstance(repeats, int) else k.backend.to_host(repeats)
    return k.index_select(x, k.host(np.repeat(np.arange(x.shape[dim]), times)), dim=dim)


def constant_pad(k: Kernels, x: Native, *, shape: Shape, key: Any, value: Any) -> Native:
    """``x`` at ``key`` within an array of one value."""
    made = k.full(shape, value, dtype=k.dtype(x))
    k.copy(k.index(made, key=tuple(key)), x)
    return made


# Gradients of views


def unindex(k: Kernels, x: Native, *, shape: Shape, key: tuple[Any, ...]) -> Native:
    """Zeros of ``shape`` with ``x`` in the place that ``key`` shows."""
    made = k.zeros(shape, x)
    k.copy(k.index(made, key=key), x)
    return made


def undiagonal(k: Kernels, x: Native, *, shape: Shape, offset: int, dim1: int, dim2: int) -> Native:
    """Zeros of ``shape`` with ``x`` on a diagonal."""
    made = k.zeros(shape, x)
    k.copy(k.diagonal(made, offset=offset, dim1=dim1, dim2=dim2), x)
    return made


def unwindows(k: Kernels, x: Native, *, shape: Shape, dim: int, size: int, step: int) -> Native:
    """Zeros of ``shape`` to which each window of ``windows`` is added in its place."""
    made = k.zeros(shape or (1,), x)
    count = x.shape[dim] if shape else 1
    for i in range(size):
        place = k.index(made, key=(slice(None),) * dim + (slice(i, i + (count - 1) * step + 1, step),))
        k.copy(place, k.add(place, k.index(x, key=(slice(None),) * (len(x.shape) - 1) + (i,))))
    return k.reshape(made, shape)


def regather(k: Kernels, x: Native, *, own: tuple[Any, ...], wanted: tuple[Any, ...]) -> Native:
    """The elements of ``x``, laid out as ``own`` says, that a tensor of the geometry ``wanted`` shows.

    A geometry is shape, strides and offset; where elements of ``x`` share a place, their sum counts.
    """
    from_, to = in_memory(np, *own[:2]), in_memory(np, *wanted[:2])
    low = min(own[2], wanted[2])
    span = int(max(from_.max(initial=0) + own[2], to.max(initial=0) + wanted[2])) - low + 1
    memory = k.index_add(
        k.zeros((span,), x), k.host(from_.ravel() + (own[2] - low)), k.reshape(x, (prod(x.shape),)), dim=0
    )
    found = k.index_select(memory, k.host(to.ravel() + (wanted[2] - low)), dim=0)
    return k.reshape(found, tuple(wanted[0]))


def shared(k: Kernels, x: Native, *, geometry: tuple[Any, ...]) -> Native:
    """``x`` divided by how many elements of a tensor of this geometry share each place; they are counted on the host."""
    at = in_memory(np, *geometry[:2])
    return k.div(x, k.host(np.bincount(at.ravel(), minlength=1)[at].astype(k.dtype(x).numpy)))
