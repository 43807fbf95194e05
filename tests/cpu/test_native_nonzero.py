"""nonzero, masked_select and counts in C beside NumPy's."""

import numpy as np
import pytest

from .native import assert_same, awkward, kernel, layouts, needs_native

pytestmark = [needs_native, pytest.mark.usefixtures("isa")]

TYPES = ["float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8", "bool"]


@pytest.mark.parametrize("dtype", TYPES)
def test_places_that_are_not_zero(dtype):
    """Over layouts, with zeros of both signs, denormals and NaN; columns next to each other in memory, as NumPy's."""
    values = awkward(dtype, 1600)
    values[::3] = 0
    native, fallback = kernel("nonzero")
    by_dim = kernel("nonzero_by_dim")[0]
    for some in layouts(values).values():
        made, expected = native(some), fallback(some)
        assert_same(made, expected)
        if some.ndim:
            for column, wanted in zip(by_dim(some), expected.T, strict=True):
                assert_same(column, wanted)


def test_bfloat16_has_two_zeros():
    """Its sign is no value either."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    native, _ = kernel("nonzero")
    assert native(np.array([0.0, -0.0, 1e-40, np.nan, 2.0], ml_dtypes.bfloat16))[:, 0].tolist() == [2, 3, 4]


def test_all_and_none():
    """Full and empty masks, long rows and many short ones."""
    native, fallback = kernel("nonzero")
    for shape in ((5000,), (3, 700), (700, 3), (2, 3, 4, 5), (0,), (3, 0)):
        for mask in (np.ones(shape, bool), np.zeros(shape, bool)):
            assert_same(native(mask), fallback(mask))


@pytest.mark.parametrize("dtype", TYPES)
def test_masked_select(dtype):
    """The chosen elements in order; a mask that has to be broadcast goes to NumPy."""
    native, fallback = kernel("masked_select")
    values = awkward(dtype, 1500).reshape(30, 50)
    mask = np.random.default_rng(8).integers(0, 2, (30, 50)).astype(bool)
    for x, chosen in (
        (values, mask),
        (values.T, mask.T),
        (values, mask[0]),
        (values, mask[:, :1]),
        (values, mask & False),
    ):
        assert_same(native(x, chosen), fallback(x, chosen))


def test_counts_of_masks():
    """A Python int."""
    native, fallback = kernel("count_true")
    mask = np.random.default_rng(8).integers(0, 2, (33, 51)).astype(bool)
    for some in (mask, mask.T, mask[:, ::2], mask[:0]):
        made = native(some)
        assert type(made) is int
        assert made == fallback(some)
