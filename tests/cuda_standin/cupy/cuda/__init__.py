"""The stand-in's devices, streams, events and graphs."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from .. import _memory, _state
from .. import _timeline as timeline
from .._memory import MemoryPointer, MemoryPool, UnownedMemory
from . import cublas, driver, memory, nccl, nvtx, pinned_memory, runtime

__all__ = [
    "Device", "Event", "ExternalStream", "Graph", "MemoryPointer", "MemoryPool", "Stream", "UnownedMemory", "alloc", "cublas", "driver",
    "get_allocator", "get_cublas_handle", "get_current_stream", "get_elapsed_time", "is_available", "memory", "nccl", "nvtx",
    "pinned_memory", "runtime",
    "set_allocator", "using_allocator",
]  # fmt: skip

_numbers = itertools.count(1000)
_ids = threading.local()


class Device:
    """A device by its index; as a context the current one."""

    def __init__(self, device: Any = None) -> None:
        self.id = _state.current_device() if device is None else int(device)

    def __int__(self) -> int:
        return self.id

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)

    def __enter__(self) -> Device:
        _stack().append(_state.current_device())
        _state.set_device(self.id)
        return self

    def __exit__(self, *error: object) -> None:
        _state.set_device(_stack().pop())

    def use(self) -> None:
        """Make it the current one."""
        _state.set_device(self.id)

    def synchronize(self) -> None:
        """Wait for all of its streams."""
        clock: timeline.Clock = {}
        for line in list(timeline.streams.values()):
            if line.device == self.id:
                _memory.refuse_in_capture(line, "a synchronisation")
                timeline.join(clock, line.clock)
        timeline.wait(clock)

    @property
    def compute_capability(self) -> str:
        """That of the device which the stand-in stands in for."""
        return "90"

    @property
    def mem_info(self) -> tuple[int, int]:
        """Free bytes and all bytes."""
        return runtime.memGetInfo()

    @property
    def attributes(self) -> dict[str, int]:
        """A few of them."""
        return {"MultiProcessorCount": 132, "MaxThreadsPerBlock": 1024, "ClockRate": 1980000}

    @property
    def pci_bus_id(self) -> str:
        """Where it would be plugged in."""
        return f"0000:{self.id:02X}:00.0"


def _stack() -> list[int]:
    try:
        return _ids.stack
    except AttributeError:
        _ids.stack = []
        return _ids.stack


def get_cublas_handle() -> int:
    """A number for this thread's handle of the current device."""
    return _state.current_device() + 1


