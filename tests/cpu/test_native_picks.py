"""Gradients of picked elements in C beside NumPy's: each dtype, along any dim, places that are shared, and what is left to NumPy."""

import numpy as np
import pytest

from tensorcore import dtypes

from .native import assert_same, awkward, isa, kernel, needs_native  # noqa: F401

pytestmark = [needs_native, pytest.mark.usefixtures("isa")]

BFLOAT16 = np.dtype(dtypes.bfloat16.numpy)
SHAPES = [((5,), 0), ((40, 3), 0), ((4000, 2), 1), ((9, 4, 7), 1), ((3, 5, 1100), 1), ((6, 1), 1)]


def places(shape, dim, size, unique):
    """Indices below `size` along the dim, each once in its line or any number of times."""
    random = np.random.default_rng(8)
    if not unique:
        return random.integers(0, size, shape)
    lines = random.random((*shape[:dim], size, *shape[dim + 1 :])).argsort(dim)
    return np.ascontiguousarray(np.take(lines, range(shape[dim]), dim))


@pytest.mark.parametrize("dtype", ["float16", BFLOAT16, "float32", "float64"], ids=str)
@pytest.mark.parametrize("unique", [True, False])
def test_put_picked(dtype, unique):
    """Zeros with the elements in their places, or their sums, are NumPy's, in any layout and along any dim."""
    native, fallback = kernel("put_picked")
    for shape, dim in SHAPES:
        values = awkward(dtype, max(int(np.prod(shape)), 12))[: int(np.prod(shape))].reshape(shape)
        for size in (shape[dim], shape[dim] + 3):
            at = places(shape, dim, size, unique)
            for x in (values, np.broadcast_to(values.ravel()[:1].reshape([1] * values.ndim), shape), values[::-1]):
                got, expected = (put(x, at, dim=dim, size=size, unique=unique) for put in (native, fallback))
                assert got.dtype == x.dtype
                assert_same(got.astype(np.float64), expected.astype(np.float64))


def test_what_is_left_to_numpy():
    """Places outside raise NumPy's error, and arrays without elements or without dims and integers give what NumPy's kernel gives."""
    native, fallback = kernel("put_picked")
    with pytest.raises(IndexError):
        native(np.ones((2, 1), np.float32), np.array([[0], [3]]), dim=1, size=3)
    for x, at in ((np.float32(2).reshape(()), np.array(0)), (np.arange(3), np.array([2, 0, 1]))):
        assert_same(native(x, at, dim=0, size=3), fallback(x, at, dim=0, size=3))
    assert native(np.zeros((0, 2), np.float32), np.zeros((0, 2), np.int64), dim=1, size=4).shape == (0, 4)
