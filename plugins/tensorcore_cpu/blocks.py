"""Blocks of memory that outlive their arrays: cached by size class, on huge pages, or page-locked."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import mmap
import os
import threading
from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

__all__ = ["ALIGNMENT", "NO_ROOM", "Blocks", "Owner", "PinRefused", "PinnedBlocks", "address", "resource_limit"]

ALIGNMENT = 64  # bytes: a cache line, and the widest vector register
NO_ROOM = (MemoryError, OSError, OverflowError)  # what asking the system for memory raises

Shape = tuple[int, ...]

_HUGE_PAGE = 2 << 20


class Counts(NamedTuple):
    """The numbers of ``Blocks`` at one moment, in bytes but for ``active``, ``hits`` and ``misses``."""

    allocated: int  # what arrays asked for, ever
    freed: int
    allocated_peak: int
    reserved: int  # what the system gave, in use and cached
    reserved_peak: int
    cached: int
    limit: int
    active: int
    active_peak: int
    hits: int
    misses: int


class PinRefused(Exception):
    """Memory was not page-locked; the message says why."""


class Block:
    """A piece of memory that one array at a time lives in."""

    __slots__ = ("buffer", "cache", "size", "stamp")

    def __init__(self, buffer: memoryview, size: int, cache: Blocks) -> None:
        self.buffer = buffer
        self.size = size
        self.cache = cache
        self.stamp = 0


class Owner(np.ndarray):
    """The base of an array in a block: dies with the last view, and gives the block back.

    An array subclass with a finalizer, because that is the cheapest owner that NumPy keeps alive for every view.
    """

    __slots__ = ("block",)
    block: Block

    def __del__(self) -> None:
        block = getattr(self, "block", None)  # a view of the owner itself has none
        if block is not None:
            cache = block.cache
            cache.returned.append((block, self.nbytes))
            cache.settle_if_free()


class Blocks:
    """Blocks by size class, the free ones of each class in the order in which they came back.

    Blocks come back from finalizers, which can interrupt any line below, in any thread: they only append to
    ``returned``, a queue that is settled by whoever gets the lock without waiting. The lock is reentrant,
    because a finalizer or a signal handler that interrupts a line below may itself allocate.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.lock = threading.RLock()
        self.returned: deque[tuple[Block, int]] = deque()
        self.free: defaultdict[int, deque[Block]] = defaultdict(deque)
        self.settling = False
        self.clock = 0
        self.allocated = self.freed = self.allocated_peak = 0
        self.reserved = self.reserved_peak = self.cached = 0
        self.active = self.active_peak = 0
        self.hits = self.misses = 0

    def take(self, shape: Shape, dtype: np.dtype, nbytes: int) -> np.ndarray:
        """An array in the block of its size class that came back last, or in a new one; raises one of NO_ROOM."""
        size = self.size_class(nbytes)
        with self.lock:
            if self.returned:
                self.settle()
            try:
                block = self.free[size].pop()
            except IndexError:
                block = Block(self.make(size), size, self)
                self.misses += 1
                self.reserved += size
                self.reserved_peak = max(self.reserved_peak, self.reserved)
            else:
                self.hits += 1
                self.cached -= size
            self.allocated += nbytes
            self.active += 1
        if self.returned:
            self.settle_if_free()
        try:
            owner = Owner(shape, dtype, block.buffer)
        except BaseException:
            self.returned.append((block, nbytes))
            self.settle_if_free()
            raise
        owner.block = block
        return _asarray(owner)

    def settle_if_free(self) -> None:
        """Settles the queue unless the lock is taken: whoever holds it looks at the queue once more afterwards."""
        while self.returned and not self.settling and self.lock.acquire(False):
            try:
                self.settle()
            finally:
                self.lock.release()

    def settle(self) -> None:
        """Moves the blocks of the queue to their free lists. The caller holds the lock."""
        if self.settling:
            return
        self.settling = True
        try:
            self.note_peaks()  # only the lines below lower what has peaks
            while self.returned:
                block, nbytes = self.returned.popleft()
                self.freed += nbytes
                self.active -= 1
                size = block.size
                if size > self.limit:  # or it would push out everything else before itself
                    self.reserved -= size
                    self.unmake(block)
                    continue
                self.clock = block.stamp = self.clock + 1
                self.free[size].append(block)
                self.cached += size
                if self.cached > self.limit:
                    self.trim(self.limit)
        finally:
            self.settling = False

    def trim(self, nbytes: int) -> int:
        """Gives the oldest free blocks back to the system until at most ``nbytes`` are cached; returns how many."""
        before = self.cached
        while self.cached > nbytes:
            queue = min((queue for queue in list(self.free.values()) if queue), key=_oldest)
            block = queue.popleft()
            self.cached -= block.size
            self.reserved -= block.size
            self.unmake(block)
        return before - self.cached

    def empty(self) -> int:
        """Gives every free block back to the system; returns how many bytes."""
        with self.lock:
            self.settle()
            released = self.trim(0)
        self.settle_if_free()
        return released

    def set_limit(self, nbytes: int | None) -> int:
        """Sets the limit unless given None; returns the limit."""
        with self.lock:
            if nbytes is not None:
                self.limit = max(int(nbytes), 0)
            self.settle()
            self.trim(self.limit)
        self.settle_if_free()
        return self.limit

    def note_peaks(self) -> None:
        """Peaks are brought up to date here alone, which is enough before anything is taken away or reported."""
        current = self.allocated - self.freed
        if current > self.allocated_peak:
            self.allocated_peak = current
        if self.active > self.active_peak:
            self.active_peak = self.active

    def reset_peaks(self) -> None:
        """Every peak becomes the current value."""
        with self.lock:
            self.settle()
            self.allocated_peak = self.allocated - self.freed
            self.reserved_peak = self.reserved
            self.active_peak = self.active
        self.settle_if_free()

    def counts(self) -> Counts:
        """The numbers now."""
        with self.lock:
            self.settle()
            self.note_peaks()
            counts = Counts(*(getattr(self, name) for name in Counts._fields))
        self.settle_if_free()
        return counts

    def restart_in_child(self) -> None:
        """After a fork, in the child: the free blocks go, the live ones stay."""
        self.lock = threading.RLock()
        self.settling = False
        # Kept, the child's copy of the cache would make the parent copy each page that it reuses.
        self.empty()

    @staticmethod
    @functools.lru_cache(4096)
    def size_class(nbytes: int) -> int:
        """Eight classes to each doubling: at most an eighth is wasted, and of a mapping only addresses."""
        return _round_up(nbytes, 1 << max((nbytes - 1).bit_length() - 4, 0))

    def make(self, size: int) -> memoryview:
        """New memory of ``size`` bytes; raises one of NO_ROOM."""
        return _aligned(size) if size < _HUGE_PAGE else _huge_mapping(size)

    def unmake(self, block: Block) -> None:
        """What must happen before a block is dropped."""


