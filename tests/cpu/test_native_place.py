"""scatter in C beside NumPy's."""

import numpy as np
import pytest

from .native import assert_same, awkward, kernel, needs_native

pytestmark = [needs_native, pytest.mark.usefixtures("isa")]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "int64", "bool"])
@pytest.mark.parametrize(
    "shape, dim", [((40,), 0), ((7, 9), 0), ((7, 9), 1), ((3, 4, 5), 1), ((3, 1, 6), 2), ((3, 4, 5), 0)]
)
def test_elements_go_where_the_index_says(shape, dim, dtype):
    """Of equal indices the last counts; an index may be smaller than what is written to, the others have any strides."""
    native, fallback = kernel("scatter")
    random = np.random.default_rng(8)
    x = awkward(dtype, 80)[: int(np.prod(shape))].reshape(shape)
    for count in (1, shape[dim], 2 * shape[dim]):
        smaller = [max(1, size - 1) for size in shape]
        smaller[dim] = count
        index = random.integers(0, shape[dim], smaller)
        src = awkward(dtype, 400)[-index.size :].reshape(smaller)
        backwards = np.asfortranarray(src[::-1])[::-1]
        for one, at, given in ((x, index, src), (np.asfortranarray(x), np.asfortranarray(index), backwards)):
            assert_same(native(one, at, given, dim=dim), fallback(one, at, given, dim=dim))


def test_numbers_and_places():
    """A number is written everywhere; ``out`` is the array itself."""
    native, fallback = kernel("scatter")
    x, index = np.zeros((3, 4), np.float32), np.array([[0, 3], [1, 1], [2, 0]])
    assert_same(native(x, index, 2.5, dim=1), fallback(x, index, 2.5, dim=1))
    made = native(x, index, np.ones((3, 2), np.float32), dim=1, out=x)
    assert made is x
    assert x.tolist() == [[1, 0, 0, 1], [0, 1, 0, 0], [1, 0, 1, 0]]


def test_indices_outside_are_refused():
    """Nothing has been written then."""
    native, _ = kernel("scatter")
    x = np.zeros((3, 4), np.float32)
    for wrong in (4, -1):
        with pytest.raises(IndexError, match="out of bounds"):
            native(x, np.array([[0], [wrong], [1]]), 1.0, dim=1, out=x)
    assert not x.any()
