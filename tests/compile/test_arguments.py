"""Lists, dicts and dataclasses that a compiled function is given, changes and answers with."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tensorcore as tc

from .test_functions import counted


@dataclass
class State:
    hidden: Any
    count: int = 2


STARTS = {
    "list": (lambda x: [x, x + 1], 0),
    "dict": (lambda x: {("a", 1): x, "b": x + 1}, ("a", 1)),
    "nested": (lambda x: {"in": [x]}, None),
}


@pytest.mark.parametrize("kind", STARTS)
def test_what_is_put_into_an_argument_is_there_after_a_replay(kind) -> None:
    """A list or a dict that a call puts another tensor into holds the new one after each call, as in eager."""
    start, key = STARTS[kind]

    def f(held):
        inside, at = (held["in"], 0) if key is None else (held, key)
        inside[at] = inside[at] * 2
        return inside[at] + 1

    compiled, mine, theirs = counted(f), start(tc.ones(3)), start(tc.ones(3))
    for _ in range(4):
        assert tc.equal(compiled(mine), f(theirs))
    assert str(mine) == str(theirs)
    assert compiled.explain().replays == 3


def test_items_that_are_exchanged_are_read_first() -> None:
    """An exchange of two items, one of which is answered too, takes both from before the call."""

    def f(held):
        held["x"], held["y"] = held["y"], held["x"]
        return held["x"], held["y"] + 1

    compiled, mine, theirs = counted(f), {"x": tc.zeros(2), "y": tc.ones(2)}, {"x": tc.zeros(2), "y": tc.ones(2)}
    for _ in range(3):
        assert str(compiled(mine)) == str(f(theirs))
        assert str(mine) == str(theirs)
    assert compiled.explain().replays == 2


def test_a_container_that_is_answered_is_the_one_that_was_given() -> None:
    """Arguments, and lists that the function knows from elsewhere, come back as themselves."""
    held = [tc.ones(2)]

    @counted
    def f(given):
        given[0].add_(1)
        return given, held

    for _ in range(3):
        given = [tc.ones(2)]
        found = f(given)
        assert found[0] is given
        assert found[1] is held
    assert f.explain().replays == 2


def test_dataclasses_are_arguments_and_results() -> None:
    """Attributes are guarded by value and shape, not by which object holds them; results are new objects."""

    @counted
    def f(state):
        return State(state.hidden * state.count, state.count)

    first, second = f(State(tc.ones(2))), f(State(tc.full((2,), 3.0)))
    assert isinstance(second, State)
    assert second is not first
    assert (second.hidden.tolist(), second.count) == ([6, 6], 2)
    assert f(State(tc.ones(2), 5)).hidden.tolist() == [5, 5]
    assert (f.explain().traces, f.explain().reasons) == (2, ["traced again: argument 0.count is 5 now"])


def test_a_dataclass_that_is_changed_holds_the_new_tensor() -> None:
    """Recurrent state that is an attribute of an argument goes on from call to call."""

    @counted
    def f(state, x):
        state.hidden = state.hidden * 2 + x
        return state

    state = State(tc.zeros(2))
    for _ in range(4):
        assert f(state, tc.ones(2)) is state
    assert state.hidden.tolist() == [15, 15]
    assert f.explain().replays == 3


def test_ordered_dicts_and_numbers_of_numpy() -> None:
    """An OrderedDict is answered with in its order; NumPy's numbers are guarded by type and value."""

    @counted
    def f(x, factor):
        return OrderedDict(b=x * factor, a=x)

    for factor in (2, 2, 3):
        found = f(tc.ones(2), np.float32(factor))
        assert type(found) is OrderedDict
        assert list(found) == ["b", "a"]
        assert found["b"].tolist() == [factor] * 2
    assert (f.explain().traces, f.explain().replays) == (2, 1)


def test_an_argument_that_the_call_holds_as_well() -> None:
    """A module's own buffers, given to it again and written, cost no trace; what shares memory with another argument does."""
    norm = tc.nn.BatchNorm1d(3)
    own = dict(norm.named_buffers())

    @counted
    def f(buffers, x, y):
        made = tc.func.functional_call(norm, buffers, (x,))
        y.add_(1)
        return made, x.sum()

    for _ in range(3):
        f(own, tc.ones(2, 3), tc.zeros(3))
    assert own["num_batches_tracked"].item() == 3
    assert (f.explain().traces, f.explain().replays) == (1, 2)
    x = tc.zeros(2, 3)
    assert f(own, x, x[0])[1].item() == 3
    assert f.explain().reasons[0] == "traced again: which arguments share memory has changed"
    f(own, x, own["running_mean"])
    assert f.explain().replays == 2


def test_sets_are_arguments_by_what_they_hold() -> None:
    """A new set of the same members costs no trace; members that compare alike, other ones and a call that adds some do."""

    def f(x, kinds):
        for one in kinds:
            x = x * 2 if one == 1 else x + 1
        return x if 1 in kinds else -x

    compiled, x = counted(f), tc.ones(3)
    for kinds in ({1, 2}, {1, 2}, frozenset([1, 2]), {1, 3}, {1, 3}, {True, 2}, set()):
        assert compiled(x, set(kinds) if type(kinds) is set else kinds).tolist() == f(x, kinds).tolist()
    found = compiled.explain()
    assert (found.traces, found.replays) == (5, 2), found

    def adds(x, held):
        held.add("b")
        return x + len(held)

    compiled = counted(adds)
    for _ in range(3):
        held = {"a"}
        assert compiled(x, held).tolist() == [3.0] * 3
        assert held == {"a", "b"}
    assert compiled.explain().replays == 0
