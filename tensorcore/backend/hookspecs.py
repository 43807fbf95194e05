"""The two hooks through which a plugin offers devices and transports."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from pluggy import HookspecMarker

if TYPE_CHECKING:
    from tensorcore.backend.base import Backend
    from tensorcore.backend.communicator import Communicator

__all__ = ["RegisterBackend", "RegisterCommunicator", "register_backends", "register_communicators"]

hookspec = HookspecMarker("tensorcore")


class RegisterBackend(Protocol):
    """What ``register_backends`` is given.

    ``name``: the kind of device, lower case, such as the part of a device string before the colon.
    ``factory``: called as ``factory(index)`` on first use of that index; returns a Backend of that name and index.
    ``count``: returns how many devices of the kind this machine has; None asks the factory's ``device_count``
    where the factory is a Backend class, and otherwise leaves every index to the factory.
    ``probe``: returns None where the device can be used, else the reason why not, without importing anything heavy;
    ``"reason; what to do"`` where the remedy would not help.
    ``interface``: (major, minor) that the backend was written for; None takes it from the plugin module's
    ``INTERFACE``.
    ``remedy``: the line to type where the device cannot be used, such as ``pip install 'package[extra]'``.
    """

    def __call__(
        self,
        name: str,
        factory: Callable[[int], Backend],
        *,
        count: Callable[[], int] | None = None,
        probe: Callable[[], str | None] | None = None,
        interface: tuple[int, int] | None = None,
        remedy: str | None = None,
    ) -> None: ...


class RegisterCommunicator(Protocol):
    """What ``register_communicators`` is given.

    ``factory`` is called as ``factory(**options)`` each time a communicator of that transport is made, the options
    being those of ``communicator(name, **options)``: by convention ``backend``, ``rank``, ``size``, ``timeout`` and
    what the transport needs to find the others; ``address``, the host and port at which rank 0 may answer, where the
    program was not started by the transport's launcher. ``probe``, ``interface`` and ``remedy`` are those of a backend.
    """

    def __call__(
        self,
        name: str,
        factory: Callable[..., Communicator],
        *,
        probe: Callable[[], str | None] | None = None,
        interface: tuple[int, int] | None = None,
        remedy: str | None = None,
    ) -> None: ...


@hookspec
def register_backends(register: RegisterBackend) -> None:
    """Call ``register(name, factory)`` once per kind of device; the factory runs on first use."""


@hookspec
def register_communicators(register: RegisterCommunicator) -> None:
    """Call ``register(name, factory)`` once per transport, e.g. ``register("nccl", NcclCommunicator)``."""
