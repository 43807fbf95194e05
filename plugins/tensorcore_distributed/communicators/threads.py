"""Ranks that are threads of one process: they meet at each collective, and the last to come does the work for all."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from tensorcore.plugin import (
    ArgumentError,
    Backend,
    Communicator,
    CommunicatorError,
    CommunicatorTimeout,
    Handle,
    ShapeError,
)

from .arithmetic import combine, flat

__all__ = ["ThreadsCommunicator"]

_LOOK = 0.05  # seconds between two looks at whether somebody gave up


class ThreadsCommunicator(Communicator):
    """One thread's end of a world whose ranks share a process.

    Args:
        backend: a device whose memory is the host's.
        rank, size: of this thread in its world.
        timeout: seconds.
        world: a name that the ranks of one world agree on; free for another one once all of them have come.
    """

    means = True

    def __init__(
        self, backend: Backend, rank: int, size: int, *, timeout: float = 300.0, world: str | World = "default"
    ) -> None:
        super().__init__(backend, rank, size, timeout=timeout)
        if not backend.capabilities.host:
            raise ArgumentError(
                f"threads: expected a device in host memory, got {backend}; make the communicator for the host"
            )
        self.world = World.enter(world, rank, size) if isinstance(world, str) else world
        self.number = 0

    def all_reduce(self, native: Any, op: str = "sum", *, out: Any = None, timeout: float | None = None) -> Handle:
        out = native if out is None else out
        self.contiguous("all_reduce", native, out)
        self.reduction("all_reduce", op)

        def act(parts: list[Any]) -> None:
            combine([flat(one) for one, _ in parts], [flat(one) for _, one in parts], op)

        return self._meet(f"all_reduce {op}", native, out, act, timeout)

    def reduce_scatter(self, native: Any, out: Any, op: str = "sum", *, timeout: float | None = None) -> Handle:
        self.blocks("reduce_scatter", out, native)
        self.reduction("reduce_scatter", op)

        def act(parts: list[Any]) -> None:
            for rank, (_, mine) in enumerate(parts):
                combine([flat(one[rank]) for one, _ in parts], [flat(mine)], op)

        return self._meet(f"reduce_scatter {op}", native, out, act, timeout)

    def all_gather(self, native: Any, out: Any, *, timeout: float | None = None) -> Handle:
        self.blocks("all_gather", native, out)

        def act(parts: list[Any]) -> None:
            for _, whole in parts:
                for rank, (block, _) in enumerate(parts):
                    whole[rank] = block

        return self._meet("all_gather", native, out, act, timeout)

    def broadcast(self, native: Any, root: int, *, timeout: float | None = None) -> Handle:
        self.contiguous("broadcast", native)
        self.member("broadcast", "root", root)

        def act(parts: list[Any]) -> None:
            for rank, (_, out) in enumerate(parts):
                if rank != root:
                    out[...] = parts[root][0]

        return self._meet(f"broadcast {root}", native, native, act, timeout)

    def barrier(self, *, timeout: float | None = None) -> None:
        self.backend.synchronize()
        self._meet("barrier", None, None, lambda parts: None, timeout).wait()

    def send(self, native: Any, dest: int, *, tag: int = 0, timeout: float | None = None) -> Handle:
        self.contiguous("send", native)
        self.member("send", "dest", dest)
        self.world.check()
        self.world.deliver((self.rank, dest, tag), self.backend.to_host(native).copy())
        return Handle()

    def recv(self, native: Any, source: int, *, tag: int = 0, timeout: float | None = None) -> Handle:
        self.contiguous("recv", native)
        self.member("recv", "source", source)
        self.world.check()
        slip = Slip(self.backend.to_host(native))
        self.world.expect((source, self.rank, tag), slip)

        def wait(asked: float | None) -> None:
            self._await(slip.event, f"recv from rank {source}", self.seconds(timeout) if asked is None else asked)
            if slip.error is not None:
                raise slip.error

        return Handle(native, wait, slip.event.is_set)

    def sender(self, tag: int = 0) -> int | None:
        self.world.check()
        return self.world.waiting(self.rank, tag)

    def split(self, color: int | None, key: int = 0) -> ThreadsCommunicator | None:
        found: dict[int, tuple[World, int, int]] = {}

        def act(parts: list[Any]) -> None:
            for value in {asked[0] for asked, _ in parts if asked[0] is not None}:
                members = sorted((asked[1], rank) for rank, (asked, _) in enumerate(parts) if asked[0] == value)
                made = World(len(members))
                for new, (_, rank) in enumerate(members):
                    parts[rank][1][rank] = (made, new, len(members))

        self._meet("split", (color, key), found, act, None).wait()
        if color is None:
            return None
        world, rank, size = found[self.rank]
        return ThreadsCommunicator(self.backend, rank, size, timeout=self.timeout, world=world)

    def abort(self, reason: str) -> None:
        self.world.abort(reason)

    def close(self) -> None:
        self.world.leave()

    def _meet(
        self, what: str, native: Any, out: Any, act: Callable[[list[Any]], None], timeout: float | None
    ) -> Handle:
        self.number += 1
        host = self.backend.to_host
        part = (native, out) if what == "split" else tuple(None if one is None else host(one) for one in (native, out))
        meeting = self.world.meet(self.number, self.rank, what, *part, act)

        def wait(asked: float | None) -> None:
            self._await(meeting.event, what, self.seconds(timeout) if asked is None else asked)
            if meeting.error is not None:
                raise CommunicatorError(str(meeting.error)) from meeting.error

        return Handle(out, wait, meeting.event.is_set)

    def _await(self, event: threading.Event, what: str, seconds: float) -> None:
        if event.is_set():
            return
        end = time.monotonic() + seconds
        while not event.wait(min(_LOOK, max(0.0, end - time.monotonic()))):
            self.world.check()
            if self.watch is not None:
                self.watch()
            if time.monotonic() >= end:
                raise CommunicatorTimeout(
                    f"{what}: expected the other ranks within {seconds:g} s, got no answer; see what they are doing"
                )
        # What was complete when somebody gave up is good all the same.


class World:
    """What the ranks of one world share.

    Attributes:
        aborted: why somebody gave up, None while all is well.
    """

    _lock = threading.Lock()
    _open: dict[str, World] = {}  # noqa: RUF012 - worlds that not all of their ranks have entered

    def __init__(self, size: int) -> None:
        self.size = size
        self.entered: set[int] = set()
        self.lock = threading.Lock()
        self.meetings: dict[int, Meeting] = {}
        self.mail: dict[tuple[int, int, int], deque[np.ndarray]] = {}
        self.slips: dict[tuple[int, int, int], deque[Slip]] = {}
        self.aborted: str | None = None

    @classmethod
    def enter(cls, name: str, rank: int, size: int) -> World:
        """The open world of that name, made by the first who comes."""
        with cls._lock:
            world = cls._open.get(name)
            if world is not None and world.aborted is not None:
                world = None  # left over from a start that failed
            if world is None:
                world = cls._open[name] = cls(size)
            if world.size != size or rank in world.entered:
                raise ArgumentError(
                    f"threads: expected rank {rank} of {size} to be free in the world '{name}', got one of {world.size} "
                    f"with ranks {sorted(world.entered)}; give each world its own name"
                )
            world.entered.add(rank)
            if len(world.entered) == size:
                del cls._open[name]
            return world

    def meet(self, number: int, rank: int, what: str, native: Any, out: Any, act: Any) -> Meeting:
        """Bring one rank's part to a collective; the last one does it."""
        with self.lock:
            self.check()
            meeting = self.meetings.get(number)
            if meeting is None:
                meeting = self.meetings[number] = Meeting(self.size)
            meeting.parts[rank] = (native, out)
            meeting.calls[rank] = (what, getattr(native, "shape", None), getattr(native, "dtype", None))
            meeting.came += 1
            complete = meeting.came == self.size
            if complete:
                del self.meetings[number]
        if complete:
            meeting.hold(act, what.startswith("split"))
        return meeting

    def deliver(self, key: tuple[int, int, int], message: np.ndarray) -> None:
        """Hand a message to the receiver that waits for it, or keep it."""
        with self.lock:
            waiting = self.slips.get(key)
            if not waiting:
                self.mail.setdefault(key, deque()).append(message)
                return
            slip = waiting.popleft()
        slip.fill(message)

    def waiting(self, dest: int, tag: int) -> int | None:
        """The sender of a message that nobody has received yet."""
        with self.lock:
            return next((key[0] for key, left in self.mail.items() if left and key[1:] == (dest, tag)), None)

    def expect(self, key: tuple[int, int, int], slip: Slip) -> None:
        """Fill a receiver with the oldest message that is there, or note that it waits."""
        with self.lock:
            messages = self.mail.get(key)
            if not messages:
                self.slips.setdefault(key, deque()).append(slip)
                return
            message = messages.popleft()
        slip.fill(message)

    def abort(self, reason: str) -> None:
        """Tell all ranks why it is over; the first reason stays."""
        if self.aborted is None:
            self.aborted = reason

    def check(self) -> None:
        """Raise CommunicatorError once somebody gave up."""
        if self.aborted is not None:
            raise CommunicatorError(self.aborted)

    def leave(self) -> None:
        """Forget the world where it is still open."""
        with World._lock:
            for name, world in list(World._open.items()):
                if world is self:
                    del World._open[name]


