"""Storages: the memory under tensors as programs see it."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any
from weakref import WeakSet, WeakValueDictionary

import numpy as np

from tensorcore import dtypes
from tensorcore.backend.base import Backend
from tensorcore.backend.registry import accelerator, made_devices
from tensorcore.dtypes import dtype as Dtype
from tensorcore.errors import ArgumentTypeError, DeviceError, DimensionError, ShapeError, UsageError
from tensorcore.interop import from_file
from tensorcore.ops.placement import as_device, host_device
from tensorcore.tensor import Tensor, new_tensor

__all__ = ["TypedStorage", "UntypedStorage", "is_storage"]

# One object per memory for as long as somebody holds it, so that ``is`` tells whether two tensors share.
_alive: WeakValueDictionary[Any, UntypedStorage] = WeakValueDictionary()


class UntypedStorage:
    """The bytes of one allocation, which any number of tensors show parts of.

    ``UntypedStorage(8)`` has 8 bytes of undefined value, ``UntypedStorage([1, 2])`` those given. Indexing reads
    and writes single bytes; a slice is a copy on devices other than the host.

    Attributes:
        device: where it is.
    """

    __slots__ = ("__weakref__", "_native", "device")

    device: Backend

    def __new__(cls, data: Any = 0, *, device: Any = None) -> UntypedStorage:
        backend = as_device(device)
        if hasattr(data, "__index__"):
            return storage_of(backend, backend.allocate((_size(data),), dtypes.uint8))
        try:
            array = np.array(list(data), np.uint8)
        except (TypeError, ValueError, OverflowError):
            raise ArgumentTypeError(
                f"UntypedStorage: expected a size or a sequence of bytes, got {data!r}; pass e.g. 16 or [1, 2, 3]"
            ) from None
        return storage_of(backend, backend.from_host(array))

    @staticmethod
    def from_file(filename: str, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """``nbytes`` bytes over the memory of a file; see ``torch.from_file``."""
        return from_file(filename, shared, nbytes, dtype=dtypes.uint8).untyped_storage()  # type: ignore[attr-defined]

    def nbytes(self) -> int:
        """Its size in bytes."""
        return int(prod(self._native.shape) * self._native.dtype.itemsize)

    __len__ = size = nbytes

    def __sizeof__(self) -> int:
        """What ``sys.getsizeof`` counts: this object and its memory, which those who add up sizes mean."""
        return object.__sizeof__(self) + self.nbytes()

    def element_size(self) -> int:
        """Bytes of one element: 1."""
        return 1

    def data_ptr(self) -> int:
        """The address of its first byte."""
        return self.device.data_pointer(self._native)

    @property
    def _cdata(self) -> Any:
        return self.device.storage_key(self._native)

    def get_device(self) -> int:
        """The device's index, -1 in host memory."""
        return -1 if self.device.capabilities.host else self.device.index

    def untyped(self) -> UntypedStorage:
        """Itself."""
        return self

    def __getitem__(self, index: Any) -> Any:
        found = self._bytes()[_checked(index, self.nbytes())]
        return storage_of(self.device, self.device.share_host(found)) if isinstance(index, slice) else int(found)

    def __setitem__(self, index: Any, value: int) -> None:
        values = self._bytes()
        values[_checked(index, self.nbytes())] = int(value) & 255
        self._write(values)

    def __iter__(self) -> Iterator[int]:
        return iter(self.tolist())

    def tolist(self) -> list[int]:
        """The bytes as a list of ints."""
        return self._bytes().tolist()  # type: ignore[no-any-return]

    def fill_(self, value: int) -> UntypedStorage:
        """Write one value into every byte."""
        self[:] = value
        return self

    def copy_(self, source: Any, non_blocking: bool = False) -> UntypedStorage:
        """Write the bytes of another storage of the same size into this one."""
        source = source.untyped()
        if source.nbytes() != self.nbytes():
            raise ShapeError(
                f"copy_: size does not match, self was {self.nbytes()} bytes but src was {source.nbytes()} bytes, got "
                "two "
                f"sizes; copy a storage of the same size"
            )
        self._write(source._bytes())
        return self

    def clone(self) -> UntypedStorage:
        """A copy on the same device."""
        return storage_of(self.device, self.device.kernels["clone"](self._native))

    def to(self, device: Any, non_blocking: bool = False) -> UntypedStorage:
        """The storage on another device: itself, or a copy."""
        target = as_device(device)
        return self if target is self.device else storage_of(target, target.copy_from(self.device, self._native))

    def cpu(self) -> UntypedStorage:
        """The storage in host memory: itself, or a copy."""
        return self if self.device.capabilities.host else self.to(host_device())

    def cuda(self, device: Any = "cuda", non_blocking: bool = False) -> UntypedStorage:
        """The storage on an accelerator: itself, or a copy."""
        return self.to(device)

    def is_pinned(self, device: Any = None) -> bool:
        """Whether it lies in page-locked memory."""
        return self.device.capabilities.host and any(
            [one.is_pinned(self._native) for one in {self.device, pinning(self.device)}]
        )

    def pin_memory(self, device: Any = None) -> UntypedStorage:
        """The storage in page-locked memory: itself, or a copy."""
        return storage_of(self.device, pinned(self.device, self._native))

    def is_shared(self) -> bool:
        """Whether other processes can see it: always False."""
        return False

    def share_memory_(self) -> UntypedStorage:
        """Refused: memory is never shared between processes."""
        raise unshared(self.device)

    def resizable(self) -> bool:
        """Always False: a storage has the size it was made with."""
        return False

    def resize_(self, size: int) -> UntypedStorage:
        """Refused, unless it is the size that the storage has."""
        if _size(size) != self.nbytes():
            raise NotImplementedError(
                f"resize_: expected the storage's own size of {self.nbytes()} bytes, got {size}; "
                f"make a new tensor, and copy what is to stay"
            )
        return self

    def __copy__(self) -> UntypedStorage:
        return self.clone()

    def __deepcopy__(self, memo: dict[Any, Any]) -> UntypedStorage:
        # Tensors of one storage ask for it one after the other, in one memo.
        copies = memo.setdefault("tensorcore", {})
        key = self.device, self._cdata
        if key not in copies:
            copies[key] = (self.clone(), self)  # the original stays alive, and with it the key
        return copies[key][0]  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        text = "\n".join(f" {one}" for one in self.tolist()) if self._shown() else "..."
        return f"{text}\n[torch.storage.UntypedStorage(device={self.device}) of size {self.nbytes()}]"

    def _shown(self) -> bool:
        """Whether a look at the values makes none: whoever prints a storage, a debugger for instance, changes nothing."""
        return self.device.capabilities.values and self.device.is_made(self._native)

    def _typed(self, dtype: Dtype) -> Any:
        """Its memory as one flat native array of ``dtype``; what does not fill an element is left out."""
        native = self._native
        if native.dtype == dtype.numpy:
            return native
        size = self.nbytes() // dtype.itemsize
        if self.device.capabilities.host:
            return np.ndarray((size,), dtype.numpy, native)
        return self.device.kernels["reinterpret"](native, dtype=dtype)

    def _bytes(self) -> np.ndarray:
        """The bytes on the host; the memory itself where the device shares the host's."""
        values = self.device.to_host(self._native)
        return np.ndarray((self.nbytes(),), np.uint8, np.ascontiguousarray(values))

    def _write(self, values: np.ndarray) -> None:
        """Make these the bytes, unless they are already."""
        mine = self._native
        if self.device.capabilities.host:
            target = self._bytes()
            if target.ctypes.data != values.ctypes.data:
                target[:] = values
        else:
            typed = np.frombuffer(values, mine.dtype)
            self.device.kernels["copy"](mine, self.device.from_host(typed))


