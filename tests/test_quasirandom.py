"""Sobol' sequences: the same points as PyTorch's, scrambled or not."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

import tensorcore as tc


def test_first_points() -> None:
    """The points of the plane halve it, then quarter it."""
    points = tc.quasirandom.SobolEngine(2).draw(4)
    assert points.dtype is tc.float32
    assert points.tolist() == [[0.0, 0.0], [0.5, 0.5], [0.75, 0.25], [0.25, 0.75]]


def test_points_in_parts() -> None:
    """Points drawn one after the other are those drawn at once; skipped ones are left out; reset starts over."""
    engine = tc.quasirandom.SobolEngine(3, scramble=True, seed=7)
    whole = engine.draw(9)
    engine.reset()
    parts = [engine.draw(), engine.draw(3), engine.fast_forward(2).draw(3)]
    assert tc.equal(tc.cat(parts), whole[[0, 1, 2, 3, 6, 7, 8]])
    assert engine.num_generated == 9


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tc.quasirandom.SobolEngine(0), "range of dimensionality"),
        (lambda: tc.quasirandom.SobolEngine(2).draw(0), "number of points of 1 or more, got 0"),
        (lambda: tc.quasirandom.SobolEngine(2).fast_forward(3).draw_base2(2), "power of 2, got 3 points"),
    ],
)
def test_refusals(make: Any, message: str) -> None:
    """A dimension, a number of points or a power that cannot be is refused before anything is drawn."""
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("dimension", "scramble", "seed"),
    [(1, False, None), (5, False, None), (3, True, 4), (7, True, None), (2000, True, 0)],
)
def test_points_are_pytorchs(dimension: int, scramble: bool, seed: int | None, torch: ModuleType) -> None:
    """Direction numbers, shifts and points are PyTorch's bit by bit, with a seed or with the default generator's numbers."""
    found = []
    for library in (tc, torch):
        library.manual_seed(3)
        engine = library.quasirandom.SobolEngine(dimension, scramble, seed)
        drawn = [engine.draw(), engine.draw(6), engine.fast_forward(5).draw(2, dtype=library.float64)]
        drawn.append(engine.reset().draw_base2(3))
        found.append(
            (
                [one.tolist() for one in [engine.sobolstate, engine.shift, *drawn]],
                repr(engine),
                library.rand(2).tolist(),
            )
        )
    assert found[0] == found[1]
