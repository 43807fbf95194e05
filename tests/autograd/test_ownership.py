"""Who owns a gradient's memory: no two gradients share it, and nobody else's tensor is written."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tensorcore as t

STEPS = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "same": lambda a, b: a,
    "view": lambda a, b: a.reshape(4).reshape(2, 2),
    "transposed": lambda a, b: a.t(),
    "scaled": lambda a, b: a * 2.0,
    "expanded": lambda a, b: a.sum(0, True).expand(2, 2),
    "detached": lambda a, b: a + b.detach(),
    "row": lambda a, b: a[0] + b,
    "rows": lambda a, b: a[:1] * b,
    "last": lambda a, b: a[..., 1:] + b,
    "named": lambda a, b: a[t.tensor([1, 1])] + b,
    "selected": lambda a, b: a.index_select(1, t.tensor([1, 0])) - b,
    "gathered": lambda a, b: a.gather(0, t.tensor([[1, 0], [1, 1]])) * b,
}


def memory(tensor: t.Tensor) -> tuple[int, int]:
    """The first and the last byte of the memory under a tensor."""
    return np.lib.array_utils.byte_bounds(tensor.detach().numpy())


def apart(tensors: list[t.Tensor]) -> bool:
    """Whether no two of them share a byte."""
    ends = sorted(memory(one) for one in tensors)
    return all(a[1] <= b[0] for a, b in itertools.pairwise(ends))


@given(
    st.lists(st.tuples(st.sampled_from(sorted(STEPS)), st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=5),
    st.booleans(),
    st.booleans(),
)
def test_no_gradient_shares_memory(steps: list[tuple[str, int, int]], again: bool, retained: bool) -> None:
    """Each gradient, retained ones too, is memory of its own, and the user's stays as it was."""
    leaves = [t.ones(2, 2, requires_grad=True) for _ in range(3)]
    pool = list(leaves)
    for name, i, j in steps:
        made = STEPS[name](pool[i % len(pool)], pool[j % len(pool)])
        if retained and not made.is_leaf:
            made.retain_grad()
        pool.append(made)
    given_gradient = t.full((2, 2), 3.0)
    root = pool[-1]
    root.backward(given_gradient, retain_graph=again)
    if again:
        root.backward(given_gradient)
    grads = [one.grad for one in {id(one): one for one in pool}.values() if one.is_leaf or one.retains_grad]
    grads = [one for one in grads if one is not None]
    assert apart([given_gradient, *grads, *leaves])
    assert given_gradient.tolist() == [[3.0, 3.0], [3.0, 3.0]]
    assert given_gradient._version == 0


def test_the_terms_of_a_sum_get_gradients_of_their_own() -> None:
    """``z = x + y`` hands one gradient to both; writing to one of the two must not change the other."""
    x, y = t.ones(3, requires_grad=True), t.ones(3, requires_grad=True)
    (x + y).sum().backward()
    x.grad.mul_(5.0)
    assert x.grad.tolist() == [5.0, 5.0, 5.0]
    assert y.grad.tolist() == [1.0, 1.0, 1.0]


def test_grad_returns_memory_of_its_own_for_each_input() -> None:
    """The results of ``grad`` can be written one by one, and are not the gradient that went in."""
    x, y = t.ones(3, requires_grad=True), t.ones(3, requires_grad=True)
    g = t.ones(3)
    results = t.autograd.grad(x + y, [x, y, x], g)
    assert apart([g, *results])


def test_a_kept_gradient_is_not_written() -> None:
    """A hook that keeps the gradient it was given sees it unchanged after later walks."""
    x = t.ones(3, requires_grad=True)
    kept = []
    x.register_hook(kept.append)
    for _ in range(3):
        (x * 2.0).sum().backward()
    assert [one.tolist() for one in kept] == [[2.0, 2.0, 2.0]] * 3
    assert x.grad.tolist() == [6.0, 6.0, 6.0]


def test_a_gradient_over_memory_of_a_function_is_copied() -> None:
    """A backward that returns a tensor it keeps does not find it changed by the next walk."""
    kept = t.full((3,), 2.0)

    class Constant(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1.0

        @staticmethod
        def backward(ctx, g):
            return kept.data

    x = t.ones(3, requires_grad=True)
    for _ in range(2):
        Constant.apply(x).sum().backward()
    assert x.grad.tolist() == [4.0, 4.0, 4.0]
    assert kept.tolist() == [2.0, 2.0, 2.0]


def test_gradients_accumulate_in_place() -> None:
    """A second walk adds into the memory of the first gradient, as optimizers that hold on to it expect."""
    x = t.ones(3, requires_grad=True)
    (x * 2.0).sum().backward()
    held = x.grad
    (x * 2.0).sum().backward()
    assert x.grad is held
    assert held.tolist() == [4.0, 4.0, 4.0]
    assert held._version == 1


def test_a_first_gradient_that_only_the_walk_holds_is_not_copied() -> None:
    """The product's gradient becomes ``x.grad`` itself; a copy would cost a pass over the memory."""
    x = t.ones(3, requires_grad=True)
    seen = []
    real = t.Tensor.clone
    t.Tensor.clone = lambda self, **options: seen.append(1) or real(self, **options)
    try:
        (x * t.full((3,), 2.0)).exp().backward(t.ones(3))
    finally:
        t.Tensor.clone = real
    assert seen == []


def test_an_expanded_gradient_of_the_user_is_replaced() -> None:
    """A gradient without memory for each element cannot be written; the sum takes its place."""
    x = t.ones(3, requires_grad=True)
    x.grad = t.ones(1).expand(3)
    (x * 2.0).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0, 3.0]


def test_a_transposed_gradient_of_the_user_is_written_in_place() -> None:
    """An assigned gradient keeps its strides and takes the sum."""
    x = t.ones(2, 3, requires_grad=True)
    mine = t.zeros(3, 2)
    x.grad = mine.t()
    (x * 2.0).sum().backward()
    assert mine.tolist() == [[2.0, 2.0], [2.0, 2.0], [2.0, 2.0]]


@pytest.mark.parametrize("where", ["cpu", "lazy"])
@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("turned", [False, True])
def test_a_gradient_lies_as_its_leaf_does(turned: bool, again: bool, where: str) -> None:
    """Whatever order a gradient arrives in, the leaf's has the leaf's own strides."""
    x = t.ones(4, 2, device=where)
    x = (x.t() if turned else x).detach().requires_grad_(True)
    sent = t.arange(8.0, device=where).reshape(x.shape[::-1]).t()
    (x * 2.0).backward(sent if not turned else sent.contiguous())
    if again:
        (x * 2.0).backward(sent)
    assert x.grad.stride() == x.stride()
    assert x.grad.tolist() == (sent * (4.0 if again else 2.0)).tolist()


@pytest.mark.parametrize("order", ["xy", "yx"])
def test_a_leaf_and_a_hooked_leaf_of_one_gradient(order: str) -> None:
    """A hook that scales one leaf's gradient does not scale the other's."""
    x, y = t.ones(3, requires_grad=True), t.ones(3, requires_grad=True)
    x.register_hook(lambda g: g * 10.0)
    ((x + y) if order == "xy" else (y + x)).sum().backward()
    assert x.grad.tolist() == [10.0, 10.0, 10.0]
    assert y.grad.tolist() == [1.0, 1.0, 1.0]
