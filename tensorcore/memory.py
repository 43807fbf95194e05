"""A tensor and its memory: which storage it shows, whether that is pinned or shared, and a device's allocator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorcore.errors import ArgumentTypeError, DeviceError, DtypeError, GradientError
from tensorcore.ops import rules
from tensorcore.ops.kinds import method
from tensorcore.ops.placement import as_device
from tensorcore.storage import TypedStorage, UntypedStorage, pinned, pinning, storage_of, tensor_over, unshared
from tensorcore.tape.aside import PLACE, tells
from tensorcore.tape.memory import Version
from tensorcore.tensor import Tensor, new_tensor

if TYPE_CHECKING:
    from tensorcore.ops.holders import Holder

__all__ = [
    "empty_cache", "holders", "max_memory_allocated", "max_memory_reserved", "memory_allocated", "memory_reserved",
    "memory_stats", "memory_summary", "record_history", "reset_peak_memory_stats",
]  # fmt: skip


def memory_stats(device: Any = None) -> dict[str, int]:
    """Counts of the device's allocator in bytes and blocks. Raises NotImplementedError where it keeps none."""
    return as_device(device).memory_stats()


def memory_allocated(device: Any = None) -> int:
    """Bytes that live tensors have from the device's allocator; on the host, small ones are not counted."""
    return memory_stats(device)["allocated_bytes.current"]


def max_memory_allocated(device: Any = None) -> int:
    """The most that these bytes have been since the start, or since ``reset_peak_memory_stats``."""
    return memory_stats(device)["allocated_bytes.peak"]


def memory_reserved(device: Any = None) -> int:
    """Bytes that the device's allocator has from the system, those that lie ready for later tensors included."""
    return memory_stats(device)["reserved_bytes.current"]


def max_memory_reserved(device: Any = None) -> int:
    """The most that these bytes have been since the start, or since ``reset_peak_memory_stats``."""
    return memory_stats(device)["reserved_bytes.peak"]


def reset_peak_memory_stats(device: Any = None) -> None:
    """Let every peak be the current value. Raises NotImplementedError where the device keeps none."""
    as_device(device).reset_peak_memory_stats()


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """The allocator's counts as a text table, and the largest holders under it unless ``abbreviated``."""
    from tensorcore.utils.tables import bytes_text, table_text

    place = as_device(device)
    counts = sorted(place.memory_stats().items())
    rows = [[name, bytes_text(n) if "bytes" in name else str(n)] for name, n in counts]
    lines = [f"Memory of {place}", table_text(["Count", "Value"], rows)]
    return "\n".join([*lines, *([] if abbreviated else map(str, holders(place)))])


def holders(device: Any = None, limit: int | None = 10) -> list[Holder]:
    """The storages on the device that live tensors hold, the largest first, with the program's names for them.

    Names are paths of parameters, buffers and gradients in modules, states of optimizers, variables with their lines,
    and nodes of the tape; after ``record_history`` the line and the module that made each are known too. Walks over
    every object of the process.
    """
    from tensorcore.ops import holders as looking

    return looking.holders(as_device(device), limit)


def record_history(enabled: bool = True) -> None:
    """Note from now on where every result is made, for ``holders`` and for errors about missing memory; or no longer.

    It makes each op slower while it is on (some microseconds), and nothing while it is off.
    """
    from tensorcore.ops.holders import history
    from tensorcore.utils.module_tracker import ModuleTracker

    global _tracker
    if enabled and _tracker is None:
        _tracker = ModuleTracker()
        _tracker.__enter__()
        history.module = lambda: _tracker.path if _tracker is not None else None
        history.start()
    elif not enabled and _tracker is not None:
        history.stop()
        _tracker.__exit__()
        _tracker = None


_tracker: Any = None


def empty_cache(device: Any = None) -> int:
    """Give memory that the device keeps for later tensors back to the system.

    Returns:
        How many bytes that were. Raises NotImplementedError where the device keeps none.
    """
    return as_device(device).empty_cache()


# Methods of tensors


@method
@tells(PLACE)
def untyped_storage(self: Tensor) -> UntypedStorage:
    """The memory under this tensor and all its views, as bytes."""
    return storage_of(self.device, self.native)


@method
@tells(PLACE)
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
@tells(PLACE)
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
@tells(PLACE)
def is_shared(self: Tensor) -> bool:
    """Whether other processes can see its memory."""
    return shared_memory(self) is not None


@method
def share_memory_(self: Tensor) -> Tensor:
    """Move its values to memory that other processes can see and write; nothing where they are there.

    Processes that are forked from now on see it by themselves. Views of it that exist already keep the memory that
    they have. Raises NotImplementedError on devices other than the host.
    """
    device = self.device
    if not device.capabilities.host:
        raise unshared(device)
    if shared_memory(self) is None:
        from tensorcore.backend.sharing import SharedMemory

        storage = storage_of(device, self.native)
        strides, offset = device.layout(self.native)
        memory = np.frombuffer(SharedMemory.of(storage.nbytes()), np.uint8)[: storage.nbytes()]
        memory[:] = storage._bytes()
        moved = storage_of(device, device.share_host(memory.view(self.dtype.numpy)))
        self.data = tensor_over(moved, self.dtype, tuple(self.native.shape), strides, offset)
    return self


def shared_memory(tensor: Tensor) -> Any:
    """The SharedMemory that a tensor lies in, None where it lies elsewhere."""
    from tensorcore.backend.sharing import SharedMemory

    device = tensor.device
    if not device.capabilities.host:
        return None
    return SharedMemory.at(device.data_pointer(device.storage(tensor.native)))


@method
def is_pinned(self: Tensor, device: Any = None) -> bool:
    """Whether its memory is page-locked, which transfers to other devices are fastest from."""
    place = self.device
    return place.capabilities.host and any([one.is_pinned(self.native) for one in {place, pinning(place)}])


@method
def record_stream(self: Tensor, stream: Any) -> None:
    """Say that another stream than the one it was made on uses the tensor: freed memory is new tensors' after that use."""
    self.device.record_stream(self.native, stream.native)


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
