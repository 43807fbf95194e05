"""testing.make_tensor against PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorcore as tc

torch = pytest.importorskip("torch")


def alike(found: Any, expected: Any) -> None:
    assert str(found.dtype) == str(expected.dtype)
    np.testing.assert_array_equal(found.detach().numpy(), expected.detach().numpy())


MADE: dict[str, Any] = {
    "float": lambda lib, make: make(3, 2, dtype=lib.float32, device="cpu"),
    "double in bounds": lambda lib, make: make((3, 2), dtype=lib.float64, device="cpu", low=-1, high=1.5),
    "apart": lambda lib, make: make((2, 3), dtype=lib.int64, device="cpu", noncontiguous=True),
    "bytes": lambda lib, make: make([4], dtype=lib.uint8, device="cpu", low=-5, high=600),
    "bools": lambda lib, make: make(4, dtype=lib.bool, device="cpu"),
    "complex": lambda lib, make: make(4, dtype=lib.complex64, device="cpu"),
    "without zeros": lambda lib, make: make(40, dtype=lib.int32, device="cpu", low=0, high=3, exclude_zero=True),
    "everything": lambda lib, make: make(4, dtype=lib.float32, device="cpu", low=-1e39, high=1e39),
}


@pytest.mark.parametrize("name", MADE)
def test_make_tensor_draws_pytorchs_values(name: str) -> None:
    """The same seed gives the same values, within what the dtype holds."""
    tc.manual_seed(3)
    torch.manual_seed(3)
    from torch.testing import make_tensor as theirs

    found, expected = MADE[name](tc, tc.testing.make_tensor), MADE[name](torch, theirs)
    alike(found, expected)
    assert (found.stride(), found.requires_grad) == (expected.stride(), expected.requires_grad)


def test_make_tensor_refuses_what_pytorch_refuses() -> None:
    """NaN and empty intervals, gradients of integers, and two layouts at once."""
    make = tc.testing.make_tensor
    for options in (
        dict(low=float("nan")), dict(low=2, high=1), dict(requires_grad=True), dict(low=300, dtype=tc.uint8, high=400),
        dict(noncontiguous=True, memory_format=tc.contiguous_format),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="make_tensor"):
            make(3, **{"dtype": tc.int32, "device": "cpu", **options})
    assert make(3, dtype=tc.float32, device="cpu", requires_grad=True).requires_grad
