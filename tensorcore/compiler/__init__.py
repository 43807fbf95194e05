"""``torch.compile`` and what belongs to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakSet

from tensorcore.errors import ArgumentTypeError, UsageError
from tensorcore.tape.mode import mode as _switches

__all__ = [
    "allow_in_graph", "assume_constant_result", "compile", "cudagraph_mark_step_begin", "disable", "explain", "is_compiling",
    "is_dynamo_compiling", "is_exporting", "list_backends", "reset",
]  # fmt: skip

_MODES = ("default", "lite", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
_LIMIT = 8
_made: WeakSet[Any] = WeakSet()


def compile(model: Any = None, *, fullgraph: bool = False, dynamic: bool | None = None, backend: Any = "inductor",
            mode: str | None = None, options: dict[str, Any] | None = None, disable: bool = False) -> Any:  # fmt: skip
    """The module or function, which is written down at its first call and replayed in fewer kernels after that.

    Without ``model`` it is a decorator. Results, exceptions and writes are those of the function itself; what it does
    apart from tensors happens when it is traced. ``explain`` tells what was traced and why.

    Args:
        fullgraph: raise where a call cannot be replayed (it reads values of tensors, ...), naming the line; without it such
            calls run as they are.
        dynamic: accepted; each combination of shapes is traced by itself.
        backend: ``"eager"`` runs everything as it is; a function of a ``Program`` stands in the place of the device's
            own ``compile``; any other name is the device's own.
        mode: accepted; one of PyTorch's.
        options: ``limit`` is how many traces are kept; with ``breaks`` a call that cannot be replayed runs in pieces, programs
            between the lines that need a value, instead of as it is. Others are accepted.
        disable: give back what was given.

    Raises:
        UsageError: where both ``mode`` and ``options`` are given, or ``mode`` is none that PyTorch has.
    """
    if mode is not None and options is not None:
        raise UsageError(
            f"compile: expected mode or options, got both, mode={mode!r} and options={options!r}; Either mode or options "
            "can be specified, but both can't be specified at the same time"
        )
    if mode is not None and mode not in _MODES:
        raise UsageError(f"compile: expected one of {', '.join(_MODES)}, got mode={mode!r}; Unrecognized mode")
    if model is None:
        return lambda found: compile(
            found, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options, disable=disable
        )
    if not callable(model):
        raise AssertionError(f"compile: A callable function is expected, got {model!r}; pass what is to be called")
    if disable or backend == "eager" or isinstance(model, type):
        return model
    from tensorcore.compiler.wrap import wrapped

    limit, breaks = (options or {}).get("limit", _LIMIT), (options or {}).get("breaks", False)
    made, account = wrapped(model, fullgraph, limit, backend if callable(backend) else None, breaks)
    _made.add(account)
    return made


def explain(compiled: Any) -> Any:
    """What a compiled function or module traced, what its replays run, and which guards made it trace again.

    Print it, or read its attributes: ``traces``, ``replays``, ``eager``, ``kernels``, ``fused``, ``peak``, ``reasons``.
    """
    found = getattr(compiled, "explain", None) or getattr(getattr(compiled, "forward", None), "explain", None)
    if found is None:
        raise ArgumentTypeError(f"explain: expected what compile() gave, got {compiled!r}; compile it first")
    return found()


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """The function, which is never part of what is replayed: a compiled function that calls it runs as it is."""
    if fn is None:
        return lambda found: disable(found, recursive, reason=reason)
    from tensorcore.compiler.wrap import apart

    return apart(fn, reason)


def allow_in_graph(fn: Any) -> Any:
    """The function itself: everything that computes in tensors is allowed."""
    return fn


def assume_constant_result(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself: what Python computes apart from tensors is a constant of the trace anyway."""
    return fn


def is_compiling() -> bool:
    """Whether this line runs in a call that is traced."""
    return _switches.tracer is not None


def is_dynamo_compiling() -> bool:
    """Whether this line runs in a call that is traced."""
    return _switches.tracer is not None


def is_exporting() -> bool:
    """Whether this line runs inside an export: no."""
    return False


def reset() -> None:
    """Forget everything that was traced."""
    for one in list(_made):
        one.forget()


def cudagraph_mark_step_begin() -> None:
    """Say that a new step begins: nothing is recorded that would have to know."""


def list_backends(exclude_tags: tuple[str, ...] = ("debug", "experimental")) -> list[str]:
    """The names of what can compile: that of the device, under PyTorch's name for its own."""
    return ["inductor"] if exclude_tags else ["eager", "inductor"]


compile.explain = explain  # type: ignore[attr-defined]
