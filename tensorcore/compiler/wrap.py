"""What programs hold of a compiled function or module: it looks like the original, and traces when it is called."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import MethodType
from typing import Any

from tensorcore.compiler.compiled import Compiled
from tensorcore.nn.module import Module
from tensorcore.tape.mode import mode

__all__ = ["OptimizedModule", "apart", "wrapped"]


def wrapped(model: Any, fullgraph: bool, limit: int, compile: Any, breaks: bool) -> tuple[Any, Compiled]:
    """What stands for a function or module, and the account of its traces."""
    if isinstance(model, Module):
        made = OptimizedModule(model, fullgraph, limit, compile, breaks)
        return made, made._compiled_call
    account = Compiled(model, fullgraph, limit, compile, breaks)
    if isinstance(model, MethodType):
        return account, account  # which copies and pickles with the object that the method belongs to

    @functools.wraps(model, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        return account(*args, **kwargs)

    call.explain = account.explain  # type: ignore[attr-defined]
    call.account = account  # type: ignore[attr-defined]
    return call, account


class OptimizedModule(Module):
    """A module whose calls are compiled. Its attributes, parameters and modes are those of the module it was made of.

    Attributes:
        _orig_mod: that module.
    """

    def __init__(self, module: Module, fullgraph: bool, limit: int, compile: Any, breaks: bool = False) -> None:
        super().__init__()
        self._orig_mod = module
        self.training = module.training
        self.__dict__["_compiled_call"] = Compiled(module, fullgraph, limit, compile, breaks)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._compiled_call(*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes."""
        return self._compiled_call(*args, **kwargs)

    def explain(self) -> Any:
        """What was traced, what runs, and why."""
        return self._compiled_call.explain()

    def __getattr__(self, name: str) -> Any:
        if name == "_orig_mod":
            return self.__dict__["_modules"]["_orig_mod"]
        return getattr(self.__dict__["_modules"]["_orig_mod"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("_orig_mod", "training"):
            super().__setattr__(name, value)
        else:
            setattr(self._orig_mod, name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._orig_mod)})

    def __reduce__(self) -> Any:
        call = self._compiled_call
        return OptimizedModule, (self._orig_mod, call.fullgraph, call.limit, call.compile, call.breaks)


def apart(fn: Callable[..., Any], reason: str | None) -> Callable[..., Any]:
    """The function, which ends the trace of whoever calls it."""

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        if mode.tracer is not None:
            why = f" ({reason})" if reason else ""
            mode.tracer.fail(f"calls {getattr(fn, '__qualname__', fn)!r}, which is not to be compiled{why},")
        return fn(*args, **kwargs)

    return call
