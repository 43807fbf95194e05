"""Compiled functions that write by strides, and that look at labels: what a replay may do again, and what it may not."""

from __future__ import annotations

from typing import Any

import pytest

import tensorcore as tc
from tests.compile.test_functions import counted, same


def _whole_and_turned(x: tc.Tensor) -> Any:
    whole = tc.empty_strided((3, 2), (1, 3))
    whole.copy_(x[:3, :2])
    return whole * 2, whole.as_strided((6,), (1,))


def _part_by_strides(x: tc.Tensor) -> Any:
    made = x + 0
    part = made.as_strided((3, 2), (1, 3), 1)
    part += 1.0
    return made, part.t() * 2


def _gradient_of_a_written_part(x: tc.Tensor) -> Any:
    leaf = x.detach().requires_grad_()
    made = leaf * 2
    made[1:].mul_(x[1:])
    return tc.autograd.grad(made.sum(), leaf)[0]


@pytest.mark.parametrize("function", [_whole_and_turned, _part_by_strides, _gradient_of_a_written_part])
def test_writes_by_strides_are_replayed(function: Any) -> None:
    """A view of the function's own memory that strides describe is written to in replays, where no place shows twice."""
    compiled = counted(function)
    for k in range(3):
        x = tc.arange(16.0).reshape(4, 4) + k
        found, wanted = compiled(x), function(x)
        pairs = zip(found, wanted, strict=True) if isinstance(found, tuple) else [(found, wanted)]
        assert all(same(one, other) for one, other in pairs)
    assert (compiled.explain().traces, compiled.explain().replays) == (1, 2)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.as_strided((2, 3), (4, 1)).zero_(),
        lambda x: (x + 0).as_strided((3, 2), (1, 1)).fill_(1.0),
        lambda x: (x + 0).t().clone().as_strided((4,), (1,)).neg_(),
    ],
    ids=["given", "overlapping", "turned"],
)
def test_writes_by_strides_that_are_not_replayed(function: Any) -> None:
    """Memory from outside, places that show twice, and memory in another order: such calls run as they are."""
    compiled = counted(function)
    for k in range(2):
        x, y = (tc.arange(16.0).reshape(4, 4) + k for _ in range(2))
        assert same(compiled(x), function(y))
        assert same(x, y)
    assert compiled.explain().replays == 0


def test_labels_that_are_ignored_are_replayed() -> None:
    """A loss with ignored labels is replayed; a label that is neither a class nor ignored raises in a replay as in eager."""
    cross_entropy = tc.nn.functional.cross_entropy
    compiled = counted(lambda x, y: cross_entropy(x, tc.nn.functional.pad(y, (0, 1), value=-100)[1:]))
    for k in range(4):
        x, y = tc.randn(5, 7), tc.arange(5) + k % 2
        assert same(compiled(x, y), cross_entropy(x[:4], y[1:]))
    assert (compiled.explain().traces, compiled.explain().replays) == (1, 3)
    with pytest.raises(IndexError, match="Target 9 is out of bounds"):
        compiled(x, tc.tensor([0, 9, 1, 2, 3]))


def test_statistics_in_one_memory_are_those_of_eager() -> None:
    """A kernel that writes twice to one memory sees there what it wrote: such a call runs as it is."""

    def f(mean: tc.Tensor, variance: tc.Tensor) -> tc.Tensor:
        return tc.nn.functional.batch_norm(tc.full((2, 3), 5.0), mean, variance, training=True)

    compiled, wanted = counted(f), tc.ones(3)
    one = tc.ones(3)
    for _ in range(3):
        compiled(one, one)
        f(wanted, wanted)
        assert same(one, wanted)
    assert compiled.explain().replays == 0
