"""DLPack between device arrays of this process."""

from __future__ import annotations

from typing import Any

from . import _state
from . import _timeline as timeline
from ._array import ndarray

__all__ = ["export", "take_over"]


class _Exported:
    """What stands in for a capsule: the array itself, whose kind is that of CUDA memory."""

    def __init__(self, array: ndarray) -> None:
        self.array = array


def export(array: ndarray, stream: Any, max_version: Any = None, dl_device: Any = None, copy: Any = None) -> Any:
    """The array for a consumer whose stream waits for what is on the current one; ``-1`` asks for no wait."""
    line = _state.current_line(array.data.device_id)
    if stream is None or stream in (1, 2):
        target = _state.default_stream(array.data.device_id)
    elif stream == -1:
        return _Exported(array)
    else:
        target = timeline.streams[stream >> 8 if stream >= 1 << 8 else stream]
    timeline.join(target.clock, line.clock)
    return _Exported(array)


def take_over(exporter: Any) -> ndarray:
    """A device array over what another object exports."""
    kind, device = exporter.__dlpack_device__()
    if kind != 2:
        raise BufferError(f"from_dlpack: no device array of type {kind}")
    number = _state.current_line(device).number
    capsule = exporter.__dlpack__(stream=1 if number <= 8 else number << 8)
    if isinstance(capsule, _Exported):
        one = capsule.array
        made = object.__new__(ndarray)
        made._a, made.data, made.base = one._a, one.data, one
        return made
    raise BufferError("from_dlpack: an unknown capsule")
