"""Memory that several processes see: files without a name, which only their handles keep alive."""

from __future__ import annotations

import mmap
import os
import tempfile
from weakref import WeakSet

import numpy as np

__all__ = ["SharedMemory", "anonymous_file"]


def anonymous_file(size: int) -> int:
    """A handle of a file of ``size`` zero bytes, in memory where the system has such."""
    if hasattr(os, "memfd_create"):
        handle = os.memfd_create("tensorcore", os.MFD_CLOEXEC)
    else:
        handle, path = tempfile.mkstemp()
        os.unlink(path)
    try:
        os.ftruncate(handle, size)
    except BaseException:
        os.close(handle)
        raise
    return handle


class SharedMemory(mmap.mmap):
    """Such a file, mapped; whoever gets its handle maps the same values.

    ``SharedMemory.of(size)`` is a new one, ``SharedMemory.of(size, handle)`` that of another process.

    Attributes:
        handle: of the file, closed with the last array that shows a part of it.
        start: the address of its first byte.
    """

    handle: int
    start: int

    @classmethod
    def of(cls, size: int, handle: int | None = None) -> SharedMemory:
        """Memory of at least ``size`` bytes."""
        size = max(size, 1)
        handle = anonymous_file(size) if handle is None else handle
        try:
            made = cls(handle, size)
        except BaseException:
            os.close(handle)
            raise
        made.handle = handle
        made.start = np.frombuffer(made, np.uint8).ctypes.data
        _alive.add(made)
        return made

    @staticmethod
    def at(address: int) -> SharedMemory | None:
        """The one that an address of this process lies in."""
        return next((one for one in list(_alive) if one.start <= address < one.start + len(one)), None)

    def __del__(self) -> None:
        if (handle := getattr(self, "handle", None)) is not None:
            os.close(handle)


_alive: WeakSet[SharedMemory] = WeakSet()
