"""Gradients of parts: added where the sum of what has arrived lies, and nowhere that anybody else looks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tensorcore as t

Read = Callable[[Any], Any]
AT = t.tensor([[2, 0, 1], [1, 2, 0]])  # each row twice, so that all sums are exact
READS: dict[str, Read] = {
    "a row": lambda x: x[1],
    "a row from the end": lambda x: x[-1],
    "a column": lambda x: x[:, 2],
    "one element": lambda x: x[0, 1],
    "rows": lambda x: x[1:],
    "every second column": lambda x: x[:, ::2],
    "none": lambda x: x[1:1],
    "all": lambda x: x[...],
    "narrowed": lambda x: x.narrow(1, 0, 2),
    "a mask": lambda x: x[t.tensor([True, False, True])],
    "rows by number": lambda x: x[t.tensor([2, 2, 0])],
    "elements by number": lambda x: x[t.tensor([0, 1]), t.tensor([2, 2])],
    "no row by number": lambda x: x[t.tensor([], dtype=t.int64)],
    "columns selected": lambda x: x.index_select(1, t.tensor([2, 0, 2])),
    "gathered": lambda x: x.gather(1, AT),
    "rows of a table": lambda x: t.nn.functional.embedding(AT, x),
    "rows of a padded table": lambda x: t.nn.functional.embedding(AT, x, padding_idx=1),
    "rows by their count": lambda x: t.nn.functional.embedding(AT, x, scale_grad_by_freq=True),
    "whole": lambda x: x * 2.0,
}
NAMES = st.lists(st.sampled_from(sorted(READS)), min_size=1, max_size=6)


def loss_of(x: Any, names: list[str]) -> Any:
    """What each read gives, with weights that differ, so that a gradient in a wrong place shows."""
    return sum(((READS[name](x) * float(i + 1)).sum() for i, name in enumerate(names)), x.new_zeros(()))


def one_by_one(names: list[str]) -> Any:
    """The sum of the gradients of walks with one read each: no sum has arrived in any of them."""
    total = t.zeros(3, 3)
    for i, name in enumerate(names):
        x = t.ones(3, 3, requires_grad=True)
        (READS[name](x) * float(i + 1)).sum().backward()
        total += x.grad
    return total


@contextmanager
def counted(name: str) -> Iterator[list[int]]:
    """How often the CPU's kernel ``name`` is called."""
    kernels, found = t.ones(1).device.kernels, [0]
    kernel = kernels[name]

    def count(*given: Any, **options: Any) -> Any:
        found[0] += 1
        return kernel(*given, **options)

    kernels[name] = count
    try:
        yield found
    finally:
        kernels[name] = kernel


@given(NAMES, st.booleans(), st.booleans())
def test_a_sum_of_parts_is_what_walks_of_one_part_give(names: list[str], leaf: bool, again: bool) -> None:
    """The reads of a leaf, or of a result, in any order and number, in one walk and in a second one."""
    x = t.ones(3, 3, requires_grad=True)
    loss = loss_of(x if leaf else x * 1.0, names)
    loss.backward(retain_graph=again)
    if again:
        loss.backward()
    assert (x.grad == one_by_one(names) * (2.0 if again else 1.0)).all()


@given(NAMES)
def test_asked_for_gradients_are_the_same(names: list[str]) -> None:
    """A walk to a result in the middle gives what arrives there, and leaves no gradient behind."""
    x = t.ones(3, 3, requires_grad=True)
    y = x * 1.0
    (found,) = t.autograd.grad(loss_of(y, names), y)
    assert x.grad is None
    assert (found == one_by_one(names)).all()


def second(names: list[str]) -> Any:
    """The second derivative of squares of reads, by a recorded walk."""
    x = t.ones(3, 3, requires_grad=True)
    y = x * 1.0
    loss = sum(((READS[name](y) ** 2).sum() for name in names), y.sum())
    (first,) = t.autograd.grad(loss, x, create_graph=True)
    (found,) = t.autograd.grad(first.sum(), x, allow_unused=True, materialize_grads=True)
    return found


@given(NAMES)
def test_recorded_walks_make_each_gradient_by_itself(names: list[str]) -> None:
    """A sum that is added to in place would be no part of the graph: all reads are there in the second derivative."""
    assert (second(names) == sum(second([name]) for name in names)).all()


@pytest.mark.parametrize("read", ["a row", "rows by number", "columns selected", "gathered", "rows of a table"])
def test_a_loop_makes_one_gradient_of_all(read: str) -> None:
    """Of n parts one is made as large as the whole, and no sum of two such is: n parts are not n times the work."""
    whole = {
        "a row": "unindex",
        "rows by number": "index_put",
        "columns selected": "index_add",
        "gathered": "scatter_reduce",
    }
    x = t.ones(3, 3, requires_grad=True)
    y = x * 1.0
    loss = sum(READS[read](y).sum() for _ in range(10))
    with counted("unindex") as made, counted("add") as added, counted(whole.get(read, "embedding_gradient")) as parts:
        loss.backward()
    assert made[0] == (read == "a row")
    assert parts[0] == {"a row": 1, "rows of a table": 1}.get(read, 10)
    assert added[0] == (9 if read == "a row" else 0)
    assert (x.grad == one_by_one([read]) * 10.0).all()


