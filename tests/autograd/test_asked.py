"""Walks to a few targets: which formulas run, which gradients a node makes, and what its hooks see."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import tensorcore as tc
from tensorcore import nn


@pytest.fixture
def traced() -> Iterator[Any]:
    """A device that notes its kernel calls."""
    device = tc.device("trace:cpu")
    device.calls.clear()
    yield device
    device.calls.clear()


def kernels(device: Any, call: Any) -> list[str]:
    """The kernels that a call runs."""
    device.calls.clear()
    call()
    return [one.kernel for one in device.calls]


def test_a_layer_makes_the_gradient_that_leads_to_a_target(traced: Any) -> None:
    """One product for the gradient of the input, one for that of the weight, a sum for that of the bias."""
    x = tc.ones(2, 3, device=traced, requires_grad=True)
    layer = nn.Linear(3, 4, device=traced)
    y = layer(x)
    g = tc.ones(2, 4, device=traced)
    assert kernels(traced, lambda: tc.autograd.grad(y, x, g, retain_graph=True)) == ["matmul"]
    assert kernels(traced, lambda: tc.autograd.grad(y, layer.weight, g, retain_graph=True)) == ["matmul_tn"]
    assert kernels(traced, lambda: tc.autograd.grad(y, layer.bias, g, retain_graph=True)) == ["sum"]
    assert kernels(traced, lambda: y.backward(g, inputs=[x], retain_graph=True))[:1] == ["matmul"]


def test_fused_kernels_are_told_what_is_needed(traced: Any) -> None:
    """The mask of a fused gradient names the targets' inputs alone."""
    x = tc.ones(2, 3, device=traced, requires_grad=True)
    layer = nn.LayerNorm(3, device=traced)
    y = layer(x)
    kernels(traced, lambda: tc.autograd.grad(y, x, tc.ones(2, 3, device=traced), retain_graph=True))
    (call,) = [one for one in traced.calls if one.kernel == "standardize_backward"]
    assert call.options["needs"] == (True, False, False)


@pytest.mark.parametrize("op, both, one", [
    (lambda x, y: x * y, ["mul", "mul"], ["mul"]),
    (lambda x, y: x / y, None, ["div"]),
    (lambda x, y: x @ y, None, ["matmul_nt"]),
])  # fmt: skip
def test_a_formula_of_an_input_that_nobody_asked_for_does_not_run(traced: Any, op: Any, both: Any, one: Any) -> None:
    """Of two inputs on the tape, the one that leads to the target has its formula run."""
    x, y = (tc.full((2, 2), 2.0, device=traced, requires_grad=True) for _ in range(2))
    made, g = op(x, y), tc.ones(2, 2, device=traced)
    assert kernels(traced, lambda: tc.autograd.grad(made, x, g, retain_graph=True)) == one
    found = kernels(traced, lambda: tc.autograd.grad(made, (x, y), g, retain_graph=True))
    assert found == both if both else len(found) > len(one)


def test_a_gradient_penalty_leaves_the_weights_gradients_out(traced: Any) -> None:
    """The first walk of a penalty runs fewer kernels than one to all leaves, and the second gives the same gradients."""

    def penalty(targets: str) -> tuple[int, list[float]]:
        tc.manual_seed(5)
        model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.LayerNorm(4), nn.Linear(4, 1)).to(traced)
        x = tc.rand(2, 3, device=traced, requires_grad=True)
        made = model(x).sum()
        inputs = [x] if targets == "x" else [x, *model.parameters()]
        traced.calls.clear()
        g = tc.autograd.grad(made, inputs, create_graph=True)[0]
        count = len(traced.calls)
        (g * g).sum().backward()
        return count, [one.grad.square().sum().item() for one in model.parameters() if one.grad is not None]

    (few, mine), (many, theirs) = penalty("x"), penalty("all")
    assert few < many
    assert mine == pytest.approx(theirs)


