"""The accelerator of this machine, whatever kind it is: ``torch.accelerator``."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any

from tensorcore.accelerators import Devices
from tensorcore.backend.registry import accelerator
from tensorcore.errors import DeviceUnavailable, UsageError

__all__ = [
    "current_accelerator", "current_device_idx", "current_device_index", "device_count", "empty_cache", "get_device_module",
    "is_available", "max_memory_allocated", "memory_allocated", "memory_stats", "set_device_idx", "set_device_index",
    "synchronize",
]  # fmt: skip


def current_accelerator(check_available: bool = False) -> Any:
    """The first device that plugins offer whose memory is not the host's; None where there is none."""
    return accelerator()


def is_available() -> bool:
    """Whether there is one."""
    return current_accelerator() is not None


def device_count() -> int:
    """How many devices of its kind there are; 0 without one."""
    return _devices().device_count() if is_available() else 0


def current_device_index() -> int:
    """The index of the device that its kind's bare name means."""
    return _devices().current_device()


def set_device_index(device: Any, /) -> None:
    """Check that the bare name of its kind means this device: it always means the first one."""
    _devices().set_device(device)


def synchronize(device: Any = None, /) -> None:
    """Return when all work that the device was given is done."""
    _devices().synchronize(device)


def empty_cache() -> None:
    """Give memory that the devices keep for later tensors back to the system."""
    _devices().empty_cache()


def memory_stats(device: Any = None, /) -> dict[str, int]:
    """Counts of the device's allocator in bytes and blocks."""
    return _devices().memory_stats(device)


def memory_allocated(device: Any = None, /) -> int:
    """Bytes of live tensors."""
    return _devices().memory_allocated(device)


def max_memory_allocated(device: Any = None, /) -> int:
    """The most bytes of live tensors that there were."""
    return _devices().max_memory_allocated(device)


current_device_idx, set_device_idx = current_device_index, set_device_index


def _devices() -> Devices:
    found = current_accelerator()
    if found is None:
        raise DeviceUnavailable(
            "accelerator: Cannot access accelerator device when none is available, got none; install the plugin of one, or ask "
            "is_available() first"
        )
    return Devices(found.type)


def get_device_module(device: Any = None) -> ModuleType:
    """The room of a kind of device: ``torch.cuda`` for ``"cuda:1"``; that of the accelerator, else ``torch.cpu``, for None."""
    if device is None:
        found = current_accelerator()
        kind = "cpu" if found is None else found.type
    else:
        kind = device.partition(":")[0] if isinstance(device, str) else device.type
    try:
        return import_module(f"tensorcore.{kind}")
    except ModuleNotFoundError:
        raise UsageError(
            f"get_device_module: expected a kind of device that has a room in torch, got {device!r}; ask the device itself"
        ) from None
