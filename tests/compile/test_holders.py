"""What a compiled function reads from the objects around it: a change in any of them is there in the next call."""

from __future__ import annotations

import argparse
import array
import collections
import contextvars
import enum
import itertools
import threading
import types
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorcore as tc
from tensorcore import nn

CALLS = 5


class Mode(enum.Enum):
    DOUBLE = 2
    TRIPLE = 3


class Holder:
    """An object of a program's own."""

    number = 1.0

    def scaled(self, x: Any) -> Any:
        return x * 2


def held_in(holder: Any, get: Callable[[Any], Any], put: Callable[[Any, float], Any]) -> Any:
    """A function that reads a number of ``holder``, and what changes that number."""
    return lambda x: x * get(holder), lambda i: put(holder, float(i))


def keys() -> Any:
    return held_in({(0, 1): 1.0}, lambda d: d[(0, 1)], lambda d, i: d.update({(0, 1): i}))


def enumerated() -> Any:
    return held_in({Mode.DOUBLE: 1.0}, lambda d: d[Mode.DOUBLE], lambda d, i: d.update({Mode.DOUBLE: i}))


def queue() -> Any:
    return held_in(collections.deque([1.0], 3), lambda d: d[-1], lambda d, i: d.append(i))


def queue_of_tensors() -> Any:
    return held_in(collections.deque([tc.ones(2)], 3), lambda d: d[-1], lambda d, i: d.append(tc.full((2,), i)))


def numpy_array() -> Any:
    return held_in(np.ones(3), lambda a: float(a[0]), lambda a, i: a.__setitem__(0, i))


def row_of_bytes() -> Any:
    return held_in(bytearray(b"1"), lambda a: a[0], lambda a, i: a.__setitem__(0, int(i)))


def row_of_numbers() -> Any:
    return held_in(array.array("d", [1.0]), lambda a: a[0], lambda a, i: a.__setitem__(0, i))


def long_list() -> Any:
    return held_in(list(range(3000)), lambda a: a[2500], lambda a, i: a.__setitem__(2500, i))


def long_dict() -> Any:
    return held_in(dict.fromkeys(range(3000), 1.0), lambda a: a[2500], lambda a, i: a.__setitem__(2500, i))


def namespace() -> Any:
    return held_in(types.SimpleNamespace(a=1.0), lambda s: s.a, lambda s, i: setattr(s, "a", i))


def options() -> Any:
    return held_in(argparse.Namespace(a=1.0), lambda s: s.a, lambda s, i: setattr(s, "a", i))


def of_a_thread() -> Any:
    local = threading.local()
    local.a = 1.0
    return held_in(local, lambda s: s.a, lambda s, i: setattr(s, "a", i))


def context_variable() -> Any:
    return held_in(contextvars.ContextVar("number", default=1.0), lambda v: v.get(), lambda v, i: v.set(i))


def weak_reference() -> Any:
    holder = Holder()
    holder.number = 1.0
    function, change = held_in(weakref.ref(holder), lambda r: r().number, lambda r, i: setattr(r(), "number", i))
    function.__kwdefaults__ = None
    return function, lambda i, keep=holder: change(i)


def attribute_of_a_function() -> Any:
    def scale() -> float:
        return scale.factor  # type: ignore[attr-defined, no-any-return]

    scale.factor = 1.0  # type: ignore[attr-defined]
    return lambda x: x * scale(), lambda i: setattr(scale, "factor", float(i))


def order_of_keys() -> Any:
    held = collections.OrderedDict(a=1.0, b=2.0)
    return (
        lambda x: sum(x * (i + 1) * one for i, one in enumerate(held.values())),
        lambda i: held.move_to_end("a" if i % 2 else "b"),
    )


def set_of_objects() -> Any:
    held = {Mode.DOUBLE}

    def change(i: int) -> None:
        held.clear()
        held.add(Mode.TRIPLE if i % 2 else Mode.DOUBLE)

    return lambda x: x * (2 if Mode.DOUBLE in held else 3), change


def method() -> Any:
    class Own(Holder):
        def scaled(self, x: Any) -> Any:
            return x * 2

    holder = Own()
    return lambda x: holder.scaled(x), lambda i: setattr(Own, "scaled", lambda self, x, by=i: x * by)


def forward_of_a_module() -> Any:
    module = nn.Linear(2, 2)
    return module, lambda i: setattr(module, "forward", lambda x, by=i: x * by)


