"""Activations under ``vmap``: one kernel for all examples, as for any other elementwise op."""

from __future__ import annotations

import pytest

import tensorcore as tc
from tensorcore.nn import functional as F


@pytest.mark.parametrize("name, kernel", [
    ("softplus", "softplus"), ("mish", "mish"), ("elu", "elu"), ("logsigmoid", "log_sigmoid"), ("gelu", "gelu"),
])  # fmt: skip
def test_an_activation_of_many_examples_is_one_kernel(name: str, kernel: str) -> None:
    """The kernel runs once, on all of them, and gives what it gives one by one."""
    device = tc.device("trace:cpu")
    x = tc.linspace(-2, 2, 6, device=device).reshape(3, 2)
    device.calls.clear()
    made = tc.vmap(getattr(F, name))(x)
    assert [one.kernel for one in device.calls] == [kernel]
    assert made.tolist() == tc.stack([getattr(F, name)(one) for one in x]).tolist()
    device.calls.clear()