class TypedStorage:
    """A storage whose bytes are read as elements of one dtype.

    ``TypedStorage(4)`` has 4 elements of undefined value, ``TypedStorage([1., 2.])`` those given.

    Attributes:
        dtype: of the elements.
    """

    __slots__ = ("_untyped", "dtype")

    def __init__(
        self, data: Any = 0, *, dtype: Dtype | None = None, device: Any = None, wrap_storage: Any = None
    ) -> None:
        self.dtype = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype, "TypedStorage")
        if wrap_storage is not None:
            self._untyped = wrap_storage.untyped()
            return
        backend = as_device(device)
        if hasattr(data, "__index__"):
            native = backend.allocate((_size(data),), self.dtype)
        else:
            native = backend.from_host(np.array(list(data)).astype(self.dtype.numpy))
        self._untyped = storage_of(backend, native)

    @property
    def device(self) -> Backend:
        """Where it is."""
        return self._untyped.device

    def untyped(self) -> UntypedStorage:
        """The bytes."""
        return self._untyped

    def size(self) -> int:
        """The number of elements."""
        return self._untyped.nbytes() // self.dtype.itemsize

    __len__ = size

    def nbytes(self) -> int:
        """Its size in bytes."""
        return self._untyped.nbytes()

    def element_size(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    def data_ptr(self) -> int:
        """The address of its first element."""
        return self._untyped.data_ptr()

    @property
    def _cdata(self) -> Any:
        return self._untyped._cdata

    def __getitem__(self, index: int) -> Any:
        if isinstance(index, slice):
            raise UsageError(
                "storage: slices are only supported in UntypedStorage.__getitem__, got one; slice a tensor, or "
                "untyped()"
            )
        return self._values()[_checked(index, self.size())].item()

    def __setitem__(self, index: int | slice, value: Any) -> None:
        values = self._values()
        values[_checked(index, self.size())] = value
        self._untyped._write(np.ndarray((values.nbytes,), np.uint8, values))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def tolist(self) -> list[Any]:
        """The elements as a list of Python numbers."""
        values = self._values()
        # bfloat16 is a NumPy extension type whose tolist() gives no Python floats.
        return (values.astype(np.float32) if self.dtype is dtypes.bfloat16 else values).tolist()  # type: ignore[no-any-return]

    def fill_(self, value: Any) -> TypedStorage:
        """Write one value into every element."""
        self[:] = value
        return self

    def copy_(self, source: TypedStorage, non_blocking: bool = False) -> TypedStorage:
        """Write the elements of another storage of the same length, converted to this dtype."""
        if len(source) != len(self):
            raise ShapeError(
                f"copy_: expected {len(self)} elements, got {len(source)}; copy a storage of the same length"
            )
        self[:] = source._values()
        return self

    def clone(self) -> TypedStorage:
        """A copy on the same device."""
        return TypedStorage(wrap_storage=self._untyped.clone(), dtype=self.dtype)

    def to(self, device: Any, non_blocking: bool = False) -> TypedStorage:
        """The storage on another device: itself, or a copy."""
        moved = self._untyped.to(device)
        return self if moved is self._untyped else TypedStorage(wrap_storage=moved, dtype=self.dtype)

    def cpu(self) -> TypedStorage:
        """The storage in host memory: itself, or a copy."""
        return self if self.device.capabilities.host else self.to(host_device())

    def cuda(self, device: Any = "cuda", non_blocking: bool = False) -> TypedStorage:
        """The storage on an accelerator: itself, or a copy."""
        return self.to(device)

    def is_pinned(self, device: Any = None) -> bool:
        """Whether it lies in page-locked memory."""
        return self._untyped.is_pinned()

    def pin_memory(self, device: Any = None) -> TypedStorage:
        """The storage in page-locked memory: itself, or a copy."""
        return TypedStorage(wrap_storage=self._untyped.pin_memory(), dtype=self.dtype)

    def is_shared(self) -> bool:
        """Whether other processes can see it: always False."""
        return False

    def share_memory_(self) -> TypedStorage:
        """Refused: memory is never shared between processes."""
        raise unshared(self.device)

    def resizable(self) -> bool:
        """Always False: a storage has the size it was made with."""
        return False

    def resize_(self, size: int) -> TypedStorage:
        """Refused, unless it is the length that the storage has."""
        self._untyped.resize_(_size(size) * self.dtype.itemsize)
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypedStorage) and self._untyped is other._untyped and self.dtype is other.dtype

    def __hash__(self) -> int:
        return hash((self._untyped, self.dtype))

    def __copy__(self) -> TypedStorage:
        return self.clone()

    def __deepcopy__(self, memo: dict[Any, Any]) -> TypedStorage:
        return TypedStorage(wrap_storage=self._untyped.__deepcopy__(memo), dtype=self.dtype)

    def __repr__(self) -> str:
        text = "\n".join(f" {one}" for one in self.tolist()) if self._untyped._shown() else "..."
        return f"{text}\n[torch.storage.TypedStorage(dtype={self.dtype}, device={self.device}) of size {len(self)}]"

    def _values(self) -> np.ndarray:
        """The elements on the host; the memory itself where the device shares the host's."""
        return np.ndarray((self.size(),), self.dtype.numpy, self._untyped._bytes())


