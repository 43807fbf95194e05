"""Dual tensors: tangents follow what is computed from them, on one level, and end with it."""

from __future__ import annotations

import pytest

import tensorcore as tc
from tensorcore.autograd import forward_ad
from tensorcore.autograd.forward_ad import dual_level, make_dual, unpack_dual


def test_tangent_follows_the_computation() -> None:
    """The derivative of a square is twice the number times the tangent."""
    with dual_level():
        made = unpack_dual(make_dual(tc.tensor([1.0, 2.0]), tc.tensor([1.0, 10.0])).square())
    assert made.primal.tolist() == [1.0, 4.0]
    assert made.tangent.tolist() == [2.0, 40.0]
    assert not made.primal.requires_grad


def test_tensor_without_a_tangent_has_none() -> None:
    """A constant, a detached tensor, and any tensor outside of a level."""
    x = tc.ones(2)
    with dual_level():
        dual = make_dual(x, x)
        assert unpack_dual(x).tangent is None
        assert unpack_dual(dual.detach()).tangent is None
    assert unpack_dual(dual).tangent is None


def test_tangent_can_be_asked_for_again_and_further_on() -> None:
    """Each tensor keeps its tangent through later computations and writes."""
    with dual_level():
        dual = make_dual(tc.tensor(3.0), tc.tensor(1.0))
        y = dual * dual
        first = unpack_dual(y).tangent.item()
        z = y.clone().mul_(dual)
        assert (first, unpack_dual(y).tangent.item(), unpack_dual(z).tangent.item()) == (6.0, 6.0, 27.0)


def test_dual_tensor_shares_its_memory() -> None:
    """A write to the dual tensor is a write to the primal, and its tangent follows."""
    x = tc.tensor([1.0, 2.0])
    with dual_level():
        dual = make_dual(x, tc.ones(2))
        dual.mul_(3)
        assert unpack_dual(dual).tangent.tolist() == [3.0, 3.0]
    assert x.tolist() == [3.0, 6.0]


def test_primal_keeps_its_history() -> None:
    """Reverse mode goes through dual tensors, through their primals and through tangents."""
    x = tc.tensor(3.0, requires_grad=True)
    with dual_level():
        made = unpack_dual(make_dual(x, tc.tensor(1.0)) ** 3)
    assert tc.autograd.grad(made.primal, x, retain_graph=True)[0].item() == 27.0
    assert tc.autograd.grad(made.tangent, x)[0].item() == 18.0


def test_level_works_inside_no_grad() -> None:
    """A level that is entered where no gradients are wanted has tangents all the same, and restores the switch."""
    with tc.no_grad():
        with dual_level():
            assert unpack_dual(make_dual(tc.tensor(2.0), tc.tensor(1.0)) * 3).tangent.item() == 3.0
        assert not tc.is_grad_enabled()


def test_levels_do_not_nest() -> None:
    """A second level raises, as does leaving one that was not entered."""
    with dual_level(), pytest.raises(RuntimeError, match="Nested forward mode"):
        forward_ad.enter_dual_level()
    with pytest.raises(RuntimeError, match="exit a forward AD level"):
        forward_ad.exit_dual_level()


def test_what_cannot_be_dual_is_refused() -> None:
    """Integers, tangents of another shape, tensors that are dual already, and a missing level."""
    x = tc.ones(2)
    with pytest.raises(RuntimeError, match="no level exists"):
        make_dual(x, x)
    with dual_level():
        dual = make_dual(x, x)
        with pytest.raises(RuntimeError, match="different size"):
            make_dual(x, tc.ones(3))
        with pytest.raises(ValueError, match="floating point or complex"):
            make_dual(tc.tensor([1, 2]), x)
        with pytest.raises(RuntimeError, match="already has a forward gradient"):
            make_dual(dual * 2, x)
        with pytest.raises(RuntimeError, match="itself has a forward gradient"):
            make_dual(x, dual)
        with pytest.raises(TypeError, match="expected a Tensor"):
            unpack_dual(3)


def test_tangents_are_dropped_with_their_tensors() -> None:
    """A level holds no tensor that the program has let go of."""
    with dual_level():
        make_dual(tc.ones(2), tc.ones(2)).sin()
        held = forward_ad._current.level
        assert len(held.ends) == len(held.known) == 0
