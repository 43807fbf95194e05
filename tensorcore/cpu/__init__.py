"""The host's processors, as PyTorch names them: one device that has done its work when a call returns."""

from __future__ import annotations

from typing import Any

from tensorcore.accelerators import Devices
from tensorcore.cpu import amp

__all__ = [
    "Event", "Stream", "StreamContext", "amp", "current_device", "current_stream", "device_count", "empty_cache", "is_available",
    "is_initialized", "max_memory_allocated", "max_memory_reserved", "memory_allocated", "memory_reserved", "memory_snapshot",
    "memory_stats", "memory_summary", "reset_peak_memory_stats", "set_device", "stream", "synchronize",
]  # fmt: skip

# The allocator's counts, which PyTorch has for devices alone.
_devices = Devices("cpu")

empty_cache = _devices.empty_cache
max_memory_allocated = _devices.max_memory_allocated
max_memory_reserved = _devices.max_memory_reserved
memory_allocated = _devices.memory_allocated
memory_reserved = _devices.memory_reserved
memory_snapshot = _devices.memory_snapshot
memory_stats = _devices.memory_stats
memory_summary = _devices.memory_summary
reset_peak_memory_stats = _devices.reset_peak_memory_stats


def is_available() -> bool:
    """Whether there is one: yes."""
    return True


def is_initialized() -> bool:
    """Whether it is ready: yes."""
    return True


def device_count() -> int:
    """All processors are one device."""
    return 1


def current_device() -> str:
    """Its name, which has no number."""
    return "cpu"


def set_device(device: Any) -> None:
    """There is no other one to choose."""


def synchronize(device: Any = None) -> None:
    """Return when all work is done: it is."""


class Stream:
    """What a program for any device waits for; here everything runs in order, at once."""

    def __init__(self, priority: int = -1) -> None:
        pass

    def wait_stream(self, stream: Any) -> None:
        """Its work is done."""

    def record_event(self) -> None:
        """There is nothing to wait for later."""

    def wait_event(self, event: Any) -> None:
        """It has happened."""


class Event:
    """A point in the order of work, which is behind whoever asks."""

    def query(self) -> bool:
        """Whether it has happened: yes."""
        return True

    def record(self, stream: Any = None) -> None:
        """Everything before it is done."""

    def synchronize(self) -> None:
        """It has happened."""

    def wait(self, stream: Any = None) -> None:
        """It has happened."""


_current = Stream()


def current_stream(device: Any = None) -> Stream:
    """The stream of the ``with stream(...)`` block around the call, else one of its own."""
    return _current


class StreamContext:
    """``stream(s)``: ``current_stream()`` is ``s`` inside."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        global _current
        self._before = _current
        _current = self.stream or _current

    def __exit__(self, *error: object) -> None:
        global _current
        _current = self._before


def stream(stream: Stream | None) -> StreamContext:
    """A ``with`` block whose current stream is this one; None changes nothing."""
    return StreamContext(stream)
