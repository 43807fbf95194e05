"""A tensor and its memory: which storage it shows, whether that is pinned or shared, and a device's allocator."""

from __future__ import annotations

from typing import Any

from tensorcore.errors import ArgumentTypeError, DeviceError, DtypeError, GradientError
from tensorcore.ops import rules
from tensorcore.ops.kinds import method
from tensorcore.ops.placement import as_device
from tensorcore.storage import TypedStorage, UntypedStorage, pinned, storage_of, tensor_over, unshared
from tensorcore.tape.memory import Version
from tensorcore.tensor import Tensor, new_tensor

__all__ = ["empty_cache", "memory_stats"]


def memory_stats(device: Any = None) -> dict[str, int]:
    """Counts of the device's allocator in bytes and blocks. Raises NotImplementedError where it keeps none."""
    return as_device(device).memory_stats()


def empty_cache(device: Any = None) -> int:
    """Give memory that the device keeps for later tensors back to the system.

    Returns:
        How many bytes that were. Raises NotImplementedError where the device keeps none.
    """
    return as_device(device).empty_cache()


# Methods of tensors


@method
def untyped_storage(self: Tensor) -> UntypedStorage:
    """The memory under this tensor and all its views, as bytes."""
    return storage_of(self.device, self.native)


@method
def storage(self: Tensor) -> TypedStorage:
    """The memory under this tensor and all its views, as elements of its dtype."""
    return TypedStorage(wrap_storage=untyped_storage(self), dtype=self.dtype)


@method
def set_(self: Tensor, source: Any = None, storage_offset: int = 0, size: Any = None, stride: Any = None) -> Tensor:
    """Make this tensor show other memory.

    Args:
        source: a tensor to be like, or a storage; without one the tensor is empty.
        storage_offset, size, stride: the part of the storage, in elements; all of it as a vector where none is given.
    """
    if self.node is not None or self._is_view():
        raise GradientError("set_: expected a tensor off the tape that is no view, got another; call detach() first")
    if source is None:
        other = new_tensor(self.device.allocate((0,), self.dtype), self.dtype, self.device)
    elif isinstance(source, Tensor) and size is None:
        other = source
    else:
        untyped = untyped_storage(source) if isinstance(source, Tensor) else source.untyped()
        if size is None:
            size, stride = (untyped.nbytes() // self.dtype.itemsize,), (1,)
        size = rules.as_shape("set_", (size,))
        stride = rules.contiguous_strides(size) if stride is None else rules.as_shape("set_", (stride,))
        other = tensor_over(untyped, self.dtype, size, stride, storage_offset)
    if other.dtype is not self.dtype:
        raise DtypeError(
            f"set_: expected a source of dtype {self.dtype}, got {other.dtype}; Could not set tensor of another type"
        )
    if other.device is not self.device:
        raise DeviceError(f"set_: expected a source on {self.device}, got one on {other.device}; move it first")
    self.native = other.native
    if isinstance(source, Tensor):
        source.version = self.version = source.version or Version()
    return self


@method
def is_set_to(self: Tensor, tensor: Tensor) -> bool:
    """Whether both show the same memory with the same shape and strides."""
    if not isinstance(tensor, Tensor):
        raise ArgumentTypeError(
            f"is_set_to: argument 'tensor' must be Tensor, got {type(tensor).__name__}; pass a tensor"
        )
    if self.device is not tensor.device or tuple(self.native.shape) != tuple(tensor.native.shape):
        return False
    key = self.device.storage_key
    return (
        self.device.layout(self.native) == tensor.device.layout(tensor.native)
        and self.dtype is tensor.dtype
        and key(self.native) == key(tensor.native)
    )


@method
def is_shared(self: Tensor) -> bool:
    """Whether other processes can see its memory: always False."""
    return False


@method
def share_memory_(self: Tensor) -> Tensor:
    """Refused: memory is never shared between processes."""
    raise unshared(self.device)


@method
def is_pinned(self: Tensor, device: Any = None) -> bool:
    """Whether its memory is page-locked, which transfers to other devices are fastest from."""
    return self.device.capabilities.pinned and self.device.is_pinned(self.native)


@method
def pin_memory(self: Tensor, device: Any = None) -> Tensor:
    """The tensor in page-locked memory: itself where it is there already, else a contiguous copy.

    Where the system refuses to lock more memory the copy is an ordinary one, and ``is_pinned`` says so.
    """
    native = pinned(self.device, self.native)
    if native is self.native:
        return self
    copy = new_tensor(native, self.dtype, self.device)
    if self.node is None:
        return copy
    return copy.copy_(self)  # type: ignore[attr-defined]
