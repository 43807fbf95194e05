"""How windows of pools and convolutions reach a kernel: the ``windows`` of windows.cuh."""

from __future__ import annotations

import struct
from typing import Any

__all__ = ["WINDOWS_BYTES", "windows_of"]

_WINDOWS = struct.Struct("@18i")
WINDOWS_BYTES = _WINDOWS.size


def windows_of(sizes: Any, counts: Any, kernel: Any, stride: Any, padding: Any, dilation: Any = None) -> bytes:
    """Dims in front that are missing are 1 long; no dilation is one of 1."""
    front = 3 - len(sizes)
    ones, zeros = (1,) * front, (0,) * front
    dilation = dilation or (1,) * len(sizes)
    return _WINDOWS.pack(
        *ones, *sizes, *ones, *counts, *ones, *kernel, *ones, *stride, *zeros, *padding, *ones, *dilation
    )
