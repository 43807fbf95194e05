"""Where the CPU plugin's arrays live: the allocator, its statistics and its page-locked memory.

An array is placed by its size:

========================  ==============================================================================
under 32 KiB              a stock of ready arrays per shape and dtype, cut a few at a time from one buffer
32 KiB to 2 MiB           a cached block from Python's allocator
2 MiB and more            a cached block of its own anonymous mapping, on huge pages where there are any
page-locked               a cached block of its own anonymous mapping, locked with ``mlock``
========================  ==============================================================================

A cached block goes back to its free list when its array and every view of it are gone, and is handed
out again without a system call or a page fault. Statistics count blocks; arrays under 32 KiB
belong to Python's allocator and are not counted.

The base of an array made here is never a plain ``ndarray``. NumPy shortens chains of bases only
through plain ones, so the base of any plain view is the array that came from here: its storage.
"""

from __future__ import annotations

import math
import os
import threading
import weakref
from collections import defaultdict
from typing import Any

import numpy as np

from tensorcore.plugin import OutOfMemoryError

from .blocks import ALIGNMENT, NO_ROOM, Blocks, Owner, PinnedBlocks, PinRefused, address, resource_limit

__all__ = ["ALIGNMENT", "CACHE_FRACTION", "PINNED_FRACTION", "Allocator"]

CACHE_FRACTION = 1 / 4  # of the machine's (or the container's) memory may lie unused in the cache
PINNED_FRACTION = 1 / 8  # of it may be page-locked, in use and cached together

Shape = tuple[int, ...]

_CACHED = 32 << 10
# A kept array keeps the buffer it was cut from: at most 2 KiB or twice its own size.
_STOCK_BUFFER = 2 << 10
_STOCK_KEYS = 512  # shapes and dtypes, so the stock never holds more than 16 MiB


