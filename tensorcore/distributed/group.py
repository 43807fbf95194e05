"""Process groups: how they start and end, what each rank of one knows, and what is said when one goes wrong."""

from __future__ import annotations

import atexit
import os
import re
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from datetime import timedelta
from typing import Any, NoReturn

import numpy as np

from tensorcore.backend.communicator import Communicator, CommunicatorError, CommunicatorTimeout
from tensorcore.backend.default_generator import default_generator, own_generator
from tensorcore.backend.random import Generator
from tensorcore.distributed import tracing
from tensorcore.distributed.board import KILLED, Board
from tensorcore.distributed.dashboard import Meter, meter
from tensorcore.distributed.meeting import Launch, board_for, meet
from tensorcore.distributed.work import Work
from tensorcore.errors import ArgumentError, ArgumentTypeError

__all__ = [
    "CollectiveMismatch", "GroupMember", "Launch", "ProcessGroup", "State", "current", "destroy_process_group", "enter",
    "group", "init_process_group", "new_group", "resolve",
]  # fmt: skip

_MESSAGES = 1 << 22  # added to the group's number on the board for what is sent from one rank to another
TIMEOUT = 300.0  # seconds
_TEXT = 160  # bytes of a call that are compared


class CollectiveMismatch(CommunicatorError):
    """The ranks of a group did not make the same call."""


