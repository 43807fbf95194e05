"""Where tensors are made when no device is named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from tensorcore.backend.base import Backend
from tensorcore.backend.registry import device as find_device
from tensorcore.backend.registry import kept
from tensorcore.dtypes import dtype as Dtype
from tensorcore.errors import UnsupportedDtype

__all__ = [
    "Default", "as_device", "check_stored", "get_default_device", "host_device", "not_stored", "set_default_device",
]  # fmt: skip


class Default:
    """Where tensors are made when no device is named.

    Attributes:
        device: the device, or its name until it is first needed.
        host: the one that shares memory with NumPy, and what ``device`` starts as; the facade names it.
    """

    device: Any = None
    host: Any = None
    entered: ClassVar[list[Any]] = []  # what ``device`` was before each ``with`` that is open


def get_default_device() -> Backend:
    """The device of tensors that are made without naming one."""
    device = Default.device or host_device()
    if type(device) is str:
        device = Default.device = find_device(device)
    return device


def host_device() -> Backend:
    """The device in the host's own memory."""
    if type(Default.host) is str:
        Default.host = find_device(Default.host)
    return Default.host


def set_default_device(device: Any) -> None:
    """Make tensors on ``device`` where none is named; None goes back to the start."""
    Default.device = device if device is None or isinstance(device, Backend) else find_device(device)


def as_device(device: Any) -> Backend:
    """A device from what programs pass: itself, its name, or None for the default."""
    if device is None:
        device = Default.device or Default.host
        return get_default_device() if type(device) is str else device
    return device if isinstance(device, Backend) else find_device(device)


def destination(args: tuple[Any, ...], options: dict[str, Any]) -> tuple[Any, Any]:
    """The device and the dtype that the arguments of a module's ``to`` name, None where they do not: also by a tensor that has them."""
    device, dtype = options.get("device"), options.get("dtype")
    for one in args:
        if isinstance(one, Dtype):
            dtype = one
        elif hasattr(one, "dtype") and hasattr(one, "device"):
            device, dtype = one.device, one.dtype
        elif one is not None and not isinstance(one, bool):
            device = one
    return device, dtype


def check_stored(op: str, dtype: Dtype, device: Backend) -> None:
    """Raise where a device has no tensors of this dtype."""
    if dtype.name not in device.capabilities.dtypes:
        raise not_stored(op, dtype, device)


def not_stored(op: str, dtype: Dtype, device: Backend) -> UnsupportedDtype:
    """The error for a dtype that is not among a device's own."""
    stored = ", ".join(sorted(device.capabilities.dtypes))
    return UnsupportedDtype(f"{op}: expected a dtype that {device} stores, got {dtype}; convert it to one of {stored}")


def _keep() -> Callable[[], None]:
    """A default that was found in an isolated registry is not one of the process's own."""
    before = Default.device, Default.host

    def restore() -> None:
        Default.device, Default.host = before

    return restore


kept.append(_keep)


def _enter(self: Backend) -> Backend:
    """``with torch.device(...)``: where tensors are made inside, if no device is named."""
    Default.entered.append(Default.device)
    Default.device = self
    return self


def _exit(self: Backend, *error: Any) -> None:
    Default.device = Default.entered.pop()


Backend.__enter__ = _enter  # type: ignore[method-assign]
Backend.__exit__ = _exit  # type: ignore[method-assign]
