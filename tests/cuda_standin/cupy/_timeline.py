"""Who may see what: a clock for each stream and the host, races found where nothing orders two uses of one memory.

Work on streams is computed when it is called, but what it needs is checked as if it ran at the worst moment: each use of
memory must come after the uses on other streams that it conflicts with, by an event, a wait or a synchronisation. Copies
between host and device really happen late: what is read from pinned memory is read when somebody may first look at the
result, and what is written to the host is poison until the host has waited for it.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable
from typing import Any

__all__ = ["HOST", "DeviceFault", "Race", "Work", "capture", "counts", "host", "launch", "ordered", "streams"]

HOST = 0
Clock = dict[int, int]


class Race(RuntimeError):
    """Two uses of one memory of which neither is known to come first."""


class DeviceFault(RuntimeError):
    """What CUDA's runtime answers with an error code."""


class Counts:
    """How often the host waited, and how many kernels and copies there were."""

    def __init__(self) -> None:
        self.waits = self.launches = self.copies = 0


class Line:
    """One line of time: a stream's or the host's."""

    def __init__(self, number: int, device: int = -1, blocking: bool = True) -> None:
        self.number, self.device, self.blocking = number, device, blocking
        self.clock: Clock = {number: 0}
        self.pending: list[Work] = []
        self.graph: Any = None  # what is being captured


class Work:
    """A copy that has not happened yet: done when its stream's clock is known to have passed it."""

    def __init__(self, line: Line, run: Callable[[], None]) -> None:
        self.line, self.at, self.run = line, line.clock[line.number], run
        self.done = False

    def finish(self) -> None:
        """Let it happen, if it has not."""
        if not self.done:
            self.done = True
            self.run()


counts = Counts()
host = Line(HOST)
streams: dict[int, Line] = {}
memories: weakref.WeakSet[Any] = weakref.WeakSet()
_lock = threading.RLock()


def join(clock: Clock, other: Clock) -> None:
    """Know everything that the other one knows."""
    for number, at in other.items():
        if clock.get(number, 0) < at:
            clock[number] = at


def ordered(clock: Clock, number: int, at: int) -> bool:
    """Whether who has this clock knows that work to be done."""
    return clock.get(number, 0) >= at


def wait(clock: Clock) -> None:
    """The host has waited until all of this is done."""
    counts.waits += 1
    join(host.clock, clock)
    for line in list(streams.values()):
        for work in line.pending:
            if ordered(host.clock, line.number, work.at):
                work.finish()
        line.pending = [work for work in line.pending if not work.done]


def begin(line: Line) -> None:
    """A new piece of work on a stream: it comes after what the host knows, and after or before the legacy stream's."""
    join(line.clock, host.clock)
    if line.blocking:
        for other in streams.values():
            if other is not line and other.device == line.device and other.blocking and _legacy(line, other):
                join(line.clock, other.clock)
    line.clock[line.number] += 1


def _legacy(line: Line, other: Line) -> bool:
    return line.number == _first(line.device) or other.number == _first(line.device)


def _first(device: int) -> int:
    return device + 1


def capture(line: Line) -> Any:
    """The graph that a stream's work goes into, None where it runs."""
    return line.graph


def launch(line: Line, reads: Iterable[Any], writes: Iterable[Any], name: str = "kernel") -> None:
    """Check and note that a piece of work on a stream reads and writes these memories."""
    with _lock:
        counts.launches += 1
        begin(line)
        writes = list(writes)
        if line.graph is not None:  # nothing of it happens now
            line.graph.reads.update(reads)
            return
        for memory in reads:
            if memory not in writes:
                memory.read_on(line, name)
        for memory in writes:
            memory.write_on(line, name)