class ProcessGroup:
    """This rank's end of a group.

    Attributes:
        communicator: what moves the arrays.
        members: the ranks in the world of this group's ranks, in order.
        rank, size: of this process in the group.
        id: a number that all members know the group by.
    """

    def __init__(
        self, state: State, communicator: Communicator, members: list[int], id: int, name: str, backend: str
    ) -> None:
        self.state, self.communicator, self.members, self.id = state, communicator, members, id
        self.group_name, self.backend = name, backend
        self.rank, self._size = communicator.rank, communicator.size
        self.device = communicator.backend
        self.number = self.messages = 0
        self.open: dict[int, str] = {}
        self.begun: dict[int, int] = {}  # when, for a profiler
        self.failure: str | None = None
        self.coalesced: Any = None  # what collects the calls, within a ``_coalescing_manager``
        communicator.watch = self.watch

    def size(self) -> int:
        """How many ranks there are."""
        return self._size

    def name(self) -> str:
        """The transport's name."""
        return self.backend

    def __repr__(self) -> str:
        return f"<ProcessGroup {self.group_name!r} of ranks {self.members} over {self.backend}, rank {self.rank}>"

    # One collective

    def start(
        self,
        text: str,
        begin: Callable[[Communicator], Any],
        *,
        finish: Callable[[], None] | None = None,
        result: Sequence[Any] = (),
        async_op: bool = False,
    ) -> Work | None:
        """Start a collective that all ranks describe by the same ``text``, and wait for it unless ``async_op``.

        ``begin`` starts it on a communicator and returns its handle, or a list of them; ``finish`` runs once they are done.
        """
        self.check(text)
        number = self.number = self.number + 1
        self.open[number] = text
        self.begun[number] = tracing.begun()
        handles: Any
        try:
            if self._size > 1:
                board = self.state.board
                board.post(self.id, number, text)
                if board.differs(self.id, number, self.members):
                    raise self._mismatch(number)
                if self.state.comparing:
                    self._compare(number, text)
            watch = self.state.meter
            with nullcontext() if watch is None else watch.waiting(text):  # barriers wait here
                handles = begin(self.communicator)
        except CommunicatorError as error:
            self.fail(error)
        handles = handles if isinstance(handles, list) else [] if handles is None else [handles]
        work = Work(self, number, handles, finish, result)
        if self.coalesced is not None:
            self.coalesced.append(work)
        if async_op or self.coalesced is not None:
            for one in handles:
                one.advance()
            return work if async_op else None
        work.wait()
        return None

    def message(self, text: str, begin: Callable[[Communicator], Any], finish: Any, tensor: Any, peer: int) -> Work:
        """Start a message to or from one rank."""
        self.check(text)
        self.messages += 1
        number = -self.messages
        self.open[number] = text
        self.state.board.post(self.id + _MESSAGES, self.messages, text)
        try:
            handle = begin(self.communicator)
        except CommunicatorError as error:
            self.fail(error)
        handle.advance()
        return Work(self, number, [handle], finish, [tensor], peer)

    def complete(self, number: int, handles: list[Any], timeout: float | None) -> None:
        """Wait for the handles of one collective, or give up on the group and say what is known."""
        watch = self.state.meter
        begun = self.begun.pop(number, 0)
        try:
            with tracing.waiting(begun), nullcontext() if watch is None else watch.waiting(self.open[number]):
                for one in handles:
                    one.wait(timeout)
        except CommunicatorTimeout:
            self.fail(CommunicatorTimeout(self._late(number, timeout or self.communicator.timeout)))
        except CommunicatorError as error:
            self.fail(error)
        tracing.ended(self.open.pop(number, ""), begun, self.id)
        if number > 0 and self._size > 1:
            self.state.board.ended(self.id, number)

    def check(self, text: str) -> None:
        """Raise where the group has failed, or was destroyed."""
        if self.failure is not None:
            raise CommunicatorError(f"{text}: expected a group that works, got one that is over: {self.failure}")

    def watch(self) -> None:
        """What the transport asks for while it waits: raise where the others cannot or do not come."""
        board = self.state.board
        for number in list(self.open):
            if number > 0 and board.differs(self.id, number, self.members):
                raise self._mismatch(number)
        if self.state.launch is not None:
            self.state.launch.look()
        first = min((number for number in self.open if number > 0), default=None)
        for rank in self.members:
            if rank == self.state.rank:
                continue
            gone = board.gone(rank)
            came = first is None or board.entry(rank, self.id, first) is not None
            if gone is not None and (board.failed(rank) or KILLED in gone or not came):
                what = next(iter(self.open.values()), "barrier")
                raise CommunicatorError(f"{what}: expected rank {rank} to take part, got none: it {gone}")

    def fail(self, error: CommunicatorError) -> NoReturn:
        """Give up on all groups of this process, tell the others, and raise."""
        self.state.give_up(str(error))
        raise error.with_traceback(None) from None

    def _compare(self, number: int, text: str) -> None:
        """Raise unless all ranks are about to make this call: they tell one another, wherever they run."""
        host = self.device
        mine = np.frombuffer(text.encode("ascii", "replace")[:_TEXT].ljust(_TEXT), np.uint8)
        rows = host.from_host(np.zeros((self._size, _TEXT), np.uint8))
        self.communicator.all_gather(host.from_host(mine.copy()), rows).wait()
        texts = [row.tobytes().decode().rstrip() for row in host.to_host(rows)]
        if len(set(texts)) > 1:
            raise self._mismatch(number, dict(zip(self.members, texts, strict=True)))

    # What is said

    def _mismatch(self, number: int, told: dict[int, str] | None = None) -> CollectiveMismatch:
        board = self.state.board
        if told is None:
            entries = {rank: board.entry(rank, self.id, number) for rank in self.members}
            told = {rank: one.text if one else "not there yet" for rank, one in entries.items()}
        lines = [f"rank {rank}: {text}" for rank, text in told.items()]
        return CollectiveMismatch(
            f"{_name(self.open[number])}: expected the same call on all ranks as #{number} of group "
            f"'{self.group_name}', got {'; '.join(lines)}. {self._before(number)}all ranks of a group make the same calls "
            f"in the same order, with the same shapes and dtypes"
        )

    def _before(self, number: int) -> str:
        board = self.state.board
        told = []
        for rank in self.members:
            entries = [one for one in board.last(rank, 4) if (one.group, one.number) != (self.id, number)][:2]
            if entries:
                told.append(f"rank {rank}: " + ", ".join(f"#{one.number} {one.text}" for one in entries))
        return f"Before that: {'; '.join(told)}. " if told else ""

    def _late(self, number: int, seconds: float) -> str:
        board = self.state.board
        text = self.open[number]
        if number < 0:
            others = [rank for rank in self.members if rank != self.state.rank]
            others = [rank for rank in others if re.search(rf"\brank {rank}\b|any rank", text)]
            title, missing = text, others
        else:
            title = f"{text} #{number} of group '{self.group_name}'"
            missing = [rank for rank in self.members if not board.entry(rank, self.id, number)]
        told = []
        for rank in missing:
            if not board.known(rank):
                told.append(f"rank {rank} did not come to it and runs on another host")
                continue
            last = board.last(rank)
            did = f"its last call was #{last[0].number} {last[0].text}" if last else "it made no call yet"
            state = board.gone(rank)
            where = f"it {state}" if state else board.place(rank)
            told.append(
                f"rank {rank} never called it: {did}; {where}" if number > 0 else f"rank {rank}: {did}; {where}"
            )
        rest = "; ".join(told) or "all ranks have called it, and the transfer did not end"
        return f"{title}: expected all ranks within {seconds:g} s on rank {self.state.rank}, got: {rest}"


