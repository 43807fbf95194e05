"""What is current: the device and its stream, for each thread; and how large and how many the devices are."""

from __future__ import annotations

import os
import threading
from typing import Any

from . import _timeline as timeline

__all__ = ["count", "current_device", "current_line", "default_stream", "sizes"]

sizes: dict[int, int] = {}  # bytes of a device where a test limits them
_here = threading.local()


def count() -> int:
    """How many devices there are: TENSORCORE_STANDIN_DEVICES, 2 without it."""
    return int(os.environ.get("TENSORCORE_STANDIN_DEVICES", "2"))


def current_device() -> int:
    """The index of this thread's device."""
    return getattr(_here, "device", 0)


def set_device(index: int) -> None:
    """Make a device this thread's."""
    if not 0 <= index < count():
        raise timeline.DeviceFault(f"cudaErrorInvalidDevice: invalid device ordinal ({index})")
    _here.device = index


def stream_table() -> dict[int, Any]:
    """This thread's current stream of each device."""
    try:
        return _here.streams
    except AttributeError:
        _here.streams = {}
        return _here.streams


def default_stream(device: int) -> timeline.Line:
    """The legacy stream of a device."""
    line = timeline.streams.get(device + 1)
    if line is None:
        line = timeline.streams[device + 1] = timeline.Line(device + 1, device)
    return line


def current_line(device: int | None = None) -> timeline.Line:
    """The line of time of this thread's current stream."""
    device = current_device() if device is None else device
    stream = stream_table().get(device)
    return default_stream(device) if stream is None else stream._line
