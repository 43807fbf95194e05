"""The gradient a leaf has from earlier walks: the last formula of a walk adds to it in place, where nobody can notice."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

import tensorcore as t

from .test_arrived import READS, counted

# What makes a part as large as the whole, of each read.
WHOLE = {
    "a row": "unindex", "every second column": "unindex", "rows by number": "index_put", "columns selected": "index_add",
    "gathered": "scatter_reduce", "rows of a table": "embedding_gradient",
}  # fmt: skip


def twice(read: Callable[[Any], Any], x: Any) -> Any:
    """The leaf's gradient after two walks, and its memory after the first."""
    read(x).sum().backward()
    first = x.grad.data_ptr()
    read(x).sum().backward()
    return first


@pytest.mark.parametrize("read", WHOLE)
def test_a_second_walk_adds_its_part_alone(read: str) -> None:
    """No gradient as large as the leaf is made, and none is added to another."""
    x = t.ones(3, 3, requires_grad=True)
    with counted(WHOLE[read]) as made, counted("add") as added:
        first = twice(READS[read], x)
    assert made[0] == (2 if WHOLE[read] in ("index_put", "index_add", "scatter_reduce") else 1)
    assert added[0] == (WHOLE[read] == "unindex")  # to the part
    assert x.grad.data_ptr() == first
    y = t.ones(3, 3, requires_grad=True)
    READS[read](y).sum().backward()
    assert (x.grad == 2.0 * y.grad).all()


def test_a_write_to_the_gradient_is_counted() -> None:
    """What was computed of a gradient before it was added to is refused in a walk, as after any write."""
    x, w = t.ones(3, requires_grad=True), t.ones(3, requires_grad=True)
    x[0].backward()
    product = (x.grad * w).sum()
    x[1].backward()
    assert x.grad.tolist() == [1.0, 1.0, 0.0]
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.backward()


def test_more_than_one_read_is_added_up_first() -> None:
    """Where several nodes send to a leaf, it gets their sum, as in PyTorch: 2**24 + 1 + 1 is that + 2 in single precision."""
    x = t.ones(2, requires_grad=True)
    (x[:1] * 2.0**24).sum().backward()
    (x[:1] * 1.0 + x[:1] * 1.0).sum().backward()
    assert x.grad.tolist() == [2.0**24 + 2, 0.0]


@pytest.mark.parametrize("dtype", [t.float16, t.bfloat16], ids=str)
def test_half_types_are_rounded_once(dtype: Any) -> None:
    """Of a row that is asked for three times the gradients are added up before they meet a large one."""
    table = t.full((2, 1), 1.0, dtype=dtype, requires_grad=True)
    large = 2048.0 if dtype is t.float16 else 256.0
    (t.nn.functional.embedding(t.tensor([0]), table) * large).sum().backward()
    t.nn.functional.embedding(t.tensor([0, 0, 0, 0]), table).sum().backward()
    assert table.grad.tolist() == [[large + 4], [0.0]]


def test_hooks_of_the_leaf_see_what_is_added() -> None:
    """A tensor hook gets the part in zeros, and what it gives is what is added; a hook after that is called each time."""
    x, seen = t.ones(3, requires_grad=True), []
    x.register_hook(lambda g: seen.append(g.tolist()) or g * 10.0)
    x.register_post_accumulate_grad_hook(lambda leaf: seen.append(leaf.grad.tolist()))
    for i in range(2):
        x[i].backward()
    assert seen == [[1.0, 0.0, 0.0], [10.0, 0.0, 0.0], [0.0, 1.0, 0.0], [10.0, 10.0, 0.0]]


def test_the_gradient_itself_may_be_sent() -> None:
    """A leaf's gradient, or a part of it, that is sent back to the leaf is read whole before anything is added."""
    for part in (lambda g: g, lambda g: g[:2], lambda g: g.flip(0)[:2]):
        x = t.ones(3, requires_grad=True)
        (x * t.tensor([1.0, 2.0, 3.0])).sum().backward()
        sent = part(x.grad)
        at = t.arange(len(sent)).flip(0)
        expected = x.grad.clone().index_add(0, at, sent.clone())
        x[at].backward(sent)
        assert x.grad.tolist() == expected.tolist()


