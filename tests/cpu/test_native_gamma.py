"""The incomplete gamma functions and the zeta function of floats in C, on each instruction set."""

import numpy as np
import pytest

from .native import kernel, layouts, needs_native

pytestmark = [needs_native, pytest.mark.usefixtures("isa")]

CORNERS = np.array(
    [0, -0.0, 1e-45, 1e-30, 0.5, 1, 1.5, 2, 2.5, 20, 1e4, 1e5, 3e38, np.inf, np.nan, -1, -np.inf, -0.5, -2.5],
    np.float32,
)
NAMES = ["igamma", "igammac", "zeta"]


def units(got, expected):
    """The largest error in units of the exact value rounded to a float, where that is a normal number."""
    usual = np.isfinite(expected) & (np.abs(expected) > 1e-37) & (np.abs(expected) < 3e38)
    assert usual.any()
    return (np.abs(got - expected)[usual] / np.spacing(np.abs(expected[usual]).astype(np.float32))).max()


def exact(name, x, y):
    return kernel(name)[1](x.astype(np.float64), y.astype(np.float64))


@pytest.mark.parametrize("name", NAMES[:2])
@pytest.mark.parametrize("low, high", [(-30, 0), (-3, 3), (2, 5)])
def test_incomplete_gamma_functions(name, low, high):
    """To 0.51 units of the exact value rounded to a float: about the peak, on both sides of it, and where shapes are tiny."""
    random = np.random.default_rng(8)
    a = (10 ** random.uniform(low, high, 900)).astype(np.float32)
    for x in (
        a * 10 ** random.uniform(-1, 1, 900),
        np.abs(a + np.sqrt(a) * random.standard_normal(900) * 4),
        10 ** random.uniform(-10, 2, 900),
    ):
        x = x.astype(np.float32)
        assert units(kernel(name)[0](a, x), exact(name, a, x)) < 0.51


def test_incomplete_gamma_functions_of_large_shapes():
    """Beside the normal distribution's value by Wilson and Hilferty, good to 1e-4 there; SciPy's is off by a third."""
    a, x = np.float32([72504536.0]), np.float32([72457624.0])
    np.testing.assert_allclose(kernel("igamma")[0](a, x), 1.78896e-8, rtol=1e-4)
    np.testing.assert_allclose(kernel("igammac")[0](a, x), 1.0, rtol=1e-7)


def test_zeta():
    """To 0.51 units: near the pole at 1, of high orders, of tiny and large shifts; to the left of 0 for whole orders, to two."""
    random = np.random.default_rng(8)
    q = (10 ** random.uniform(-4, 6, 900)).astype(np.float32)
    for s in (1 + 10 ** random.uniform(-6, 0, 900), random.uniform(1.0001, 60, 900)):
        s = s.astype(np.float32)
        assert units(kernel("zeta")[0](s, q), exact("zeta", s, q)) < 0.51
    whole, left = random.integers(2, 30, 900).astype(np.float32), random.uniform(-30, 0, 900).astype(np.float32)
    assert units(kernel("zeta")[0](whole, left), exact("zeta", whole, left)) < 2


@pytest.mark.parametrize("name", NAMES)
def test_corners_are_the_numpy_kernels(name):
    """Zeros, infinities, NaN, poles, negative and huge numbers, beside one another."""
    x, y = (one.ravel() for one in np.meshgrid(CORNERS, CORNERS))
    native, fallback = kernel(name)
    known = (
        np.ones(x.shape, bool)
        if name != "zeta"
        else np.isfinite(x) & (x < 1e3) | (y < 1e8) & (np.abs(x) > 1e38) & (y <= 1)
    )
    np.testing.assert_allclose(native(x, y)[known], fallback(x, y)[known], rtol=3e-6)


def test_zeta_of_a_huge_order_vanishes():
    """The first of its terms is all that there is, and under any number where the shift is over 1; SciPy has NaN."""
    s, q = np.float32([3e38, 1e30, 3e38, 3e38]), np.float32([1.5, 20, 1, 0.5])
    np.testing.assert_array_equal(kernel("zeta")[0](s, q), np.float32([0, 0, 1, np.inf]))


@pytest.mark.parametrize("name", NAMES)
def test_layouts_and_doubles(name):
    """Elements are taken where they lie, broadcast where sizes are 1; doubles are the NumPy kernel's."""
    native, fallback = kernel(name)
    numbers = np.random.default_rng(8).uniform(0.1, 9, 67).astype(np.float32)
    for values in layouts(numbers).values():
        np.testing.assert_array_equal(native(values, values), native(values.copy(), values.copy()))
    table, column = np.ascontiguousarray(numbers[:60].reshape(6, 10)), np.ascontiguousarray(numbers[:6, None])
    np.testing.assert_array_equal(native(table, column), native(table, np.repeat(column, 10, 1)))
    wide = numbers.astype(np.float64)
    np.testing.assert_array_equal(native(wide, wide), fallback(wide, wide))


@pytest.mark.parametrize("name", NAMES[:2])
def test_neighbours_change_no_bit(name):
    """An element is the same alone and beside others, whose terms end sooner or later, and corners among them."""
    random = np.random.default_rng(8)
    a, x = (10 ** random.uniform(-2, 1.5, (2, 211))).astype(np.float32)
    a[::17], x[::13] = np.resize(CORNERS, a[::17].shape), np.resize(CORNERS[::-1], x[::13].shape)
    native = kernel(name)[0]
    whole = native(a, x)
    alone = np.concatenate([native(a[i : i + 1], x[i : i + 1]) for i in range(211)])
    np.testing.assert_array_equal(whole, alone)
    np.testing.assert_array_equal(whole[::-1], native(a[::-1], x[::-1]))
