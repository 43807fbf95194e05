"""What programs with a buffer for all gradients import from ``torch._utils``: tensors as one row, and back."""

from __future__ import annotations

from collections.abc import Iterable

from tensorcore.ops.shapes.join import cat
from tensorcore.tensor import Tensor

__all__ = ["_flatten_dense_tensors", "_unflatten_dense_tensors"]


def _flatten_dense_tensors(tensors: Iterable[Tensor]) -> Tensor:
    """The elements of tensors of one dtype, one tensor after the other."""
    return cat([one.reshape(-1) for one in tensors])


def _unflatten_dense_tensors(flat: Tensor, tensors: Iterable[Tensor]) -> tuple[Tensor, ...]:
    """Parts of such a row in the shapes of ``tensors``, as views of it."""
    shapes = list(tensors)
    parts = flat.split([one.numel() for one in shapes])
    return tuple(part.view(one.shape) for part, one in zip(parts, shapes, strict=True))
