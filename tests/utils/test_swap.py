"""swap_tensors: two tensors change places for everyone who holds them."""

from __future__ import annotations

import weakref

import pytest

import tensorcore as tc
from tensorcore.utils import swap_tensors


def test_contents_change_places() -> None:
    """Values, gradients, attributes and the mark of a Parameter go over to the other object."""
    first, second = tc.nn.Parameter(tc.ones(2)), tc.zeros(3)
    first.grad, second.note = tc.full((2,), 5.0), "here"
    swap_tensors(first, second)
    assert first.tolist() == [0.0, 0.0, 0.0]
    assert first.note == "here"
    assert not first.requires_grad
    assert isinstance(second, tc.nn.Parameter)
    assert second.grad.tolist() == [5.0, 5.0]
    assert not hasattr(second, "note")


def test_those_who_hold_one_see_the_other() -> None:
    """A module and its optimizer go on with what was put in the place of a weight."""
    layer = tc.nn.Linear(2, 1, bias=False)
    optimizer = tc.optim.SGD(layer.parameters(), lr=1.0)
    swap_tensors(layer.weight, tc.nn.Parameter(tc.zeros(1, 2)))
    layer(tc.tensor([[1.0, 2.0]])).sum().backward()
    optimizer.step()
    assert layer.weight.tolist() == [[-1.0, -2.0]]


def test_gradients_follow_the_leaf() -> None:
    """A graph recorded before leads to the object in which its leaf is now."""
    leaf, other = tc.ones(2, requires_grad=True), tc.zeros(2)
    loss = (leaf * 2).sum()
    swap_tensors(leaf, other)
    loss.backward()
    assert leaf.grad is None
    assert other.grad.tolist() == [2.0, 2.0]


def test_weak_references_are_in_the_way() -> None:
    """Who refers weakly to one of them would be left with the wrong object: nothing is exchanged."""
    first, second = tc.ones(2), tc.zeros(2)
    reference = weakref.ref(first)
    with pytest.raises(RuntimeError, match="Cannot swap t1 because it has weakref"):
        swap_tensors(first, second)
    assert reference().tolist() == [1.0, 1.0]
    with pytest.raises(TypeError, match="expected t2 to be a Tensor, got 3"):
        swap_tensors(second, 3)
