"""Special functions by the library beside a namespace, and without one."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import tensorcore as tc
from tensorcore.backend.xp import XPBackend


class Namespace:
    """NumPy under another name; its functions, and a library of special ones where it is given one."""

    def __init__(self, special: Any = None) -> None:
        self.__name__ = "other"
        if special is not None:
            self.special = special

    def __getattr__(self, name: str) -> Any:
        if name == "special":
            raise AttributeError(name)
        return getattr(np, name)


class Library:
    """One special function, that says that it was asked."""

    @staticmethod
    def erfc(x: Any) -> Any:
        """Seven."""
        return np.full_like(x, 7)


POINTS = [-3.5, -0.4, 0.3, 1.0, 2.5, 9.0]


@pytest.mark.parametrize(
    "name", ["erf", "erfc", "lgamma", "digamma", "i0e", "ndtr", "log_ndtr", "airy_ai", "bessel_y1"]
)
def test_namespace_without_a_library_has_all_functions(name: str) -> None:
    """They are made of its other functions, with the values of SciPy."""
    x = tc.tensor(POINTS, dtype=tc.float64)
    function = getattr(tc.special, {"lgamma": "gammaln"}.get(name, name))
    found = function(x.to(XPBackend(Namespace()))).cpu()
    np.testing.assert_allclose(found.numpy(), function(x).numpy(), rtol=1e-12)


def test_library_of_a_namespace_is_asked() -> None:
    """What the attribute ``special`` of a namespace has is a kernel, and what it lacks is made of others."""
    x = tc.tensor([0.5, 0.25], dtype=tc.float64).to(XPBackend(Namespace(Library())))
    assert tc.erfc(x).tolist() == [7, 7]
    assert tc.erf(x).tolist() == pytest.approx([math.erf(0.5), math.erf(0.25)], rel=1e-14)


@pytest.mark.parametrize(
    ("name", "x", "expected"),
    [
        ("erfinv", -0.0, -0.0), ("gammaln", -math.inf, math.inf), ("gammaln", 5e-324, 744.4400719213812),
        ("gammaln", -2.0, math.inf), ("airy_ai", 1e300, 0.0), ("digamma", 0.0, -math.inf), ("i0e", math.inf, 0.0),
    ],
)  # fmt: skip
def test_corners_are_pytorchs(name: str, x: float, expected: float) -> None:
    """Where SciPy answers otherwise than PyTorch."""
    found = getattr(tc.special, name)(tc.tensor([x], dtype=tc.float64)).item()
    assert found == pytest.approx(expected, rel=1e-12)
    assert math.copysign(1, found) == math.copysign(1, expected)


@pytest.mark.parametrize(
    ("a", "x", "lower"), [(math.nan, math.inf, 1.0), (math.nan, 0.0, 0.0), (math.inf, math.nan, 0.0)]
)
def test_incomplete_gamma_beside_nan(a: float, x: float, lower: float) -> None:
    """One argument decides where it can, as in PyTorch."""
    a, x = tc.tensor([a]), tc.tensor([x])
    assert tc.special.gammainc(a, x).item() == lower
    assert tc.special.gammaincc(a, x).item() == 1 - lower


@pytest.mark.parametrize("order", [-1.0, 2.7, 5.0, 2000.0, math.nan])
def test_polynomials_of_any_order(order: float) -> None:
    """Orders are cut off; below 0 and for NaN the polynomial is 0, and high ones go by the angle."""
    x = 0.3
    n = -1 if math.isnan(order) else int(order)
    expected = math.cos(n * math.acos(x)) if n >= 0 else 0.0
    found = tc.special.chebyshev_polynomial_t(tc.tensor([x], dtype=tc.float64), order)
    assert found.item() == pytest.approx(expected, rel=1e-9)


def test_scipys_functions_are_imported_at_their_first_call() -> None:
    """Neither ``import tensorcore`` nor arithmetic loads them."""
    code = "import sys, tensorcore as tc\nx = tc.ones(3) + 1\nassert 'scipy.special' not in sys.modules\ntc.digamma(x.double())\n"
    subprocess.run([sys.executable, "-c", code + "assert 'scipy.special' in sys.modules"], check=True)