def is_storage(obj: object) -> bool:
    """Whether ``obj`` is a storage."""
    return isinstance(obj, (TypedStorage, UntypedStorage))


def storage_of(device: Backend, native: Any) -> UntypedStorage:
    """The storage under a native array: the same object at every call while somebody holds it."""
    key = device, device.storage_key(native)
    found = _alive.get(key)
    if found is None:
        found = object.__new__(UntypedStorage)
        found.device = device
        found._native = device.storage(native)
        found = _alive.setdefault(key, found)
    return found


def tensor_over(storage: Any, dtype: Dtype, size: Any, stride: Any, offset: int, cls: type = Tensor) -> Tensor:
    """A tensor that shows a part of a storage; sizes, strides and offset count elements of ``dtype``."""
    untyped = storage.untyped()
    flat = untyped._typed(dtype)
    last = offset + sum([(n - 1) * step for n, step in zip(size, stride, strict=True)])
    if prod(size) and not 0 <= last < prod(flat.shape):
        raise ShapeError(
            f"set_: setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {offset} are out of bounds "
            "for "
            f"storage of size {untyped.nbytes()}, got an element at {last}; show less of it"
        )
    return new_tensor(untyped.device.as_strided(flat, tuple(size), tuple(stride), offset), dtype, untyped.device, cls)


