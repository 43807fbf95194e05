"""Page-locked host memory: a pool that waits for copies under way before it gives a block again."""

from __future__ import annotations

import ctypes
import threading
import weakref
from bisect import bisect_right, insort
from typing import Any

import numpy as np

__all__ = ["PinnedPool"]

_LEAST = 512


class PinnedPool:
    """Blocks in powers of two. One that is freed while a copy uses it is given again when the copy's event has come.

    Attributes:
        reserved: bytes that are page-locked now.
    """

    def __init__(self, cupy: Any) -> None:
        self.cupy = cupy
        self.reserved = 0
        self._blocks: dict[int, _Block] = {}  # by address, those in use
        self._addresses: list[int] = []  # the same, sorted
        self._free: dict[int, list[_Block]] = {}
        self._lock = threading.RLock()

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
        """A host array of undefined values in page-locked memory."""
        count = 1
        for size in shape:
            count *= size
        size = _LEAST
        while size < count * dtype.itemsize:
            size *= 2
        block = self._take(size)
        memory = (ctypes.c_uint8 * size).from_address(block.address)
        weakref.finalize(memory, self._give_back, block)
        return np.ndarray(shape, dtype, memory)

    def pin(self, array: np.ndarray) -> np.ndarray:
        """A contiguous copy in page-locked memory; the array itself where it lies there already."""
        if self.holds(array):
            return array
        made = self.empty(array.shape, array.dtype)
        np.copyto(made, array)
        return made

    def holds(self, array: np.ndarray) -> bool:
        """Whether the array lies in memory of this pool."""
        return self._block_of(array) is not None

    def used(self, array: np.ndarray, event: Any) -> None:
        """A copy from or to the array ends with this event."""
        block = self._block_of(array)
        if block is not None:
            block.events = [one for one in block.events if not one.done] + [event]

    def empty_cache(self) -> int:
        """Give free blocks back to the system; how many bytes those were."""
        with self._lock:
            freed = 0
            for blocks in self._free.values():
                for block in [one for one in blocks if one.idle()]:
                    blocks.remove(block)
                    self.cupy.cuda.runtime.freeHost(block.address)
                    freed += block.size
            self.reserved -= freed
            return freed

    def _take(self, size: int) -> _Block:
        with self._lock:
            blocks = self._free.get(size, [])
            for block in reversed(blocks):  # the one that was freed last is in the cache
                if block.idle():
                    blocks.remove(block)
                    break
            else:
                runtime = self.cupy.cuda.runtime
                block = _Block(runtime.hostAlloc(size, runtime.hostAllocPortable), size)
                self.reserved += size
            self._blocks[block.address] = block
            insort(self._addresses, block.address)
            return block

    def _give_back(self, block: _Block) -> None:
        with self._lock:
            del self._blocks[block.address]
            self._addresses.remove(block.address)
            self._free.setdefault(block.size, []).append(block)

    def _block_of(self, array: np.ndarray) -> _Block | None:
        """The block that the array's first element lies in, whoever made the array."""
        address = array.__array_interface__["data"][0]
        with self._lock:
            at = bisect_right(self._addresses, address) - 1
            block = self._blocks[self._addresses[at]] if at >= 0 else None
        return block if block is not None and address < block.address + block.size else None


class _Block:
    def __init__(self, address: int, size: int) -> None:
        self.address, self.size = address, size
        self.events: list[Any] = []

    def idle(self) -> bool:
        """Whether every copy from or to it is over."""
        self.events = [one for one in self.events if not one.done]
        return not self.events