def test_second_derivatives_reach_what_the_first_walk_left_out() -> None:
    """A gradient that was asked for alone still depends on the inputs whose gradients were not."""
    x, y = tc.tensor(3.0, requires_grad=True), tc.tensor(2.0, requires_grad=True)
    (g,) = tc.autograd.grad(x * y * y, x, create_graph=True)
    assert [one.item() for one in tc.autograd.grad(g, (y,))] == [4.0]
    z = (x * y).tanh()  # its slope is of the result, which is a node's own
    (g,) = tc.autograd.grad(z, x, create_graph=True)
    (mixed,) = tc.autograd.grad(g, y)
    expected = (1 - z * z) * (1 - 2 * z * x * y)
    assert mixed.item() == pytest.approx(expected.item())


def test_a_write_to_a_part_makes_what_is_asked_for() -> None:
    """Through a view that was written, to the base alone and to the written value alone."""
    base, value = tc.ones(4, requires_grad=True), tc.full((2,), 3.0, requires_grad=True)
    whole = base * 2
    whole[:2].mul_(value)
    assert tc.autograd.grad(whole.sum(), base, retain_graph=True)[0].tolist() == [6.0, 6.0, 2.0, 2.0]
    assert tc.autograd.grad(whole.sum(), value, retain_graph=True)[0].tolist() == [2.0, 2.0]


def test_results_of_one_node(torch: Any) -> None:
    """A target behind one of several results, as in PyTorch."""
    for lib in (tc, torch):
        x, y = lib.arange(6.0).requires_grad_(), lib.ones(3, requires_grad=True)
        first, second = (x * 1).chunk(2)
        made = (first * y + second).sum()
        assert lib.autograd.grad(made, first, retain_graph=True)[0].tolist() == [1.0, 1.0, 1.0]
        assert lib.autograd.grad(made, y, retain_graph=True)[0].tolist() == [0.0, 1.0, 2.0]
        assert lib.autograd.grad(made, x)[0].tolist() == [1.0] * 6


def test_hooks_see_none_for_what_is_not_asked_for(torch: Any) -> None:
    """A node's hook gets None in the place of a gradient that leads to no target, as in PyTorch."""
    for lib in (tc, torch):
        x, y = lib.ones(2, requires_grad=True), lib.ones(2, requires_grad=True)
        seen: list[list[bool]] = []
        made = x * y
        made.grad_fn.register_hook(lambda grads, _, seen=seen: seen.append([one is None for one in grads]))
        lib.autograd.grad(made.sum(), y, retain_graph=True)
        made.sum().backward()
        assert seen == [[True, False], [False, False]]


def test_a_custom_function_sees_what_its_forward_saw(torch: Any) -> None:
    """``needs_input_grad`` is of the forward call, whichever gradients a walk asks for; so it is in PyTorch."""
    for lib in (tc, torch):
        seen: list[Any] = []

        class Product(lib.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any, y: Any, by: float) -> Any:
                ctx.save_for_backward(x, y)
                return x * y * by

            @staticmethod
            def backward(ctx: Any, g: Any, seen: list[Any] = seen) -> Any:
                seen.append(ctx.needs_input_grad)
                x, y = ctx.saved_tensors
                return g * y, g * x, None

        x, y = lib.ones(2, requires_grad=True), lib.full((2,), 3.0, requires_grad=True)
        made = Product.apply(x, y, 1.0).sum()
        assert lib.autograd.grad(made, x, retain_graph=True)[0].tolist() == [3.0, 3.0]
        made.backward(inputs=[y], retain_graph=True)
        assert (x.grad, y.grad.tolist()) == (None, [1.0, 1.0])
        assert seen == [(True, True, False)] * 2


def test_anomalies_of_gradients_nobody_asked_for_are_none() -> None:
    """A walk finds no NaN in a gradient that it does not make."""
    x, y = tc.zeros(1, requires_grad=True), tc.ones(1, requires_grad=True)
    with pytest.warns(UserWarning, match="Anomaly Detection"):
        watch = tc.autograd.detect_anomaly()
    with watch:
        made = (x.sqrt() * y * 0).sum()
        assert tc.autograd.grad(made, y, retain_graph=True)[0].tolist() == [0.0]
        with pytest.raises(RuntimeError, match="nan values"):
            tc.autograd.grad(made, x)
