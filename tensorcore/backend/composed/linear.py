"""Products of three numbers each, and diagonals."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tensorcore.backend.base import Native
    from tensorcore.backend.composed.kernels import Kernels

__all__ = ["cross", "put_diagonal", "take_diagonal"]


def cross(k: Kernels, x: Native, y: Native, *, dim: int) -> Native:
    """Each component is of the two that follow it."""
    next_x, next_y = (k.roll(one, shifts=-1, dims=dim) for one in (x, y))
    last_x, last_y = (k.roll(one, shifts=-2, dims=dim) for one in (x, y))
    return k.sub(k.mul(next_x, last_y), k.mul(last_x, next_y))


def take_diagonal(k: Kernels, x: Native, *, dim1: int, dim2: int) -> Native:
    """The elements of equal index along two dims; they become the last dim."""
    rank = len(x.shape)
    return k.contiguous(k.diagonal(x, offset=0, dim1=dim1 % rank, dim2=dim2 % rank))


def put_diagonal(k: Kernels, x: Native, *, shape: tuple[int, ...], dim1: int, dim2: int) -> Native:
    """Zeros of ``shape`` with ``x`` where two dims have equal index."""
    return k.undiagonal(x, shape=shape, offset=0, dim1=dim1 % len(shape), dim2=dim2 % len(shape))
