"""The storages of a file that is read: each made when the pickle first names it, where ``map_location`` wants it."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from tensorcore import dtypes
from tensorcore.backend.base import Backend
from tensorcore.backend.registry import device as find_device
from tensorcore.errors import ArgumentTypeError, DeviceError, LoadError
from tensorcore.ops.placement import as_device, host_device
from tensorcore.serialization.archive import Archive, damaged
from tensorcore.serialization.names import StorageType
from tensorcore.serialization.options import DEVICES_PRIORITY, Options
from tensorcore.storage import TypedStorage, UntypedStorage, storage_of

__all__ = ["Storages", "check_map", "described", "located", "restored", "swapped"]

_KINDS_OF_MAP = "None, a device, its name, a dict of names, or a function of storage and name"


class Storages:
    """Storages by the keys of an archive.

    Args:
        archive: the file.
        map_location: as ``load`` takes it.
        mapped: the whole file as a writable buffer whose memory storages on the host show, or None to read.
        check: whether to compare checksums; what is mapped is never read for one.
    """

    def __init__(self, archive: Archive, map_location: Any, mapped: Any, check: bool) -> None:
        self.archive, self.map_location, self.mapped, self.check = archive, map_location, mapped, check
        order = archive.read("byteorder") if "byteorder" in archive else b"little"
        if order not in (b"little", b"big"):
            raise damaged(f"byte order little or big, got {order!r}")
        self.swap = order.decode() != sys.byteorder
        self.made: dict[str, UntypedStorage] = {}

    def load(self, pid: Any) -> Any:
        """The storage of a persistent id, typed unless it was saved as bytes."""
        dtype, key, location, numel = described(pid, 5)
        record = f"data/{key}"
        size = self.archive.size(record)
        if numel * (dtype.itemsize if dtype else 1) > size:
            raise damaged(
                f"a storage of {numel} elements of {dtype or 'a byte'} in record '{record}', got {size} bytes"
            )
        if key not in self.made:
            kept = dtype if dtype is not None and size % dtype.itemsize == 0 else dtypes.uint8
            self.made[key] = located(self.map_location, location, lambda device: self._on(device, record, kept, size))
        untyped = self.made[key]
        return untyped if dtype is None else TypedStorage(wrap_storage=untyped, dtype=dtype)

    def _on(self, device: Backend, record: str, dtype: dtypes.dtype, size: int) -> UntypedStorage:
        shape = (size // dtype.itemsize,)
        if not device.capabilities.values:
            return storage_of(device, device.allocate(shape, dtype))
        place = self.archive.place(record) if self.mapped is not None else None
        if place is not None and place % dtype.itemsize == 0 and size and not self.swap:
            array = np.frombuffer(self.mapped, dtype.numpy, shape[0], place)
            return storage_of(device, device.share_host(array) if device.capabilities.host else device.from_host(array))
        native = device.allocate(shape, dtype) if device.capabilities.host else np.empty(shape, dtype.numpy)
        values = np.ndarray((size,), np.uint8, native)
        self.archive.read_into(record, values.data, self.check)
        if self.swap:
            values[:] = swapped(values, dtype)
        return storage_of(device, native if device.capabilities.host else device.from_host(native))


def check_map(map_location: Any) -> None:
    """Raises TypeError for what is no ``map_location``."""
    if not (map_location is None or isinstance(map_location, (str, Backend, dict)) or callable(map_location)):
        raise ArgumentTypeError(
            f"load: expected map_location to be {_KINDS_OF_MAP}, got {map_location!r}; pass one of these"
        )


def described(pid: Any, length: int) -> tuple[dtypes.dtype | None, str, str, int]:
    """Dtype, key, device and elements from a storage's persistent id, which has ``length`` parts."""
    if not isinstance(pid, tuple) or len(pid) != length or _text(pid[0]) != "storage":
        raise damaged(f"storages as persistent ids, got {str(pid)[:100]}")
    kind, key, location, numel = pid[1], _text(pid[2]), _text(pid[3]), pid[4]
    right = isinstance(kind, StorageType) and isinstance(key, str) and isinstance(location, str)
    if not right or not isinstance(numel, int) or numel < 0:
        raise damaged(f"a storage's type, key, device and size, got {str(pid[1:])[:100]}")
    return kind.dtype, key, location, numel


def located(map_location: Any, name: str, make: Any) -> UntypedStorage:
    """A storage that was saved on the device ``name``, made by ``make(device)`` where ``map_location`` wants it."""
    if map_location is None or isinstance(map_location, dict):
        wanted = name if map_location is None else map_location.get(name, name)
        return restored(name, make) if wanted == name else make(as_device(wanted))  # type: ignore[no-any-return]
    if isinstance(map_location, (str, Backend)):
        return make(as_device(map_location))  # type: ignore[no-any-return]
    host = make(host_device())
    chosen = map_location(host, name)
    if chosen is None:
        return restored(name, host.to)
    if not isinstance(chosen, (UntypedStorage, TypedStorage)):
        raise ArgumentTypeError(
            f"load: expected the function map_location to give a storage or None, got {chosen!r}; "
            "return the storage that it was given, or its .cpu() or .cuda()"
        )
    return chosen.untyped()


def restored(name: str, make: Any) -> Any:
    """A storage that was saved on the device ``name``, made by ``make(device)`` there, or by a package that knows it."""
    for priority, _, deserializer in Options.packages:
        found = deserializer(make(host_device()), name) if priority < DEVICES_PRIORITY else None
        if found is not None:
            return found.untyped()
    try:
        device = saved_device(name)
    except DeviceError:
        for priority, _, deserializer in Options.packages:
            found = deserializer(make(host_device()), name) if priority >= DEVICES_PRIORITY else None
            if found is not None:
                return found.untyped()
        raise
    return make(device)


def saved_device(name: str) -> Backend:
    """The device that a storage was saved on."""
    try:
        return find_device(name)
    except DeviceError as error:
        raise DeviceError(
            f"load: expected the device '{name}', on which a storage was saved, got none here ({error}); "
            "pass map_location to load it on another one"
        ) from error


def swapped(values: np.ndarray, dtype: dtypes.dtype) -> np.ndarray:
    """The same bytes with those of each element, or of each half of a complex one, in reverse."""
    size = dtype.itemsize // (2 if dtype.kind == "complex" else 1)
    return values.reshape(-1, size)[:, ::-1].reshape(-1)


def _text(value: Any) -> Any:
    # Files written by Python 2 and read with encoding="bytes" have bytes here.
    try:
        return value.decode("ascii") if isinstance(value, bytes) else value
    except UnicodeDecodeError:
        raise LoadError(f"load: expected a name in ASCII, got {value!r}; the file is damaged") from None
