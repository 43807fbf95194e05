"""gather and scatter_reduce in C beside NumPy's where the index is smaller than the array: element by element."""

import numpy as np
import pytest

from .native import assert_same, awkward, kernel, needs_native

pytestmark = [needs_native, pytest.mark.usefixtures("isa")]

SHAPES = [((40,), 0), ((7, 9), 0), ((7, 9), 1), ((3, 4, 5), 1), ((3, 1, 6), 2), ((3, 4, 5), 0)]


def smaller(shape, dim, count, rng):
    """An index of ``count`` numbers along ``dim`` that leaves out the last of every other dim."""
    sizes = [count if i == dim else max(1, size - 1) for i, size in enumerate(shape)]
    return rng.integers(0, shape[dim], sizes)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "int64", "bool"])
@pytest.mark.parametrize("shape, dim", SHAPES)
def test_elements_come_from_where_the_index_says(shape, dim, dtype):
    """Of an array with any strides, also those that go back."""
    native, fallback = kernel("gather")
    x = awkward(dtype, 80)[: int(np.prod(shape))].reshape(shape)
    for count in (1, shape[dim], 2 * shape[dim]):
        index = smaller(shape, dim, count, np.random.default_rng(8))
        for one in (x, np.asfortranarray(x), x[::-1]):
            assert_same(native(one, index, dim=dim), fallback(one, index, dim=dim))


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", ["sum", "mean", "prod", "amax", "amin"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool"])
@pytest.mark.parametrize("shape, dim", SHAPES)
def test_what_meets_in_one_place_is_combined(shape, dim, dtype, reduce, include_self):
    """In the index's order, so that sums have NumPy's bits; a NaN wins over all; what the index does not name stays."""
    if dtype == "bool" and reduce == "mean":
        pytest.skip("the frontend refuses it")
    native, fallback = kernel("scatter_reduce")
    x = awkward(dtype, 80)[: int(np.prod(shape))].reshape(shape)
    options = {"dim": dim, "reduce": reduce, "include_self": include_self}
    for count in (1, 2 * shape[dim]):
        index = smaller(shape, dim, count, np.random.default_rng(8))
        src = awkward(dtype, 400)[-index.size :].reshape(index.shape)
        backwards = np.asfortranarray(src[::-1])[::-1]
        for one, given in ((x, src), (np.asfortranarray(x), backwards)):
            assert_same(native(one, index, given, **options), fallback(one, index, given, **options))


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", ["sum", "mean", "prod"])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("shape, dim", SHAPES)
def test_complex_numbers_are_combined(shape, dim, dtype, reduce, include_self):
    """To the last bits of NumPy's, an infinity among them; they are gathered bit by bit."""
    native, fallback = kernel("scatter_reduce")
    random, count = np.random.default_rng(8), int(np.prod(shape))
    x = (random.standard_normal(count) + 1j * random.standard_normal(count)).astype(dtype).reshape(shape)
    x[0] = np.inf
    index = smaller(shape, dim, 2 * shape[dim], random)
    src = (random.standard_normal(index.shape) + 1j * random.standard_normal(index.shape)).astype(dtype)
    options = {"dim": dim, "reduce": reduce, "include_self": include_self}
    for one, given in ((x, src), (np.asfortranarray(x), np.asfortranarray(src))):
        with np.errstate(invalid="ignore"):
            got, expected = native(one, index, given, **options), fallback(one, index, given, **options)
        assert got.dtype == dtype
        for part in ("real", "imag"):
            np.testing.assert_allclose(getattr(got, part), getattr(expected, part), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(kernel("gather")[0](x, index, dim=dim), kernel("gather")[1](x, index, dim=dim))


def test_a_larger_source_is_read_where_the_index_is():
    """And ``out`` is the array itself, where nothing else changes."""
    native, _ = kernel("scatter_reduce")
    x, index = np.zeros((2, 3), np.float32), np.array([[2, 2]])
    made = native(
        x, index, np.array([[1, 2, 9], [9, 9, 9]], np.float32), dim=1, reduce="mean", include_self=False, out=x
    )
    assert made is x
    assert x.tolist() == [[0, 0, 1.5], [0, 0, 0]]


@pytest.mark.parametrize("wrong", [3, -1])
def test_numbers_outside_are_refused(wrong):
    """Before anything is written."""
    x, index = np.zeros((3, 4), np.float32), np.array([[0, wrong]])
    with pytest.raises(IndexError):
        kernel("gather")[0](x, index, dim=0)
    with pytest.raises(IndexError):
        kernel("scatter_reduce")[0](x, index, np.ones((1, 2), np.float32), dim=0, reduce="sum", out=x)
    assert not x.any()
