"""``cupy.cuda.memory``: what is also in ``cupy.cuda``, and the error."""

from .. import _state
from .._memory import Memory, MemoryPointer, MemoryPool, OutOfMemoryError, UnownedMemory

__all__ = ["MemoryPointer", "MemoryPool", "OutOfMemoryError", "UnownedMemory"]


def plain(size: int) -> MemoryPointer:
    """A block from no pool."""
    return MemoryPointer(Memory(size, _state.current_device()), 0)
