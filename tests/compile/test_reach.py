"""What a compiled function reads from modules, classes and containers: no replay answers with what was before."""

from __future__ import annotations

import collections
import ctypes
import enum
import functools
import gc
import io
import logging
import queue
import threading
import types
import warnings
import weakref
from typing import Any

import hypothesis.strategies
import numpy as np
import pytest

import tensorcore as tc
from tensorcore.compiler.guards import Guards
from tests.compile import elsewhere
from tests.compile.changing import by, same_in_eager_and_compiled

FACTOR = tc.exp


# Modules, classes and functions


def module_attribute() -> Any:
    return by(lambda: elsewhere.SCALE, lambda i: setattr(elsewhere, "SCALE", i))


def module_function() -> Any:
    return (lambda x: elsewhere.scaled(x)), lambda i: setattr(elsewhere, "SCALE", i)


def module_table() -> Any:
    return by(lambda: elsewhere.TABLE["a"], lambda i: elsewhere.TABLE.update(a=i))


def module_object() -> Any:
    return by(lambda: elsewhere.settings.by, lambda i: setattr(elsewhere.settings, "by", i))


def module_class() -> Any:
    elsewhere.settings.__dict__.clear()
    return by(lambda: elsewhere.settings.by, lambda i: setattr(elsewhere.Settings, "by", i))


def module_inside() -> Any:
    def get() -> float:
        from tests.compile import elsewhere as found

        return found.scale()

    return by(get, lambda i: setattr(elsewhere, "SCALE", i))


def module_name_inside() -> Any:
    def get() -> float:
        from tests.compile.elsewhere import SCALE

        return SCALE

    return by(get, lambda i: setattr(elsewhere, "SCALE", i))


def module_held() -> Any:
    module = types.ModuleType("made")
    holder = types.SimpleNamespace(module=module)
    return by(lambda: holder.module.value, lambda i: setattr(module, "value", i))


def global_by_text() -> Any:
    return by(lambda: globals()["TEXT"], lambda i: globals().update(TEXT=i))


def global_of_the_library() -> Any:
    return (lambda x: FACTOR(x)), lambda i: globals().update(FACTOR=(tc.relu, tc.tanh, tc.exp)[int(i) % 3])


def class_table() -> Any:
    kind = type("Kind", (), {"__module__": __name__, "table": {"a": 1.0}})
    return by(lambda: kind().table["a"], lambda i: kind.table.update(a=i))


def class_object() -> Any:
    kind = type("Kind", (), {"__module__": __name__, "inner": elsewhere.Settings()})
    return by(lambda: kind.inner.by, lambda i: setattr(kind.inner, "by", i))


def subclass_attribute() -> Any:
    kind = type("Kind", (elsewhere.Settings,), {"__module__": __name__})
    elsewhere.Settings.by = 1.0
    held = kind()
    return by(lambda: held.by, lambda i: setattr(kind, "by", i) if i > 1 else None)


def shadowed_in_a_module() -> Any:
    class Scaled(tc.nn.Module):
        by = 1.0

        def forward(self, x: Any) -> Any:
            return x * self.by

    module = Scaled()
    return module, lambda i: setattr(module, "by", i) if i > 1 else None


def computed_attribute() -> Any:
    number = [1.0]

    class Kind:
        @property
        def value(self) -> float:
            return number[0]

        @staticmethod
        def fixed() -> float:
            return number[0]

        @classmethod
        def shared(cls) -> float:
            return number[0]

    held = Kind()
    return by(lambda: held.value + held.fixed() + held.shared(), lambda i: number.__setitem__(0, i))


def property_that_is_put() -> Any:
    kind = type("Kind", (), {"__module__": __name__, "value": property(lambda self: 1.0)})
    held = kind()
    return by(lambda: held.value, lambda i: setattr(kind, "value", property(lambda self: i)))


def descriptor() -> Any:
    class Descriptor:
        value = 1.0

        def __get__(self, holder: Any, kind: Any) -> float:
            return self.value

    kind = type("Kind", (), {"__module__": __name__, "value": Descriptor()})
    return by(lambda: kind().value, lambda i: setattr(vars(kind)["value"], "value", i))


def metaclass() -> Any:
    meta = type("Meta", (type,), {"__module__": __name__, "value": 1.0})
    kind = meta("Kind", (), {"__module__": __name__})
    return by(lambda: kind.value, lambda i: setattr(meta, "value", i))


def another_class() -> Any:
    kinds = [type(f"Kind{i}", (), {"__module__": __name__, "get": lambda self, i=i: i}) for i in range(2)]
    held = kinds[0]()
    return by(lambda: held.get(), lambda i: setattr(held, "__class__", kinds[int(i) % 2]))