def sends(make: Callable[[], Any]) -> Any:
    """A function of the user's whose gradient is what ``make`` gives."""

    class Send(t.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1.0

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return make()

    return Send.apply


def test_a_gradient_that_somebody_holds_is_not_added_to() -> None:
    """What a function of the user's gave, and keeps as a tensor or as an array, stays as it was."""
    kept: list[Any] = []

    def tensor() -> Any:
        kept.append(t.ones(2, 2))
        return kept[-1]

    def array() -> Any:
        made = t.ones(2, 2)
        kept.append(made.numpy())
        return made

    for make in (tensor, array):
        x = t.ones(2, 2, requires_grad=True)
        y = x * 1.0
        first = y[0]  # older than the function, so that its gradient comes after
        (sends(make)(y).sum() + first.sum()).backward()
        assert kept[-1].tolist() == [[1.0, 1.0], [1.0, 1.0]]
        assert x.grad.tolist() == [[2.0, 2.0], [1.0, 1.0]]


def test_a_gradient_that_repeats_one_number_is_not_added_to() -> None:
    """A part that arrives after an expanded gradient does not change all of it."""
    one_number = lambda: t.from_numpy(np.lib.stride_tricks.as_strided(np.ones(1, np.float32), (3, 3), (0, 0)))  # noqa: E731
    for function in (sends(one_number), lambda y: y):
        x = t.ones(3, 3, requires_grad=True)
        y = x * 1.0
        part = y[1]
        (function(y).sum() + part.sum()).backward()
        assert x.grad.tolist() == [[1.0] * 3, [2.0] * 3, [1.0] * 3]


def test_a_gradient_of_two_inputs_is_not_added_to() -> None:
    """Both inputs of a sum get one gradient; a part that is added to one of them does not show in the other."""
    a, b = t.ones(2, 2, requires_grad=True), t.ones(2, 2, requires_grad=True)
    x, y = a * 1.0, b * 1.0
    part = x[0] * 3.0
    ((x + y).sum() + part.sum()).backward()
    assert a.grad.tolist() == [[4.0, 4.0], [1.0, 1.0]]
    assert b.grad.tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_a_view_of_a_gradient_is_not_added_to() -> None:
    """A gradient that shows the memory of another one, as of a reshape, or the user's own, is nobody's to write."""
    given_gradient = t.ones(4)
    x = t.ones(2, 2, requires_grad=True)
    y = x * 1.0
    part = y[0]
    t.autograd.backward([y.reshape(4), part], [given_gradient, t.ones(2)])
    assert given_gradient.tolist() == [1.0] * 4
    assert x.grad.tolist() == [[2.0, 2.0], [1.0, 1.0]]


def test_hooks_see_whole_gradients() -> None:
    """A node that has a hook gives its gradient in full, of the shape of its input."""
    x = t.ones(3, 2, requires_grad=True)
    y = x * 1.0
    parts = [y[i] for i in range(3)]
    seen: list[Any] = []
    parts[0].grad_fn.register_hook(lambda grads, _: seen.append(grads[0].tolist()))
    t.stack(parts).sum().backward()
    assert seen == [[[1.0, 1.0], [0.0, 0.0], [0.0, 0.0]]]
    assert x.grad.tolist() == [[1.0, 1.0]] * 3


def test_anomaly_mode_names_the_part() -> None:
    """Anomaly mode looks at each gradient by itself, and names the op whose sum is NaN where another part has come before."""
    x = t.ones(3, 1, requires_grad=True)
    y = x * 1.0
    part = y.index_select(0, t.tensor([0, 0]))
    sent = t.tensor([[float("inf")], [float("-inf")]])
    with t.autograd.set_detect_anomaly(True), pytest.raises(t.errors.GradientError, match="IndexSelectBackward0"):
        t.autograd.backward([part, y[1]], [sent, t.ones(1)])


def test_a_leaf_that_listens_hears_as_soon_as_all_parts_are_there() -> None:
    """Its hook runs before what is left of the walk."""
    heard: list[str] = []
    w, x = t.ones(2, requires_grad=True), t.ones(3, 2, requires_grad=True)
    older = w * 1.0
    x.register_post_accumulate_grad_hook(lambda leaf: heard.append(f"leaf {leaf.grad.sum().item()}"))
    older.grad_fn.register_hook(lambda *_: heard.append("older"))
    ((x[0] + x[1] + x[2]) * older).sum().backward()
    assert heard == ["leaf 6.0", "older"]


def test_slices_of_one_result_are_made_whole_once() -> None:
    """Of the three parts of a projection, as of attention, the first that comes is made as large as all."""
    x = t.ones(2, 6, requires_grad=True)
    y = x * 1.0
    q, k, v = y[:, :2], y[:, 2:4], y[:, 4:]
    loss = (q * k + v).sum()
    with counted("unindex") as made:
        loss.backward()
    assert made == [1]
    assert x.grad.tolist() == [[1.0] * 6] * 2


def test_a_walk_inside_a_walk_keeps_to_its_own() -> None:
    """A function whose backward differentiates reads of the same tensor adds nothing to the outer walk."""

    class Inner(t.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1.0

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            with t.enable_grad():
                z = y * 1.0
                (found,) = t.autograd.grad((z[0] * 5.0).sum() + (z[1] * 7.0).sum(), z)
            assert found.tolist() == [[5.0, 5.0], [7.0, 7.0]]
            return g

    x = t.ones(2, 2, requires_grad=True)
    y = x * 1.0
    (y[0] + y[1] + Inner.apply(y)[0]).sum().backward()
    assert x.grad.tolist() == [[2.0, 2.0], [1.0, 1.0]]
