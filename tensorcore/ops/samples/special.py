"""Calls to test the special functions with: arguments of every range of their approximations; see ``samples/__init__.py``."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tensorcore.ops.samples import Call, Make

__all__ = ["around", "near", "near_over_zero", "orders", "over_zero", "probability", "shape_and_limit", "zeta"]


def around(array: Make) -> Iterator[Call]:
    """Values on both sides of 0, small and large."""
    yield (array(3, 4),), {}
    yield (array(2, 5, low=-12.0, high=12.0),), {}
    yield (array(4, low=15.0, high=40.0),), {}
    yield (array(),), {}


def over_zero(array: Make) -> Iterator[Call]:
    """Values over 0, small and large."""
    yield (array(3, 4, low=0.1),), {}
    yield (array(2, 5, low=2.0, high=12.0),), {}
    yield (array(4, low=15.0, high=40.0),), {}


def near(array: Make) -> Iterator[Call]:
    """Values on both sides of 0, up to 2: PyTorch's Bessel functions lose half of their digits beyond."""
    yield (array(3, 4),), {}
    yield (array(2, 5, low=-1.9, high=1.9),), {}
    yield (array(),), {}


def near_over_zero(array: Make) -> Iterator[Call]:
    """Values over 0, up to 2."""
    yield (array(3, 4, low=0.1, high=1.9),), {}
    yield (array(low=0.5),), {}


def probability(array: Make) -> Iterator[Call]:
    """Values between 0 and 1, in the middle and at the ends."""
    yield (array(3, 4, low=0.01, high=0.99),), {}
    yield (array(3, low=0.001, high=0.01),), {}
    yield (array(3, low=0.99, high=0.999),), {}


def orders(array: Make) -> Iterator[Call]:
    """Values inside and outside [-1, 1], and orders."""
    yield (array(3, 4), np.array([0, 1, 2, 5])), {}
    yield (array(4, low=-0.9, high=0.9), np.array([-1, 3, 7, 11])), {}
    yield (array(3, 1), 4), {}
    yield (0.5, np.array([0, 3])), {}


def shape_and_limit(array: Make) -> Iterator[Call]:
    """The parameter of an incomplete gamma function, and where it is taken."""
    yield (np.array([0.3, 1.0, 2.5, 9.0], np.float64), array(3, 4, low=0.1, high=3.0)), {}
    yield (array(2, 3, low=0.5, high=4.0), array(2, 3, low=5.0, high=12.0)), {}


def zeta(array: Make) -> Iterator[Call]:
    """Exponents over 1, and shifts."""
    yield (np.array([2, 3, 5]), array(2, 3, low=0.3, high=4.0)), {}
    yield (2.5, array(3, low=1.0, high=20.0)), {}
