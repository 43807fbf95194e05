"""Gradients of tensors that were written part by part."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tensorcore as t

MASKS = {
    "a row": lambda y: y[1],
    "rows": lambda y: y[:2],
    "a column": lambda y: y[:, 0],
    "every second column": lambda y: y[:, ::2],
    "one element": lambda y: y[2, 1],
    "all": lambda y: y[...],
    "the diagonal": lambda y: y.diagonal(),
    "turned over": lambda y: y.t()[1:],
    "a row of rows": lambda y: y[1:][0],
}
# In place, and what it makes of the old values.
WRITES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "doubled": (lambda part: part.mul_(2.0), lambda y: y * 2.0),
    "more": (lambda part: part.add_(1.0), lambda y: y + 1.0),
    "nothing": (lambda part: part.zero_(), lambda y: y * 0.0),
    "one number": (lambda part: part.fill_(3.0), lambda y: y * 0.0 + 3.0),
}
STEPS = st.lists(st.tuples(st.sampled_from(sorted(MASKS)), st.sampled_from(sorted(WRITES))), min_size=1, max_size=5)


def start() -> Any:
    return t.arange(1.0, 10.0).reshape(3, 3).requires_grad_()


def mask(name: str) -> Any:
    """True where the part lies."""
    made = t.zeros(3, 3, dtype=t.bool)
    MASKS[name](made).fill_(True)
    return made


@given(STEPS, st.booleans())
def test_writes_differentiate_as_choices_do(steps: list[tuple[str, str]], again: bool) -> None:
    """A write to a part is a choice between old and new values, in one walk and in a second one."""
    found, expected = start(), start()
    y, z = found * 1.0, expected * 1.0
    for part, write in steps:
        WRITES[write][0](MASKS[part](y))
        z = t.where(mask(part), WRITES[write][1](z), z)
    assert (y == z).all()
    sent = t.arange(9.0).reshape(3, 3)
    for one in (y, z):
        one.backward(sent, retain_graph=again)
        if again:
            one.backward(sent)
    assert (found.grad == expected.grad).all()
    assert sent.tolist() == t.arange(9.0).reshape(3, 3).tolist()


@given(STEPS)
def test_recorded_walks_differentiate_again(steps: list[tuple[str, str]]) -> None:
    """Gradients of gradients go through writes too."""
    found, expected = start(), start()
    y, z = found * found, expected * expected
    for part, write in steps:
        WRITES[write][0](MASKS[part](y))
        z = t.where(mask(part), WRITES[write][1](z), z)
    for one, leaf in ((y, found), (z, expected)):
        (first,) = t.autograd.grad(one.sum(), leaf, create_graph=True)
        first.sum().backward()
    assert (found.grad == expected.grad).all()


def test_values_that_were_written_get_their_gradients() -> None:
    """Each row of a result gets the gradient of its place, and what lay there before gets none."""
    rows = [t.full((2,), float(i), requires_grad=True) for i in range(3)]
    before = t.ones(3, 2, requires_grad=True)
    out = before * 1.0
    for i, row in enumerate(rows):
        out[i] = row
    (out * t.arange(6.0).reshape(3, 2)).sum().backward()
    assert [row.grad.tolist() for row in rows] == [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
    assert before.grad.tolist() == [[0.0, 0.0]] * 3


def test_a_gradient_is_copied_once_for_all_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    """n writes to n parts are not n copies of the whole gradient: the walk's own is written where it lies."""
    made: list[tuple[int, ...]] = []
    plain = t.Tensor.new_empty_strided

    def count(self: Any, size: Any, *given: Any, **options: Any) -> Any:
        made.append(tuple(size))
        return plain(self, size, *given, **options)

    x = t.ones(8, 2, requires_grad=True)
    out = x * 1.0
    for i in range(8):
        out[i] = x[i] * 2.0
    loss = out.sum()
    monkeypatch.setattr(t.Tensor, "new_empty_strided", count)
    loss.backward()
    assert len(made) <= 1  # of a sum the first gradient may be one number that is repeated
    assert x.grad.tolist() == [[2.0, 2.0]] * 8


def test_gradients_that_somebody_holds_stay() -> None:
    """The user's own gradient, a retained one, and one that a walk was asked for are not written by what comes after."""
    x = t.ones(2, 2, requires_grad=True)
    y = x * 1.0
    y[0] = 0.0
    z = y * 1.0  # its gradient goes on as it is to what was written
    z.retain_grad()
    sent = t.ones(2, 2)
    z.backward(sent, retain_graph=True)
    assert sent.tolist() == z.grad.tolist() == [[1.0, 1.0], [1.0, 1.0]]
    asked, leaf = t.autograd.grad(z.sum(), (y, x))
    assert asked.tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert leaf.tolist() == [[0.0, 0.0], [1.0, 1.0]]


def test_the_memory_of_another_gradient_stays() -> None:
    """A gradient that shows the user's own in another shape is copied before it is written."""
    x = t.ones(2, 2, requires_grad=True)
    y = x * 1.0
    y[0] = 0.0
    sent = t.ones(4)
    y.reshape(4).backward(sent)
    assert sent.tolist() == [1.0] * 4
    assert x.grad.tolist() == [[0.0, 0.0], [1.0, 1.0]]


def test_a_gradient_is_written_as_its_tensor_lies_in_memory() -> None:
    """A part that is named by places in memory is found in a gradient that came in another order of them."""
    x = t.ones(2, 3, requires_grad=True)
    y = (x * 1.0).t().clone()  # as it lies: columns first
    assert y.stride() == (1, 3)
    y.as_strided((2,), (1,)).zero_()
    (y * t.ones(3, 2)).backward(t.ones(3, 2))
    assert x.grad.tolist() == [[0.0, 0.0, 1.0], [1.0, 1.0, 1.0]]


def test_hooks_see_the_gradient_that_came() -> None:
    """A hook of the writing node has what arrived there, not what the write made of it."""
    x = t.ones(2, 2, requires_grad=True)
    y = x * 1.0
    y[0] = 0.0
    seen: list[Any] = []
    y.grad_fn.register_hook(lambda grads, outer: seen.append((grads[0].tolist(), outer[0].tolist())))
    (y * t.ones(2, 2)).backward(t.ones(2, 2))
    assert seen == [([[0.0, 0.0], [1.0, 1.0]], [[1.0, 1.0], [1.0, 1.0]])]
