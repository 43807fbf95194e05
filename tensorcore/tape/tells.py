"""Marks of functions that tell what no guard looks at: a call of the program's that asks for it is none to replay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["HISTORY", "PLACE", "SWITCH", "TELLING", "WRITES", "tells"]

PLACE = "asks where a tensor lies in memory"
WRITES = "asks how often a tensor was written to"
HISTORY = "asks how a tensor was made"
SWITCH = "asks for a switch that is not guarded"

F = TypeVar("F", bound=Callable[..., Any])
TELLING: list[tuple[Callable[..., Any], str]] = []  # the functions, and why such a call cannot be replayed


def tells(why: str) -> Callable[[F], F]:
    """Mark a function; ``why`` is part of a sentence about the call that asks."""

    def mark(function: F) -> F:
        TELLING.append((function, why))
        return function

    return mark
