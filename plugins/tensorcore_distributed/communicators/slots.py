"""Memory that the ranks of one host share: what is small goes through it, and who waits for another rank sleeps meanwhile.

Each rank has a counter, a flag that says that it sleeps, and two slots for arrays. A meeting of the ranks is one number: a
rank fills its slot, raises its counter to the number, and reads the others' slots once their counters have it too. So
what moves no more than a slot costs one wait, where a message through MPI costs several. Two slots are enough,
used by turns: a rank that has come to meeting n has read what it wanted of meeting n - 1.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import secrets
import struct
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

__all__ = ["Arrival", "Slots", "meet_in_memory"]

_LINE = 64  # bytes of a cache line: what different ranks write shares none
_TOTAL = 8 << 20  # bytes of all slots of a group at most
_LARGEST, _LEAST = 1 << 20, 4 << 10  # bytes of a slot
_SPIN = 3e-5  # seconds of looking again before sleeping: what falling asleep and being woken costs
_FUTEX = 202  # of x86-64, whose stores other processors see in their order, which the counters rely on
_WAIT, _WAKE = 0, 1


class Arrival:
    """A request that is complete once some ranks have come to a meeting."""

    def __init__(self, slots: Slots, ranks: Iterable[int], number: int) -> None:
        self.slots, self.ranks, self.number = slots, list(ranks), number

    def Test(self) -> bool:
        """Whether they have come."""
        counters, number, ranks = self.slots.counters, self.number, self.ranks
        while ranks:
            if counters[8 * ranks[-1]] < number:
                return False
            ranks.pop()
        return True

    def spin(self) -> bool:
        """Test for a moment, where there is a processor for each rank."""
        if self.Test():
            return True
        end = time.perf_counter() + _SPIN if self.slots.roomy else 0.0
        while time.perf_counter() < end:
            if self.Test():
                return True
        return False

    def sleep(self, seconds: float) -> None:
        """Sleep until the first of the ranks that are missing comes, or so long."""
        slots, rank = self.slots, self.ranks[-1]
        seen = slots.counters[8 * rank]
        slots.sleeping[8 * slots.rank] = 1
        # A rank that comes just now may not see this one asleep; the kernel looks at the counter again, and time is short.
        if seen < self.number:
            slots.futex(rank, _WAIT, seen & 0xFFFFFFFF, seconds)
        slots.sleeping[8 * slots.rank] = 0


class Slots:
    """The counters and slots of a group.

    Args:
        memory: ``Slots.size_of(size)`` bytes that all ranks have mapped, zeros to begin with.
        rank, size: of this process in the group.
    """

    def __init__(self, memory: mmap.mmap, rank: int, size: int) -> None:
        self.rank, self.size = rank, size
        self.others = [one for one in range(size) if one != rank]
        self.largest = _slot(size)
        self.roomy = size <= len(os.sched_getaffinity(0))
        self.number = 0
        view = memoryview(memory)
        self.counters = view[: _LINE * size].cast("q")
        self.sleeping = view[_LINE * size : 2 * _LINE * size].cast("q")
        self.slots = np.frombuffer(memory, np.uint8, offset=2 * _LINE * size).reshape(2, size, self.largest)
        self.address = np.frombuffer(memory, np.uint8).ctypes.data
        self.call: Any = ctypes.CDLL(None).syscall

    @staticmethod
    def size_of(size: int) -> int:
        """Bytes of a group of so many ranks."""
        return 2 * _LINE * size + 2 * size * _slot(size)

    def meet(self, *mine: tuple[int, np.ndarray], sources: Iterable[int] | None = None) -> Iterator[Arrival]:
        """Come to the next meeting, and wait for some ranks, all where None.

        Args:
            mine: flat arrays of bytes for one's slot, each with its place in it.
        """
        number = self.number = self.number + 1
        if mine:
            before = Arrival(self, self.others, number - 1)
            if not before.Test():
                yield before
            slot = self.slots[number & 1, self.rank]
            for start, part in mine:
                slot[start : start + part.size] = part
        self.counters[8 * self.rank] = number
        for rank in self.others:
            if self.sleeping[8 * rank]:
                self.futex(self.rank, _WAKE, 0x7FFFFFFF)
                break
        arrival = Arrival(self, self.others if sources is None else sources, number)
        if not arrival.Test():
            yield arrival

    def found(self, rank: int, start: int, end: int) -> np.ndarray:
        """A part of what a rank brought to the meeting that was last, as bytes."""
        return self.slots[self.number & 1, rank, start:end]

    def futex(self, rank: int, what: int, value: int, seconds: float = 0.0) -> None:
        """Sleep while a rank's counter has this value, or wake those who do."""
        moment = struct.pack("qq", int(seconds), int(seconds % 1 * 1e9)) if what == _WAIT else None
        place = ctypes.c_void_p(self.address + _LINE * rank)
        self.call(_FUTEX, place, what, ctypes.c_uint32(value), moment, None, 0)


def meet_in_memory(comm: Any, mpi: Any) -> Slots | None:
    """The slots of a communicator, where its ranks share a host and see one another's files."""
    if comm.size == 1:
        return None
    host = comm.Split_type(mpi.COMM_TYPE_SHARED)
    fits = host.size == comm.size and sys.platform == "linux" and platform.machine() == "x86_64"
    host.Free()
    fits = fits and _slot(comm.size) >= _LEAST and "TENSORCORE_NO_SHARED_MEMORY" not in os.environ
    agreed = np.array([fits], np.int64)
    comm.Allreduce(mpi.IN_PLACE, agreed, mpi.MIN)
    if not agreed[0]:
        return None
    secret = secrets.token_bytes(16)
    handle = _make(Slots.size_of(comm.size), secret) if comm.rank == 0 else -1
    path, secret = comm.bcast((f"/proc/{os.getpid()}/fd/{handle}" if handle >= 0 else "", secret))
    memory = None
    try:
        if path:
            with open(path, "r+b") as file:
                memory = mmap.mmap(file.fileno(), Slots.size_of(comm.size))
    except (OSError, ValueError):  # containers whose processes do not see one another
        pass
    agreed[0] = memory is not None and memory[-len(secret) :] == secret
    comm.Allreduce(mpi.IN_PLACE, agreed, mpi.MIN)
    if handle >= 0:
        os.close(handle)
    return Slots(memory, comm.rank, comm.size) if agreed[0] and memory is not None else None


def _slot(size: int) -> int:
    """Bytes of a slot in a group of so many ranks."""
    return min(_LARGEST, _TOTAL // (2 * size)) // _LINE * _LINE


def _make(size: int, secret: bytes) -> int:
    """A file in memory that has no name to leave behind, with room that nobody can take away, and a secret at its end."""
    try:
        handle = os.memfd_create("tensorcore-slots")
        os.posix_fallocate(handle, 0, size)
        os.pwrite(handle, secret, size - len(secret))
    except OSError:
        return -1
    return handle
