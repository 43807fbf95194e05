"""Calls to test the elementwise ops with, see ``samples/__init__.py``. They keep away from the points without a derivative."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tensorcore.ops.samples import pair, positive, unary

__all__ = [
    "activation", "addcdiv", "addcmul", "bound", "bounds", "complex_unary", "glu", "gumbel_softmax", "heaviside",
    "integer_pair", "integers", "lerp", "logit", "mvlgamma", "nonzero", "off_integers", "over_one", "pair",
    "pair_alpha", "pair_of_tensors", "pairs_along_last", "polygamma", "positive", "powers", "quotient", "round",
    "rrelu", "shifts", "steps", "threshold", "two_real", "unary", "where", "within_one", "xlogy",
]  # fmt: skip

Make = Callable[..., Any]
Call = tuple[tuple[Any, ...], dict[str, Any]]


def pair_alpha(array: Make) -> Iterator[Call]:
    """Two operands of a sum, with and without a factor."""
    yield from pair(array)
    yield (array(3, 4), array(4)), {"alpha": 2}


def pair_of_tensors(array: Make) -> Iterator[Call]:
    """Two tensors that broadcast."""
    yield (array(3, 4), array(3, 4)), {}
    yield (array(3, 1), array(2, 1, 4)), {}
    yield (array(3, 4), array()), {}


def quotient(array: Make) -> Iterator[Call]:
    """A dividend of any value, a divisor away from 0."""
    yield (array(3, 4), array(3, 4, low=0.5)), {}
    yield (array(3, 1), array(2, 1, 4, low=-3.0, high=-0.5)), {}
    yield (array(3, 4), 1.5), {}


def steps(array: Make) -> Iterator[Call]:
    """Operands whose quotient is no integer."""
    yield (array(3, 4, low=1.1, high=1.9), array(3, 4, low=0.6, high=0.9)), {}
    yield (array(3, 1, low=-3.9, high=-3.1), array(2, 1, 4, low=1.6, high=1.9)), {}
    yield (array(3, 4, low=1.1, high=1.4), 0.5), {}


def powers(array: Make) -> Iterator[Call]:
    """Bases over 0 with exponents of any kind."""
    yield (array(3, 4, low=0.2), array(3, 4)), {}
    yield (array(3, 1, low=0.2), array(2, 1, 4)), {}
    for exponent in (0, 1, 2, 3, -1, 0.5, -0.5, 2.5):
        yield (array(2, 3, low=0.2), exponent), {}
    yield (2, array(2, 3)), {}


def nonzero(array: Make) -> Iterator[Call]:
    """Values away from 0, on both sides."""
    yield (array(3, 4, low=0.2),), {}
    yield (array(3, 4, low=-2.0, high=-0.2),), {}
    yield (array(low=0.5),), {}


def within_one(array: Make) -> Iterator[Call]:
    """Values between -1 and 1."""
    yield (array(3, 4, low=-0.9, high=0.9),), {}
    yield (array(low=-0.9, high=0.9),), {}


def over_one(array: Make) -> Iterator[Call]:
    """Values over 1."""
    yield (array(3, 4, low=1.2, high=4.0),), {}


def off_integers(array: Make) -> Iterator[Call]:
    """Values away from the integers and the halves."""
    yield (array(3, 4, low=1.1, high=1.4),), {}
    yield (array(3, 4, low=-2.9, high=-2.6),), {}


def round(array: Make) -> Iterator[Call]:
    """Values to round to places before and behind the point."""
    yield from off_integers(array)
    yield (array(3, 4),), {"decimals": 1}
    yield (array(3, 4, low=11.0, high=14.0),), {"decimals": -1}


def lerp(array: Make) -> Iterator[Call]:
    """Two ends and a weight, as a number and as a tensor."""
    yield (array(3, 4), array(3, 4), 0.3), {}
    yield (array(3, 4), array(4), 0.8), {}
    yield (array(3, 4), array(3, 4), array(3, 4)), {}


def addcmul(array: Make) -> Iterator[Call]:
    """A sum and two factors."""
    yield (array(3, 4), array(3, 4), array(3, 4)), {}
    yield (array(3, 4), array(3, 1), array(4)), {"value": 2.5}


def addcdiv(array: Make) -> Iterator[Call]:
    """A sum, a dividend, and a divisor away from 0."""
    yield (array(3, 4), array(3, 4), array(3, 4, low=0.5)), {}
    yield (array(3, 4), array(3, 1), array(4, low=0.5)), {"value": 2.5}


def where(array: Make) -> Iterator[Call]:
    """A mask and two things to choose from."""
    mask = np.array([[True, False, True, True], [False, False, True, False], [True, True, False, False]])
    yield (mask, array(3, 4), array(3, 4)), {}
    yield (mask[0], array(3, 1), array(4)), {}
    yield (mask, array(3, 4), 0.0), {}
    yield (mask, 1.5, array()), {}


def bounds(array: Make) -> Iterator[Call]:
    """Numbers and tensors as bounds."""
    yield (array(3, 4), -0.51, 0.73), {}
    yield (array(3, 4),), {"min": 0.11}
    yield (array(3, 4),), {"max": 0.11}
    yield (array(3, 4), array(3, 4, low=-2.0, high=-0.5), array(4, low=0.5)), {}


def bound(array: Make) -> Iterator[Call]:
    """One bound, a number or a tensor."""
    yield (array(3, 4), 0.11), {}
    yield (array(3, 4), array(4)), {}


def heaviside(array: Make) -> Iterator[Call]:
    """Values and what stands for 0."""
    yield (array(3, 4), array(4)), {}


def logit(array: Make) -> Iterator[Call]:
    """Probabilities."""
    yield (array(3, 4, low=0.1, high=0.9),), {}
    yield (array(3, 4, low=0.1, high=0.9),), {"eps": 0.05}


def xlogy(array: Make) -> Iterator[Call]:
    """A factor, and what the logarithm is taken of."""
    yield (array(3, 4), array(3, 4, low=0.2)), {}
    yield (array(3, 4), 1.5), {}
    yield (2.0, array(3, 4, low=0.2)), {}


def polygamma(array: Make) -> Iterator[Call]:
    """Orders of the derivative."""
    for n in (0, 1, 2, 3):
        yield (n, array(2, 3, low=0.5, high=3.0)), {}


def mvlgamma(array: Make) -> Iterator[Call]:
    """Numbers of variates."""
    yield (array(2, 3, low=2.0, high=4.0), 1), {}
    yield (array(2, 3, low=2.0, high=4.0), 3), {}


def integers(array: Make) -> Iterator[Call]:
    """Integers and bools."""
    yield (np.array([[0, 1, -5], [127, -128, 3]]),), {}
    yield (np.array([True, False]),), {}


def integer_pair(array: Make) -> Iterator[Call]:
    """Two tensors of integers or bools, or one and a number."""
    yield (np.array([[0, 1, -5], [127, -128, 3]]), np.array([3, 6, 1])), {}
    yield (np.array([0, 1, -5]), 3), {}
    yield (np.array([True, False]), np.array([True, True])), {}


def shifts(array: Make) -> Iterator[Call]:
    """Integers and places to move their bits by."""
    yield (np.array([[0, 1, -5], [127, -128, 3]]), np.array([3, 6, 1])), {}
    yield (np.array([0, 1, -5]), 3), {}


def complex_unary(array: Make) -> Iterator[Call]:
    """One tensor of complex numbers."""
    yield (array(3, 4) + 1j * array(3, 4),), {}


def two_real(array: Make) -> Iterator[Call]:
    """Two real tensors that broadcast."""
    yield (array(3, 4, low=0.1), array(3, 4)), {}
    yield (array(3, 1, low=0.1), array(4)), {}


def pairs_along_last(array: Make) -> Iterator[Call]:
    """Pairs of numbers along the last dim."""
    yield (array(3, 4, 2),), {}


def activation(array: Make) -> Iterator[Call]:
    """One tensor of values around 0, and larger ones."""
    yield (array(3, 4),), {}
    yield (array(2, 5, low=3.1, high=9.0),), {}
    yield (array(2, 5, low=-9.0, high=-3.1),), {}
    yield (array(),), {}


def threshold(array: Make) -> Iterator[Call]:
    """Values, a threshold and what replaces those under it."""
    yield (array(3, 4), 0.13, -5.0), {}


def glu(array: Make) -> Iterator[Call]:
    """A tensor with an even dim."""
    yield (array(3, 4),), {}
    yield (array(4, 3), 0), {}


def rrelu(array: Make) -> Iterator[Call]:
    """With the mean slope and with random ones."""
    yield (array(3, 4),), {}
    yield (array(3, 4), 0.1, 0.6), {"training": True}
    yield (array(2, 5), 0.3, 0.3, True), {}


def gumbel_softmax(array: Make) -> Iterator[Call]:
    """Soft and hard samples, along both dims."""
    yield (array(3, 4),), {}
    yield (array(3, 4),), {"tau": 0.5, "hard": True, "dim": 0}