def _size(value: Any) -> int:
    size = value.__index__()
    if size < 0:
        raise ShapeError(f"storage: expected a size of 0 or more, got {size}; Storage size must be non-negative")
    return int(size)


def _checked(index: Any, size: int) -> Any:
    if isinstance(index, slice):
        if index.step not in (None, 1):
            raise UsageError(
                f"storage: Trying to slice with a step of {index.step}, but only a step of 1 is supported, got "
                f"{index}; "
                f"use a tensor"
            )
        return index
    if not hasattr(index, "__index__"):
        raise ArgumentTypeError(
            f"storage: can't index a storage with {type(index).__name__}, got {index!r}; pass an int"
        )
    if not -size <= index < size:
        raise DimensionError(
            f"storage: expected an index in the range [{-size}, {size - 1}], got {index}; index {index} out of range "
            "for "
            f"storage of size {size}"
        )
    return index


def pinned(device: Backend, native: Any) -> Any:
    if not device.capabilities.pinned:
        raise DeviceError(
            f"pin_memory: cannot pin a tensor on {device}, only dense CPU tensors can be pinned, got one elsewhere; "
            f"move it to the host first"
        )
    place = pinning(device)
    if place is device and device not in _alone:
        accelerator()  # makes it where there is one: a first batch is pinned before anything is moved
        place = pinning(device)
        if place is device:
            _alone.add(device)
    return place.pin(native)


_alone: WeakSet[Backend] = WeakSet()  # hosts beside which no accelerator was found: asking takes half a millisecond


def pinning(host: Backend) -> Backend:
    """The device whose transfers memory is pinned for: the first one in use that is not the host, else the host."""
    return next((one for one in made_devices() if one.capabilities.pinned and not one.capabilities.host), host)


def unshared(device: Backend) -> Exception:
    """The error of ``share_memory_``."""
    return NotImplementedError(
        f"share_memory_: expected memory that other processes can see, got some on {device}, which only this one does; "
        f"send the tensor's pickle, or a copy"
    )
