"""Derivatives of functions of functions: what they give, what they leave on the tape, and what they ask of a Function."""

from __future__ import annotations

from typing import Any

import pytest

import tensorcore as tc
from tensorcore.func import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp, vmap


class Cube(tc.autograd.Function):
    """Knows both of its derivatives, and counts the calls of the forward one."""

    calls = 0

    @staticmethod
    def forward(ctx: Any, x: tc.Tensor, factor: float, y: tc.Tensor) -> tc.Tensor:
        ctx.save_for_backward(x, y)
        ctx.save_for_forward(x, y)
        ctx.factor = factor
        return x**3 * factor + y

    @staticmethod
    def backward(ctx: Any, g: tc.Tensor) -> Any:
        x, _ = ctx.saved_tensors
        return 3 * x**2 * ctx.factor * g, None, g

    @staticmethod
    def jvp(ctx: Any, x_t: Any, factor_t: Any, y_t: Any) -> tc.Tensor:
        Cube.calls += 1
        assert factor_t is None
        x, _ = ctx.saved_tensors
        return 3 * x**2 * ctx.factor * x_t + y_t


def test_gradient_has_the_shape_of_the_argument() -> None:
    """The derivative of a sum of cubes is three squares."""
    assert grad(lambda x: (x**3).sum())(tc.tensor([1.0, 2.0])).tolist() == [3.0, 12.0]


def test_value_comes_with_the_gradient() -> None:
    """``grad_and_value`` gives the gradient first, then the value, with aux a pair of it."""
    gradient, (value, aux) = grad_and_value(lambda x: (x * x, "note"), has_aux=True)(tc.tensor(3.0))
    assert (gradient.item(), value.item(), aux) == (6.0, 9.0, "note")


def test_results_are_off_the_tape_where_nothing_outside_asks() -> None:
    """Derivatives of plain tensors require no grad, whatever was recorded on the way."""
    x = tc.tensor([1.0, 2.0])
    found = [
        grad(lambda x: x.prod())(x), *vjp(lambda x: x * 2, x)[:1], *jvp(lambda x: x * 2, (x,), (x,)), jacrev(tc.sin)(x),
        jacfwd(tc.sin)(x), hessian(tc.prod)(x), linearize(tc.sin, x)[0], linearize(tc.sin, x)[1](x), vmap(tc.sin)(x),
    ]  # fmt: skip
    assert not any(one.requires_grad for one in found)


def test_results_are_on_the_tape_of_what_is_outside() -> None:
    """A tensor that requires grad and that the function closes over gets the mixed second derivative."""
    w = tc.tensor(2.0, requires_grad=True)
    grad(lambda x: w * x**2)(tc.tensor(3.0)).backward()
    assert w.grad.item() == 6.0


def test_input_that_requires_grad_is_not_touched() -> None:
    """The derivative is a function of the input on the input's own tape."""
    x = tc.tensor(3.0, requires_grad=True)
    made = grad(lambda x: x**3)(x)
    assert x.grad is None
    made.backward()
    assert x.grad.item() == 18.0


def test_leaves_inside_accumulate_nothing() -> None:
    """A backward walk from outside through a transform leaves no gradient behind on its inputs."""
    x = tc.tensor(3.0)
    w = tc.tensor(2.0, requires_grad=True)
    output, _ = vjp(lambda x: w * x, x)
    output.backward()
    assert x.grad is None
    assert w.grad.item() == 3.0


def test_write_to_an_input_of_jvp_is_seen_by_the_tangent() -> None:
    """An input may be written in place: its tangent changes with it, and so does its memory."""
    x = tc.tensor([1.0, 2.0])
    output, tangent = jvp(lambda x: x.mul_(3), (x,), (tc.tensor([1.0, 1.0]),))
    assert output.tolist() == x.tolist() == [3.0, 6.0]
    assert tangent.tolist() == [3.0, 3.0]


def test_write_to_the_output_of_vjp_is_found_out() -> None:
    """The output shares its memory with what the pullback needs: a write to it raises there."""
    output, pull = vjp(tc.exp, tc.tensor([1.0]))
    output.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        pull(tc.ones(1))


def test_jvp_of_a_function_is_called() -> None:
    """A custom Function's own ``jvp`` gives the tangent, zeros standing for arguments that have none."""
    before = Cube.calls
    x, y = tc.tensor(2.0), tc.tensor(1.0)
    _, tangent = jvp(lambda x: Cube.apply(x, 2.0, y), (x,), (tc.tensor(1.0),))
    assert tangent.item() == 24.0
    assert Cube.calls == before + 1


def test_function_is_differentiated_in_every_composition() -> None:
    """Reverse over forward and forward over reverse go through a custom Function's derivatives."""
    f = lambda x: Cube.apply(x, 2.0, x)  # noqa: E731
    x = tc.tensor(2.0)
    assert grad(grad(f))(x).item() == 24.0
    assert jvp(grad(f), (x,), (tc.tensor(1.0),))[1].item() == 24.0
    assert grad(lambda x: jvp(f, (x,), (tc.tensor(1.0),))[1])(x).item() == 24.0
    assert vmap(grad(f))(tc.tensor([1.0, 2.0])).tolist() == [7.0, 25.0]


def test_jvp_with_too_many_results_is_refused() -> None:
    """As many tangents as results, or an error that says so."""

    class Wrong(tc.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: tc.Tensor) -> tc.Tensor:
            return x * 2

        @staticmethod
        def jvp(ctx: Any, t: tc.Tensor) -> Any:
            return t, t

    with pytest.raises(RuntimeError, match="invalid number of forward gradients"):
        jvp(Wrong.apply, (tc.ones(1),), (tc.ones(1),))


def test_linearized_function_runs_once() -> None:
    """Each direction costs the derivative alone."""
    calls = []
    _, along = linearize(lambda x: calls.append(1) or x**2, tc.tensor(3.0))
    assert [along(tc.tensor(1.0)).item(), along(tc.tensor(2.0)).item(), len(calls)] == [6.0, 12.0, 1]


def test_jacobians_of_nothing_are_empty() -> None:
    """Inputs and outputs without elements give Jacobians without elements."""
    empty = tc.ones(0)
    assert tuple(jacrev(lambda x: x * 2)(empty).shape) == (0, 0)
    assert tuple(jacfwd(lambda x: x.sum())(empty).shape) == (0,)
    assert tuple(jacrev(lambda x: x[:0])(tc.ones(2)).shape) == (0, 2)


def test_a_hessian_is_differentiated() -> None:
    """Gradients of two levels of transforms meet at a weight after both are over, and add up."""
    weight = tc.tensor([0.5, -1.0], requires_grad=True)
    found = hessian(lambda x: (weight * x).tanh().sum() + (weight * x * x * x).sum())(tc.tensor([1.0, 2.0]))
    found.sum().backward()
    x, w = tc.tensor([1.0, 2.0]), weight.detach().requires_grad_()
    t = (w * x).tanh()
    (-2 * t * (1 - t * t) * w * w + 6 * w * x).sum().backward()
    tc.testing.assert_close(weight.grad, w.grad)
