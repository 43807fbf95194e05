"""A device that stores some dtypes only: what is made on it or moved to it has one of them."""

from __future__ import annotations

import numpy as np
import pytest

import tensorcore as tc
from tensorcore.errors import UnsupportedDtype
from tensorcore.plugin import Capabilities, XPBackend


@pytest.fixture
def narrow():
    """The device."""

    class Narrow(XPBackend):
        capabilities = Capabilities(("float32", "int64", "bool"))

    return Narrow(np, "narrow")


@pytest.mark.parametrize(
    "call",
    [
        lambda device: tc.zeros(3, dtype=tc.float64, device=device),
        lambda device: tc.tensor([0.5], dtype=tc.float64, device=device),
        lambda device: tc.ones(3, dtype=tc.float64).to(device),
        lambda device: tc.nn.Linear(2, 2).double().to(device),
        lambda device: tc.ones(3, device=device).double(),
        lambda device: tc.ones(3, device=device, requires_grad=True).to(tc.float64),
    ],
)
def test_another_dtype_is_refused(narrow, call):
    """The error names the device and the dtypes that it does store."""
    said = "expected a dtype that narrow stores, got torch.float64; convert it to one of bool, float32, int64$"
    with pytest.raises(UnsupportedDtype, match=said):
        call(narrow)


def test_a_dtype_beside_the_device_converts_first(narrow):
    """``to(device, dtype)`` moves what the device can store, and the gradient comes back in the dtype of the leaf."""
    x = tc.ones(2, dtype=tc.float64, requires_grad=True)
    moved = x.to(narrow, tc.float32)
    assert (moved.device, moved.dtype) == (narrow, tc.float32)
    moved.sum().backward()
    assert (x.grad.dtype, x.grad.tolist()) == (tc.float64, [1.0, 1.0])
