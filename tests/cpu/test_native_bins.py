"""Histograms in C beside NumPy's: several dims, edges of any width, weights, NaN, layouts."""

import numpy as np
import pytest

from tensorcore.dtypes import bfloat16

from .native import awkward, kernel, needs_native

pytestmark = [needs_native, pytest.mark.usefixtures("isa")]

FLOATS = ["float32", "float64"]


def edges_of(count, dtype, kind):
    """Equal widths, growing ones, or with the same edge twice."""
    even = np.linspace(-1.5, 2, count + 1)
    values = {
        "equal": even,
        "growing": np.sign(even) * even**2,
        "twice": np.sort(np.concatenate([even[:-1], even[count // 2 :][:1]])),
    }
    return np.sort(values[kind]).astype(dtype)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kind", ["equal", "growing", "twice"])
@pytest.mark.parametrize("bins", [(1,), (7,), (300,), (3, 40), (2, 3, 2)])
def test_weights_in_bins(bins, kind, dtype):
    """Counts are NumPy's own, edges and NaN included, sums of weights to 4 roundings."""
    native, fallback = kernel("histogram")
    edges = [edges_of(count, dtype, kind) for count in bins]
    random = np.random.default_rng(8)
    x = random.uniform(-2, 2.5, (500, len(bins))).astype(dtype)
    x[:60] = random.choice(edges[0], (60, len(bins)))
    x[60:127, 0] = awkward(dtype)
    for view in (x, x[::-1], np.asfortranarray(x), x[:0], x[3:4]):
        np.testing.assert_array_equal(native(view, None, edges), fallback(view, None, edges))
        weight = random.standard_normal((len(view), 2)).astype(dtype)[:, 0]
        got, expected = native(view, weight, edges), fallback(view, weight, edges)
        assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
        tolerance = 4 * np.finfo(dtype).eps
        np.testing.assert_allclose(got, expected, tolerance, tolerance)


@pytest.mark.parametrize("dtype", FLOATS)
def test_equal_bins(dtype):
    """Counts are NumPy's own, with what lies outside, the last edge and NaN; bins without a width go to NumPy."""
    native, fallback = kernel("histc")
    x = np.concatenate([np.random.default_rng(8).uniform(-2, 2, 1000), [-1, 1, 0.5], awkward(np.float64)]).astype(dtype)
    for bins, low, high in ((1, -1.0, 1.0), (10, -1.0, 1.0), (1000, 0.1, 0.7), (3, -5.0, 0.0)):
        for view in (x, x[::-2], x[:0]):
            got = native(view, bins=bins, low=low, high=high)
            assert got.dtype == dtype
            np.testing.assert_array_equal(got, fallback(view, bins=bins, low=low, high=high))


@pytest.mark.parametrize("dtype", [np.float16, bfloat16.numpy])
def test_equal_bins_of_halves(dtype):
    """Each step to a place is rounded, and the number of bins too; NaN, infinities and what overflows on the way have their bins."""
    native, fallback = kernel("histc")
    x = np.concatenate([np.random.default_rng(8).uniform(-2, 2, 1000), [-1, 1, 0.5], awkward(np.float32)]).astype(dtype)
    for bins, low, high in (
        (1, -1.0, 1.0),
        (10, -1.0, 1.0),
        (1003, 0.1, 0.7),
        (3, -5.0, 0.0),
        (300, -6e4, 6e4),
        (7, 0.5, 0.5),
    ):
        for view in (x, x[::-2], x[:0]):
            got = native(view, bins=bins, low=low, high=high)
            assert got.dtype == dtype
            np.testing.assert_array_equal(got, fallback(view, bins=bins, low=low, high=high))
