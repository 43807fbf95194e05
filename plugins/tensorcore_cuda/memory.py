"""Device memory: CuPy's pool, with the size that each array asked for, peaks, limits, and other streams' uses."""

from __future__ import annotations

import os
from typing import Any, NoReturn

from tensorcore_cuda.probe import FORKED

__all__ = ["Memory"]


class Memory:
    """The memory of one device, from CuPy's default pool, which CuPy's own arrays share.

    The pool keeps a list of free blocks for each stream: a block that is freed goes to the next array of the stream that it
    was made on, with no wait, since work on one stream is in order.
    """

    _pool: Any = None  # one for all devices: CuPy's pool keeps them apart

    def __init__(self, cupy: Any, index: int) -> None:
        self.cupy, self.index = cupy, index
        self.peaks = [0, 0]
        self.count = 0
        self.known: dict[int, Memory] = _BY_DEVICE
        self.known[index] = self
        if Memory._pool is None:
            Memory._pool = cupy.get_default_memory_pool()
            cupy.cuda.set_allocator(self.allocator(Memory._pool))
            if hasattr(os, "register_at_fork"):
                os.register_at_fork(after_in_child=lambda: cupy.cuda.set_allocator(_refuse))

    def allocator(self, pool: Any) -> Any:
        """What CuPy calls for memory: the pool, with the bytes that were asked for noted on the block, which is larger."""
        malloc, known, current = pool.malloc, self.known, self.cupy.cuda.runtime.getDevice

        def allocate(size: int) -> Any:
            found = malloc(size)
            found.mem.asked = size
            owner = known.get(current())
            if owner is not None:
                owner.note(pool)
            return found

        return allocate

    def note(self, pool: Any) -> None:
        """Count an allocation and move the peaks."""
        self.count += 1
        used, total, peaks = pool.used_bytes(), pool.total_bytes(), self.peaks
        if used > peaks[0]:
            peaks[0] = used
        if total > peaks[1]:
            peaks[1] = total

    def size_of(self, block: Any) -> int:
        """The bytes of the storage in a block."""
        try:
            return block.asked  # type: ignore[no-any-return]
        except AttributeError:  # memory of another library
            return block.size  # type: ignore[no-any-return]

    def stats(self) -> dict[str, int]:
        """Bytes of live arrays (rounded up as the pool does), bytes that the pool has, their peaks, and the allocations."""
        with self.cupy.cuda.Device(self.index):
            used, total = Memory._pool.used_bytes(), Memory._pool.total_bytes()
            blocks = Memory._pool.n_free_blocks()
        return {
            "allocated_bytes.current": used,
            "allocated_bytes.peak": max(used, self.peaks[0]),
            "reserved_bytes.current": total,
            "reserved_bytes.peak": max(total, self.peaks[1]),
            "allocation.allocated": self.count,
            "inactive_split.current": blocks,
        }

    def reset_peaks(self) -> None:
        """Let the peaks be the current values."""
        with self.cupy.cuda.Device(self.index):
            self.peaks = [Memory._pool.used_bytes(), Memory._pool.total_bytes()]

    def empty(self) -> int:
        """Give free blocks back to the device; how many bytes those were."""
        with self.cupy.cuda.Device(self.index):
            before = Memory._pool.total_bytes()
            Memory._pool.free_all_blocks()
            return before - Memory._pool.total_bytes()  # type: ignore[no-any-return]

    def limit(self, fraction: float) -> None:
        """Let the pool take at most this share of the device's memory."""
        with self.cupy.cuda.Device(self.index):
            _, total = self.cupy.cuda.runtime.memGetInfo()
            Memory._pool.set_limit(size=int(total * fraction))

    def record_stream(self, native: Any, home: Any, stream: Any) -> None:
        """Keep the memory under an array from being used again before what ``stream`` was given by the time it is freed.

        ``home`` is the stream that the memory goes back to, which waits then.
        """
        block = native.data.mem
        if not hasattr(block, "__dict__"):
            return  # not from the pool: its owner frees it
        guard = block.__dict__.get("guard")
        if guard is None:
            guard = block.__dict__["guard"] = _Guard(self.cupy, self.index, home)
        guard.streams.add(stream)


def _refuse(size: int) -> NoReturn:
    raise RuntimeError(f"cuda: expected the process that uses the device, got one that it has forked; {FORKED}")


_BY_DEVICE: dict[int, Memory] = {}


class _Guard:
    """Lies in a block's dict, which is cleared when the block has gone back to the pool, before anybody can get it."""

    __slots__ = ("cupy", "home", "index", "streams")

    def __init__(self, cupy: Any, index: int, home: Any) -> None:
        self.cupy, self.index, self.home, self.streams = cupy, index, home, set[Any]()

    def __del__(self) -> None:
        with self.cupy.cuda.Device(self.index):  # an event is of the device that is current when it is made
            written_down = self.home.is_capturing()
            for stream in self.streams:
                # Between a stream that is captured and one that is not there can be no event; nor need there be, as a capture
                # begins when the device is idle, and its replays hold no memory that was freed outside.
                if stream != self.home and stream.is_capturing() == written_down:
                    event = self.cupy.cuda.Event(disable_timing=True)
                    event.record(stream)
                    self.home.wait_event(event)