class PinnedBlocks(Blocks):
    """Blocks in page-locked memory; the limit bounds all of it, in use and cached."""

    @staticmethod
    @functools.lru_cache(4096)
    def size_class(nbytes: int) -> int:
        """Whole pages, because pages are what is locked."""
        return _round_up(max(nbytes, 1), mmap.PAGESIZE)

    def make(self, size: int) -> memoryview:
        """New page-locked memory of ``size`` bytes; raises one of NO_ROOM, or PinRefused."""
        in_use = self.reserved - self.cached
        if in_use + size > self.limit:
            raise PinRefused(f"{in_use + size} bytes would be page-locked, and the limit is {self.limit}")
        self.trim(self.limit - in_use - size)
        lock = _page_lock("mlock")
        if lock is None:
            raise PinRefused("this system has no mlock")
        buffer = memoryview(_mapping(size))
        code = lock(address(buffer), size)
        if code:
            allowed = resource_limit("RLIMIT_MEMLOCK")
            bound = "" if allowed is None else f", and RLIMIT_MEMLOCK is {allowed} bytes"
            raise PinRefused(f"mlock refused {size} bytes: {os.strerror(code).lower()}{bound}")
        return buffer

    def unmake(self, block: Block) -> None:
        """Unlocks it; unmapping would too, but comes later where something else still refers to the mapping."""
        unlock = _page_lock("munlock")
        if unlock is not None:
            unlock(address(block.buffer), block.size)

    def restart_in_child(self) -> None:
        """After a fork, in the child: nothing is locked there, so no block comes back to this cache."""
        self.limit = 0
        super().restart_in_child()


def address(buffer: Any) -> int:
    """Where a writable buffer of one byte or more begins."""
    # 0.2 us; an array's own ``ctypes.data`` and ``__array_interface__`` take 0.8 to 1.3 us.
    return _addressof(_from_buffer(buffer))


def resource_limit(name: str) -> int | None:
    """The soft limit of this process, or None where there is none."""
    try:
        import resource
    except ImportError:
        return None
    if not hasattr(resource, name):
        return None
    soft: int = resource.getrlimit(getattr(resource, name))[0]
    return None if soft == resource.RLIM_INFINITY else soft


_asarray = np.asarray
_addressof = ctypes.addressof
_from_buffer = ctypes.c_char.from_buffer


def _oldest(queue: deque[Block]) -> int:
    return queue[0].stamp


def _round_up(nbytes: int, unit: int) -> int:
    return -(-nbytes // unit) * unit


def _aligned(size: int) -> memoryview:
    """``size`` bytes at an address divisible by ALIGNMENT."""
    # Not of a NumPy array: NumPy looks through a memoryview, and would make that array the base in place of the Owner.
    buffer = bytearray(size + ALIGNMENT - 1)
    start = -address(buffer) % ALIGNMENT
    return memoryview(buffer)[start : start + size]


def _mapping(size: int) -> mmap.mmap:
    # Python's default is a shared mapping, which gets no huge pages and which a forked child would write into.
    if hasattr(mmap, "MAP_ANONYMOUS"):
        return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return mmap.mmap(-1, size)


def _huge_mapping(size: int) -> memoryview:
    mapping = _mapping(size)
    start = 0
    if hasattr(mmap, "MADV_HUGEPAGE"):
        if address(mapping) % _HUGE_PAGE:  # Linux before 6.7; the slack is never touched
            with contextlib.suppress(OSError):
                mapping = _mapping(size + _HUGE_PAGE)
                start = -address(mapping) % _HUGE_PAGE
        with contextlib.suppress(OSError):  # a kernel built without them
            # What is beyond the last whole one stays on small pages, of which only those in use take memory.
            mapping.madvise(mmap.MADV_HUGEPAGE, start, size // _HUGE_PAGE * _HUGE_PAGE)
    return memoryview(mapping)[start : start + size]


@functools.cache
def _page_lock(name: str) -> Callable[[int, int], int] | None:
    """``mlock`` or ``munlock`` as a function of address and size that returns 0 or an error number."""
    try:
        function = getattr(ctypes.CDLL(None, use_errno=True), name)
    except (AttributeError, OSError, TypeError):
        return None
    function.argtypes = (ctypes.c_void_p, ctypes.c_size_t)

    def call(address: int, size: int) -> int:
        return ctypes.get_errno() or errno.EPERM if function(address, size) else 0

    return call
