"""A program and what changes between its calls, in eager and compiled: the results have to be the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorcore as tc

__all__ = ["CALLS", "Put", "by", "same_in_eager_and_compiled"]

Put = Callable[[float], Any]
CALLS = 5


def by(get: Callable[[], Any], put: Put) -> tuple[Callable[[Any], Any], Put]:
    """A function that multiplies by what ``get`` finds, and what changes that."""
    return lambda x: x * get(), put


def same_in_eager_and_compiled(make: Callable[[], tuple[Callable[[Any], Any], Put]]) -> Any:
    """Call what ``make`` gives several times, with a change before each: the results of both sides are the same."""
    found = []
    for compiled in (False, True):
        tc.manual_seed(0)
        function, put = make()
        call = tc.compile(function) if compiled else function
        made = []
        for i in range(CALLS):
            put(float(i))
            made.append(call(tc.ones(2)).tolist())
        found.append(made)
    assert found[0] == found[1]
    return call.explain()
