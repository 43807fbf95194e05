"""Streams and events: which work waits for which."""

from __future__ import annotations

from typing import Any

from tensorcore.accelerators import Devices
from tensorcore.errors import ArgumentTypeError

__all__ = [
    "Event", "ExternalStream", "Stream", "StreamContext", "current_stream", "default_stream", "get_stream_from_external",
    "set_stream", "stream",
]  # fmt: skip

_devices = Devices("cuda")


class Stream:
    """A line of work on a device: what it is given runs in order, and beside what other streams were given.

    Args:
        device: the current one where None.
        priority: work of lower numbers goes first.
    """

    def __init__(self, device: Any = None, priority: int = 0, **options: Any) -> None:
        found = options.get("stream")
        place = _devices._device(device)
        self.native = place.new_stream(priority) if found is None else found

    @property
    def device(self) -> Any:
        """The device that it is a stream of."""
        return self.native.backend

    @property
    def cuda_stream(self) -> int:
        """Its address, for other libraries; 0 for the default stream."""
        return int(self.native.pointer)

    @property
    def priority(self) -> int:
        """The number it was made with."""
        return int(self.native.priority)

    def wait_event(self, event: Event) -> None:
        """What it is given from now on runs after the event; the host goes on."""
        if event.native is not None:
            self.native.wait(event.native)

    def wait_stream(self, stream: Stream) -> None:
        """What it is given from now on runs after what the other stream was given so far."""
        self.wait_event(stream.record_event())

    def record_event(self, event: Event | None = None) -> Event:
        """Put an event behind what it was given so far; returns it."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def query(self) -> bool:
        """Whether all that it was given is done."""
        return bool(self.native.query())

    def synchronize(self) -> None:
        """Return when it is."""
        self.native.synchronize()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self.native == other.native

    def __hash__(self) -> int:
        return hash(self.native)

    def __enter__(self) -> Stream:
        context = StreamContext(self)
        self.__dict__.setdefault("_entered", []).append(context)
        context.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.__dict__["_entered"].pop().__exit__(*error)

    def __repr__(self) -> str:
        return f"torch.cuda.Stream(device={self.device}, cuda_stream={self.cuda_stream:#x})"


class ExternalStream(Stream):
    """A stream of another library, by its address; that library keeps it alive."""

    def __init__(self, stream_ptr: int, device: Any = None) -> None:
        super().__init__(device, stream=_devices._device(device).stream_at(stream_ptr))


class Event:
    """A mark in a stream, to wait for and to measure time with.

    Args:
        enable_timing: whether ``elapsed_time`` may ask it.
        blocking: the thread sleeps while it waits.
        interprocess: accepted; an event stays in its process.
    """

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        self._timing, self._blocking = enable_timing, blocking
        self.native: Any = None

    def record(self, stream: Stream | None = None) -> None:
        """Put it behind what the stream, the current one without it, was given so far."""
        stream = current_stream() if stream is None else stream
        if self.native is None or self.native.backend is not stream.device:
            self.native = stream.device.new_event(self._timing, self._blocking)
        stream.native.record(self.native)

    def wait(self, stream: Stream | None = None) -> None:
        """What the stream is given from now on runs after it."""
        (current_stream() if stream is None else stream).wait_event(self)

    def query(self) -> bool:
        """Whether its stream has passed it; so it is where it was never recorded."""
        return self.native is None or bool(self.native.query())

    def synchronize(self) -> None:
        """Return when its stream has passed it."""
        if self.native is not None:
            self.native.synchronize()

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this one to the other."""
        if not (self._timing and end_event._timing and self.native is not None and end_event.native is not None):
            raise ArgumentTypeError("Both events must be created with argument 'enable_timing=True' and recorded.")
        return float(self.native.elapsed(end_event.native))


class StreamContext:
    """A ``with`` block whose work goes to another stream; None changes nothing."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream
        self._before: Any = None

    def __enter__(self) -> None:
        if self.stream is not None:
            self._before = self.stream.device.current_stream()
            self.stream.device.use_stream(self.stream.native)

    def __exit__(self, *error: object) -> None:
        if self.stream is not None:
            self.stream.device.use_stream(self._before)


def stream(stream: Stream | None) -> StreamContext:
    """The work in the ``with`` block goes to this stream; None changes nothing."""
    return StreamContext(stream)


def current_stream(device: Any = None) -> Stream:
    """The stream that this thread's work on the device goes to."""
    place = _devices._device(device)
    return Stream(place, stream=place.current_stream())


def default_stream(device: Any = None) -> Stream:
    """The one that it goes to where none was chosen."""
    place = _devices._device(device)
    return Stream(place, stream=place.default_stream())


def get_stream_from_external(data_ptr: int, device: Any = None) -> Stream:
    """A stream of another library, by its address."""
    return ExternalStream(data_ptr, device)


def set_stream(stream: Stream | None) -> None:
    """Let this thread's work go to a stream from now on; None changes nothing."""
    if stream is not None:
        stream.device.use_stream(stream.native)
