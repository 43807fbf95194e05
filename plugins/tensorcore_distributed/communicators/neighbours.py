"""Other processes' memory on this host, read and written without their help: one copy, where messages take two.

MPI moves the addresses and tells who is ready; the bytes move by ``process_vm_readv`` and ``process_vm_writev``, which the
kernel grants among processes of one user that ask for it.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .arithmetic import FUNCTIONS, pieces, wide

__all__ = ["LEAST", "Neighbours", "meet_neighbours"]

LEAST = 32 << 10  # bytes; below it three rounds of small messages cost more than a second copy
_PIECE = 256 << 10  # bytes that a core's cache holds beside what they are added to
_SECRET = 0x5A5A5A5A  # what a rank's memory holds beside its number: another process's does not
_PR_SET_PTRACER, _ANY = 0x59616D61, ctypes.c_ulong(-1)


class _Span(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


class Neighbours:
    """The memory of the processes of a group, by rank.

    Args:
        pids: of the processes, of which ``rank`` is this one.
    """

    def __init__(self, pids: Sequence[int], rank: int) -> None:
        self.pids, self.rank = list(pids), rank

    @staticmethod
    def allow() -> bool:
        """Let other processes of this user read this one's memory; whether this system knows of that."""
        try:
            libc = ctypes.CDLL(None, use_errno=True)
            libc.prctl(_PR_SET_PTRACER, _ANY, 0, 0, 0)  # refused where no such permission is needed
            return hasattr(libc, "process_vm_readv")
        except OSError:
            return False

    def read(self, rank: int, address: int, into: np.ndarray) -> None:
        """Copy from a rank's memory into a contiguous array. Raises OSError where that cannot be."""
        self._move(_readv, rank, _Span(int(address), into.nbytes), _Span(into.ctypes.data, into.nbytes))

    def _move(self, call: Any, rank: int, there: _Span, here: _Span) -> None:
        """Read what is there, or write it, and leave both spans behind it."""
        ours, theirs = ctypes.byref(here), ctypes.byref(there)
        while here.length:
            count = call(self.pids[rank], ours, 1, theirs, 1, 0)
            if count <= 0:
                number = ctypes.get_errno()
                what = "reading" if call is _readv else "writing"
                raise OSError(number, f"{what} the memory of rank {rank}: {os.strerror(number)}")
            for one in (here, there):
                one.base, one.length = one.base + count, one.length - count

    def combine(
        self, op: str, mine: np.ndarray, out: np.ndarray, addresses: Sequence[int],
        targets: Sequence[int] | None = None, going: Callable[[], None] | None = None,
    ) -> None:  # fmt: skip
        """Combine a flat array with those that the other ranks have at ``addresses``, into ``out``, which it may be.

        One rank combines each element for all, so the order need not be the same on all of them: its own comes first.

        Args:
            targets: where the other ranks want the result too. It goes there while the cache still holds it, so that nobody
                fetches it again: a quarter of all the bytes that an all_reduce moves.
            going: raises where the others may have given up, and their memory is theirs again.
        """
        function, dtype = FUNCTIONS[op], wide(mine.dtype)
        count = max(1, _PIECE // mine.itemsize)
        room = np.empty(min(count, mine.size), mine.dtype)
        base, here = room.ctypes.data, _Span()
        there = {rank: _Span(int(address)) for rank, address in enumerate(addresses) if rank != self.rank}
        back = {rank: _Span(int(targets[rank])) for rank in there} if targets is not None else {}
        for piece in pieces(mine.size, count):
            found = room[: piece.stop - piece.start]
            total: np.ndarray = mine[piece].astype(dtype, copy=False)
            into = out[piece] if dtype is mine.dtype else total
            for rank, theirs in there.items():
                here.base, here.length = base, found.nbytes
                theirs.length = found.nbytes
                self._move(_readv, rank, theirs, here)
                total = function(total, found.astype(dtype, copy=False), out=into)
            if op == "mean":
                np.divide(total, len(addresses), out=total)
            if dtype is not mine.dtype:
                out[piece] = total
            if going is not None:
                going()
            for rank, theirs in back.items():
                here.base = out.ctypes.data + piece.start * out.itemsize
                here.length = theirs.length = found.nbytes
                self._move(_writev, rank, theirs, here)


def meet_neighbours(comm: Any, mpi: Any) -> Neighbours | None:
    """The memory of the other ranks, where all of them are on this host and may read one another's."""
    if comm.size == 1:
        return None
    host = comm.Split_type(mpi.COMM_TYPE_SHARED)
    together = host.size == comm.size and Neighbours.allow() and "TENSORCORE_NO_SHARED_MEMORY" not in os.environ
    host.Free()
    secret = np.array([os.getpid() ^ _SECRET], np.int64)
    every = np.empty((comm.size, 3), np.int64)
    comm.Allgather(np.array([os.getpid(), secret.ctypes.data, together], np.int64), every)
    found, readable = Neighbours(every[:, 0].tolist(), comm.rank), bool(every[:, 2].all())
    if readable:
        room = np.zeros(1, np.int64)
        try:
            for rank, (pid, address, _) in enumerate(every.tolist()):
                found.read(rank, address, room)
                readable = readable and int(room[0]) == pid ^ _SECRET
        except OSError:
            readable = False
    agreed = np.array([readable], np.int64)
    comm.Allreduce(mpi.IN_PLACE, agreed, mpi.MIN)
    return found if agreed[0] else None


def _find(name: str) -> Any:
    try:
        call = ctypes.CDLL(None, use_errno=True)[name]
    except (OSError, AttributeError):
        return None
    call.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_ulong)
    call.restype = ctypes.c_ssize_t
    return call


_readv, _writev = _find("process_vm_readv"), _find("process_vm_writev")
