"""Arguments that PyTorch refuses are refused with its exception, and mixed dtypes give its results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorcore as tc
from tensorcore.errors import TensorcoreError

REFUSED: dict[str, Callable[[Any], Any]] = {
    "a float as dim": lambda t: t.ones(2, 2, 2).sum(2.5),
    "out of another dtype": lambda t: t.abs(t.ones(2), out=t.zeros(2, dtype=t.float64)),
    "a product's out of another dtype": lambda t: t.matmul(
        t.ones(2, 2), t.ones(2, 2), out=t.zeros(2, 2, dtype=t.float64)
    ),
    "an out with one cell for all elements": lambda t: t.mul(t.ones(3), 2, out=t.zeros(1).expand(3)),
    "a str as tensor to view as": lambda t: t.ones(2).view_as("x"),
    "a number as angle": lambda t: t.polar(t.ones(2), 1.0),
    "a list among vectors": lambda t: t.meshgrid(t.ones(2), [1.0], indexing="ij"),
    "a list beside a tensor": lambda t: t.isclose(t.ones(1), [1.0]),
    "a str as weight": lambda t: t.lerp(t.ones(2), t.ones(2), "x"),
    "a str as slope": lambda t: t.nn.functional.prelu(t.ones(2), "x"),
    "orders that do not broadcast": lambda t: t.special.hermite_polynomial_h(t.ones(2), t.ones(3)),
    "a bool as dim": lambda t: t.ones(2, 2, 2).softmax(True),
    "a float as dim of no elements": lambda t: t.ones(5, 0, 0).log_softmax(1.5),
    "a float as offset": lambda t: t.ones(2, 2).diagonal(offset=1.5),
    "a str as offset": lambda t: t.diagflat(t.ones(2), "x"),
    "a float as offset of memory": lambda t: t.ones(8).as_strided((2,), (1,), 2.0),
    "a float as index": lambda t: t.ones(3).select(0, 1.5),
    "a float as decimals": lambda t: t.round(t.ones(2), decimals=2.0),
    "a float as order": lambda t: t.special.polygamma(1.5, t.ones(2)),
    "a float as diagonal": lambda t: t.ones(3, 3).triu(0.5),
    "a float as count of rows": lambda t: t.tril_indices(2.5, 3),
    "a float as k": lambda t: t.ones(3).topk(1.5),
    "a str as k": lambda t: t.rot90(t.ones(2, 2), "x", [0, 1]),
    "a str as steps": lambda t: t.linspace(0, 1, "x"),
    "None as dims": lambda t: t.tensordot(t.ones(2, 2), t.ones(2, 2), dims=None),
    "bools as indices": lambda t: t.unravel_index(t.ones(2, dtype=t.bool), (2, 2)),
    "a transform of -1 points": lambda t: t.fft.ifft(t.ones(4), n=-1),
    "a size that does not broadcast": lambda t: t.ones(5, 5).sum_to_size(99, 1),
    "shapes that do not broadcast": lambda t: t.gcd(t.ones(0, 5, dtype=t.int64), t.ones(2, 5, dtype=t.int64)),
    "layer_norm of two dtypes": lambda t: t.nn.functional.layer_norm(t.ones(2, 3).double(), (3,), t.ones(3)),
    "batch_norm of two dtypes": lambda t: t.nn.functional.batch_norm(t.ones(2, 3), t.ones(3).half(), t.ones(3).half()),
    "group_norm of two dtypes": lambda t: t.nn.functional.group_norm(t.ones(2, 4).double(), 2, t.ones(4)),
    "running statistics of another size": lambda t: t.nn.functional.instance_norm(
        t.ones(2, 3, 4), t.ones(2), t.ones(2)
    ),
    "NaN as a chance": lambda t: t.nn.functional.binary_cross_entropy(t.full((1,), float("nan")), t.ones(1)),
    "a target beyond 1": lambda t: t.nn.functional.binary_cross_entropy(t.ones(1), t.full((1,), 2.0)),
    "unfold of nothing": lambda t: t.nn.functional.unfold(t.ones(1, 5, 0), 2, padding=2),
    "a cross product of two dtypes": lambda t: t.linalg.cross(t.ones(3), t.ones(3).double()),
}


@pytest.mark.oracle
@pytest.mark.parametrize("what", REFUSED)
def test_refused_as_pytorch_refuses(what: str, torch: Any) -> None:
    """Both libraries raise, and ours what an ``except`` for PyTorch's catches, in a sentence of its own."""
    with pytest.raises(Exception) as expected:
        REFUSED[what](torch)
    with pytest.raises(TensorcoreError) as found:
        REFUSED[what](tc)
    wanted = next(one for one in (TypeError, IndexError, ValueError, RuntimeError) if isinstance(expected.value, one))
    assert isinstance(found.value, wanted)


RESULTS: dict[str, Callable[[Any], Any]] = {
    "a whole number of NumPy's as dim": lambda t: t.ones(2, 3).sum(np.int64(1)),
    "a tensor as dim": lambda t: t.ones(2, 3).sum(t.tensor(1)),
    "products that uint8 does not hold": lambda t: t.addcmul(
        t.ones(1), t.full((1,), 200, dtype=t.uint8), t.full((1,), 2, dtype=t.uint8)
    ),
    "an outer product that uint8 does not hold": lambda t: t.addr(
        t.zeros(1, 1), t.full((1,), 200, dtype=t.uint8), t.full((1,), 2, dtype=t.uint8)
    ),
    "an outer product of halves beside a number": lambda t: t.addr(t.ones(()), t.ones(2).half(), t.ones(3).half()),
    "a half input beside a target": lambda t: t.nn.functional.huber_loss(t.ones(2).half(), t.zeros(2)),
    "an infinite margin": lambda t: t.nn.functional.hinge_embedding_loss(
        t.tensor([1.0, float("-inf")]), t.tensor([1.0, -1.0]), reduction="none"
    ),
    "small integers as places": lambda t: t.unravel_index(t.tensor([3, 200], dtype=t.uint8), (9, 30))[0],
    "sums of small integers": lambda t: t.full((5, 5), 100, dtype=t.uint8).sum_to_size(1, 5),
    "a fraction filled into integers": lambda t: t.ones(2, dtype=t.int64).masked_fill(t.tensor([True, False]), t.tensor(2.7)),
    "parameters of single precision beside halves": lambda t: t.nn.functional.layer_norm(
        t.arange(6.0).reshape(2, 3).bfloat16(), (3,), t.ones(3), t.ones(3)
    ),
}  # fmt: skip


@pytest.mark.oracle
@pytest.mark.parametrize("what", RESULTS)
def test_mixed_arguments_give_the_results_of_pytorch(what: str, torch: Any) -> None:
    """Values and dtype are PyTorch's where dtypes are mixed or numbers leave the range of one."""
    expected, found = RESULTS[what](torch), RESULTS[what](tc)
    assert str(found.dtype) == str(expected.dtype)
    assert found.tolist() == expected.tolist()
