"""Calls that are written out for the usual case answer as the rules do where something is unusual."""

from __future__ import annotations

from typing import Any

import pytest

import tensorcore as tc
from tensorcore.nn import functional as F

ACTIVATIONS = ["leaky_relu", "elu", "selu", "celu", "gelu", "silu", "mish", "softplus", "logsigmoid"]


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_an_activation_is_recorded_as_before(name: str, torch: Any) -> None:
    """The node's name, what it saved, first and second derivative, and no node without a gradient to come."""
    for dtype in ("float32", "float64"):
        found = []
        for lib in (tc, torch):
            x = lib.linspace(-3, 3, 8, dtype=getattr(lib, dtype)).requires_grad_()
            y = getattr(lib.nn.functional, name)(x)
            (first,) = lib.autograd.grad(y.sum(), x, create_graph=True)
            (second,) = lib.autograd.grad((first * x).sum(), x)
            (plain,) = lib.autograd.grad(getattr(lib.nn.functional, name)(x).sum(), x)
            found.append([y.detach().numpy(), first.detach().numpy(), second.numpy(), plain.numpy()])
            assert getattr(lib.nn.functional, name)(x.detach()).grad_fn is None
            with lib.no_grad():
                assert not getattr(lib.nn.functional, name)(x).requires_grad
        names = [
            getattr(lib.nn.functional, name)(lib.ones(1, requires_grad=True)).grad_fn.name() for lib in (tc, torch)
        ]
        assert names[0] == names[1]
        for mine, theirs in zip(*found, strict=True):
            assert mine == pytest.approx(theirs, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("call, error", [
    (lambda x: F.gelu(x, approximate="erf"), RuntimeError),
    (lambda x: F.gelu(x, approximate=1), TypeError),
    (lambda x: F.celu(x, 0.0), RuntimeError),
    (lambda x: F.softmax(x, dim=2), IndexError),
    (lambda x: F.softmax(x, dim=-3), IndexError),
    (lambda x: F.layer_norm(x, (2,)), RuntimeError),
    (lambda x: F.layer_norm(x, (3,), tc.ones(2)), RuntimeError),
    (lambda x: F.layer_norm(x, (3,), tc.ones(3, dtype=tc.float64)), RuntimeError),
    (lambda x: F.cross_entropy(x, tc.tensor([0, 3])), IndexError),
    (lambda x: F.cross_entropy(x, tc.tensor([0, 1]), reduction="most"), ValueError),
    (lambda x: F.cross_entropy(x, tc.tensor([0, 1, 2])), ValueError),
    (lambda x: x.as_strided((3, 3), (3, 1)), RuntimeError),
    (lambda x: x.as_strided((2, 2), (-1, 1)), RuntimeError),
    (lambda x: x.as_strided((2, 2), (3, 1), 3), RuntimeError),
    (lambda x: x.as_strided((2,), (1, 1)), RuntimeError),
])  # fmt: skip
def test_what_is_wrong_is_said(call: Any, error: type[Exception]) -> None:
    """Options, dims, sizes, labels and strides that the rules refuse, on the tape and off it."""
    for x in (tc.ones(2, 3), tc.ones(2, 3, requires_grad=True)):
        with pytest.raises(error):
            call(x)


@pytest.mark.parametrize("size, stride, offset", [
    ((2, 3), (3, 1), None), ((3, 2), (1, 3), None), ((2,), (5,), 1), ((), (), 3), ((0,), (9,), None), ((2, 0), (1, 1), 2),
    ((4,), (0,), 2), ((1, 6), (7, 1), 0), ([2, 2], [1, 1], None),
])  # fmt: skip
def test_strided_views_are_pytorchs(torch: Any, size: Any, stride: Any, offset: Any) -> None:
    """Of a whole tensor, of a part, of a transposed one and of a scalar's storage: values, offset and gradient."""
    parts = [lambda x: x, lambda x: x[1:], lambda x: x.t(), lambda x: x[:, 1:]]
    for part in parts:
        made: list[Any] = []
        for lib in (tc, torch):
            x = lib.arange(12.0).reshape(4, 3).clone().requires_grad_()
            try:
                y = part(x).as_strided(size, stride, offset)
            except RuntimeError:
                made.append("refused")
                continue
            y.sum().backward()
            made.append((y.tolist(), y.storage_offset(), tuple(y.stride()), x.grad.tolist()))
        assert made[0] == made[1]


def test_empty_tensors_have_no_elements_to_show(torch: Any) -> None:
    """A view of sizes over 0 of a tensor without elements is refused, unless its storage has them."""
    for lib in (tc, torch):
        with pytest.raises(RuntimeError):
            lib.empty(3, 0).as_strided((1,), (1,))
        assert lib.ones(3, 4)[:, :0].as_strided((2,), (1,)).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("there", ["lazy", "meta", "trace:cpu"])
def test_usual_calls_on_other_devices(there: str) -> None:
    """Shapes and gradients of the same calls on a device that writes down, one without values, and one that notes."""
    x = tc.ones(2, 3, device=there, requires_grad=True)
    made = F.layer_norm(F.softmax(F.gelu(F.leaky_relu(x, 0.2)), dim=-1).tanh().sigmoid().relu(), (3,))
    made.sum().backward()
    assert (tuple(made.shape), tuple(x.grad.shape), x.grad.device) == ((2, 3), (2, 3), x.device)
