"""The files that PyTorch wrote before 1.6: pickles one after the other, then the bytes of the storages."""

from __future__ import annotations

import io
import os
import pickle
import struct
import sys
from typing import Any

import numpy as np

from tensorcore import dtypes
from tensorcore.backend.base import Backend
from tensorcore.errors import LoadError
from tensorcore.serialization.archive import cut_short, damaged
from tensorcore.serialization.names import values_to_come
from tensorcore.serialization.places import described, located, swapped
from tensorcore.storage import TypedStorage, UntypedStorage, storage_of

__all__ = ["read_legacy", "write_legacy"]

_MAGIC, _VERSION = 0x1950A86A20F9469CFC6C, 1001
_SYSTEM = {"protocol_version": _VERSION, "little_endian": sys.byteorder == "little",
           "type_sizes": {"short": 2, "int": 4, "long": 4}}  # fmt: skip


def write_legacy(obj: Any, file: Any, pickler: Any, protocol: int) -> None:
    """Write an object in the old format."""

    class Pickler(pickler):  # type: ignore[misc]
        def named(self, view: Any) -> tuple[Any, ...]:
            return (*super().named(view), None)

    text = io.BytesIO()
    for header in (_MAGIC, _VERSION, _SYSTEM):
        pickle.dump(header, text, protocol)
    writer = Pickler(text, protocol)
    writer.dump(obj)
    pickle.dump(sorted(writer.storages.values()), text, protocol)
    file.write(text.getbuffer())
    by_key = {key: storage for storage, key in writer.storages.items()}
    for key in sorted(by_key):
        storage, dtype = by_key[key], writer.dtypes.get(by_key[key])
        file.write(struct.pack("<q", storage.nbytes() // (dtype.itemsize if dtype else 1)))
        file.write(storage._bytes().data)


def read_legacy(file: Any, map_location: Any, make: Any) -> Any:
    """The object in an old file. ``make(file, storages)`` gives an unpickler for one of the pickles in it."""
    file = _Bounded(file)

    def plain() -> Any:
        return make(file, None).load()

    for expected in (_MAGIC, _VERSION):
        if (found := plain()) != expected:
            raise LoadError(
                f"load: Invalid magic number; expected a file that save() of PyTorch or tensorcore wrote, got a pickle "
                f"that starts with {str(found)[:80]}; load it with pickle if you trust it"
            )
    system = plain()
    swap = isinstance(system, dict) and bool(system.get("little_endian", True)) != (sys.byteorder == "little")
    storages = _Storages(file, map_location)
    with values_to_come() as waiting:
        found = make(file, storages).load()
    keys = plain()
    if not isinstance(keys, list) or sorted(map(str, keys)) != sorted(storages.made):
        raise damaged(f"the values of storages {sorted(storages.made)}, got those of {str(keys)[:100]}")
    for key in map(str, keys):
        storages.fill(key, swap)
    for one in waiting:
        one()
    return found


class _Bounded:
    """A file of which nobody can ask for more bytes than there are: their memory would be taken first."""

    def __init__(self, file: Any) -> None:
        here = file.tell()
        self.end = file.seek(0, os.SEEK_END)
        file.seek(here)
        self.file, self.readline = file, file.readline

    def read(self, size: int) -> bytes:
        return self.file.read(min(size, self.end))  # type: ignore[no-any-return]

    def readinto(self, target: Any) -> int:
        return self.file.readinto(target)  # type: ignore[no-any-return]


class _Storages:
    """Storages whose values come later in the file than their names."""

    def __init__(self, file: Any, map_location: Any) -> None:
        self.file, self.map_location = file, map_location
        self.made: dict[str, tuple[UntypedStorage, dtypes.dtype]] = {}
        self.claimed = 0

    def load(self, pid: Any) -> Any:
        """The storage of a persistent id; a part of another one is that one's, by offset."""
        kind, key, location, numel = described(pid, 6)
        dtype = kind or dtypes.uint8
        view = pid[5]
        if key not in self.made:
            self.claimed += numel * dtype.itemsize
            if self.claimed > self.file.end:
                raise cut_short(self.claimed, self.file.end)
            self.made[key] = located(self.map_location, location, lambda device: _zeros(device, dtype, numel)), dtype
        untyped, _ = self.made[key]
        if view is not None:
            raise LoadError(
                "load: expected storages that are whole, got a part of one as PyTorch before 0.4 wrote them; "
                "load and save the file with PyTorch once"
            )
        return untyped if kind is None else TypedStorage(wrap_storage=untyped, dtype=dtype)

    def fill(self, key: str, swap: bool) -> None:
        """Read the values of a storage from where the file stands."""
        storage, dtype = self.made[key]
        size = struct.unpack("<q", self._read(8))[0] * dtype.itemsize
        if size != storage.nbytes():
            raise damaged(f"{storage.nbytes()} bytes for storage '{key}', got {size}")
        values = np.frombuffer(self._read(size), np.uint8)
        if storage.device.capabilities.values:
            storage._write(swapped(values, dtype) if swap else values)

    def _read(self, size: int) -> bytes:
        found: bytes = self.file.read(size)
        if len(found) < size:
            raise cut_short(size, len(found))
        return found


def _zeros(device: Backend, dtype: dtypes.dtype, numel: int) -> UntypedStorage:
    if not device.capabilities.values:
        return storage_of(device, device.allocate((numel,), dtype))
    return storage_of(device, device.from_host(np.zeros(numel, dtype.numpy)))
