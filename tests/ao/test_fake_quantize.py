"""Fake quantisation against PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorcore as tc

torch = pytest.importorskip("torch")


def alike(found: Any, expected: Any) -> None:
    assert str(found.dtype) == str(expected.dtype)
    np.testing.assert_array_equal(found.detach().numpy(), expected.detach().numpy())


VALUES = [[float("nan"), 0.05, -0.35, 1e30], [12.75, 0.15, -1e20, 3.0]]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_fake_quantisation_rounds_as_pytorch(dtype: str) -> None:
    """Values are PyTorch's to the bit, and the gradient passes where the value was in range."""
    answers = []
    for lib in (tc, torch):
        x = lib.tensor(VALUES).clamp(max=6e4).to(getattr(lib, dtype)).requires_grad_()
        scale, zero = lib.tensor([0.1, 0.2]), lib.tensor([3, 4], dtype=lib.int32)
        for made in (
            lib.fake_quantize_per_tensor_affine(x, 0.1, 3, 0, 255),
            lib.fake_quantize_per_tensor_affine(x, lib.tensor(0.3), lib.tensor(-2), -8, 7),
            lib.fake_quantize_per_channel_affine(x, scale, zero, 0, 0, 255),
            lib.fake_quantize_per_channel_affine(x[:, :2], scale, zero.float(), 1, -7, 15),
        ):
            answers.append((made.float(), lib.autograd.grad(made.float().sum(), x)[0].float()))
    for found, expected in zip(answers[:4], answers[4:], strict=True):
        alike(found[0], expected[0])
        alike(found[1], expected[1])


BAD: dict[str, Any] = {
    "integers": lambda lib: lib.fake_quantize_per_tensor_affine(lib.ones(2).int(), 0.1, 0, 0, 9),
    "empty range": lambda lib: lib.fake_quantize_per_tensor_affine(lib.ones(2), 0.1, 0, 9, 0),
    "zero point out of range": lambda lib: lib.fake_quantize_per_tensor_affine(lib.ones(2), 0.1, 10, 0, 9),
    "several scales": lambda lib: lib.fake_quantize_per_tensor_affine(lib.ones(2), lib.ones(2), lib.ones(2), 0, 9),
    "double scale": lambda lib: lib.fake_quantize_per_channel_affine(lib.ones(2), lib.ones(2).double(), lib.ones(2), 0, 0, 9),
    "long zero points": lambda lib: lib.fake_quantize_per_channel_affine(lib.ones(2), lib.ones(2), lib.ones(2).long(), 0, 0, 9),
    "wrong size": lambda lib: lib.fake_quantize_per_channel_affine(lib.ones(2), lib.ones(3), lib.ones(3), 0, 0, 9),
    "wrong axis": lambda lib: lib.fake_quantize_per_channel_affine(lib.ones(2), lib.ones(2), lib.ones(2), 1, 0, 9),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_calls_raise_as_pytorch(name: str) -> None:
    """The same kind of exception in both."""
    with pytest.raises(Exception) as theirs:
        BAD[name](torch)
    with pytest.raises(type(theirs.value)):
        BAD[name](tc)
