"""NCCL among the devices of one process: ranks are threads, each with a device of its own, and meet before each collective."""

from __future__ import annotations

import ctypes
import itertools
import queue
import threading
from collections import defaultdict
from typing import Any

import ml_dtypes
import numpy as np

from .. import _memory, _state
from .._kernels import run

__all__ = ["NcclCommunicator", "NcclError", "available", "get_unique_id", "groupEnd", "groupStart"]

available = True

_TYPES = ("int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64")
for _number, _name in enumerate(_TYPES):
    globals()[f"NCCL_{_name.upper()}"] = _number
NCCL_BFLOAT16 = 9
NCCL_SUM, NCCL_PROD, NCCL_MAX, NCCL_MIN = range(4)
_REDUCE: tuple[Any, ...] = (np.add, np.multiply, np.maximum, np.minimum)
_PATIENCE = 60.0  # seconds for the other ranks
_ids = itertools.count(1)
_worlds: dict[tuple[int, ...], _World] = {}
_lock = threading.Lock()


_grouped = threading.local()


class NcclError(RuntimeError):
    """A call that NCCL refuses."""


class _World:
    def __init__(self, size: int) -> None:
        self.turn = threading.Barrier(size)
        self.parts: list[Any] = [None] * size
        self.mail: dict[tuple[int, int], queue.Queue[np.ndarray]] = defaultdict(queue.Queue)


def get_unique_id() -> tuple[int, ...]:
    """A name for a new group."""
    return (next(_ids),)


def groupStart() -> None:
    """Calls from here on start together."""
    _grouped.waiting = []


def groupEnd() -> None:
    """They have started: what is to be received arrives."""
    waiting, _grouped.waiting = _grouped.waiting, None
    for receive in waiting:
        receive()


class NcclCommunicator:
    """One rank's end of a group."""

    def __init__(self, ndev: int, commId: tuple[int, ...], rank: int) -> None:
        self.size, self.rank, self.device = ndev, rank, _state.current_device()
        with _lock:
            self.world = _worlds.setdefault(commId, _World(ndev))
        devices = self._meet(self.device)
        if len(set(devices)) < len(devices):
            raise RuntimeError("NCCL_ERROR_INVALID_USAGE: invalid usage: two ranks on one device")

    def allReduce(self, sendbuf: int, recvbuf: int, count: int, datatype: int, op: int, stream: int) -> None:
        """Every rank gets the sum (or another reduction)."""
        parts = self._meet(_read(sendbuf, count, datatype))
        self._write("allReduce", (sendbuf, recvbuf), _REDUCE[op].reduce(parts))

    def reduceScatter(self, sendbuf: int, recvbuf: int, recvcount: int, datatype: int, op: int, stream: int) -> None:
        """Each rank gets its share of the sum."""
        parts = self._meet(_read(sendbuf, recvcount * self.size, datatype))
        self._write("reduceScatter", (sendbuf, recvbuf), np.split(_REDUCE[op].reduce(parts), self.size)[self.rank])

    def allGather(self, sendbuf: int, recvbuf: int, count: int, datatype: int, stream: int) -> None:
        """Every rank gets what all have."""
        self._write("allGather", (sendbuf, recvbuf), np.concatenate(self._meet(_read(sendbuf, count, datatype))))

    def broadcast(self, sendbuff: int, recvbuff: int, count: int, datatype: int, root: int, stream: int) -> None:
        """Every rank gets what one has."""
        self._write("broadcast", (sendbuff, recvbuff), self._meet(_read(sendbuff, count, datatype))[root])

    def send(self, sendbuf: int, count: int, datatype: int, peer: int, stream: int) -> None:
        """To one rank, which may be this one."""
        self.world.mail[self.rank, peer].put(_read(sendbuf, count, datatype).copy())

    def recv(self, recvbuf: int, count: int, datatype: int, peer: int, stream: int) -> None:
        """From one rank, which may be this one; a message without its other half never comes."""

        def receive() -> None:
            try:
                self._write("recv", (recvbuf, recvbuf), self.world.mail[peer, self.rank].get(timeout=_PATIENCE))
            except queue.Empty:
                raise NcclError("NCCL_ERROR_INVALID_USAGE: a message without its other half") from None

        waiting = getattr(_grouped, "waiting", None)
        receive() if waiting is None else waiting.append(receive)

    def check_async_error(self) -> None:
        """There is none."""

    def abort(self) -> None:
        """Let the ranks that wait go on with an error."""
        self.world.turn.abort()

    def destroy(self) -> None:
        """It is used no more."""

    def rank_id(self) -> int:
        """This rank."""
        return self.rank

    def _meet(self, part: Any) -> list[Any]:
        self.world.parts[self.rank] = part
        self.world.turn.wait(_PATIENCE)
        found = list(self.world.parts)
        self.world.turn.wait(_PATIENCE)
        return found

    def _write(self, name: str, addresses: tuple[int, int], values: np.ndarray) -> None:
        blocks = [one for one in map(_memory.block_at, addresses) if one is not None]
        data = np.ascontiguousarray(values).tobytes()
        run(_state.current_line(), blocks, lambda: ctypes.memmove(addresses[1], data, len(data)), name)


def _read(address: int, count: int, kind: int) -> np.ndarray:
    dtype = np.dtype(ml_dtypes.bfloat16) if kind == NCCL_BFLOAT16 else np.dtype(_TYPES[kind])
    return np.frombuffer(ctypes.string_at(address, count * dtype.itemsize), dtype)
