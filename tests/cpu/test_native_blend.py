"""Sums of a few weighted slices in C, and their adjoint, beside NumPy's: dims, numbers of slices, layouts, each instruction set."""

import numpy as np
import pytest

from .native import isa, kernel, needs_native  # noqa: F401

pytestmark = [needs_native, pytest.mark.usefixtures("isa")]

FLOATS = ["float32", "float64"]
# shape, dim, how many slices are made, and of how many each
CALLS = [((2, 3, 40), 2, 67, 2), ((2, 3, 40), 2, 17, 4), ((2, 3, 9, 5), 2, 20, 4), ((70, 11), 1, 5, 7), ((3, 30, 19), 1, 9, 3),
         ((4, 2, 3, 5, 6), 2, 7, 2), ((7, 1), 1, 3, 1), ((5,), 0, 9, 2), ((3, 4, 33), 0, 2, 1)]  # fmt: skip


def arguments(call, dtype):
    shape, dim, count, taps = call
    random = np.random.default_rng(8)
    x, index = random.standard_normal(shape), random.integers(0, shape[dim], (taps, count))
    return x.astype(dtype), index, random.standard_normal((taps, count)).astype(dtype)


def close(found, expected):
    """To some roundings of the summands, which may be added in another order."""
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    np.testing.assert_allclose(found, expected, rtol=0, atol=40 * np.finfo(found.dtype).eps)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("call", CALLS)
def test_blends_are_numpys(call, dtype):
    """Slices along any dim, in any layout."""
    native, numpys = kernel("blend")
    x, index, weights = arguments(call, dtype)
    expected = numpys(x, index, weights, dim=call[1])
    for one in (x, np.asfortranarray(x), x[..., ::-1].copy()[..., ::-1]):
        close(native(one, index, weights, dim=call[1]), expected)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("call", CALLS)
def test_gradients_of_blends_are_numpys(call, dtype):
    """Each slice gets what all those that it was blended into got, times its weight."""
    native, numpys = kernel("blend_gradient")
    _, index, weights = arguments(call, dtype)
    shape, dim, count, _ = call
    g = np.random.default_rng(9).standard_normal((*shape[:dim], count, *shape[dim + 1 :])).astype(dtype)
    expected = numpys(g, index, weights, dim=dim, size=shape[dim])
    for one in (g, np.asfortranarray(g)):
        close(native(one, index, weights, dim=dim, size=shape[dim]), expected)


@pytest.mark.parametrize("dim", [0, 1])
def test_what_is_not_finite_stays_with_its_slices(dim):
    """NaN and infinities show where they are blended in, and nowhere else."""
    for name, options in (("blend", {"dim": dim}), ("blend_gradient", {"dim": dim, "size": 20})):
        native, numpys = kernel(name)
        x = np.ones((20, 20), np.float32)
        x[3, 4], x[19, 19], x[0, 7] = np.nan, np.inf, -np.inf
        index = np.random.default_rng(8).integers(0, 20, (2, 20))
        weights = np.full((2, 20), 0.5, np.float32)
        np.testing.assert_array_equal(native(x, index, weights, **options), numpys(x, index, weights, **options))


def test_numbers_beyond_the_dim_are_numpys_error():
    """Nothing is read behind the end."""
    native, _ = kernel("blend")
    x, weights = np.ones((2, 3), np.float32), np.ones((1, 2), np.float32)
    with pytest.raises(IndexError):
        native(x, np.array([[0, 3]]), weights, dim=1)


def test_threads_change_nothing():
    """One thread and two give the same bits."""
    from tensorcore_cpu import native as library

    before, found = library.threads(), []
    x, index, weights = arguments(((90, 30, 40), 1, 50, 4), "float32")
    try:
        for count in (1, 2):
            library.threads(count)
            made = kernel("blend")[0](x, index, weights, dim=1)
            found.append((made, kernel("blend_gradient")[0](made, index, weights, dim=1, size=30)))
    finally:
        library.threads(before)
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_array_equal(found[0][1], found[1][1])