def test_an_expanded_gradient_is_replaced() -> None:
    """One number that the user assigned for all elements is not written."""
    x, one = t.ones(3, requires_grad=True), t.ones(1)
    x.grad = one.expand(3)
    x[0].backward()
    assert (x.grad.tolist(), one.tolist()) == ([2.0, 1.0, 1.0], [1.0])


def test_asked_for_gradients_leave_the_leaf_alone() -> None:
    """A walk to inputs returns what arrives, and adds nothing to a gradient that is there."""
    x = t.ones(3, requires_grad=True)
    x[0].backward()
    (found,) = t.autograd.grad(x[1], x)
    assert (found.tolist(), x.grad.tolist()) == ([0.0, 1.0, 0.0], [1.0, 0.0, 0.0])


def test_an_operand_read_as_the_leaf_gets_both_gradients() -> None:
    """A leaf that a node leads to by two edges, or by another node, gets each in full."""
    x = t.tensor([1.0, 2.0, 3.0], requires_grad=True)
    for _ in range(2):
        (x[:2] * x[1:]).sum().backward()
    y = t.tensor([1.0, 2.0, 3.0], requires_grad=True)
    (y[:2] * y[1:]).sum().backward()
    assert x.grad.tolist() == (2.0 * y.grad).tolist()


@pytest.mark.parametrize("width", [5, 33, 300])
def test_a_norm_adds_its_gradient(width: int) -> None:
    """Three walks over one input give three times the gradient, in the memory of the first, and no sum is made of two arrays."""
    t.manual_seed(0)
    x, w, b = (t.randn(*shape).requires_grad_() for shape in ((40, width), (width,), (width,)))
    sent = t.randn(40, width)
    t.nn.functional.layer_norm(x, (width,), w, b).backward(sent)
    first, place = x.grad.clone(), x.grad.data_ptr()
    with counted("add") as added:
        for _ in range(2):
            t.nn.functional.layer_norm(x, (width,), w, b).backward(sent)
    assert (x.grad == first + first + first).all()
    assert (x.grad.data_ptr(), x.grad._version) == (place, 2)
    assert added[0] == (4 if x.device.adds_into else 6)  # those of weight and bias


def test_a_norm_adds_to_what_came_past_it() -> None:
    """Of a block around which its input is led, the norm adds to the gradient that has come by the other way."""
    t.manual_seed(0)
    grads = []
    for apart in (False, True):
        t.manual_seed(1)
        x, w, b = (t.randn(*shape).requires_grad_() for shape in ((6, 8), (8,), (8,)))
        y = x * 2.0
        by, through = (y * 1.0, y * 1.0) if apart else (y, y)
        (by * 3.0 + t.nn.functional.layer_norm(through, (8,), w, b) ** 2).sum().backward()
        grads.append(x.grad)
    assert t.allclose(grads[0], grads[1], rtol=1e-6)


def test_recorded_norms_make_a_gradient_of_their_own() -> None:
    """Under create_graph the sum is part of the graph: its derivative is that of both walks."""
    t.manual_seed(0)
    x, w = t.randn(4, 6, dtype=t.float64).requires_grad_(), t.randn(6, dtype=t.float64).requires_grad_()
    (t.nn.functional.layer_norm(x, (6,), w) ** 2).sum().backward(create_graph=True)
    once = t.autograd.grad((x.grad * x).sum(), x, retain_graph=True)[0]
    (t.nn.functional.layer_norm(x, (6,), w) ** 2).sum().backward(create_graph=True)
    assert t.allclose(t.autograd.grad((x.grad * x).sum(), x)[0], 2.0 * once)


def test_two_threads_lose_no_part() -> None:
    """Walks of two threads to one leaf, whose kernels let the other thread run, add all that they send."""
    x = t.zeros(300_000, requires_grad=True)
    at = t.arange(200_000)
    x.grad = t.zeros(300_000)

    def walks() -> None:
        for _ in range(20):
            x[:200_000].sum().backward()
            x.index_select(0, at).sum().backward()

    threads = [threading.Thread(target=walks) for _ in range(2)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert (x.grad[:200_000] == 80.0).all()
    assert (x.grad[200_000:] == 0.0).all()
