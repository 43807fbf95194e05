"""The small programs that the benchmarks time: they do the same as in PyTorch, and the same lazily."""

from __future__ import annotations

from types import ModuleType

import pytest

import tensorcore
from asv_benchmarks.programs import PROGRAMS


def numbers(module: ModuleType, name: str, steps: int = 3) -> list[float]:
    """What the first steps answer after the seed 8."""
    module.manual_seed(8)
    step = PROGRAMS[name](module)
    return [step() for _ in range(steps)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_does_what_it_does_in_pytorch(name: str, torch: ModuleType) -> None:
    """Three steps of training answer with PyTorch's numbers: the same weights, random numbers, losses, gradients and updates."""
    assert numbers(tensorcore, name) == pytest.approx(numbers(torch, name), rel=1e-3)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_does_the_same_lazily(name: str) -> None:
    """Two steps on the lazy device answer with the numbers of eager ones."""
    eager = numbers(tensorcore, name, 2)
    with tensorcore.lazy():
        assert numbers(tensorcore, name, 2) == pytest.approx(eager, rel=1e-3)
