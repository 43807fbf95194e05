"""Whether and how this thread records: the switches that every op asks, and their context managers."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from tensorcore.backend.turns import renewed
from tensorcore.errors import not_bool

__all__ = [
    "enable_grad",
    "inference_mode",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "makers",
    "mode",
    "no_grad",
    "set_grad_enabled",
    "unusual",
]

_GENERATOR = 0x20  # of co_flags; the inspect module that names it is slow to import
F = TypeVar("F", bound=Callable[..., Any])


class Mode(threading.local):
    """This thread's switches.

    ``plain`` is what the hot path asks: recording, with nothing unusual switched on. Everything else
    (saved-tensor hooks, anomaly traces) makes it false, so an unusual mode costs the usual one nothing.
    """

    plain = True
    enabled = True
    inference = False
    anomaly = False
    check_nan = True
    packers: tuple[tuple[Callable[[Any], Any], Callable[[Any], Any]], ...] = ()
    walks: tuple[Any, ...] = ()  # the backward walks under way on this thread, the innermost last
    levels: tuple[Any, ...] = ()  # the vmaps under way on this thread, the innermost last
    # Runs a node's formulas in the place of ``node.op.backward(node, g, edges)``; set on the class, for the walks of all threads.
    around: Callable[[Any, Any, Any], Any] | None = None
    tracer: Any = None  # what writes down the calls of this thread, so that they can be replayed
    packing_disabled: str | None = None  # the message for those who enter saved_tensors_hooks all the same

    def settle(self) -> None:
        """Recompute ``plain`` after a switch moved."""
        plain = self.enabled and not self.anomaly and not self.packers
        if plain is not self.plain:
            self.plain = plain
            with _counting:
                unusual.threads += -1 if plain else 1

    def trace(self, tracer: Any) -> None:
        """Let a tracer write down the calls of this thread; None to write no longer."""
        with _counting:
            unusual.tracers += (tracer is not None) - (self.tracer is not None)
        self.tracer = tracer

    def enter_level(self, level: Any) -> None:
        """Let a vmap be under way on this thread, inside those that are."""
        self.levels = (*self.levels, level)
        with _counting:
            unusual.vmaps += 1

    def leave_level(self) -> None:
        """Let the innermost one be over."""
        self.levels = self.levels[:-1]
        with _counting:
            unusual.vmaps -= 1


class Unusual:
    """How many threads are not ``plain``, are in inference mode, are traced, and how many vmaps are under way on all of them.

    While there is none, the hot path need not ask which thread it runs on: reading a thread-local
    costs 35 ns, this counter 5. A thread that ends inside ``no_grad`` leaves it too high, which
    costs time and nothing else.
    """

    __slots__ = ("inference", "inferred", "threads", "tracers", "vmaps")

    threads: int
    inference: int
    tracers: int
    vmaps: int
    inferred: bool  # whether any thread has ever been in inference mode: before that, no tensor is marked


_counting = renewed(threading.Lock())
unusual = Unusual()
unusual.threads = unusual.inference = unusual.tracers = unusual.vmaps = 0
unusual.inferred = False
mode = Mode()
# The namespaces that make tensors by the name ``new``. While a thread is in inference mode another maker stands there,
# which marks that thread's tensors; in all other programs nobody asks.
makers: list[dict[str, Any]] = []


def is_grad_enabled() -> bool:
    """Whether ops on this thread are recorded."""
    return mode.enabled


def is_inference_mode_enabled() -> bool:
    """Whether this thread runs inside ``inference_mode``."""
    return mode.inference


class _Switch:
    """A context manager that is a decorator too; a decorated generator switches only while it runs."""

    def __enter__(self) -> None:
        raise NotImplementedError

    def __exit__(self, *exc: object) -> None:
        raise NotImplementedError

    def again(self) -> _Switch:
        """A fresh one for each call of a decorated function."""
        return type(self)()

    def __call__(self, function: F) -> F:
        if isinstance(function, type):
            raise TypeError(f"{type(self).__name__}: expected a function, got class {function.__name__}")
        if getattr(function, "__code__", None) is not None and function.__code__.co_flags & _GENERATOR:
            return self._around_generator(function)  # type: ignore[return-value]

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with self.again():
                return function(*args, **kwargs)

        return wrapped  # type: ignore[return-value]

    def _around_generator(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            generator = function(*args, **kwargs)
            step, value = generator.send, None
            while True:
                try:
                    with self.again():
                        produced = step(value)
                except StopIteration as end:
                    return end.value
                try:
                    value = yield produced
                    step = generator.send
                except GeneratorExit:
                    with self.again():
                        generator.close()
                    raise
                except BaseException as error:
                    step, value = generator.throw, error

        return wrapped


class set_grad_enabled(_Switch):
    """Switch recording on or off, from this call on, or within a ``with`` or a decorated function."""

    target = True

    def __init__(self, mode: bool) -> None:
        if mode is not True and mode is not False:
            raise not_bool("set_grad_enabled", "enabled", mode)
        self.target = mode
        self.before = _switch(self.target)

    def again(self) -> set_grad_enabled:
        return set_grad_enabled(self.target)

    def __call__(self, function: F) -> F:
        # As a decorator the switch belongs to the function's calls alone.
        _switch(self.before)
        return super().__call__(function)

    def __enter__(self) -> None:
        _switch(self.target)

    def __exit__(self, *exc: object) -> None:
        _switch(self.before)


class no_grad(_Switch):
    """Do not record: results require no gradient. A context manager and a decorator."""

    target = False

    def __new__(cls, function: Any = None) -> Any:
        # ``@no_grad`` without brackets decorates as ``@no_grad()`` does.
        self = super().__new__(cls)
        return self if function is None else self(function)

    def __enter__(self) -> None:
        self.before = _switch(self.target)

    def __exit__(self, *exc: object) -> None:
        _switch(self.before)


class enable_grad(no_grad):
    """Record again inside a ``no_grad``. A context manager and a decorator."""

    target = True


class inference_mode(_Switch):
    """``no_grad`` for code that never meets autograd again. A context manager and a decorator.

    Args:
        mode: False leaves inference mode (and records) inside an outer one.
    """

    target: bool

    def __new__(cls, mode: Any = True) -> Any:
        self = super().__new__(cls)
        if callable(mode):
            self.target = True
            return self(mode)
        self.target = bool(mode)
        return self

    def again(self) -> inference_mode:
        fresh: inference_mode = inference_mode(self.target)
        return fresh

    def __enter__(self) -> None:
        self.before = mode.inference, mode.enabled
        _switch_inference(self.target)
        _switch(not self.target)

    def __exit__(self, *exc: object) -> None:
        inference, enabled = self.before
        _switch_inference(inference)
        _switch(enabled)


def _switch(enabled: bool) -> bool:
    before = mode.enabled
    mode.enabled = enabled
    mode.settle()
    return before


def _switch_inference(inference: bool) -> None:
    if inference is mode.inference:
        return
    mode.inference = inference
    with _counting:
        unusual.inference += 1 if inference else -1
        unusual.inferred |= inference
        for namespace in makers:
            namespace["new"] = _marked if unusual.inference else object.__new__


def _marked(cls: type) -> Any:
    made: Any = object.__new__(cls)
    if mode.inference and hasattr(cls, "inference"):  # nodes are made by the same name
        made.inference = True
    return made
