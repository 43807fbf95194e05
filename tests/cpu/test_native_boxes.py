"""Where the largest elements of uneven and of drawn windows are, in C beside NumPy's."""

import numpy as np
import pytest

from .native import kernel, needs_native

pytestmark = [needs_native, pytest.mark.usefixtures("isa")]

FLOATS = ["float32", "float64"]
EVEN = [
    ((9,), (4,)),
    ((5,), (9,)),
    ((7, 8), (3, 5)),
    ((8, 67), (4, 30)),
    ((4, 5, 6), (3, 5, 1)),
    ((1, 3), (1, 1)),
    ((2, 300), (1, 200)),
    ((200,), (7,)),
    ((3, 4, 50), (2, 2, 3)),
]
DRAWN = [
    ((7, 8), (3, 4), (2, 2)),
    ((9, 40), (1, 30), (3, 1)),
    ((4, 5, 6), (2, 3, 2), (2, 1, 3)),
    ((3, 3), (1, 1), (3, 3)),
]


def planes(sizes, dtype, ties=True):
    """A few whole numbers that are met often, with NaN and infinities among them."""
    values = np.random.default_rng(8).standard_normal((2, 3, *sizes))
    values = values.round() if ties else values
    values[0, 0].flat[1:3] = np.nan
    values[1, 2] = -np.inf
    values[0, 1].flat[0] = np.inf
    return values.astype(dtype)


def same(found, expected):
    """Values and places, which are int64."""
    for one, other in zip(found, expected, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        np.testing.assert_array_equal(one, other)
    assert found[1].dtype == np.int64


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("sizes, counts", EVEN)
def test_windows_that_cover_evenly(sizes, counts, dtype):
    """The first of the largest, the last NaN, as NumPy's kernel finds them; in any layout."""
    native, fallback = kernel("adaptive_max")
    for ties in (False, True):
        x = planes(sizes, dtype, ties)
        for view in (x, np.ascontiguousarray(x.T).T, x[:, ::-1]):
            same(native(view, counts=counts), fallback(view, counts=counts))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("sizes, counts, size", DRAWN)
def test_windows_at_drawn_places(sizes, counts, size, dtype):
    """The same of windows whose places are drawn for each plane; numbers of 1 and over keep windows inside."""
    native, fallback = kernel("fractional_max")
    drawn = np.random.default_rng(9).random((2, 3, len(sizes))).astype(dtype)
    drawn[0, 0], drawn[0, 1], drawn[1, 1] = 0, 1, 3
    for ties in (False, True):
        x, options = planes(sizes, dtype, ties), dict(counts=counts, kernel=size)
        same(native(x, drawn, **options), fallback(x, drawn, **options))
        turned = np.ascontiguousarray(x.T).T, np.asfortranarray(drawn)
        same(native(*turned, **options), native(x, drawn, **options))


def test_many_planes_and_other_dtypes():
    """With threads each plane is found as by itself; halves go to NumPy's kernel."""
    x = np.random.default_rng(8).standard_normal((20, 30, 9, 11)).astype(np.float32)
    native, fallback = kernel("adaptive_max")
    same(native(x, counts=(4, 3)), fallback(x, counts=(4, 3)))
    halves = x[:1].astype(np.float16)
    same(native(halves, counts=(4, 3)), fallback(halves, counts=(4, 3)))
