"""Columns of windows, and small kernels over one row of elements, beside NumPy's."""

import numpy as np
import pytest

from .native import awkward, kernel, layouts, needs_native

pytestmark = [needs_native, pytest.mark.usefixtures("isa")]

# Sizes of an image, and kernel, stride, padding, dilation.
WINDOWS = [
    ((2, 3, 4, 5), (2, 3), (1, 1), (0, 0), (1, 1)), ((1, 2, 7, 6), (3, 3), (2, 1), (1, 2), (1, 2)),
    ((1, 1, 1, 1), (3, 1), (1, 1), (2, 0), (1, 1)), ((0, 2, 4, 4), (2, 2), (2, 2), (0, 0), (1, 1)),
    ((3, 0, 4, 4), (2, 2), (2, 2), (0, 0), (1, 1)), ((1, 2, 3, 9), (1, 2), (1, 4), (0, 3), (1, 5)),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64", "bool"])
@pytest.mark.parametrize("shape, window, stride, padding, dilation", WINDOWS)
def test_windows_as_columns_and_back(shape, window, stride, padding, dilation, dtype):
    """The elements that NumPy's kernel takes, infinities and NaN too, and the sums that it makes, to a rounding."""
    counts = tuple([(n + 2 * p - d * (k - 1) - 1) // s + 1
                    for n, k, s, p, d in zip(shape[2:], window, stride, padding, dilation, strict=True)])  # fmt: skip
    options = {"counts": counts, "kernel": window, "stride": stride, "padding": padding, "dilation": dilation}
    unfold, fold = kernel("unfold"), kernel("fold")
    image = np.resize(awkward(dtype, 300), shape)
    for x in (image, np.asfortranarray(image), image[..., ::-1]):
        np.testing.assert_array_equal(unfold[0](x, **options), unfold[1](x, **options))
    columns = np.random.default_rng(8).standard_normal(
        (shape[0], shape[1] * window[0] * window[1], counts[0] * counts[1])
    )
    columns, eps = (columns > 1, 0) if dtype == "bool" else (columns.astype(dtype), np.finfo(dtype).eps)
    for g in (columns, np.asfortranarray(columns), columns[:, :, ::-1]):
        got, expected = fold[0](g, shape=shape, **options), fold[1](g, shape=shape, **options)
        assert got.dtype == expected.dtype
        np.testing.assert_allclose(got, expected, rtol=4 * eps, atol=4 * eps)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int64", "bool", "complex64"])
def test_values_put_into_larger_planes_and_back(dtype):
    """Each at its number in its plane, of equal numbers the last; numbers outside are NumPy's to refuse."""
    put, back = kernel("max_unpool"), kernel("max_unpool_gradient")
    x = np.resize(awkward(dtype, 60), (2, 3, 2, 5))
    indices = np.random.default_rng(8).integers(0, 42, x.shape)
    shape = (2, 3, 6, 7)
    for one, at in ((x, indices), (np.asfortranarray(x), indices[..., ::-1]), (x[:0], indices[:0])):
        made = put[0](one, at, shape=(len(one), *shape[1:]))
        np.testing.assert_array_equal(made, put[1](one, at, shape=(len(one), *shape[1:])))
        np.testing.assert_array_equal(back[0](made, at), back[1](made, at))
    indices[1, 2, 0, 0] = 42
    for function, first in ((put, x), (back, np.zeros(shape, dtype))):
        with pytest.raises(IndexError):
            function[0](first, indices, **({"shape": shape} if function is put else {}))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool"])
def test_whether_each_is_among_a_few(dtype):
    """NaN is none of any, the two zeros are one; among nothing is nothing."""
    native, fallback = kernel("isin")
    values = awkward(dtype, 40)
    for x in layouts(values).values():
        for among in (values[::7], values[:12].reshape(3, 4).T, values[:0]):
            got, expected = native(x, among), fallback(x, among)
            assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
            np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool", "complex64"]
)
def test_elements_put_by_number(dtype, accumulate):
    """The last of equal numbers stays, or all are added; those below 0 count from the end; x is left as it was, or is `out`."""
    native, fallback = kernel("put")
    x, source = np.arange(12).reshape(3, 4).astype(dtype), np.arange(5, 0, -1).astype(dtype)
    index = np.array([0, -1, 0, 5, -12])
    for one in (x, x.T, x[:, ::-1], x[1]):
        inside = index if one.size == 12 else np.array([0, -1, 0, 2, -4])
        before = one.copy()
        np.testing.assert_array_equal(
            native(one, inside, source, accumulate=accumulate), fallback(one, inside, source, accumulate=accumulate)
        )
        np.testing.assert_array_equal(one, before)
        expected = fallback(one, inside, source, accumulate=accumulate)
        assert native(one, inside, source, accumulate=accumulate, out=one) is one
        np.testing.assert_array_equal(one, expected)
    np.testing.assert_array_equal(native(x, index[:0], source[:0], accumulate=accumulate), x)
    for wrong in (12, -13):
        with pytest.raises(IndexError):
            native(x, np.array([wrong]), source[:1], accumulate=accumulate)


def test_elements_put_over_the_numbers_that_say_where():
    """Numbers and elements in the memory of what is written are read before any of them is written."""
    native, fallback = kernel("put")
    line = np.roll(np.arange(20), -1)  # each says that the next one is written
    for index, source in ((line, np.arange(20)[::-1]), (np.roll(np.arange(20), -1), line)):
        expected = fallback(line, index, source)
        assert native(line, index, source, out=line) is line
        np.testing.assert_array_equal(line, expected)


@pytest.mark.parametrize("dtype", ["float64", "int64"])
def test_exclusive_or_of_all_bits(dtype):
    """Over all dims or some, kept or not, whatever the order in memory, it is NumPy's."""
    native, fallback = kernel("xor_bits")
    x = awkward(dtype, 60).reshape(3, 4, 5)
    whole = [(one, (0, 1, 2)) for one in (x, x.T, x[:0], x[:, ::-1, ::2])] + [(x[1, 1, 1], ())]
    some = [(one, dims) for one in (x, x.T, x[::2, ::-1]) for dims in ((0,), (1,), (2,), (0, 2), (1, 2), (0, 1))]
    for one, dims in whole + some:
        for keepdim in (False, True):
            got, expected = native(one, dim=dims, keepdim=keepdim), fallback(one, dim=dims, keepdim=keepdim)
            assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
            np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("dtype", ["float32", "int8", "float64", "complex64", "bool"])
def test_diagonals_of_matrices(dtype):
    """Wide, tall, turned and empty ones, by dims in either order."""
    native, fallback = kernel("take_diagonal")
    x = np.arange(20).reshape(4, 5).astype(dtype)
    for one in (x, x.T, x[::-1, ::2], x[:0], x[:, :1]):
        for dims in ((0, 1), (1, 0)):
            np.testing.assert_array_equal(
                native(one, dim1=dims[0], dim2=dims[1]), fallback(one, dim1=dims[0], dim2=dims[1])
            )
