"""Tensors as the arrays that a transport moves: checked, on its device, dense, and written back where they were not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from tensorcore.errors import ArgumentTypeError, ShapeError, ValuesMissing
from tensorcore.ops.inplace import share_version
from tensorcore.tape.mode import no_grad
from tensorcore.tensor import Tensor

__all__ = ["Placed", "after", "check_same", "check_tensor", "check_tensors", "describe", "empty_like", "place"]


def check_tensor(op: str, tensor: Any, name: str = "tensor") -> Tensor:
    """The tensor, where it is one with values."""
    if not isinstance(tensor, Tensor):
        raise ArgumentTypeError(
            f"{op}: Invalid function argument. Expected parameter `{name}` of type torch.Tensor but got {type(tensor)} "
            f"instead."
        )
    if tensor.is_meta:
        raise ValuesMissing(f"{op}: expected values to send, got a meta tensor; make it on a device")
    return tensor


def check_tensors(op: str, tensors: Any, name: str, count: int) -> list[Tensor]:
    """The list of as many tensors as the group has ranks."""
    if not isinstance(tensors, list | tuple) or not all(isinstance(one, Tensor) for one in tensors):
        raise ArgumentTypeError(
            f"{op}: Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor] but got "
            f"{type(tensors)} instead."
        )
    if len(tensors) != count:
        raise ShapeError(f"{op}: expected one tensor for each of {count} ranks in {name}, got {len(tensors)}")
    return [check_tensor(op, one, name) for one in tensors]


def check_same(op: str, tensors: Sequence[Tensor], like: Tensor) -> None:
    """Raise unless all have the dtype of ``like`` and as many elements."""
    for one in tensors:
        if one.dtype is not like.dtype:
            raise ArgumentTypeError(
                f"{op}: Invalid usage of tensors with different dtypes, expected {like.dtype}, got {one.dtype}"
            )
        if one.numel() != like.numel():
            raise ShapeError(
                f"{op}: expected tensors of {like.numel()} elements, got one of shape {list(one.shape)}; give each rank as "
                f"much as the others"
            )


def describe(tensor: Tensor) -> str:
    """Dtype and shape, as all ranks must have them."""
    return f"{tensor.dtype.name} {list(tensor.native.shape)}"


class Placed:
    """A tensor's array on the transport's device.

    Attributes:
        tensor: dense, off the tape, on that device; its memory is that of the original where this could be.
    """

    def __init__(self, original: Tensor, device: Any, *, copy: bool = False) -> None:
        self.original, self.device = original, device
        self.same = original.device is device and device.is_contiguous(original.native) and not copy
        if self.same:
            self.tensor = original
        else:
            with no_grad():
                self.tensor = original.detach().to(device)  # type: ignore[attr-defined]
                self.tensor = self.tensor.clone(memory_format=_contiguous()) if copy else self.tensor.contiguous()  # type: ignore[attr-defined]

    @property
    def native(self) -> Any:
        """The array."""
        return self.tensor.native

    def blocks(self, *lead: int) -> Any:
        """The array as so many blocks, each in one dim: ``lead`` before a dim of what is left of the elements."""
        device, count = self.device, self.tensor.numel() // prod(lead)
        shape = (*lead, count)
        strides = tuple(prod(shape[i + 1 :]) for i in range(len(shape)))
        return device.as_strided(self.native, shape, strides, device.layout(self.native)[1])

    def written(self) -> None:
        """Put what arrived where it belongs."""
        if self.same:
            share_version(self.original).bump()
        else:
            put(self.original, self.tensor)


def place(tensor: Tensor, device: Any, *, copy: bool = False) -> Placed:
    """The tensor for a transport of that device; ``copy`` where the transport may spoil it."""
    return Placed(tensor, device, copy=copy)


def put(target: Tensor, values: Any) -> None:
    """Write values of as many elements into a tensor, unrecorded."""
    with no_grad():
        target.copy_(values.reshape(target.shape))  # type: ignore[attr-defined]


def empty_like(tensor: Tensor, device: Any, *lead: int) -> Tensor:
    """A new dense tensor of the shape with dims put before it, of the dtype, on the transport's device."""
    from tensorcore.ops.creation.create import empty

    return empty((*lead, *tensor.shape), dtype=tensor.dtype, device=device)


def after(*actions: Callable[[], None]) -> Callable[[], None]:
    """One action of several."""

    def run() -> None:
        for one in actions:
            one()

    return run


def _contiguous() -> Any:
    from tensorcore.formats import contiguous_format

    return contiguous_format
