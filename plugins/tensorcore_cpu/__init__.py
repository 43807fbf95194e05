"""The CPU plugin: NumPy kernels over memory of its own."""

from __future__ import annotations

from tensorcore.plugin import hookimpl

__all__ = ["register_backends"]


@hookimpl
def register_backends(register):
    """Offer the device ``cpu``."""
    register("cpu", make)


def make(index):
    """The backend of one logical device."""
    from tensorcore_cpu.backend import CPUBackend

    return CPUBackend(index)
