"""How many devices there are, asked without CuPy and without a context.

The management library (NVML) is asked first, as it leaves the driver alone: once that was started, nothing that the process
forks can use a device. It says nothing of parts of devices (MIG), nor of devices that are named otherwise than by numbers.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
from functools import cache

__all__ = ["FORKED", "device_count", "why_not"]

# Where the driver's library is not on the loader's path, this variable names it, or one that has NVML's functions too.
LIBRARY = "TENSORCORE_CUDA_DRIVER"
_NAMES = ("libcuda.so.1", "nvcuda.dll", "/usr/lib/wsl/lib/libcuda.so.1")
_MANAGEMENT = ("libnvidia-ml.so.1", "nvml.dll", "/usr/lib/wsl/lib/libnvidia-ml.so.1")
FORKED = "CUDA cannot be started again in a forked process, take the 'spawn' start method"
_started: list[int] = []  # the process that did it: a fork has the list too
_NO_DEVICE = 100  # CUDA_ERROR_NO_DEVICE


def why_not() -> str | None:
    """Why there is no device to use, None where there is one."""
    if importlib.util.find_spec("cupy") is None:
        return "CuPy is not installed"
    found = _asked(os.environ.get("CUDA_VISIBLE_DEVICES"), os.getpid())
    return found if isinstance(found, str) else None


def device_count() -> int:
    """How many devices this process may use; 0 where CuPy or the driver is missing."""
    if importlib.util.find_spec("cupy") is None:
        return 0
    found = _asked(os.environ.get("CUDA_VISIBLE_DEVICES"), os.getpid())
    return 0 if isinstance(found, str) else found


@cache
def _asked(visible: str | None, process: int) -> int | str:
    """The number of devices, or why there are none; ``visible`` is what the driver reads when it starts in a process."""
    if any([one != process for one in _started]):
        return f"the process that this one was forked from has started NVIDIA's driver; {FORKED}"
    if visible is not None and visible.strip() in ("", "-1"):
        return f"CUDA_VISIBLE_DEVICES is {visible!r}, which hides every device; unset it"
    found = _by_management(visible)
    if found:
        return found
    driver = _loaded(_NAMES)
    if driver is None:
        return "NVIDIA's driver is not installed (no libcuda.so.1); install it, no Python package has it"
    status = driver.cuInit(0)
    _started[:] = [process]
    if status:
        reason = "finds no device" if status == _NO_DEVICE else f"does not start (error {status})"
        return f"NVIDIA's driver {reason}; see nvidia-smi"
    count = ctypes.c_int()
    status = driver.cuDeviceGetCount(ctypes.byref(count))
    if status or not count.value:
        return "NVIDIA's driver finds no device; see nvidia-smi"
    return count.value


def _by_management(visible: str | None) -> int | None:
    """How many devices NVML knows that a process sees; None where it cannot say."""
    library = _loaded(_MANAGEMENT)
    numbers = None if visible is None else [one.strip() for one in visible.split(",")]
    if library is None or (numbers is not None and not all([one.isdecimal() for one in numbers])):
        return None
    try:
        if library.nvmlInit_v2():
            return None
        try:
            count, handle, now, later = ctypes.c_uint(), ctypes.c_void_p(), ctypes.c_uint(), ctypes.c_uint()
            if library.nvmlDeviceGetCount_v2(ctypes.byref(count)):
                return None
            for i in range(count.value):
                if library.nvmlDeviceGetHandleByIndex_v2(i, ctypes.byref(handle)):
                    return None
                # An error says that the device has no such mode.
                if not library.nvmlDeviceGetMigMode(handle, ctypes.byref(now), ctypes.byref(later)) and now.value:
                    return None
        finally:
            library.nvmlShutdown()
    except AttributeError:  # a library of another age
        return None
    if numbers is None:
        return count.value
    seen = 0
    for one in map(int, numbers):  # the driver stops at the first that is none
        if one >= count.value:
            break
        seen += 1
    return seen if len(set(numbers)) == len(numbers) else None


def _loaded(names: tuple[str, ...]) -> ctypes.CDLL | None:
    named = os.environ.get(LIBRARY)
    for name in (named,) if named else names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None