class _Base:
    """A stream; the legacy one has the address 0 and is that of whichever device is current."""

    _own: timeline.Line | None
    ptr: int
    device_id: int

    @property
    def _line(self) -> timeline.Line:
        return _state.default_stream(_state.current_device()) if self._own is None else self._own

    def _place(self) -> int:
        """The device on which it becomes the current stream, which must be the current device."""
        here = _state.current_device()
        if self.device_id not in (-1, here):
            raise RuntimeError(
                f"The device that the stream is created on ({self.device_id}) does not match with the current device ({here})"
            )
        return here

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Base) and other.ptr == self.ptr

    def __hash__(self) -> int:
        return hash(self.ptr)

    def __enter__(self) -> Any:
        table, device = _state.stream_table(), self._place()
        self.__dict__.setdefault("_before", []).append((device, table.get(device)))
        table[device] = self
        return self

    def __exit__(self, *error: object) -> None:
        device, before = self._before.pop()
        _state.stream_table()[device] = before

    def use(self) -> Any:
        """Make it the current stream."""
        _state.stream_table()[self._place()] = self
        return self

    def record(self, event: Any = None) -> Event:
        """Put an event into it."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """What is called from now on runs after the event."""
        if event._clock is None:
            return
        timeline.join(self._line.clock, event._clock)
        if event._graph is not None and self._line.graph is None:
            self._line.graph = event._graph

    def synchronize(self) -> None:
        """The host waits for it."""
        _memory.refuse_in_capture(self._line, "a synchronisation")
        timeline.begin(self._line)
        timeline.wait(self._line.clock)

    @property
    def done(self) -> bool:
        """Whether all of it is done."""
        return all([timeline.ordered(timeline.host.clock, n, at) for n, at in self._line.clock.items()])

    @property
    def is_non_blocking(self) -> bool:
        """Whether the legacy stream does not wait for it."""
        return not self._line.blocking

    def launch_host_func(self, callback: Callable[[Any], Any], arg: Any) -> None:
        """Call a function when the stream gets there."""
        work = timeline.Work(self._line, lambda: callback(arg))
        timeline.begin(self._line)
        work.at = self._line.clock[self._line.number]
        self._line.pending.append(work)

    def begin_capture(self, mode: Any = None) -> None:
        """Write down what is called from now on."""
        if self._own is None:
            raise RuntimeError("cannot capture on the default (legacy) stream")
        cublas.load()
        self._line.graph = Graph._of(self._line)

    def end_capture(self) -> Graph:
        """The graph of what was called."""
        graph = self._line.graph
        if graph is None:
            raise timeline.DeviceFault("cudaErrorIllegalState: the stream is not capturing")
        for line in list(timeline.streams.values()):
            if line.graph is graph:
                line.graph = None
                if line is not self._line and not timeline.ordered(
                    self._line.clock, line.number, line.clock[line.number]
                ):
                    graph.broken = True
                    raise timeline.DeviceFault("cudaErrorStreamCaptureUnjoined: a forked stream was not joined")
        graph.restore()
        if graph.broken:
            raise timeline.DeviceFault("cudaErrorStreamCaptureInvalidated: the capture was broken by an earlier error")
        return graph

    def is_capturing(self) -> bool:
        """Whether what is called is written down."""
        return self._line.graph is not None


class Stream(_Base):
    """A line of work."""

    null: Stream

    def __init__(
        self, null: bool = False, non_blocking: bool = False, ptds: bool = False, priority: int | None = None
    ) -> None:
        if null:
            self.device_id, self._own, self.ptr = -1, None, 0
            return
        self.device_id, number = _state.current_device(), next(_numbers)
        self._own = timeline.streams[number] = timeline.Line(number, self.device_id, not non_blocking)
        self.ptr = number << 8
        self.priority = priority or 0


class ExternalStream(_Base):
    """A stream by its address."""

    def __init__(self, ptr: int, device_id: int = -1) -> None:
        self.ptr, self.device_id, self._own = ptr, device_id, None
        if ptr not in (0, 1):
            device = _state.current_device() if device_id < 0 else device_id
            known = timeline.streams.get(ptr >> 8)
            self._own = known or timeline.streams.setdefault(ptr, timeline.Line(ptr, device, False))


class Event:
    """A mark in a stream."""

    def __init__(self, block: bool = False, disable_timing: bool = False, interprocess: bool = False) -> None:
        self._clock: timeline.Clock | None = None
        self._graph: Any = None
        self._timing, self._asked, self._time, self._device = not disable_timing, 0, 0.0, _state.current_device()
        self.ptr = id(self)

    def record(self, stream: Any = None) -> None:
        """Put it into a stream."""
        stream = get_current_stream() if stream is None else stream
        if stream._line.device != self._device:
            raise timeline.DeviceFault(
                f"cudaErrorInvalidResourceHandle: an event of device {self._device} on a stream of device {stream._line.device}"
            )
        timeline.begin(stream._line)
        self._clock, self._graph, self._asked = dict(stream._line.clock), stream._line.graph, 0
        self._time = time.perf_counter()

    @property
    def done(self) -> bool:
        """Whether it has come; the first time somebody asks it never has, if the host has not waited for it.

        One of a capture never comes: the runtime answers with an error, which CuPy takes for "not yet".
        """
        if self._graph is not None:
            return False
        if self._clock is None or _known(self._clock):
            return True
        self._asked += 1
        if self._asked < 2:
            return False
        timeline.wait(self._clock)
        timeline.counts.waits -= 1  # a question, no wait
        return True

    def synchronize(self) -> None:
        """The host waits for it."""
        if self._graph is not None:
            raise timeline.DeviceFault("cudaErrorStreamCaptureUnsupported: an event of a capture cannot be waited for")
        if self._clock is not None:
            timeline.wait(self._clock)


def _known(clock: timeline.Clock) -> bool:
    return all([timeline.ordered(timeline.host.clock, number, at) for number, at in clock.items() if number])


class Graph:
    """Work that was written down; it runs when it is launched."""

    def __init__(self) -> None:
        raise NotImplementedError("graphs come from a capture")

    @classmethod
    def _of(cls, line: timeline.Line) -> Graph:
        made = object.__new__(cls)
        made.work: list[Callable[[], None]] = []  # type: ignore[misc]
        made.before: dict[int, tuple[Any, Any]] = {}  # type: ignore[misc]
        made.reads: set[Any] = set()  # type: ignore[misc]
        made.kept: list[Any] = []  # type: ignore[misc]
        made.broken = False
        return made

    def add(self, run: Callable[[], None], root: Any) -> None:
        """Write down a piece of work; it runs once now, for the shapes of its results, and is taken back at the end."""
        if root is not None:
            self.note(root)
        self.work.append(run)
        run()

    def note(self, root: Any) -> None:
        """Remember what a memory held before the capture."""
        if id(root) not in self.before:
            self.before[id(root)] = (root, root.data.copy())

    def restore(self) -> None:
        """Nothing of what was captured has happened."""
        for root, data in self.before.values():
            root.data[...] = data

    def launch(self, stream: Any = None) -> None:
        """Run all of it on a stream."""
        stream = get_current_stream() if stream is None else stream
        timeline.launch(stream._line, self.reads, [root for root, _ in self.before.values()], "graph")
        for run in self.work:
            run()

    def upload(self, stream: Any = None) -> None:
        """Nothing to do here."""


def get_current_stream(device_id: int = -1) -> Any:
    """This thread's stream of a device."""
    device = _state.current_device() if device_id < 0 else device_id
    found = _state.stream_table().get(device)
    return Stream.null if found is None else found


def get_elapsed_time(start_event: Event, end_event: Event) -> float:
    """Milliseconds between two events that have come."""
    for one in (start_event, end_event):
        if not one._timing or one._clock is None or not _known(one._clock):
            raise timeline.DeviceFault("cudaErrorNotReady: device not ready")
    return 1e3 * (end_event._time - start_event._time)


def is_available() -> bool:
    """Whether there is a device."""
    return _state.count() > 0


_default_pool = MemoryPool()
_allocator: Any = _default_pool.malloc


def alloc(size: int) -> MemoryPointer:
    """Memory from the current allocator."""
    return get_allocator()(size)


def get_allocator() -> Any:
    """The current allocator."""
    return getattr(_ids, "allocator", None) or _allocator


def set_allocator(allocator: Any = None) -> None:
    """Another allocator for all that comes."""
    global _allocator
    _allocator = memory.plain if allocator is None else allocator


@contextlib.contextmanager
def using_allocator(allocator: Any = None) -> Iterator[None]:
    """Another allocator for what is in the block, in this thread."""
    before = getattr(_ids, "allocator", None)
    _ids.allocator = allocator
    try:
        yield
    finally:
        _ids.allocator = before


Stream.null = Stream(null=True)
