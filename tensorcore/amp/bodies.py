"""Functions whose bodies give way to others: inside autocast regions, and while a profiler looks on.

A program may hold an op under any name (``torch.matmul``, ``x @ y``, ``from torch.nn.functional import linear``). All of
them are one function object, so it is the function's code that is exchanged, and not a name: outside of the regions a
call runs what it ever ran, without a test. Exchanging the code of 133 functions and back takes 12 us.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Mapping
from types import CodeType, FunctionType
from typing import Any

from tensorcore.backend.turns import renewed
from tensorcore.shortcuts import behind

__all__ = ["Body", "count", "cover", "innermost", "interpose", "uncover"]

_lock = renewed(threading.Lock())
# Functions that ``cover`` took, and the twins that stand for what they ran: regions begin and end in the twins meanwhile.
_twins: dict[FunctionType, FunctionType] = {}
# What functions ran before ``interpose``, for good: regions begin and end in there.
_plains: dict[FunctionType, FunctionType] = {}


class Body:
    """One function and its two bodies.

    Attributes:
        own: a function that runs the own body, whatever the function itself runs at the time.
    """

    __slots__ = ("_code", "_other", "function", "own")

    def __init__(self, function: FunctionType, make: Callable[[FunctionType], Callable[..., Any]]) -> None:
        own = _twin(innermost(function))
        code = own.__code__
        self.function, self.own = function, own
        self._code, self._other = code, _calling(make(behind(function, own)), code)

    def exchange(self) -> None:
        """Let the function run its other body."""
        innermost(self.function).__code__ = self._other

    def restore(self) -> None:
        """Let the function run its own body."""
        innermost(self.function).__code__ = self._code


class Count:
    """How many threads are inside a region; the bodies are exchanged while there are any."""

    def __init__(self) -> None:
        self.bodies: list[Body] = []
        self.threads = 0

    def enter(self) -> None:
        """One thread more."""
        with _lock:
            self.threads += 1
            if self.threads == 1:
                for one in self.bodies:
                    one.exchange()

    def leave(self) -> None:
        """One thread less."""
        with _lock:
            self.threads -= 1
            if not self.threads:
                for one in self.bodies:
                    one.restore()

    def add(self, bodies: list[Body]) -> None:
        """Take up further functions."""
        with _lock:
            self.bodies.extend(bodies)
            if self.threads:
                for one in bodies:
                    one.exchange()


count = Count()


def cover(makers: Mapping[FunctionType, Callable[[FunctionType], Callable[..., Any]]]) -> None:
    """Let each function run what its maker answers, given a function that runs what it ran until now.

    Autocast regions that begin or end before ``uncover`` take effect inside of that. One cover at a time.
    """
    with _lock:
        for function, make in makers.items():
            twin = _twin(function)
            code = _calling(make(behind(function, twin)), function.__code__)
            _twins[function] = twin
            function.__code__ = code


def uncover() -> None:
    """Let the functions run again what their twins run now."""
    with _lock:
        for function, twin in _twins.items():
            function.__code__ = twin.__code__
        _twins.clear()


def interpose(function: FunctionType, make: Callable[[FunctionType], Callable[..., Any]]) -> None:
    """Let a function run what ``make`` answers from now on, inside of covers and outside of regions; once a function."""
    with _lock:
        runs = _twins.get(function, function)
        plain = _plains[function] = _twin(runs)
        plain.__annotations__ = function.__annotations__
        plain.__dict__.update(function.__dict__)
        runs.__code__ = _calling(make(behind(function, plain)), runs.__code__)
        function.__wrapped__ = plain  # type: ignore[attr-defined]  # whose signature is shown


def innermost(function: FunctionType) -> FunctionType:
    """The function whose code the regions exchange for this one."""
    return _plains.get(function) or _twins.get(function, function)


def _twin(function: FunctionType) -> FunctionType:
    """A function of its own that runs the same."""
    own = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    own.__kwdefaults__ = function.__kwdefaults__
    return own


def _calling(wrapper: Callable[..., Any], instead_of: CodeType) -> CodeType:
    """A body that calls ``wrapper`` with all that it is given, under the name of the one that it stands in for."""
    code = _body(instead_of.co_freevars).replace(co_name=instead_of.co_name)
    return code.replace(co_consts=tuple(wrapper if one == "wrapper" else one for one in code.co_consts))


@functools.cache
def _body(names: tuple[str, ...]) -> CodeType:
    """A body that calls the constant ``"wrapper"``.

    Its free variables are those of the body that it stands in for, or Python would not take it.
    """
    free = ", ".join(names)
    scope: dict[str, Any] = {}
    text = f"""
def make({free}):
    def body(*args, **kwargs):
        wrapper = "wrapper"
        if 0: {free or "0"}
        return wrapper(*args, **kwargs)
    return body
"""
    exec(compile(text, "<exchanged>", "exec"), scope)
    code: CodeType = scope["make"](*names).__code__
    return code
