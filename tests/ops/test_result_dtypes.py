"""What sums, products and means answer for each pair of an input's dtype and the ``dtype=`` that is asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorcore as tc

NAMES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64")
OPS = ("sum", "nansum", "prod", "mean", "nanmean", "cumsum", "cumprod")


def test_small_integers_stay_small() -> None:
    """The memory of a sum holds the dtype that it says, also where NumPy would widen it."""
    for dtype in (tc.uint8, tc.int16, tc.int32):
        made = tc.tensor([1, -1 % 256], dtype=tc.int16).sum(dtype=dtype)
        assert (made.dtype, made.numpy().dtype) == (dtype, dtype.numpy)
    assert tc.tensor([255, 1], dtype=tc.uint8).sum(dtype=tc.uint8).item() == 0
    assert tc.tensor([1, -1]).sum(dtype=tc.bool).item() is True


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore:Casting complex")
@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("start", NAMES)
def test_every_pair_of_dtypes(torch: Any, name: str, start: str) -> None:
    """Dtype, values, memory, or the type of the error, with and without a dim."""
    for end in NAMES:
        for dims in [{"dim": 0}] if name.startswith("cum") else [{}, {"dim": 0}]:
            ours, theirs = (
                outcome(module, name, start, end, dims) for module in (tc, torch)
            )  # fmt: skip
            assert ours == theirs, (end, dims)


def outcome(module: Any, name: str, start: str, end: str, dims: dict[str, int]) -> Any:
    x = module.tensor([1, 0, 1, 1]).to(getattr(module, start))
    try:
        made = getattr(module, name)(x, dtype=getattr(module, end), **dims)
    except (RuntimeError, TypeError) as error:
        return NotImplementedError if isinstance(error, NotImplementedError) else RuntimeError
    if module is tc:
        assert np.dtype(made.native.dtype) == made.dtype.numpy
    return str(made.dtype), made.tolist()


def test_counts_of_nothing_are_integers() -> None:
    """Also where there are weights, as in PyTorch."""
    made = tc.bincount(tc.tensor([], dtype=tc.int64), tc.tensor([]), minlength=2)
    assert (made.dtype, made.tolist()) == (tc.int64, [0, 0])
