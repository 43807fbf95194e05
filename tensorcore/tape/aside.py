"""Marks that a trace heeds: calls that it leaves to Python, and functions that tell what no guard looks at.

The first count, schedule or seed, and are made again in each replay; a call of the program's that asks one of the second is
none to replay.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from tensorcore.tape.mode import mode

__all__ = ["HISTORY", "PLACE", "SWITCH", "TELLING", "WRITES", "Event", "aside", "tells"]

PLACE = "asks where a tensor lies in memory"
WRITES = "asks how often a tensor was written to"
HISTORY = "asks how a tensor was made"
SWITCH = "asks for a switch that is not guarded"

F = TypeVar("F", bound=Callable[..., Any])
TELLING: list[tuple[Callable[..., Any], str]] = []  # the functions, and why such a call cannot be replayed


def _unknown() -> None:
    """Anything may have been written to."""


class Event(NamedTuple):
    """One such call.

    Attributes:
        run: makes it again.
        owner: whose method it is.
        takes: the objects that it is given, which have such methods too, as an optimizer has.
        writes: finds the tensors that it may have written to; answers with None where that is not known.
        clears: tensors whose gradients it forgets.
        again: whether a second one right after the first changes nothing.
    """

    run: Callable[[], Any]
    owner: Any
    clears: tuple[Any, ...] = ()
    again: bool = False
    takes: tuple[Any, ...] = ()
    writes: Callable[[], Any] = _unknown


def aside(
    clears: Callable[[Any], tuple[Any, ...]] | None = None, writes: Callable[[Any], Any] | None = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a method one that a trace leaves to Python.

    Args:
        clears: for a method that does nothing but forget gradients: of which tensors, given the object.
        writes: which tensors it may have written to, given the object afterwards, or None where that is not known.
    """

    def decorate(method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
            tracer = mode.tracer
            if tracer is None:
                return method(self, *args, **kwargs)
            given = [one for one in (*args, *kwargs.values()) if not isinstance(one, bool | int | float | str | None)]
            if not all(hasattr(type(one), "_stays_aside") for one in given):
                what = (
                    "a function" if any(map(callable, given)) else "a value"
                )  # which runs by the values that it finds
                tracer.fail(f"hands {what} to {type(self).__name__}.{method.__name__}")
            event = Event(
                functools.partial(wrapped, self, *args, **kwargs),
                self,
                clears(self) if clears else (),
                clears is not None,
                tuple(given),
                functools.partial(writes, self) if writes else _unknown,
            )
            return tracer.call(event, lambda: method(self, *args, **kwargs))

        return wrapped

    return decorate


def tells(why: str) -> Callable[[F], F]:
    """Mark a function as one that tells what no guard looks at; ``why`` is part of a sentence about the call that asks."""

    def mark(function: F) -> F:
        TELLING.append((function, why))
        return function

    return mark