class State:
    """What this process, or in a world of threads this thread, knows of the groups that it is in."""

    def __init__(self, launch: Launch | None = None) -> None:
        self.launch = launch
        self.rank = 0
        self.board: Any = None
        self.meter: Meter | None = None
        self.world: ProcessGroup | None = None
        self.groups: dict[int, ProcessGroup] = {}
        self.made = 0
        # Without it the ranks of one host are compared, at no cost; with it those of all hosts, by a message before each call.
        self.comparing = os.environ.get("TENSORCORE_CHECK_COLLECTIVES", "") not in ("", "0")

    def give_up(self, reason: str) -> None:
        """End all groups because of an error, and let the others know."""
        self.board.leave(reason)
        for one in self.groups.values():
            if one.failure is None:
                one.failure = reason
                one.communicator.abort(f"rank {self.rank} gave up: {reason}")

    def leave(self) -> None:
        """End all groups."""
        if self.board is not None:
            self.board.leave()
        for one in self.groups.values():
            one.communicator.close()
            one.failure = one.failure or "destroy_process_group was called"
        self.world, self.groups, self.made, self.board = None, {}, 0, None


class GroupMember:
    """What stands for a group: all ranks, or one that this rank is not in."""

    WORLD = None
    NON_GROUP_MEMBER = object()


class _Group:
    """``group.WORLD``: all ranks."""

    @property
    def WORLD(self) -> ProcessGroup | None:
        return current().world

    @WORLD.setter
    def WORLD(self, value: ProcessGroup | None) -> None:
        current().world = value


group = _Group()
_process = State()
_threads = threading.local()


def current() -> State:
    """The state of this thread where it is a rank itself, else of the process."""
    found: State = getattr(_threads, "state", _process)
    return found


def enter(state: State | None, generator: Generator | None = None) -> None:
    """Make this thread a rank with a state and a default generator of its own, or an ordinary one again."""
    own_generator(generator)
    if state is None:
        _threads.__dict__.pop("state", None)
    else:
        _threads.state = state


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Any = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> None:
    """Join the other processes of the program.

    Args:
        backend: ``"mpi"``, ``"threads"`` (ranks in one process), the name of a plugin's transport, or None for what fits
            how the program was started. ``"gloo"`` means None.
        init_method: where processes that no MPI launcher started meet: ``"env://"`` at MASTER_ADDR and MASTER_PORT,
            ``"tcp://host:port"``, or ``"file:///path"``, which all see. Of threads it names the world.
        timeout: of each call on the group; five minutes where None.
        world_size, rank: from RANK and WORLD_SIZE where the environment has them; checked against a launcher's.
        store: a ``Store`` in place of ``init_method``, by which the processes find one another; where it is a ``HashStore``,
            the ranks are threads.
        group_name: names a world of threads.

    Raises ArgumentError where ranks and sizes do not fit, UsageError's RuntimeError for a second call, and what
    ``registry.communicator`` raises where there is no such transport.
    """
    state = current()
    if state.world is not None:
        raise CommunicatorError("trying to initialize the default process group twice!")
    seconds = _seconds("init_process_group", timeout)
    name, communicator = meet(
        backend, init_method, rank, world_size, group_name, seconds, state.launch, str(device_id or "cpu"), store
    )
    if name == "threads" and state is _process and communicator.size > 1:
        state = State()
        enter(state, default_generator().clone())
    state.rank = communicator.rank
    try:
        state.board = board_for(communicator)
    except BaseException:
        communicator.abort(f"rank {communicator.rank} could not make its board")
        raise
    state.world = ProcessGroup(state, communicator, list(range(communicator.size)), 0, "world", name)
    state.groups = {0: state.world}
    state.meter = meter(state.rank)
    if state is _process:
        atexit.register(_leave_at_exit, state, state.board)