def code_of_a_function() -> Any:
    def one() -> float:
        return 1.0

    def two() -> float:
        return 2.0

    both = one.__code__, two.__code__
    return by(lambda: one(), lambda i: setattr(one, "__code__", both[int(i) % 2]))


def attribute_of_the_function() -> Any:
    def counted(x: Any) -> Any:
        counted.calls = getattr(counted, "calls", 0) + 1  # type: ignore[attr-defined]
        return x * counted.calls  # type: ignore[attr-defined]

    return counted, lambda i: None


# Containers and references of Python's own


def held_elsewhere() -> Any:
    held = {"a": 1.0}
    views = types.MappingProxyType(held), held.values(), held.get
    return by(lambda: views[0]["a"] + sum(views[1]) + views[2]("a"), lambda i: held.update(a=i))


def users_own() -> Any:
    held = collections.UserDict(a=1.0), collections.UserList([1.0]), collections.ChainMap({"a": 1.0})

    def put(i: float) -> None:
        held[0]["a"] = held[1][0] = held[2]["a"] = i

    return by(lambda: held[0]["a"] + held[1][0] + held[2]["a"], put)


def queues() -> Any:
    held, simple = queue.Queue(), queue.SimpleQueue()

    def put(i: float) -> None:
        held.put(i)
        simple.put(i)

    return by(lambda: held.get() + simple.get(), put)


def flags() -> Any:
    event, logger = threading.Event(), logging.getLogger("tests.compile.world")

    def put(i: float) -> None:
        event.set() if i % 2 else event.clear()
        logger.setLevel(10 if i % 2 else 30)

    return by(lambda: 1 + event.is_set() + logger.isEnabledFor(10), put)


def foreign() -> Any:
    number, row = ctypes.c_double(1.0), bytearray(b"1")
    view = memoryview(row)

    def put(i: float) -> None:
        number.value, row[0] = i, int(i)

    return by(lambda: number.value + view[0], put)


def stream() -> Any:
    text = io.StringIO("1\n2\n3\n4\n5\n6\n")
    return by(lambda: float(text.readline()), lambda i: None)


def lines() -> Any:
    text = io.StringIO("1\n2\n3\n4\n5\n6\n")
    return by(lambda: float(next(text)), lambda i: None)


def cached() -> Any:
    number = [1.0]

    @functools.lru_cache
    def get() -> float:
        return number[0]

    def put(i: float) -> None:
        number[0] = i
        if i == 3:
            get.cache_clear()

    return by(lambda: get(), put)


def members() -> Any:
    one = elsewhere.Settings()
    held = frozenset([one]), {one: 1}
    return by(lambda: sum(m.by for some in held for m in some), lambda i: setattr(one, "by", i))


def enumeration() -> Any:
    kind = enum.Enum("Kind", ["A"], module=__name__)
    return by(lambda: kind.A.weight, lambda i: setattr(kind.A, "weight", i))


def weak() -> Any:
    held, kept = weakref.WeakSet(), []

    def put(i: float) -> None:
        kept.append(elsewhere.Settings())
        held.add(kept[-1])

    return by(lambda: len(held), put)


def dead() -> Any:
    kept = [elsewhere.Settings()]
    reference = weakref.ref(kept[0])
    return by(lambda: 1 if reference() is None else 2, lambda i: kept.clear() if i == 2 else None)


def objects_in_an_array() -> Any:
    held = np.array([[1.0], None], dtype=object)
    return by(lambda: held[0][0], lambda i: held[0].__setitem__(0, i))


def with_attributes() -> Any:
    made = [type("Kind", (kind,), {"__module__": __name__})() for kind in (dict, list, int, str, tuple, set)]
    return by(lambda: sum(one.value for one in made), lambda i: [setattr(one, "value", i) for one in made])


def zeros() -> Any:
    held = [0.0]
    return (lambda x: 1 / (x * held[0])), lambda i: held.__setitem__(0, -0.0 if i % 2 else 0.0)


def long_lists() -> Any:
    held = [0.0] * 2000
    return (lambda x: 1 / (x * held[7])), lambda i: held.__setitem__(7, -0.0 if i % 2 else 0.0)


def formatted() -> Any:
    held = elsewhere.Settings()
    return by(lambda: float("{0.by}".format(held)), lambda i: setattr(held, "by", i))  # noqa: UP030, UP032


