"""Python's numbers become the same arrays by the short way in C as by the function in Python."""

from __future__ import annotations

import pytest

import tensorcore as torch
from tensorcore.ops.creation import literal

from .test_shortcuts import HUGE, Whole, outcome

pytestmark = pytest.mark.skipif(not hasattr(literal.plain_array, "__wrapped__"), reason="built without a compiler")

DEEP = 1.5
for _ in range(9):
    DEEP = [DEEP]
DATA = [
    True, 3, -1, -0.0, 1e300, float("nan"), HUGE, 2**63 - 1, 2**63, -(2**63), 1j, Whole(3), [], [[]], [[], []], (), [True, False],
    [1, True], [1, 2.5, False], (1, 2), [(1, 2), [3, 4]], [[1], [2, 3]], [[1, 2], 3], [1, [2]], [1.5, HUGE], [[HUGE]], [1, None],
    ["a"], [torch.tensor(1), 2], [Whole(1), 2], [[[0.5]], [[-2]]], DEEP, DEEP[0][0],
]  # fmt: skip


@pytest.mark.parametrize("wanted", [None, "float32", "float64", "int64", "int32", "bool", "bfloat16", "complex64"])
@pytest.mark.parametrize("data", DATA, ids=[str(i) for i in range(len(DATA))])
def test_numbers_become_the_same_arrays(monkeypatch, data, wanted) -> None:
    """Bits, dtype and shape of numbers and nested lists of them; what is no such list raises the same."""

    def made():
        array, dtype = literal.host_array("tensor", data, wanted and getattr(torch, wanted))
        return array.tobytes(), array.dtype, array.shape, dtype

    short = outcome(made)
    monkeypatch.setattr(literal, "plain_array", literal.plain_array.__wrapped__)
    assert short == outcome(made)
