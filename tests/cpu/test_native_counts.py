"""Counting and looking for in C, against NumPy: elements that are not zero, numbers met, bounds, places in sorted rows."""

import numpy as np
import pytest

import tensorcore as tc

KERNELS = tc.empty(0).device.kernels
RNG = np.random.default_rng(11)
TYPES = ["float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool"]


def arrays(dtype):
    """Arrays of odd shapes and strides: none, one, more than a block of elements, backwards, every other."""
    whole = RNG.integers(0, 3, (5, 700)).astype(dtype)
    yield from (
        whole,
        whole[:, ::-2],
        whole[0, :0],
        whole[2, 3],
        np.zeros((3, 400), dtype),
        np.ones((3, 400), dtype),
        whole.T,
    )


@pytest.mark.parametrize("dtype", TYPES)
def test_counts_are_numpys(dtype):
    """How many elements are not zero, whether any or all are, whatever the strides; NaN is not zero."""
    for x in arrays(dtype):
        assert KERNELS["count_nonzero"](x, dim=None) == np.count_nonzero(x)
        assert KERNELS["any"](x, dim=None, keepdim=False) == x.any()
        assert KERNELS["all"](x, dim=None, keepdim=False) == x.all()
    if dtype.startswith("float"):
        x = np.array([np.nan, -0.0], dtype)
        assert KERNELS["count_nonzero"](x, dim=None) == 1
        assert KERNELS["any"](x, dim=None, keepdim=False)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8"])
def test_bounds_and_counts_of_numbers_are_numpys(dtype):
    """The least and the largest as Python ints, and how often each number from 0 on is met."""
    for x in arrays(dtype):
        if x.size:
            low, high = KERNELS["lowest"](x), KERNELS["highest"](x)
            assert (low, high) == (x.min(), x.max())
            assert type(low) is type(high) is int
        for least in (0, 7):
            if x.ndim == 1:
                made = KERNELS["bincount"](x, weights=None, minlength=least)
                assert made.dtype == np.int64
                assert np.array_equal(made, np.bincount(x, None, least))


@pytest.mark.parametrize("dtype", ["int16", "int32", "int64", "uint8"])
@pytest.mark.parametrize("most", [1, 7, 200, 511, 512, 3000])
def test_counts_of_many_numbers(most, dtype):
    """Few numbers that are met often are counted as exactly as many, whatever is left over of a turn."""
    for count in (512, 513, 1003, 5006):
        x = np.minimum(RNG.integers(0, most, count), np.iinfo(dtype).max).astype(dtype)
        assert np.array_equal(KERNELS["bincount"](x, weights=None, minlength=most), np.bincount(x, None, most))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("length", [0, 1, 2, 3, 8, 37, 1000])
@pytest.mark.parametrize("right", [False, True])
def test_places_in_sorted_rows_are_numpys(dtype, length, right):
    """Every length, equal elements, NaN and infinities among the values and at the end of the row, rows of their own."""
    row = np.sort(RNG.integers(-20, 20, length)).astype(dtype)
    values = RNG.integers(-25, 25, (3, 7)).astype(dtype)
    if dtype != "int64":
        values[0, :3] = np.nan, np.inf, -np.inf
    side = "right" if right else "left"
    assert np.array_equal(KERNELS["searchsorted"](row, values, right=right), np.searchsorted(row, values, side))
    assert KERNELS["searchsorted"](row, values[1, 1], right=right) == np.searchsorted(row, values[1, 1], side)
    rows = np.sort(RNG.integers(-20, 20, (3, length)), 1).astype(dtype)
    if dtype != "int64" and length > 3:
        rows[1, -2:] = np.nan
    wanted = np.stack([np.searchsorted(one, some, side) for one, some in zip(rows, values, strict=True)])
    assert np.array_equal(KERNELS["searchsorted"](rows, values[:, ::-1][:, ::-1], right=right), wanted)
