"""What main process and worker send one another: short messages over a socket, values in memory that both see.

A block of shared memory has no name: it is a file that only its handles keep alive, so that nothing is left behind
whoever is killed when. The worker that made a block fills it, the main process shows it as tensors and gives the
block back when the last of them is gone; the worker fills it again.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import pickle
import socket
import struct
from collections import deque
from typing import Any

import numpy as np

from tensorcore.backend.sharing import anonymous_file
from tensorcore.tensor import Tensor

__all__ = ["Blocks", "Channel", "Mapped", "pack", "unpack"]

_LENGTH = struct.Struct("<I")
_PIECE = 1 << 16
_INLINE = 16384  # bytes of values that travel within the message: less than a mapping costs
_ALIGNMENT = 64


class Channel:
    """One end of a socket between two processes. The main process's end does not block; a worker's does."""

    def __init__(self, end: socket.socket) -> None:
        self.socket = end
        self.closed = False
        self._waiting = bytearray()
        self._handles: deque[int] = deque()

    def send(self, message: bytes, handle: int | None = None) -> None:
        """Send a message whole, and a copy of a file handle with it; blocks."""
        frame = memoryview(_LENGTH.pack(len(message)) + message)
        if handle is not None:
            frame = frame[socket.send_fds(self.socket, [frame], [handle]) :]
        if len(frame):
            self.socket.sendall(frame)

    def receive(self) -> bytes | None:
        """The next message; None where the other end is closed. Blocks."""
        while True:
            if (message := self._next()) is not None:
                return message
            if not self._fill():
                return None

    def messages(self) -> list[bytes]:
        """The messages that have arrived, without waiting. ``closed`` says whether there will be more."""
        with contextlib.suppress(BlockingIOError):
            while not self.closed:
                self.closed = not self._fill()
        found = []
        while (message := self._next()) is not None:
            found.append(message)
        return found

    def handle(self) -> int:
        """The next file handle that arrived."""
        if not self._handles:
            raise RuntimeError(
                "DataLoader: expected a worker's block of memory, got none: too many open files; raise the limit with "
                "`ulimit -n`, or keep fewer batches"
            )
        return self._handles.popleft()

    def close(self) -> None:
        """Close this end, and what arrived and was not asked for."""
        self.closed = True
        self.socket.close()
        while self._handles:
            os.close(self._handles.popleft())

    def _fill(self) -> int:
        try:
            data, handles, _, _ = socket.recv_fds(self.socket, _PIECE, 8)
        except ConnectionResetError:
            return 0
        self._handles.extend(handles)
        self._waiting += data
        return len(data)

    def _next(self) -> bytes | None:
        waiting = self._waiting
        if len(waiting) < 4:
            return None
        size = 4 + _LENGTH.unpack_from(waiting)[0]
        if len(waiting) < size:
            return None
        message = bytes(waiting[4:size])
        del waiting[:size]
        return message


# The worker's side


class Blocks:
    """The blocks that a worker made, and which of them are free to be filled.

    Args:
        kept: how many free ones to keep for later batches.
    """

    def __init__(self, kept: int) -> None:
        self.kept = kept
        self.maps: dict[int, mmap.mmap] = {}
        self.free: list[int] = []
        self.dropped: list[int] = []
        self.made = 0

    def give_back(self, numbers: list[int]) -> None:
        """Blocks that the main process shows no more."""
        self.free += numbers
        while len(self.free) > self.kept:
            number = self.free.pop(0)
            self.maps.pop(number).close()
            self.dropped.append(number)

    def take(self, size: int) -> tuple[int, mmap.mmap, int | None]:
        """Number, memory and, for a new one, file handle of a block of at least ``size`` bytes."""
        fits = [number for number in self.free if size <= len(self.maps[number]) <= 4 * size + _PIECE]
        if fits:
            number = min(fits, key=lambda one: len(self.maps[one]))
            self.free.remove(number)
            return number, self.maps[number], None
        step = max(_PIECE, 1 << max(size.bit_length() - 3, 0))
        whole = -(-size // step) * step
        handle = anonymous_file(whole)
        number, self.made = self.made, self.made + 1
        self.maps[number] = mmap.mmap(handle, whole)
        return number, self.maps[number], handle


def pack(value: Any, blocks: Blocks) -> tuple[dict[str, Any], int | None]:
    """What ``unpack`` makes a batch of again, and a handle to send with it."""
    buffers: list[pickle.PickleBuffer] = []
    text = _dumped(value, buffers)
    views = [buffer.raw() for buffer in buffers]
    sizes = [view.nbytes for view in views]
    if sum(sizes) <= _INLINE and len(text) <= _PIECE:
        return {"text": text, "values": [bytearray(view) for view in views]}, None
    if len(text) > _PIECE:  # a message that is long would fill the socket
        views, sizes = [memoryview(text), *views], [len(text), *sizes]
        text = b""
    places, end = [], 0
    for size in sizes:
        places.append((end, size))
        # What is empty has an address of its own, too: by addresses storages are told apart.
        end += -(-max(size, 1) // _ALIGNMENT) * _ALIGNMENT
    number, memory, handle = blocks.take(max(end, 1))
    with memoryview(memory) as target:
        for (start, size), view in zip(places, views, strict=True):
            target[start : start + size] = view
    dropped, blocks.dropped = blocks.dropped, []
    packed = {"text": text, "places": places, "block": number, "size": len(memory) if handle is not None else 0}
    return {**packed, "dropped": dropped}, handle


class _Pickler(pickle.Pickler):
    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, Tensor) and obj.device.capabilities.host:
            native = obj.native
            # A view would take the whole of its storage along.
            if native.base is not None and 2 * native.nbytes < obj.device.storage(native).nbytes:
                small = obj.detach().clone()
                small.__dict__.update(obj.__dict__)
                return small.requires_grad_(obj.requires_grad).__reduce_ex__(5)
        return NotImplemented


def _dumped(value: Any, buffers: list[pickle.PickleBuffer]) -> bytes:
    import io

    file = io.BytesIO()
    _Pickler(file, 5, buffer_callback=buffers.append).dump(value)
    return file.getvalue()


# The main process's side


class Mapped:
    """The blocks of one worker as the main process sees them.

    Attributes:
        freed: numbers of blocks that are shown no more, to be told to the worker.
    """

    def __init__(self) -> None:
        self.maps: dict[int, mmap.mmap] = {}
        self.freed: deque[int] = deque()

    def taken(self) -> list[int]:
        """The freed blocks that the worker was not told of yet."""
        found = []
        with contextlib.suppress(IndexError):
            while True:
                found.append(self.freed.popleft())
        return found


class _Lease(np.ndarray):
    """All of a block: dies with the last array that shows a part of it, and gives the block back."""

    __slots__ = ("freed", "number")
    freed: deque[int]
    number: int

    def __del__(self) -> None:
        freed = getattr(self, "freed", None)  # views of it have none
        if freed is not None:
            freed.append(self.number)


def unpack(packed: dict[str, Any], mapped: Mapped, channel: Channel) -> Any:
    """The batch that a worker packed."""
    if "block" not in packed:
        return pickle.loads(packed["text"], buffers=packed["values"])
    number = packed["block"]
    for dropped in packed["dropped"]:
        mapped.maps.pop(dropped, None)
    if packed["size"]:
        handle = channel.handle()
        try:
            mapped.maps[number] = mmap.mmap(handle, packed["size"])
        finally:
            os.close(handle)
    memory = mapped.maps[number]
    lease = _Lease((len(memory),), np.uint8, memory)
    lease.freed, lease.number = mapped.freed, number
    whole = memoryview(lease)
    parts = [whole[start : start + size] for start, size in packed["places"]]
    text = packed["text"] or parts.pop(0)
    return pickle.loads(text, buffers=parts)
