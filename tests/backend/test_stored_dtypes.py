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
        lambda device: tc.rand(3, dtype=tc.float64, device=device),
        lambda device: tc.arange(3, dtype=tc.float64, device=device),
        lambda device: tc.linspace(0, 1, 3, dtype=tc.float64, device=device),
        lambda device: tc.eye(3, dtype=tc.float64, device=device),
        lambda device: tc.randperm(3, dtype=tc.float64, device=device),
        lambda device: tc.ones(4, device=device).view(tc.float64),
        lambda device: tc.ones(3, dtype=tc.int64, device=device) + tc.tensor(0.5, dtype=tc.float64),
        lambda device: tc.where(tc.ones(3, device=device) > 0, tc.tensor(0.5, dtype=tc.float64), 1),
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


@pytest.mark.parametrize(
    "call", [lambda x: x * 1j, lambda x: 1j - x, lambda x: tc.mul(x, 1j), lambda x: tc.where(x > 0, x, 1j)]
)
def test_an_op_whose_result_would_be_of_another_dtype_is_refused(narrow, call):
    """The error names the op, not the kernel that failed."""
    said = "^(add|sub|mul|where): expected a dtype that narrow stores, got torch.complex64; convert it to one of"
    with pytest.raises(UnsupportedDtype, match=said):
        call(tc.ones(3, device=narrow))


def test_the_default_device_refuses_too(narrow):
    """A dtype that the default device lacks is refused where no device is named."""
    with narrow, pytest.raises(UnsupportedDtype, match="zeros: expected a dtype that narrow stores"):
        tc.zeros(3, dtype=tc.float64)


def test_a_number_of_another_dtype_comes_along(narrow):
    """A 0-d tensor on the host that decides nothing is converted, and gets its gradient in its own dtype."""
    number = tc.tensor(0.5, dtype=tc.float64, requires_grad=True)
    made = tc.ones(3, device=narrow) * number
    assert (made.dtype, made.tolist()) == (tc.float32, [0.5] * 3)
    made.sum().backward()
    assert (number.grad.dtype, number.grad.item()) == (tc.float64, 3.0)


def test_what_every_device_stores():
    """Comparisons give bools and indices are int64: capabilities without them are refused."""
    with pytest.raises(
        ValueError, match="Capabilities: expected 'bool' among the dtypes, since comparisons give bools"
    ):
        Capabilities(("int64", "float32"))
    with pytest.raises(ValueError, match="expected 'int64' among the dtypes"):
        Capabilities(("bool", "float32"))
