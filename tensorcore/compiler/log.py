"""The log of what was put off: the calls, and the arrays that they take and make."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from tensorcore.backend.base import Backend
from tensorcore.backend.shapes import VIEWS
from tensorcore.lazy.record import frozen

__all__ = ["Call", "Log", "arrays"]

_NUMBERS = frozenset([int, float, bool, complex])


class Call(NamedTuple):
    """What was put off: ``results`` are arrays without values; a view has one that is there, a write none."""

    name: str
    kernel: Callable[..., Any]
    natives: tuple[Any, ...]
    options: dict[str, Any]
    results: tuple[Any, ...]


class Log:
    """The calls that were put off since the last value was needed.

    Attributes:
        calls: these, in order.
        key: what tells them from those of another program.
        order: the arrays as they were met, by ``places``; ``forms`` is how they lie, ``own`` how often the log refers to each.
        made: those of them, by ``id``, that have no values yet, and views of these.
        written: memory from outside that is to be written.
    """

    def __init__(self, device: Backend) -> None:
        self.device = device
        self.begin()

    def begin(self) -> None:
        """Start again from nothing."""
        self.calls: list[Call] = []
        self.key: list[Any] = []
        self.order: list[Any] = []
        self.forms: list[Any] = []
        self.own: list[int] = []
        self.places: dict[int, int] = {}
        self.made: set[int] = set()
        self.written: set[Any] = set()

    def note(self, call: Call) -> None:
        """Write down a view or a write, which makes no array without values."""
        codes, _ = self.codes(call.natives)
        also, _ = self.codes(tuple(call.options.values()))
        self.calls.append(call)
        self.key += (call.name, codes, *call.options, also)
        for one in call.results:  # a view, which is there
            place = self.enter(one, (one.shape, one.strides, one.dtype))
            self.key.append(place)
            base = self.places.get(id(one.base))
            if base is not None:
                self.own[base] += 1

    def codes(self, values: tuple[Any, ...], numbers: bool = True) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """What tells operands apart in a program, and how they lie; arrays that are new are met here.

        Without ``numbers`` the second says of these no more than their types.
        """
        codes, forms = [], []
        for one in values:
            kind = type(one)
            if kind is np.ndarray:
                place = self.places.get(id(one))
                if place is None:
                    place = self.enter(one, (one.shape, one.strides, one.dtype))
                    codes.append((place, self.forms[place]))
                else:
                    self.own[place] += 1
                    codes.append(place)
                forms.append(self.forms[place])
            elif kind is list or kind is tuple:
                some, lie = self.codes(tuple(one))
                codes.append(some)
                forms.append(lie)
            else:
                code = frozen(one)
                codes.append(code)
                forms.append(code if kind not in _NUMBERS else (kind, code) if numbers else kind)
        return tuple(codes), tuple(forms)

    def enter(self, native: Any, form: Any) -> int:
        """Meet an array, which something in the log refers to."""
        place = self.places[id(native)] = len(self.order)
        self.order.append(native)
        self.forms.append(form)
        self.own.append(1)
        return place

    def uncount(self, natives: tuple[Any, ...], options: dict[str, Any]) -> None:
        """What was met for a call that is not put off is in no log."""
        for one in arrays((natives, tuple(options.values()))):
            self.own[self.places[id(one)]] -= 1

    def waits(self, native: Any) -> bool:
        """Whether the values of an array are not there yet."""
        base = native.base
        return (
            id(native) in self.made
            or (base is not None and id(base) in self.made)
            or (bool(self.written) and self.device.storage_key(native) in self.written)
        )

    def wanted(self) -> list[int]:
        """The places of the arrays without values that somebody else has, or has a view of."""
        roots = self._roots()
        found = set()
        made, own = self.made, self.own
        for place, one in enumerate(self.order):
            # Besides the log and views: the list, the name, the pair that ``enumerate`` makes, and the argument.
            if id(one) in made and sys.getrefcount(one) > own[place] + _HELD:
                found.add(roots[place])
        return sorted(found)

    def _roots(self) -> list[int]:
        """For each array the place of the one that it is a view of, in the end."""
        roots = list(range(len(self.order)))
        for call in self.calls:
            if call.name in VIEWS:
                roots[self.places[id(call.results[0])]] = roots[self.places[id(call.natives[0])]]
        return roots


def arrays(values: Any) -> Iterator[Any]:
    """Those in nested tuples and lists."""
    for one in values:
        if type(one) is np.ndarray:
            yield one
        elif type(one) is tuple or type(one) is list:
            yield from arrays(one)


def _held() -> int:
    """What getrefcount says of something that one list has, in a loop such as that of ``Log.wanted``."""
    order = [object()]
    for _place, one in enumerate(order):
        found = sys.getrefcount(one)
    return found


_HELD = _held()