def iterator() -> Any:
    count = itertools.count()
    return lambda x: x * next(count), lambda i: None


def generator() -> Any:
    numbers = (float(i) for i in range(100))
    return lambda x: x * next(numbers), lambda i: None


@pytest.mark.parametrize(
    "make",
    [
        keys, enumerated, queue, queue_of_tensors, numpy_array, row_of_bytes, row_of_numbers, long_list, long_dict, namespace,
        options, of_a_thread, context_variable, weak_reference, attribute_of_a_function, order_of_keys, set_of_objects, method,
        forward_of_a_module, iterator, generator,
    ],
)  # fmt: skip
def test_what_an_object_holds_is_what_the_call_finds(make: Callable[[], Any]) -> None:
    """Numbers and tensors in containers, namespaces, arrays, references and iterators are those of the call."""
    found = []
    for compiled in (False, True):
        tc.manual_seed(0)
        function, change = make()
        call = tc.compile(function) if compiled else function
        made = []
        for i in range(CALLS):
            change(i)
            made.append(call(tc.ones(2)).tolist())
        found.append(made)
    assert found[0] == found[1]


def test_the_order_of_a_dict_is_part_of_a_call() -> None:
    """A dict that comes with its keys in another order answers in that order."""
    double = tc.compile(lambda held: {key: one * 2 for key, one in held.items()})
    x, y = tc.ones(2), tc.zeros(3)
    for names in ("ab", "ba", "ab", "ba"):
        made = double({name: x if name == "a" else y for name in names})
        assert list(made) == list(names)
        assert made["a"].tolist() == [2.0, 2.0]


def test_a_named_tuple_is_an_argument() -> None:
    """A named tuple is looked into as a tuple is: new tensors in it cost no trace."""
    Pair = collections.namedtuple("Pair", "first second")
    swapped = tc.compile(lambda pair: Pair(pair.second * 2, pair.first))
    for i in range(3):
        made = swapped(Pair(tc.ones(2) * i, tc.full((2,), 3.0)))
        assert made.first.tolist() == [6.0, 6.0]
        assert made.second.tolist() == [float(i)] * 2
    assert swapped.explain().traces == 1


def test_whether_two_arguments_are_one_is_part_of_a_call() -> None:
    """``x is y`` is asked again."""
    told = tc.compile(lambda x, y: x * 2 if x is y else x * 3)
    for _ in range(2):
        x = tc.ones(2)
        assert told(x, tc.ones(2)).tolist() == [3.0, 3.0]
        assert told(x, x).tolist() == [2.0, 2.0]


@pytest.mark.parametrize("change", ["data", "set_", "attribute"])
def test_an_argument_that_is_given_other_memory_or_names_is_no_replay(change: str) -> None:
    """What a call does to a tensor object beside writing values is done in each call."""

    @tc.compile
    def f(x: Any) -> Any:
        if change == "data":
            x.data = x.data * 2
        elif change == "set_":
            x.set_(x * 2)
        else:
            x.tag = 5
        return x + 1

    for _ in range(4):
        x = tc.ones(2)
        f(x)
        assert x.tolist() == ([1.0, 1.0] if change == "attribute" else [2.0, 2.0])
        assert getattr(x, "tag", None) == (5 if change == "attribute" else None)


def test_a_view_of_a_long_dict_is_looked_into() -> None:
    """Of a thousand items too, where a list or a dict itself is compared in one look."""
    held = {i: float(i) for i in range(1500)}
    seen = types.MappingProxyType(held)
    compiled = tc.compile(lambda x: x + seen[3])
    assert [compiled(tc.zeros(1)).item() for _ in range(2)] == [3.0, 3.0]
    held[3] = 7.0
    assert compiled(tc.zeros(1)).item() == 7.0


@pytest.mark.parametrize("members", [(0, 8), ("a", "b", 2.0), (1, True)])
def test_the_order_of_a_set_is_part_of_a_call(members: Any) -> None:
    """Sets may be equal and give their members in different orders, which a call may go by."""
    held = set(members)

    def f(x: Any) -> Any:
        for one in held:
            x = x * 2 if one == 0 else x + (1 if one is True else 3)
        return x

    compiled = tc.compile(f)
    for order in (members, members, members[::-1], members[:1], members[1:]):
        held.clear()
        for one in order:
            held.add(one)
        assert compiled(tc.ones(1)).item() == f(tc.ones(1)).item()
