"""Lazy tensors beside eager ones in calls that a backend makes as one kernel: the eager ones come along."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tensorcore as tc

F = tc.nn.functional
SCORES, LABELS, WEIGHT = tc.linspace(-1, 1, 20).reshape(4, 5), tc.tensor([0, 4, 2, 2]), tc.linspace(0.1, 1, 5)
PICTURES = tc.linspace(-1, 1, 24).reshape(1, 2, 3, 4)
CALLS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "cross_entropy": (F.cross_entropy, (SCORES, LABELS)),
    "cross_entropy with weights": (F.cross_entropy, (SCORES, LABELS, WEIGHT)),
    "nll_loss": (F.nll_loss, (SCORES, LABELS)),
    "multi_margin_loss": (F.multi_margin_loss, (SCORES, LABELS)),
    "layer_norm": (lambda x, weight, bias: F.layer_norm(x, (5,), weight, bias), (SCORES, WEIGHT, WEIGHT)),
    "attention": (F.scaled_dot_product_attention, (PICTURES, PICTURES, PICTURES)),
}


@pytest.mark.parametrize("name", CALLS)
def test_one_lazy_input_makes_the_call_lazy(name: str) -> None:
    """Whichever of the inputs is lazy, the result is, with the numbers and the gradients of eager inputs."""
    call, given = CALLS[name]
    for position in range(len(given)):
        inputs = [one.to("lazy") if i == position else one for i, one in enumerate(given)]
        leaves = [one.detach().clone().requires_grad_() for one in (given[0], inputs[0])]
        eager, mixed = call(leaves[0], *given[1:]), call(leaves[1], *inputs[1:])
        assert mixed.device.type == "lazy"
        assert mixed.tolist() == eager.tolist()
        eager.sum().backward()
        mixed.sum().backward()
        assert leaves[1].grad.tolist() == leaves[0].grad.tolist()
