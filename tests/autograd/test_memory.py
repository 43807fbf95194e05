"""What the tape keeps alive, and for how long."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

import tensorcore as t


@pytest.fixture(autouse=True)
def no_collector() -> Iterator[None]:
    """Everything must go by counting references alone."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def test_a_chain_of_a_hundred_thousand_calls() -> None:
    """Differentiation and release need no recursion."""
    x = y = t.ones(1, requires_grad=True)
    for _ in range(100_000):
        y = y + 1.0
    y.backward()
    assert x.grad.tolist() == [1.0]
    last = weakref.ref(y.grad_fn)
    del y
    assert last() is None


def test_a_training_loop_leaves_nothing_behind() -> None:
    """With the collector off, the number of objects is the same after every step."""
    w = t.ones(3, requires_grad=True)

    class Square(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x * x
            ctx.save_for_backward(x, y)
            return y

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0] * 2.0

    def step() -> None:
        x = t.ones(3)
        h = (x * w).exp() * 1.0
        h.narrow(0, 0, 2).mul_(w.narrow(0, 1, 2))
        h = Square.apply(h)
        h.retain_grad()
        (g,) = t.autograd.grad(h.sum(), w, create_graph=True)
        (h.sum() + (g * g).sum()).backward()
        with t.no_grad():
            w.sub_(w.grad * 0.001)
        w.grad = None

    step()
    step()
    before = len(gc.get_objects())
    for _ in range(20):
        step()
    assert len(gc.get_objects()) - before < 5


def test_results_go_with_their_last_reference() -> None:
    """A result that saved itself is freed at once: the node keeps its memory, not the tensor."""
    x = t.ones(3, requires_grad=True)
    y = x.exp()
    gone = weakref.ref(y)
    del y
    assert gone() is None


def test_backward_frees_what_was_saved() -> None:
    """After the walk an intermediate tensor lives only as long as the user holds it."""
    x = t.ones(3, requires_grad=True)
    h = x * 2.0
    gone = weakref.ref(h)
    z = (h * h).sum()
    del h
    assert gone() is not None
    z.backward()
    assert gone() is None


def test_retain_graph_keeps_what_was_saved() -> None:
    """With ``retain_graph`` it stays, as long as the graph does."""
    x = t.ones(3, requires_grad=True)
    h = x * 2.0
    gone = weakref.ref(h)
    z = (h * h).sum()
    del h
    z.backward(retain_graph=True)
    assert gone() is not None
    del z
    assert gone() is None


def test_sums_keep_nothing() -> None:
    """``add`` needs neither operand for its backward."""
    x = t.ones(3, requires_grad=True)
    h = x * 2.0
    gone = weakref.ref(h)
    z = h + x
    del h
    assert gone() is None
    assert z.requires_grad


def test_a_custom_function_that_saves_its_result_makes_no_cycle() -> None:
    """``save_for_backward`` of an output is freed with the output."""

    class Exp(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    y = Exp.apply(t.ones(3, requires_grad=True))
    gone, node = weakref.ref(y), weakref.ref(y.grad_fn)
    del y
    assert gone() is None
    assert node() is None


def test_saved_tensor_hooks_make_no_cycle() -> None:
    """A pack hook that returns what it is given keeps a result no longer than without."""
    with t.autograd.graph.saved_tensors_hooks(lambda v: v, lambda v: v):
        y = t.ones(3, requires_grad=True).exp()
    gone = weakref.ref(y.grad_fn)
    del y
    assert gone() is None


def test_a_view_does_not_outlive_its_users() -> None:
    """Many views of one base do not pile up in the base."""
    y = t.ones(3, requires_grad=True) * 1.0
    for _ in range(1000):
        y.narrow(0, 0, 2)
    assert len(y.version.views or ()) < 20


def test_a_checkpoint_forgets_what_it_computes_again() -> None:
    """Of a checkpointed function only the arguments stay alive until the backward."""
    from tensorcore.utils.checkpoint import checkpoint

    inner = []

    def function(x: t.Tensor) -> t.Tensor:
        h = x.exp()
        inner.append(weakref.ref(h))
        return (h * h).exp()

    x = t.ones(3, requires_grad=True)
    y = checkpoint(function, x, use_reentrant=False)
    assert inner[0]() is None
    y.sum().backward()
    assert inner[1]() is None


def test_the_walk_holds_no_gradient_that_it_no_longer_needs() -> None:
    """On a chain only two gradients live at a time."""
    x = t.ones(3, requires_grad=True)
    living: list[weakref.ref] = []
    most = [0]

    def hook(g: t.Tensor) -> None:
        living.append(weakref.ref(g))
        most[0] = max(most[0], sum(one() is not None for one in living))

    y = x
    for _ in range(10):
        y = y * 2.0
        y.register_hook(hook)
    y.sum().backward()
    assert most[0] <= 2


def test_a_leaf_does_not_keep_its_tensor() -> None:
    """The tape holds the gradient of a leaf, and not the leaf's values where no formula names them."""
    x = t.ones(3, requires_grad=True)
    y = x + 1.0
    gone = weakref.ref(x)
    del x
    assert gone() is None
    y.sum().backward()
