"""How many devices there are, asked of the driver: no CuPy, no context, so a process may still fork afterwards."""

from __future__ import annotations

import ctypes
import importlib.util
import os
from functools import cache

__all__ = ["device_count", "why_not"]

# Where the driver's library is not on the loader's path, this variable names it.
LIBRARY = "TENSORCORE_CUDA_DRIVER"
_NAMES = ("libcuda.so.1", "nvcuda.dll", "/usr/lib/wsl/lib/libcuda.so.1")
_NO_DEVICE = 100  # CUDA_ERROR_NO_DEVICE


def why_not() -> str | None:
    """Why there is no device to use, None where there is one."""
    if importlib.util.find_spec("cupy") is None:
        return "CuPy is not installed"
    found = _asked(os.environ.get("CUDA_VISIBLE_DEVICES"))
    return found if isinstance(found, str) else None


def device_count() -> int:
    """How many devices this process may use; 0 where CuPy or the driver is missing."""
    if importlib.util.find_spec("cupy") is None:
        return 0
    found = _asked(os.environ.get("CUDA_VISIBLE_DEVICES"))
    return 0 if isinstance(found, str) else found


@cache
def _asked(visible: str | None) -> int | str:
    """The number of devices, or why there are none; ``visible`` is what the driver reads when it starts."""
    if visible is not None and visible.strip() in ("", "-1"):
        return f"CUDA_VISIBLE_DEVICES is {visible!r}, which hides every device; unset it"
    driver = _driver()
    if driver is None:
        return "NVIDIA's driver is not installed (no libcuda.so.1); install it, no Python package has it"
    status = driver.cuInit(0)
    if status:
        reason = "finds no device" if status == _NO_DEVICE else f"does not start (error {status})"
        return f"NVIDIA's driver {reason}; see nvidia-smi"
    count = ctypes.c_int()
    status = driver.cuDeviceGetCount(ctypes.byref(count))
    if status or not count.value:
        return "NVIDIA's driver finds no device; see nvidia-smi"
    return count.value


def _driver() -> ctypes.CDLL | None:
    named = os.environ.get(LIBRARY)
    for name in (named,) if named else _NAMES:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None