class Meeting:
    """One collective under way: what each rank brought, and whether it is done."""

    def __init__(self, size: int) -> None:
        self.parts: list[Any] = [None] * size
        self.calls: list[Any] = [None] * size
        self.came = 0
        self.event = threading.Event()
        self.error: BaseException | None = None

    def hold(self, act: Callable[[list[Any]], None], free: bool) -> None:
        """Do the work, unless the ranks came for different things."""
        try:
            if not free and any(call != self.calls[0] for call in self.calls):
                seen = "; ".join(
                    f"rank {i}: {what}" + ("" if shape is None else f" of {dtype} {list(shape)}")
                    for i, (what, shape, dtype) in enumerate(self.calls)
                )
                raise CommunicatorError(
                    f"{self.calls[0][0]}: expected the same call of all ranks, got {seen}; call in the same order"
                )
            act(self.parts)
        except Exception as error:
            self.error = error
        finally:
            self.parts = []
            self.event.set()


class Slip:
    """A receiver that waits for a message."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        self.event = threading.Event()
        self.error: ShapeError | None = None

    def fill(self, message: np.ndarray) -> None:
        """Take the message."""
        if message.shape != self.array.shape or message.dtype != self.array.dtype:
            self.error = ShapeError(
                f"recv: expected a message of {self.array.dtype} {list(self.array.shape)}, got one of {message.dtype} "
                f"{list(message.shape)}; receive into an array like the one that is sent"
            )
        else:
            self.array[...] = message
        self.event.set()
