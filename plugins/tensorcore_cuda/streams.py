"""Streams and events of CuPy, under the names that the frontend asks a backend for."""

from __future__ import annotations

from typing import Any

__all__ = ["Event", "Stream"]


class Stream:
    """A line of work on a device, which is made the current one: the legacy stream is that of whichever device is current.

    Attributes:
        cupy_stream: CuPy's.
    """

    __slots__ = ("__weakref__", "backend", "cupy_stream")

    def __init__(self, backend: Any, cupy_stream: Any) -> None:
        self.backend, self.cupy_stream = backend, cupy_stream

    @property
    def pointer(self) -> int:
        """The ``cudaStream_t`` as a number, 0 for the legacy stream."""
        return self.cupy_stream.ptr  # type: ignore[no-any-return]

    @property
    def priority(self) -> int:
        """Lower ones go first."""
        return getattr(self.cupy_stream, "priority", 0)

    def record(self, event: Event) -> None:
        """Put the event behind what the stream has been given."""
        with self.backend.place:
            event.cupy_event.record(self.cupy_stream)

    def wait(self, event: Event) -> None:
        """Run what comes from now on behind the event; the host goes on."""
        with self.backend.place:
            self.cupy_stream.wait_event(event.cupy_event)

    def query(self) -> bool:
        """Whether all that the stream was given is done."""
        with self.backend.place:
            return bool(self.cupy_stream.done)

    def synchronize(self) -> None:
        """Return when all of it is done."""
        with self.backend.place:
            self.cupy_stream.synchronize()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self.backend is other.backend and self.cupy_stream == other.cupy_stream

    def __hash__(self) -> int:
        return hash((self.backend.index, self.pointer))


class Event:
    """A mark in a stream."""

    __slots__ = ("backend", "cupy_event")

    def __init__(self, backend: Any, timing: bool, blocking: bool) -> None:
        self.backend = backend
        self.cupy_event = backend.cupy.cuda.Event(block=blocking, disable_timing=not timing)

    def query(self) -> bool:
        """Whether the stream has passed it."""
        return bool(self.cupy_event.done)

    def synchronize(self) -> None:
        """Return when the stream has passed it."""
        self.cupy_event.synchronize()

    def elapsed(self, other: Event) -> float:
        """Milliseconds from this one to the other."""
        return float(self.backend.cupy.cuda.get_elapsed_time(self.cupy_event, other.cupy_event))