def destroy_process_group(group: Any = None) -> None:
    """Leave a group, or all of them."""
    state = current()
    if group is GroupMember.NON_GROUP_MEMBER:
        return
    if group is not None and group is not state.world:
        found = resolve("destroy_process_group", group)
        assert found is not None
        state.groups.pop(found.id)
        found.communicator.close()
        found.failure = "destroy_process_group was called"
        return
    resolve("destroy_process_group", None)
    state.leave()
    if state is not _process and state.launch is None:
        enter(None)


def new_group(
    ranks: Sequence[int] | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
) -> Any:
    """A group of some ranks of the world, all where None; ``GroupMember.NON_GROUP_MEMBER`` on the others.

    Every rank of the world calls it, in the same order, whether it will be a member or not.
    """
    world = resolve("new_group", None)
    assert world is not None
    members = sorted(range(world._size) if ranks is None else ranks)
    if len(set(members)) != len(members) or not all(type(r) is int and 0 <= r < world._size for r in members):
        raise ArgumentError(
            f"new_group: expected different ranks from 0 to {world._size - 1}, got {list(ranks or ())}; ranks are those of "
            f"the world"
        )
    state = world.state
    state.made += 1
    made: list[Any] = []
    color = 1 if state.rank in members else None
    world.start(f"new_group({members})", lambda one: made.append(one.split(color, state.rank)))
    communicator = made[0]
    if communicator is None:
        return GroupMember.NON_GROUP_MEMBER
    if timeout is not None:
        communicator.timeout = _seconds("new_group", timeout)
    name = group_desc or f"group {state.made}"
    state.groups[state.made] = found = ProcessGroup(state, communicator, members, state.made, name, world.backend)
    return found


def resolve(op: str, group: Any) -> ProcessGroup | None:
    """The group that an argument means: the world for None; None for a group that this rank is not in."""
    if group is GroupMember.NON_GROUP_MEMBER:
        return None
    found = current().world if group is None else group
    if found is None:
        raise ArgumentError(
            f"{op}: Default process group has not been initialized, got a call before it; please make sure to call "
            f"init_process_group."
        )
    if not isinstance(found, ProcessGroup):
        raise ArgumentTypeError(f"{op}: expected a ProcessGroup or None, got {group!r}; make one with new_group")
    return found


def _seconds(op: str, timeout: timedelta | None) -> float:
    if timeout is None:
        return TIMEOUT
    if not isinstance(timeout, timedelta):
        raise ArgumentTypeError(f"{op}: expected timeout argument to be of type datetime.timedelta, got {timeout!r}")
    return timeout.total_seconds()


def _leave_at_exit(state: State, board: Board) -> None:
    error = getattr(sys, "last_value", None)
    board.leave(None if error is None else f"{type(error).__name__}: {error}")


def _name(text: str) -> str:
    return text.partition("(")[0]


def __getattr__(name: str) -> Any:
    """``dist.group`` is this module as soon as something has imported it: it has the group of all ranks too."""
    if name == "WORLD":
        return current().world
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
