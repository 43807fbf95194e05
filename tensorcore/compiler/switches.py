"""Guards of what is switched on: grad mode, autocast, default dtype and device, hooks of all modules, determinism."""

from __future__ import annotations

from typing import Any

from tensorcore import dtypes
from tensorcore.amp.state import state as autocast
from tensorcore.compiler.guards import Guards
from tensorcore.determinism import are_deterministic_algorithms_enabled
from tensorcore.nn.hooks import EVERY
from tensorcore.ops.placement import get_default_device
from tensorcore.tape.mode import mode

__all__ = ["guard_switches"]


def guard_switches(guards: Guards) -> None:
    """What is switched on, which a function's ops depend on."""
    guards.names.update(
        mode=mode, autocast=autocast, get_default_dtype=dtypes.get_default_dtype,
        get_default_device=get_default_device, deterministic=are_deterministic_algorithms_enabled,
        hooks_of_all=_hooks_of_all,
    )  # fmt: skip
    usual = "mode.tracer is None and not mode.levels and not mode.packers and not mode.anomaly and mode.around is None"
    guards.add(usual, "a mode of autograd", "")
    guards.add(f"mode.enabled is {mode.enabled}", "grad mode", "mode.enabled")
    guards.add(f"mode.inference is {mode.inference}", "inference mode", "mode.inference")
    active = dict(autocast.active) if autocast.active else None
    guards.add(f"autocast.active == {guards.name(active)}", "autocast", "autocast.active")
    guards.add(
        f"get_default_dtype() is {guards.name(dtypes.get_default_dtype())}", "the default dtype", "get_default_dtype()"
    )
    guards.add(
        f"get_default_device() is {guards.name(get_default_device())}", "the default device", "get_default_device()"
    )
    guards.add(f"hooks_of_all() == {guards.name(_hooks_of_all())}", "the hooks of all modules", "")
    guards.add(
        f"deterministic() is {are_deterministic_algorithms_enabled()}",
        "use_deterministic_algorithms",
        "deterministic()",
    )


def _hooks_of_all() -> tuple[Any, ...]:
    """The hooks that run around the call of every module."""
    hooks = (EVERY.forward_pre, EVERY.forward, EVERY.backward_pre, EVERY.backward)
    return tuple([one for some in hooks for one in some.values()])
