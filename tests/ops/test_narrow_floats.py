"""Numbers beside float16 and bfloat16, and sums that are rounded once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorcore as tc

NUMBERED = (
    "eq", "ne", "lt", "le", "gt", "ge", "fmod", "remainder", "copysign", "clamp", "clamp_min", "clamp_max", "add", "sub",
    "mul", "div", "pow", "hardshrink", "logit", "xlogy", "rsub", "floor_divide",
)  # fmt: skip


@pytest.mark.parametrize("name", [*NUMBERED, "relu6"])
@pytest.mark.parametrize("dtype", [tc.float16, tc.bfloat16])
def test_the_memory_holds_the_dtype(name: str, dtype: Any) -> None:
    """A number beside a narrow float does not widen the memory behind the result."""
    x = tc.tensor([0.25, 0.5]).to(dtype)
    for one in (x, x[0]):
        made = tc.nn.functional.relu6(one) if name == "relu6" else getattr(tc, name)(one, 0.3)
        assert np.dtype(made.native.dtype) == made.dtype.numpy


def test_a_number_is_rounded_before_it_meets_bfloat16() -> None:
    """0.3 is 0.30078125 beside bfloat16, in comparisons, bounds and sums, also in place."""
    x = tc.tensor([0.3]).bfloat16()
    assert x.eq(0.3).item()
    assert not x.gt(0.3).item()
    assert tc.zeros(1).bfloat16().clamp(min=0.3).item() == 0.30078125
    half = tc.tensor([-0.5]).bfloat16()
    assert (half + 0.3).item() == half.add_(0.3).item() == -0.19921875


def test_products_with_a_sum_are_rounded_once() -> None:
    """What is added to a product of narrow floats is added before the one rounding."""
    one = tc.tensor([[1 + 2**-7]]).bfloat16()
    c = tc.tensor([2**-8]).bfloat16()
    expected = 1 + 3 * 2**-7  # a tie, were the product rounded by itself
    assert tc.nn.functional.linear(one, one, c).item() == expected
    assert tc.addmm(c, one, one).item() == tc.addmv(c, one, one[0]).item() == expected
    assert tc.baddbmm(c, one[None], one[None]).item() == expected
    assert tc.addcmul(c, one, one).item() == expected


@pytest.mark.oracle
@pytest.mark.parametrize("number", [0.3, 2.5, -0.7, 3])
@pytest.mark.parametrize("name", [one for one in NUMBERED if one != "pow"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_numbers_as_in_pytorch(torch: Any, dtype: str, name: str, number: float) -> None:
    """The bits of PyTorch's results with a number for the second operand."""
    values = np.random.default_rng(0).normal(size=200).astype(np.float32)
    values[:4] = 0.3, -0.3, 0, 2.5
    found = []
    for module in (tc, torch):
        x = module.tensor(values).to(getattr(module, dtype))
        find = getattr(module, name)
        found.append(find(x, number).float().numpy())
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("dtype", [tc.float16, tc.bfloat16])
def test_sinc_of_narrow_floats_takes_the_angle_in_single_precision(dtype: Any) -> None:
    """It is nothing at 1, as pi times 1 were not were it rounded, and finite where that would overflow."""
    made = tc.sinc(tc.tensor([0.0, 1.0, 40000.0], dtype=dtype))
    assert made.dtype is dtype
    assert made[0].item() == 1.0
    assert made[1:].abs().max().item() < 1e-7
