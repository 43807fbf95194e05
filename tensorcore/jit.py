"""``torch.jit`` for programs that use it in passing: there is no second language, so scripted code is the code itself."""

from __future__ import annotations

import builtins
import typing
from collections.abc import Callable
from typing import Any, Final

from tensorcore import deeper
from tensorcore.errors import UsageError
from tensorcore.nn.module import Module

__all__ = [
    "Attribute", "Final", "ScriptModule", "TracerWarning", "annotate", "export", "fork", "freeze", "ignore", "interface", "is_scripting",
    "is_tracing", "isinstance", "load", "optimize_for_inference", "save", "script", "script_if_tracing", "script_method", "trace",
    "trace_module", "unused", "wait",
]  # fmt: skip


class TracerWarning(Warning):
    """What PyTorch's tracer warns of; nothing is traced here, so it is only filtered."""


class ScriptModule(Module):
    """A module whose methods run as the Python that they are, for programs that derive from it; ``script`` makes none."""


RecursiveScriptModule = ScriptModule


class TensorType:
    """The type of tensors in scripted code, which annotations of programs name; nothing is an instance of it, as in PyTorch."""


class DeviceObjType:
    """As ``TensorType``, the type of devices in scripted code."""


def script(obj: Any, optimize: Any = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None) -> Any:
    """The function, class or module itself: it runs as the Python that it is."""
    return obj


def trace(func: Any, example_inputs: Any = None, *args: Any, **options: Any) -> Any:
    """The function or module itself, not run: unlike a trace it goes on to follow its ``if`` and ``for``."""
    return func


def trace_module(mod: Module, inputs: dict[str, Any], *args: Any, **options: Any) -> Module:
    """The module itself, not run."""
    return mod


def script_if_tracing(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself."""
    return fn


_script_if_tracing = script_if_tracing


def _unwrap_optional(x: Any) -> Any:
    """The value, which must not be None."""
    assert x is not None, "Unwrapping null optional"
    return x


def script_method(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The method itself."""
    return fn


def export(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The method itself."""
    return fn


def interface(obj: type) -> type:
    """The class itself."""
    return obj


def unused(fn: Any) -> Any:
    """The function itself: it may be called, as nothing is compiled."""
    return fn


def ignore(drop: Any = False, **options: Any) -> Any:
    """The function itself, also as ``@ignore(drop=True)``."""
    return drop if callable(drop) else unused


def _overload(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself: the definition that follows takes its place."""
    return fn


_overload_method = _overload


def is_scripting() -> bool:
    """Whether this line runs as TorchScript: no."""
    return False


def is_tracing() -> bool:
    """Whether this line runs inside a trace: no."""
    return False


def annotate(the_type: Any, the_value: Any) -> Any:
    """The value."""
    return the_value


def Attribute(value: Any, type: Any) -> Any:
    """The value."""
    return value


def isinstance(obj: Any, target_type: Any) -> bool:
    """Python's own ``isinstance``."""
    return builtins.isinstance(obj, target_type)


def freeze(mod: Module, preserved_attrs: Any = None, optimize_numerics: bool = True) -> Module:
    """The module itself, which must be in eval mode."""
    if mod.training:
        raise UsageError("freeze: expected a module in eval mode, got one that trains; call .eval() first")
    return mod


def optimize_for_inference(mod: Module, other_methods: Any = None) -> Module:
    """The module itself."""
    return mod


class _Done:
    """What ``fork`` gives: the result is there."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def wait(self) -> Any:
        """The result."""
        return self._value

    value = wait

    def done(self) -> bool:
        """Whether the result is there: yes."""
        return True


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> _Done:
    """Run the function now; ``wait`` gives its result."""
    return _Done(func(*args, **kwargs))


def wait(future: _Done) -> Any:
    """The result of what ``fork`` ran."""
    return future.wait()


def save(m: Any, f: Any, _extra_files: Any = None) -> None:
    """Refused: a file with code in it."""
    raise UsageError(
        "save: expected weights to write, got a scripted module, whose file holds code; "
        "write the weights with torch.save(module.state_dict(), f)"
    )


def load(f: Any, map_location: Any = None, _extra_files: Any = None, _restore_shapes: bool = False) -> Any:
    """Refused: a file with code in it."""
    raise UsageError(
        f"load: expected a file of weights, got {f!r}, which holds code for PyTorch's interpreter; save the module's "
        "state_dict() in PyTorch, make the module here and load that"
    )


# Typing's words, which models import from here, with PyTorch's own for one number or several.
annotations = deeper.module(  # type: ignore[assignment]
    f"{__name__}.annotations",
    **{name: getattr(typing, name) for name in ("Any", "Dict", "List", "Optional", "Tuple", "Union")},
    **{f"BroadcastingList{dims}": typing.List for dims in (1, 2, 3)},  # noqa: UP006
)
__path__: list[str] = []
