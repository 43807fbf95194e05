"""The normal distribution's functions of floats in C beside SciPy's of doubles, on each instruction set."""

import numpy as np
import pytest

from .native import assert_same, kernel, layouts, needs_native

pytestmark = [needs_native, pytest.mark.usefixtures("isa")]

CORNERS = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 3e38, -3e38, 1.0, -1.0, 2.0, 0.5, 28.0, -9.38, -9.4, 0.13533528]  # fmt: skip


def points(name):
    """Numbers on both sides of the limits between the formulas, down to the least; shares for ``ndtri``."""
    random = np.random.default_rng(8)
    small = 10 ** random.uniform(-44, 0, 2000)
    if name == "ndtri":
        parts = [random.uniform(0, 1, 3000), small, 1 - small]
    else:
        parts = [random.normal(0, 1, 3000), random.uniform(-40, 40, 3000), small, -small, 10 ** random.uniform(1, 38, 500)]  # fmt: skip
    return np.concatenate([CORNERS, *parts]).astype(np.float32)


@pytest.mark.parametrize("name", ["erfcx", "log_ndtr", "ndtri"])
def test_functions_of_the_normal_distribution(name):
    """To 0.51 units of the exact value rounded to a float, NaN, infinities and signs of zeros in the same places; doubles are SciPy's."""
    native, fallback = kernel(name)
    x = points(name)
    exact = fallback(x.astype(np.float64))
    rounded = exact.astype(np.float32)
    got = native(x)
    finite = np.isfinite(rounded)
    np.testing.assert_array_equal(got[~finite], rounded[~finite])
    usual = finite & (np.abs(exact) > np.finfo(np.float32).tiny)
    assert (np.abs(got - exact)[usual] / np.spacing(np.abs(exact[usual]).astype(np.float32))).max() < 0.51
    np.testing.assert_allclose(got[finite & ~usual], exact[finite & ~usual], rtol=0, atol=1.5e-45)
    np.testing.assert_array_equal(np.signbit(got[exact == 0]), np.signbit(exact[exact == 0]))
    assert_same(native(x.astype(np.float64)), exact)


@pytest.mark.parametrize("name", ["erfcx", "log_ndtr", "ndtri"])
def test_they_are_taken_where_they_lie(name):
    """Strides, tails and arrays of no dims give the bits of a row."""
    native, _ = kernel(name)
    for values in layouts(points(name)[:67]).values():
        np.testing.assert_array_equal(native(values), native(values.copy()))


def test_the_inverse_of_erf_keeps_its_digits():
    """To five units of 40 digits in double: in the middle, beyond it, and up to the last number under 1, with the sign."""
    y = np.array(
        [1e-300, 0.1, 0.2576950138018195, 0.5, 0.84, 0.86, 0.99, 0.999999999, 0.99999999999, 0.9999999999999999]
    )
    exact = np.array(
        [
            8.86226925452758e-301,
            0.08885599049425769,
            0.23249846538338284,
            0.4769362762044699,
            0.9935356283473041,
            1.0435418436397588,
            1.8213863677184494,
            4.320005388105362,
            4.812924058944833,
            5.8635847487551676,
        ]
    )
    native = kernel("erfinv")[0]
    np.testing.assert_allclose(native(y), exact, 5 * np.finfo(np.float64).eps)
    np.testing.assert_array_equal(native(-y), -native(y))
