"""The functions of the gamma family at points where their exact values are known."""

from __future__ import annotations

import math

import pytest

import tensorcore as tc
from tensorcore.errors import DtypeError

_EULER = 0.5772156649015328606
_ZETA3, _ZETA5 = 1.2020569031595942854, 1.0369277551433699263


@pytest.mark.parametrize(
    ("n", "x", "expected"),
    [
        (0, 1.0, -_EULER),
        (0, 0.5, -_EULER - 2 * math.log(2)),
        (0, 11.0, 7381 / 2520 - _EULER),
        (1, 1.0, math.pi**2 / 6),
        (1, 0.5, math.pi**2 / 2),
        (1, -0.5, math.pi**2 / 2 + 4),
        (2, 1.0, -2 * _ZETA3),
        (2, 0.5, -14 * _ZETA3),
        (3, 1.0, math.pi**4 / 15),
        (3, 0.5, math.pi**4),
        (4, 1.0, -24 * _ZETA5),
        (4, 0.5, -744 * _ZETA5),
        (2, -0.5, 16 - 14 * _ZETA3),
        (3, -0.5, math.pi**4 + 96),
        (2, -1.5, 16 + 16 / 27 - 14 * _ZETA3),
    ],
)
def test_polygamma_is_exact_to_13_digits(n: int, x: float, expected: float) -> None:
    """Values by the zeta function and by recurrence (Abramowitz and Stegun 6.3 and 6.4)."""
    found = tc.polygamma(n, tc.tensor([x], dtype=tc.float64)).item()
    assert found == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("x", [5e-320, 1e-300, 1e-5, 0.3, 0.5, 1.5, 7.25, 1e5, -0.5, -2.75])
def test_lgamma_is_that_of_the_standard_library(x: float) -> None:
    """From denormal numbers on and left of 0 too."""
    found = tc.lgamma(tc.tensor([x], dtype=tc.float64)).item()
    assert found == pytest.approx(math.lgamma(x), rel=1e-13, abs=1e-14)


@pytest.mark.parametrize(
    ("name", "x", "order", "value"),
    [
        ("legendre_polynomial_p", 0.5, 2000, -0.004960702856521258),
        ("legendre_polynomial_p", -1.0, 3001, -1.0),
        ("laguerre_polynomial_l", 0.5, 3001, 0.03189015535201767),
        ("laguerre_polynomial_l", -0.3, 1500, 1.4189911657553096e17),
        ("chebyshev_polynomial_t", 1.0000001, 2000, 1.4273880200374653),
        ("shifted_chebyshev_polynomial_w", 1.0000001, 1500, 3472.174275813873),
        ("legendre_polynomial_p", 0.5, math.inf, 0.0),
        ("laguerre_polynomial_l", 0.5, 1e30, 0.0),
        ("chebyshev_polynomial_u", 0.5, math.inf, 0.0),
    ],
)
def test_polynomials_of_high_orders(name, x, order, value):
    """Orders in the thousands are worked out, as many of these results are numbers; those that no integer holds are 0, as in PyTorch."""
    x, order = double(x), double(order)
    assert getattr(tc.special, name)(x, order).item() == pytest.approx(value, rel=1e-9)


def test_integers_that_no_dtype_holds_are_refused():
    """A uint64 beside a signed order has no dtype in common with it, as elsewhere; beside a uint8 it has one."""
    x = tc.tensor([2, 3], dtype=tc.uint64)
    with pytest.raises(DtypeError, match="uint64"):
        tc.special.chebyshev_polynomial_t(x, tc.tensor([2, 2]))
    assert tc.special.chebyshev_polynomial_t(x, tc.tensor([2, 2], dtype=tc.uint8)).tolist() == [7.0, 17.0]


def double(number):
    return tc.tensor([number], dtype=tc.float64)
