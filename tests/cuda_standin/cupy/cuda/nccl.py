"""NCCL in a world of one device: what is sent arrives where it was asked for, along the current stream."""

from __future__ import annotations

from .._memory import MemoryPointer, UnownedMemory

__all__ = ["NcclCommunicator", "NcclError", "available", "get_unique_id", "groupEnd", "groupStart"]

available = True
NCCL_INT8, NCCL_UINT8, NCCL_INT32, NCCL_UINT32, NCCL_INT64, NCCL_UINT64, NCCL_FLOAT16, NCCL_FLOAT32, NCCL_FLOAT64 = (
    range(9)
)
NCCL_SUM, NCCL_PROD, NCCL_MAX, NCCL_MIN = range(4)
_SIZES = (1, 1, 4, 4, 8, 8, 2, 4, 8)
_sent: list[tuple[int, int]] = []
_awaited: list[tuple[int, int]] = []


class NcclError(RuntimeError):
    """A call that NCCL refuses."""


def get_unique_id() -> tuple[int, ...]:
    """What the ranks find one another by."""
    return (1,) * 128


def groupStart() -> None:
    """Calls from here on start together."""


def groupEnd() -> None:
    """They have started; a message without its other half never ends."""
    if _sent or _awaited:
        raise NcclError("NCCL_ERROR_INVALID_USAGE: a message without its other half")


class NcclCommunicator:
    """The only rank."""

    def __init__(self, ndev: int, commId: tuple[int, ...], rank: int) -> None:
        if (ndev, rank) != (1, 0):
            raise NcclError("NCCL_ERROR_INVALID_ARGUMENT: the stand-in has a world of one")

    def allReduce(self, sendbuf: int, recvbuf: int, count: int, datatype: int, op: int, stream: int) -> None:
        """The array itself."""
        _copy(sendbuf, recvbuf, count * _SIZES[datatype])

    def reduceScatter(self, sendbuf: int, recvbuf: int, recvcount: int, datatype: int, op: int, stream: int) -> None:
        """Its only part."""
        _copy(sendbuf, recvbuf, recvcount * _SIZES[datatype])

    def allGather(self, sendbuf: int, recvbuf: int, count: int, datatype: int, stream: int) -> None:
        """Its only part."""
        _copy(sendbuf, recvbuf, count * _SIZES[datatype])

    def broadcast(self, sendbuff: int, recvbuff: int, count: int, datatype: int, root: int, stream: int) -> None:
        """The array itself."""
        _copy(sendbuff, recvbuff, count * _SIZES[datatype])

    def send(self, sendbuf: int, count: int, datatype: int, peer: int, stream: int) -> None:
        """To the rank itself."""
        _sent.append((sendbuf, count * _SIZES[datatype]))
        _match()

    def recv(self, recvbuf: int, count: int, datatype: int, peer: int, stream: int) -> None:
        """From the rank itself."""
        _awaited.append((recvbuf, count * _SIZES[datatype]))
        _match()

    def check_async_error(self) -> None:
        """None happened."""

    def abort(self) -> None:
        """Over."""

    def destroy(self) -> None:
        """Over."""


def _match() -> None:
    if _sent and _awaited:
        (source, size), (target, room) = _sent.pop(0), _awaited.pop(0)
        _copy(source, target, min(size, room))


def _copy(source: int, target: int, size: int) -> None:
    if source != target and size:
        into, found = (MemoryPointer(UnownedMemory(one, size, None), 0) for one in (target, source))
        into.copy_from_device_async(found, size)