class Allocator:
    """Makes uninitialised arrays and takes their memory back for the next ones.

    Safe to use from threads, from finalizers and signal handlers, and across ``fork``: the child starts
    with an empty cache, keeps its live arrays, and has no page-locked memory (locks are not inherited).
    """

    def __init__(self) -> None:
        memory = _machine_memory()
        self._blocks = Blocks(int(memory * CACHE_FRACTION))
        self._pinned = PinnedBlocks(int(memory * PINNED_FRACTION))
        self._pin_refusal: str | None = None
        self._retries = self._failures = 0
        self._stock: defaultdict[np.dtype, dict[Shape, _Ready]] = defaultdict(dict)
        self._stock_keys = 0
        _allocators.add(self)

    def empty(self, shape: Shape, dtype: np.dtype) -> np.ndarray:
        """A C-contiguous array of ``shape`` with undefined values, at an address divisible by 64.

        Raises OutOfMemoryError where the memory cannot be had even with the cache emptied.
        """
        ready = self._stock[dtype].get(shape)
        if ready:
            try:
                return ready.pop()
            except IndexError:  # another thread took the last one
                pass
        return self._empty(shape, dtype, ready)

    def pinned_empty(self, shape: Shape, dtype: np.dtype) -> np.ndarray:
        """As ``empty``, in page-locked memory if the system grants it.

        Where it does not, the array is an ordinary one, ``is_pinned`` says so and ``pin_refusal`` says why.
        """
        nbytes = math.prod(shape) * dtype.itemsize
        while True:
            try:
                array = self._pinned.take(shape, dtype, nbytes)
            except PinRefused as refused:
                self._pin_refusal = str(refused)
            except NO_ROOM as error:
                self._pin_refusal = f"the system gave no memory for {nbytes} bytes: {error}"
            else:
                self._pin_refusal = None
                return array
            if not self._pinned.empty():  # with the cached blocks unlocked there may be room for this one
                return self.empty(shape, dtype)

    def pin(self, array: np.ndarray) -> np.ndarray:
        """A page-locked C-contiguous copy of ``array``, or ``array`` itself if it is page-locked already."""
        if self.is_pinned(array):
            return array
        copy = self.pinned_empty(array.shape, array.dtype)
        np.copyto(copy, array)
        return copy

    def is_pinned(self, array: np.ndarray) -> bool:
        """Whether ``array`` lies in memory of this allocator that this process holds page-locked."""
        base: Any = array
        while base is not None:
            block = getattr(base, "block", None) if isinstance(base, Owner) else None
            if block is not None:
                return block.cache is self._pinned
            base = base.obj if isinstance(base, memoryview) else getattr(base, "base", None)
        return False

    def pin_refusal(self) -> str | None:
        """Why the latest ``pinned_empty`` or ``pin`` gave ordinary memory; None if it gave page-locked memory."""
        return self._pin_refusal

    def statistics(self) -> dict[str, int]:
        """Counts, in bytes and blocks, under names that follow ``torch.cuda.memory_stats``.

        ``allocated_bytes`` is what live arrays asked for; ``reserved_bytes`` is what the system gave for
        them and for the cache, rounded to size classes. ``pinned_bytes`` is page-locked memory and part of neither.
        """
        blocks, pinned = self._blocks.counts(), self._pinned.counts()
        return {
            "allocated_bytes.current": blocks.allocated - blocks.freed,
            "allocated_bytes.peak": blocks.allocated_peak,
            "allocated_bytes.allocated": blocks.allocated,
            "allocated_bytes.freed": blocks.freed,
            "reserved_bytes.current": blocks.reserved,
            "reserved_bytes.peak": blocks.reserved_peak,
            "cached_bytes.current": blocks.cached,
            "cached_bytes.limit": blocks.limit,
            "active.current": blocks.active,
            "active.peak": blocks.active_peak,
            "cache.hits": blocks.hits,
            "cache.misses": blocks.misses,
            "num_alloc_retries": self._retries,
            "num_ooms": self._failures,
            "pinned_bytes.current": pinned.allocated - pinned.freed,
            "pinned_bytes.peak": pinned.allocated_peak,
            "pinned_bytes.reserved": pinned.reserved,
            "pinned_bytes.cached": pinned.cached,
            "pinned_bytes.limit": pinned.limit,
        }

    def huge_page_bytes(self) -> int | None:
        """How much of the whole process's memory lies on huge pages; None where the system does not say.

        No part of ``statistics``, because the system walks its page tables for the answer: milliseconds.
        """
        try:
            with open("/proc/self/smaps_rollup") as file:
                kibibytes = [int(line.split()[1]) for line in file if line.startswith("AnonHugePages:")]
        except OSError:
            return None
        return kibibytes[0] << 10 if kibibytes else None

    def reset_peak_statistics(self) -> None:
        """Every peak becomes the current value."""
        self._blocks.reset_peaks()
        self._pinned.reset_peaks()

    def empty_cache(self) -> int:
        """Gives every unused block back to the system; returns how many bytes that were."""
        self._stock.clear()
        self._stock_keys = 0
        return self._blocks.empty() + self._pinned.empty()

    def limit(self, nbytes: int | None = None) -> int:
        """Sets, if given, how many bytes may lie unused in the cache, and returns the limit in force.

        Over it, the blocks that were given back longest ago go first.
        """
        return self._blocks.set_limit(nbytes)

    def pinned_limit(self, nbytes: int | None = None) -> int:
        """Sets, if given, how many bytes may be page-locked in all, and returns the limit in force."""
        return self._pinned.set_limit(nbytes)

    def _empty(self, shape: Shape, dtype: np.dtype, ready: _Ready | None) -> np.ndarray:
        try:
            return self._place(shape, dtype, ready)
        except NO_ROOM:
            self._retries += 1
            self.empty_cache()
        try:
            return self._place(shape, dtype, ready)
        except NO_ROOM as error:
            self._failures += 1
            raise OutOfMemoryError(self._no_room(math.prod(shape) * dtype.itemsize, error)) from error

    def _place(self, shape: Shape, dtype: np.dtype, ready: _Ready | None) -> np.ndarray:
        if ready is not None:
            # 0.3 us less than an aligned piece of an array, though it is filled with zeros. Each array is cut from it
            # and so is a base of its own; rows of one array would be 0.1 us cheaper, and share their base.
            buffer = bytearray(ready.buffer_size)
            start = -address(buffer) % ALIGNMENT
            array = np.ndarray(shape, dtype, buffer, start)
            for offset in ready.offsets:
                ready.append(np.ndarray(shape, dtype, buffer, start + offset))
            return array
        nbytes = math.prod(shape) * dtype.itemsize
        if nbytes >= _CACHED:
            return self._blocks.take(shape, dtype, nbytes)
        # The first of its shape may be the last one: stock up when it is asked for again.
        if self._stock_keys >= _STOCK_KEYS:
            self._stock.clear()
            self._stock_keys = 0
        self._stock[dtype][shape] = _Ready(nbytes)
        self._stock_keys += 1
        buffer = bytearray(nbytes + ALIGNMENT)
        return np.ndarray(shape, dtype, buffer, -address(buffer) % ALIGNMENT)

    def _no_room(self, nbytes: int, error: BaseException) -> str:
        counts = self._blocks.counts()
        # A failed mapping says why in the system's words; NumPy's error only repeats the size.
        reason = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
        address_space = resource_limit("RLIMIT_AS")
        bound = "" if address_space is None else f" of the {address_space} that RLIMIT_AS lets the process map"
        return (
            f"empty: expected room for {nbytes} bytes, got '{reason}' with an empty cache and {counts.reserved} bytes "
            f"held by {counts.active} arrays{bound}; drop arrays or make smaller ones"
        )

    def _restart_in_child(self) -> None:
        inherited = self._pinned
        self._pinned = PinnedBlocks(inherited.limit)
        inherited.restart_in_child()
        self._blocks.restart_in_child()


class _Ready(list[np.ndarray]):
    """Arrays of one shape and dtype that nobody uses yet, and how the next ones are cut from a buffer."""

    __slots__ = ("buffer_size", "offsets")

    def __init__(self, nbytes: int) -> None:
        step = -(-nbytes // ALIGNMENT) * ALIGNMENT or ALIGNMENT
        count = min(max(_STOCK_BUFFER // step, 2), 16)
        self.buffer_size = count * step + ALIGNMENT
        self.offsets = range(step, count * step, step)


def _machine_memory() -> int:
    """Bytes of memory of the machine, or of the container if it has fewer; 8 GiB where the system does not say."""
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        memory = 8 << 30
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            with open(path) as file:
                memory = min(memory, int(file.read()))
        except (OSError, ValueError):  # no such group, or "max"
            continue
    return memory


_FORK_WAIT = 1.0  # seconds

_allocators: weakref.WeakSet[Allocator] = weakref.WeakSet()
_forking = threading.local()


def _before_fork() -> None:
    # The child must not inherit half-made changes, but a fork that hangs would be worse.
    locks = [lock for each in list(_allocators) for lock in (each._blocks.lock, each._pinned.lock)]
    _forking.held = [lock for lock in locks if lock.acquire(timeout=_FORK_WAIT)]


def _after_fork_in_parent() -> None:
    for lock in _forking.held:
        lock.release()


def _after_fork_in_child() -> None:
    for each in list(_allocators):
        each._restart_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
