"""Looking on while kernels run: a second table stands in the place of a device's own for as long as somebody looks."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tensorcore.backend.turns import renewed

if TYPE_CHECKING:
    from tensorcore.backend.base import Backend, Kernel

__all__ = ["Around", "Replaced", "arrivals", "arrived", "unwatch", "watch"]

Around = Callable[["Backend", str, "Kernel"], "Kernel"]

arrivals: list[Callable[[Backend], None]] = []  # called with each device that is made from now on
_lock = renewed(threading.Lock())
_devices: list[tuple[Backend, Around]] = []  # who looks at one device, the outermost last
_everywhere: list[Around] = []  # who looks at all devices, those too that are made later
_own: dict[Backend, dict[str, Kernel]] = {}  # the tables of devices that are being looked at
_over: dict[Backend, Any] = {}  # what draws over arrays there: a new array and a kernel that copies it are seen


class _Table(dict[str, Any]):
    """Kernels with something around each; those that are missing are missing here too."""

    def __init__(self, backend: Backend, inner: dict[str, Kernel], around: Around) -> None:
        super().__init__()
        self.backend, self.inner, self.around = backend, inner, around

    def __missing__(self, name: str) -> Kernel:
        kernel: Any = self.inner[name]
        made: Kernel = self.around(self.backend, name, kernel) if kernel else kernel
        self[name] = made
        return made


def watch(around: Around, device: Backend | None = None) -> None:
    """Run ``around(device, name, kernel)`` in the place of each kernel of a device, or of all devices, until unwatched.

    Kernels that another kernel calls run as they are. What ``around`` answers is asked for once per name. While
    nobody looks a call costs what it ever did: the table itself is exchanged.
    """
    from tensorcore.backend.registry import made_devices

    with _lock:
        if device is None:
            _everywhere.append(around)
        else:
            _devices.append((device, around))
        for one in made_devices() if device is None else [device]:
            _settle(one)


def unwatch(around: Around, device: Backend | None = None) -> None:
    """End what ``watch`` of the same arguments began."""
    with _lock:
        if device is None:
            _everywhere.remove(around)
        else:
            _devices.remove((device, around))
        for one in list(_own) if device is None else [device]:
            _settle(one)


class Replaced:
    """Methods of devices that others stand in for, until they are given back: a device may hold faster ones of its own."""

    def __init__(self) -> None:
        self._before: list[tuple[Backend, str, tuple[Any, ...]]] = []

    def put(self, device: Backend, name: str, method: Callable[..., Any]) -> None:
        """Let ``method`` answer in the place of the device's own."""
        held = vars(device)
        self._before.append((device, name, (held[name],) if name in held else ()))
        held[name] = method

    def give_back(self) -> None:
        """Let every device have what it had, the last first."""
        while self._before:
            device, name, held = self._before.pop()
            vars(device).pop(name, None)
            for one in held:
                vars(device)[name] = one


def arrived(device: Backend) -> None:
    """Take up a device that was just made."""
    if _everywhere:
        with _lock:
            _settle(device)
    for one in arrivals:
        one(device)


def _settle(device: Backend) -> None:
    own = _own.pop(device, None)
    table: dict[str, Kernel] = device.kernels if own is None else own
    around = [*_everywhere, *[one for seen, one in _devices if seen is device]]
    if own is not None and device in _over:
        device.draw_over = _over.pop(device)
    if around:
        _own[device] = table
        if device.draw_over is not None:
            _over[device], device.draw_over = device.draw_over, None
    for one in around:
        table = _Table(device, table, one)
    device.kernels = table  # type: ignore[assignment]
