"""Arrays joined, split, repeated and seen in other shapes."""

from __future__ import annotations

from typing import Any

import tensorcore
from tensorcore.array_api.promotion import array, promoted
from tensorcore.errors import ArgumentError, DimensionError
from tensorcore.tensor import Tensor

__all__ = [
    "broadcast_arrays", "broadcast_shapes", "broadcast_to", "concat", "expand_dims", "flip", "moveaxis", "permute_dims", "repeat",
    "reshape", "roll", "squeeze", "stack", "tile", "unstack",
]  # fmt: skip


def broadcast_arrays(*arrays: Tensor) -> list[Tensor]:
    """The arrays, each seen in the shape that they have in common."""
    return list(tensorcore.broadcast_tensors(*arrays))


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that shapes have in common."""
    return tuple(tensorcore.broadcast_shapes(*shapes))


def broadcast_to(x: Tensor, /, shape: tuple[int, ...]) -> Tensor:
    """The array seen in a larger shape."""
    return tensorcore.broadcast_to(array("broadcast_to", x), shape)


def concat(arrays: Any, /, *, axis: int | None = 0) -> Tensor:
    """Arrays of one shape but for the axis, one after the other; flattened ones where it is None."""
    parts = promoted(*arrays)
    if axis is None:
        return tensorcore.concat([one.reshape(-1) for one in parts], 0)  # type: ignore[attr-defined]
    return tensorcore.concat(parts, axis)


def stack(arrays: Any, /, *, axis: int = 0) -> Tensor:
    """Arrays of one shape along a new axis."""
    return tensorcore.stack(promoted(*arrays), axis)


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The slices along an axis."""
    return tuple(tensorcore.unbind(array("unstack", x), axis))


def expand_dims(x: Tensor, /, axis: int = 0) -> Tensor:
    """A new axis of size 1."""
    return tensorcore.unsqueeze(array("expand_dims", x), axis)


def squeeze(x: Tensor, /, axis: int | tuple[int, ...]) -> Tensor:
    """Without axes of size 1; those of another size are refused."""
    axes = axis if isinstance(axis, tuple) else (axis,)
    for one in axes:
        if not -x.ndim <= one < x.ndim:
            raise DimensionError(f"squeeze: expected axes of an array of {x.ndim} dims, got {one}; count from 0")
        if x.shape[one] != 1:
            raise ArgumentError(
                f"squeeze: expected axes of size 1, got axis {one} of size {x.shape[one]}; leave it out"
            )
    return tensorcore.squeeze(array("squeeze", x), axes)


def flip(x: Tensor, /, *, axis: int | tuple[int, ...] | None = None) -> Tensor:
    """The elements in reverse order along axes, all of them where None."""
    axes = tuple(range(array("flip", x).ndim)) if axis is None else axis
    return tensorcore.flip(x, (axes,) if isinstance(axes, int) else axes)


def moveaxis(x: Tensor, source: Any, destination: Any, /) -> Tensor:
    """Axes at other places, the rest in their order."""
    return tensorcore.moveaxis(array("moveaxis", x), source, destination)


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Tensor:
    """The axes in another order."""
    return tensorcore.permute(array("permute_dims", x), axes)


def repeat(x: Tensor, repeats: Any, /, *, axis: int | None = None) -> Tensor:
    """Each element along an axis, or of the flattened array, as often as ``repeats`` says."""
    if isinstance(repeats, Tensor):
        repeats = repeats.reshape(repeats.shape or (1,)).long()  # type: ignore[attr-defined]
    return tensorcore.repeat_interleave(array("repeat", x), repeats, axis)


def reshape(x: Tensor, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Tensor:
    """The elements in another shape.

    Args:
        copy: True for memory of its own, False to raise where it cannot be shared, None to share where possible.
    """
    if copy is False:
        try:
            return x.view(shape)  # type: ignore[attr-defined, no-any-return]
        except RuntimeError as error:
            raise ArgumentError(
                f"reshape: expected an array that can be seen in {list(shape)}, got copy=False; {error}"
            ) from None
    made = tensorcore.reshape(array("reshape", x), shape)
    return made.clone() if copy else made  # type: ignore[attr-defined, no-any-return]


def roll(x: Tensor, /, shift: Any, *, axis: Any = None) -> Tensor:
    """The elements moved along axes, or in the flattened array; those that leave at one end come in at the other."""
    if isinstance(axis, tuple) and isinstance(shift, int):
        shift = (shift,) * len(axis)
    return tensorcore.roll(array("roll", x), shift, () if axis is None else axis)


def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Tensor:
    """The whole array again and again along each axis."""
    return tensorcore.tile(array("tile", x), repetitions)
