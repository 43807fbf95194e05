"""All that a plugin imports: the hook marker, the interfaces, the dtypes, and the errors it raises.

A whole plugin:

    from tensorcore.plugin import XPBackend, hookimpl

    INTERFACE = (1, 1)  # the INTERFACE_VERSION it was written for

    @hookimpl
    def register_backends(register):
        register("mine", make, probe=probe, remedy="pip install 'my-plugin[library]'")

    def make(index): ...   # import the library here, and return a Backend
    def probe(): ...       # None, or why the device cannot be used; no heavy import

and in its ``pyproject.toml``, with the name of the device before the equals sign, so that a program that uses
another device never imports it:

    [project.entry-points.tensorcore]
    mine = "my_plugin"

A plugin of several kinds has one such line for each, with the same module.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, overload

import pluggy

from tensorcore import dtypes
from tensorcore.backend.base import INTERFACE_VERSION, Backend, Capabilities, KernelTable
from tensorcore.backend.communicator import (
    Communicator,
    CommunicatorError,
    CommunicatorTimeout,
    Handle,
    Reduction,
)
from tensorcore.backend.hookspecs import RegisterBackend, RegisterCommunicator
from tensorcore.backend.registry import isolated_registry
from tensorcore.errors import (
    ArgumentError,
    ArgumentTypeError,
    DeviceUnavailable,
    DivisionError,
    DtypeError,
    KernelMissing,
    OutOfMemoryError,
    ShapeError,
)

if TYPE_CHECKING:
    from tensorcore.backend.kernels import POINTWISE
    from tensorcore.backend.program import Program, Spec, Step, Value
    from tensorcore.backend.strided import StridedArray, StridedBackend, flat_index
    from tensorcore.backend.xp import XPBackend

__all__ = [
    "INTERFACE_VERSION", "POINTWISE", "ArgumentError", "ArgumentTypeError", "Backend", "Capabilities", "Communicator",
    "CommunicatorError", "CommunicatorTimeout", "DeviceUnavailable", "DivisionError", "DtypeError", "Handle",
    "KernelMissing", "KernelTable", "OutOfMemoryError", "Program", "Reduction", "RegisterBackend",
    "RegisterCommunicator", "ShapeError", "Spec", "Step", "StridedArray", "StridedBackend", "Value", "XPBackend",
    "dtypes", "flat_index", "hookimpl", "isolated_registry", "switches",
]  # fmt: skip

_Hook = TypeVar("_Hook", bound=Callable[..., object])
_marker = pluggy.HookimplMarker("tensorcore")


@overload
def hookimpl(function: _Hook) -> _Hook: ...


@overload
def hookimpl(*, optionalhook: bool = False, specname: str | None = None) -> Callable[[_Hook], _Hook]: ...


def hookimpl(
    function: _Hook | None = None, *, optionalhook: bool = False, specname: str | None = None
) -> _Hook | Callable[[_Hook], _Hook]:
    """Mark a function as the plugin's answer to the hook of its name.

    ``optionalhook``: a host that does not know the hook passes over it, where it would otherwise refuse the plugin.
    ``specname``: the hook's name where it is not the function's.

    The mark carries the interface version of this module, for plugins that do not state ``INTERFACE`` themselves.
    That is the version installed now, not the one the plugin was written for, so state it: only then can a later
    tensorcore tell that the plugin is too old.
    """

    def mark(hook: _Hook) -> _Hook:
        hook.__dict__["tensorcore_interface"] = INTERFACE_VERSION
        return _marker(hook, optionalhook=optionalhook, specname=specname)

    return mark if function is None else mark(function)


def switches(library: str) -> Any:
    """The switches that programs set under ``tensorcore.backends``, for example ``switches("cudnn").benchmark``.

    Read them at each call: a program may change them at any time.
    """
    from tensorcore import backends

    return getattr(backends, library)


def __getattr__(name: str) -> Any:
    # Only plugins that build on it pay for its import.
    if name == "XPBackend":
        from tensorcore.backend.xp import XPBackend

        return XPBackend
    if name == "POINTWISE":
        from tensorcore.backend.kernels import POINTWISE

        return POINTWISE
    if name in ("StridedArray", "StridedBackend", "flat_index"):
        from tensorcore.backend import strided

        return getattr(strided, name)
    if name in ("Program", "Spec", "Step", "Value"):
        from tensorcore.backend import program

        return getattr(program, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