@pytest.mark.parametrize(
    "make",
    [
        module_attribute, module_function, module_table, module_object, module_class, module_inside, module_name_inside,
        module_held, global_by_text, global_of_the_library, class_table, class_object, subclass_attribute,
        shadowed_in_a_module, computed_attribute, property_that_is_put, descriptor, metaclass, another_class,
        code_of_a_function, attribute_of_the_function, held_elsewhere, users_own, queues, flags, foreign, stream, lines,
        cached, members, enumeration, weak, dead, objects_in_an_array, with_attributes, zeros, long_lists, formatted,
    ],
)  # fmt: skip
def test_what_changes_between_calls_is_noticed(make, monkeypatch) -> None:
    """Numbers in modules, classes, properties, views, queues, streams and caches are those of the call."""
    for name in ("SCALE", "settings"):
        monkeypatch.setattr(elsewhere, name, getattr(elsewhere, name))
    for name in ("TEXT", "FACTOR"):
        monkeypatch.setitem(globals(), name, FACTOR)
    monkeypatch.setattr(elsewhere.Settings, "by", 1.0)
    same_in_eager_and_compiled(make)


class Hidden:
    """An object that nothing leads to."""

    __slots__ = ("tensor",)


def test_a_tensor_that_no_guard_finds_is_read_in_each_call() -> None:
    """One that the function finds in its own way; the account says so. Attributes of objects of libraries are guarded."""
    hidden, logger = Hidden(), logging.getLogger("tests.compile.reach")
    call = tc.compile(lambda x: x * next(o for o in gc.get_objects() if type(o) is Hidden).tensor)
    other = tc.compile(lambda x: x * logger.tensor * logger.number)
    for i in range(3):
        hidden.tensor = logger.tensor = tc.full((1,), float(i))
        logger.number = i  # type: ignore[attr-defined]
        assert call(tc.ones(1)).item() == i
        assert other(tc.ones(1)).item() == i * i
    assert "reads a tensor that guards do not find" in call.explain().reasons[0]


def test_a_function_of_the_library_that_a_test_replaces(monkeypatch) -> None:
    """A name of a module that something else is put in the place of is another function."""
    call = tc.compile(lambda x: tc.square(x))
    assert [call(tc.full((1,), 3.0)).item() for _ in range(2)] == [9.0, 9.0]
    monkeypatch.setattr(tc, "square", tc.negative)
    assert call(tc.full((1,), 3.0)).item() == -3.0


def test_a_chain_longer_than_the_stack_of_calls_is_walked_to_its_end() -> None:
    """A list of five thousand links is guarded like a short one: what the last of them holds is seen when it changes."""
    last = first = types.SimpleNamespace(by=2.0)
    for _ in range(5000):
        first = types.SimpleNamespace(next=first)

    def call(x: tc.Tensor) -> tc.Tensor:
        one = first
        while hasattr(one, "next"):
            one = one.next
        return x * one.by

    compiled = tc.compile(call)
    x = tc.ones(3)
    assert [compiled(x).tolist() for _ in range(2)] == [[2.0] * 3] * 2
    last.by = 5.0
    assert compiled(x).tolist() == [5.0] * 3


class Absent:
    """What stands for an object that is not there, as the proxies of web frameworks do."""

    @property
    def __class__(self) -> Any:
        raise RuntimeError("no request")


class Old:
    """What warns whenever somebody asks for its class."""

    @property
    def __class__(self) -> Any:
        warnings.warn("old", FutureWarning, stacklevel=2)
        return Old


absent, old = Absent(), Old()


@pytest.mark.filterwarnings("error")
def test_what_cannot_be_looked_at_runs_as_it_is_and_what_warns_is_not_heard() -> None:
    """A global that raises when it is looked at ends the trace with a reason; one that is deprecated makes no warning."""
    call = tc.compile(lambda x: x * 2 if absent is not None else x)
    assert [call(tc.ones(1)).item() for _ in range(2)] == [2.0, 2.0]
    assert "reaches what cannot be looked at (RuntimeError: no request)" in call.explain().reasons[0]
    quiet = tc.compile(lambda x: x * 3 if old is not None else x)
    assert [quiet(tc.ones(1)).item() for _ in range(2)] == [3.0, 3.0]
    assert quiet.explain().replays == 1


def test_an_installed_package_is_not_looked_into() -> None:
    """Of one that code names the names alone are guarded: its own functions and classes would be thousands of guards."""

    def call(x: tc.Tensor, draw: bool = False) -> tc.Tensor:
        return x * hypothesis.strategies.floats().example() if draw else x * 2

    guards = Guards(call, (tc.ones(1),), {})
    assert "hypothesis.strategies" in {what for _, what, _ in guards.lines}
    assert len(guards.lines) < 40
