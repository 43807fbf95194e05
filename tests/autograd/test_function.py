"""Custom Functions, where PyTorch has no answer to compare with or the words of the error matter."""

from __future__ import annotations

import pytest

import tensorcore as t
from tensorcore.autograd.function import once_differentiable


class Scale(t.autograd.Function):
    """Multiplies its second argument in place by 2, and adds nothing of the first but a gradient of 7."""

    @staticmethod
    def forward(ctx, z, x):
        x.mul_(2.0)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, g):
        return g * 7.0, g * 2.0


def test_a_written_view_may_be_any_argument() -> None:
    """The gradient of the part goes to the argument that was written; the other one gets its own."""
    x, z = t.ones(3, requires_grad=True), t.ones(2, requires_grad=True)
    b = x * 1.0
    Scale.apply(z, b.narrow(0, 0, 2))
    b.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 1.0]
    assert z.grad.tolist() == [7.0, 7.0]


def test_a_second_derivative_of_a_once_differentiable_raises_at_the_walk() -> None:
    """The first derivative works; differentiating it says why it cannot be done."""

    class Once(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @once_differentiable
        def backward(ctx, g):
            return g * ctx.saved_tensors[0] * 2.0

    x, w = t.ones(3, requires_grad=True), t.ones(3, requires_grad=True)
    (g,) = t.autograd.grad((Once.apply(x) * w).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="marked with @once_differentiable"):
        t.autograd.grad(g.sum(), w)


def test_backward_and_vjp_exclude_one_another() -> None:
    """A class that defines both is told so at the backward."""

    class Both(t.autograd.Function):
        forward = staticmethod(lambda ctx, x: x * 2.0)
        backward = staticmethod(lambda ctx, g: g)
        vjp = staticmethod(lambda ctx, g: g)

    with pytest.raises(RuntimeError, match="both 'backward' and 'vjp'"):
        Both.apply(t.ones(2, requires_grad=True)).sum().backward()


def test_jvp_is_kept_and_can_be_called() -> None:
    """``save_for_forward`` and ``jvp`` are there for a forward mode."""

    class Double(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_forward(x)
            return x * 2.0

        @staticmethod
        def jvp(ctx, tangent):
            return tangent * 2.0

    assert Double.jvp(None, t.ones(2)).tolist() == [2.0, 2.0]
    assert Double.apply(t.ones(2)).tolist() == [2.0, 2.0]


def test_keywords_need_setup_context() -> None:
    """``apply`` of a forward with ``ctx`` takes arguments by position only."""

    class Plain(t.autograd.Function):
        forward = staticmethod(lambda ctx, x, k: x * k)

    with pytest.raises(TypeError, match="apply\\(\\) takes no keyword arguments"):
        Plain.apply(t.ones(2), k=2.0)


def test_an_instance_cannot_be_called() -> None:
    """The legacy style is refused with the way to write it now."""
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        instance = Scale()
    with pytest.raises(RuntimeError, match=r"use Scale.apply\(...\)"):
        instance(t.ones(2))


def test_marking_a_new_tensor_dirty_warns() -> None:
    """``mark_dirty`` is for inputs."""

    class Wrong(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2.0
            ctx.mark_dirty(y)
            return y

    with pytest.warns(UserWarning, match="not an input"):
        Wrong.apply(t.ones(2, requires_grad=True))


def test_a_failed_forward_leaves_recording_on() -> None:
    """An error in the forward passes through, and the switch is back."""

    class Fails(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            raise ValueError("inside")

    with pytest.raises(ValueError, match="inside"):
        Fails.apply(t.ones(2, requires_grad=True))
    assert t.is_grad_enabled()


def test_functions_nest() -> None:
    """A Function applied inside another one's backward is differentiated too."""

    class Cube(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * Square.apply(x) * 3.0

    class Square(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * x * 2.0

    x = t.tensor([2.0], requires_grad=True)
    (g,) = t.autograd.grad(Cube.apply(x).sum(), x, create_graph=True)
    (h,) = t.autograd.grad(g.sum(), x, create_graph=True)
    (k,) = t.autograd.grad(h.sum(), x)
    assert [g.item(), h.item(), k.item()] == [12.0, 12.0, 6.0]


def test_walks_nest_deeply() -> None:
    """A backward that runs a backward, fifty deep, arrives."""

    class Again(t.autograd.Function):
        @staticmethod
        def forward(ctx, x, depth):
            ctx.save_for_backward(x)
            ctx.depth = depth
            return x * 2.0

        @staticmethod
        def backward(ctx, g):
            if not ctx.depth:
                return g * 2.0, None
            with t.enable_grad():
                x = ctx.saved_tensors[0].detach().requires_grad_()
                Again.apply(x, ctx.depth - 1).backward(g)
            return x.grad, None

    x = t.ones(1, requires_grad=True)
    Again.apply(x, 50).backward()
    assert x.grad.tolist() == [2.0]


def test_a_product_with_itself_in_place() -> None:
    """Where PyTorch refuses ``y.mul_(y)`` at the backward, the operand from before the write is kept."""
    x = t.tensor([3.0], requires_grad=True)
    y = x * 1.0
    y.mul_(y)
    y.backward()
    assert x.grad.tolist() == [6.0]


def test_an_operand_that_overlaps_the_written_part() -> None:
    """An operand over a part of the memory is refused as in PyTorch; one over all of it is kept as it was before the write."""
    x = t.tensor([2.0, 3.0], requires_grad=True)
    y = x * 1.0
    with pytest.raises(RuntimeError, match="single memory location"):
        y.mul_(y.narrow(0, 0, 1))
    y.mul_(y.view(2))
    y.sum().backward()
    assert y.tolist() == [4.0, 9.0]
    assert x.grad.tolist() == [4.0, 6.0]


def test_an_edge_in_the_place_of_a_tensor() -> None:
    """``grad`` takes what ``get_gradient_edge`` kept after the tensor itself is gone."""
    x = t.ones(2, requires_grad=True)
    h = x * 2.0
    edge = t.autograd.graph.get_gradient_edge(h)
    z = (h * 3.0).sum()
    del h
    assert t.autograd.grad(z, edge)[0].tolist() == [3.0, 3.0]
