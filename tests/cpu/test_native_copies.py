"""Copies whose rows are short: dims in other orders and turned around, parts joined side by side."""

import itertools

import numpy as np
import pytest

import tensorcore as tc

from .native import assert_same, awkward, kernel, needs_native

pytestmark = [needs_native, pytest.mark.usefixtures("isa")]

# Rows of one element and of two, of one move and of two that overlap, of a vector, of several and of what is worth a call.
WIDTHS = [1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 17, 31, 33, 64, 70, 129, 300]
DTYPES = ["float32", "float64", "int8", "float16"]


def of_shape(dtype, *shape):
    """Awkward values, repeated, so that neighbours differ."""
    return np.resize(awkward(dtype, 97), shape)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", WIDTHS)
def test_orders_and_slices_of_short_rows(width, dtype):
    """Dims in every order, slices, steps backwards and repeated rows, with few rows and with blocks of them."""
    contiguous, twin = kernel("contiguous")
    for shape in ((1, 1), (3, 2), (2, 70), (150, 3)):
        values = of_shape(dtype, *shape, width)
        for order in itertools.permutations(range(3)):
            assert_same(contiguous(values.transpose(order)), twin(values.transpose(order)))
        wide = of_shape(dtype, *shape, width + 2)
        for one in (
            wide[..., 1:-1],
            wide[::-1, :, :width],
            wide[:, ::-1, 2:],
            wide[:, :1],
            np.broadcast_to(wide[:1], wide.shape),
        ):
            assert_same(contiguous(one), twin(one))
    deep = of_shape(dtype, 40, 2, 3, width + 1)[..., 1:]
    assert_same(contiguous(deep.transpose(2, 0, 1, 3)), twin(deep.transpose(2, 0, 1, 3)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", WIDTHS)
def test_flips_of_short_rows(width, dtype):
    """Rows turned around, their order, and both, of arrays in row-major order and of slices of others."""
    flip, twin = kernel("flip")
    for shape in ((1, 1), (5, 2), (2, 70), (150, 3)):
        values = of_shape(dtype, *shape, width + 1)
        for one in (values, values[..., 1:], values.transpose(1, 0, 2)):
            for dims in ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)):
                assert_same(flip(one, dims=dims), twin(one, dims=dims))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", WIDTHS)
def test_short_rows_side_by_side(width, dtype):
    """Parts of equal and of other widths, slices, columns, rows backwards, one row for all, and dims in other orders."""
    cat, twin = kernel("cat")
    for rows in (1, 3, 700):
        values, other = of_shape(dtype, rows, width), of_shape(dtype, rows, width + 3)
        row = np.broadcast_to(other[:1, 1:], (rows, width + 2))
        for parts in (
            [values, values[::-1].copy()], [values, other], [other[:, 1:], values, other[:, :1]], [other[:, ::2], values],
            [other[::-1], values, other[:, ::-1]], [values, row, other], [np.asfortranarray(values), values],
        ):  # fmt: skip
            shape = (rows, sum(part.shape[1] for part in parts))
            assert_same(cat(parts, dim=1, shape=shape), twin(parts, dim=1, shape=shape))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", WIDTHS)
def test_short_rows_stacked(width, dtype):
    """Arrays in row-major order, slices and columns of others, along a first, a middle and the last dim."""
    stack, twin = kernel("stack")
    for rows in (1, 500):
        values, wide = of_shape(dtype, rows, width), of_shape(dtype, rows, width + 2)
        for parts in (
            [values, wide[:, :width]],
            [values, values, wide[:, 2:]],
            [wide[:, 1:-1].copy()],
            [wide[::-1, -width:]] * 4,
        ):
            for dim in range(3):
                assert_same(stack(parts, dim=dim), twin(parts, dim=dim))


@pytest.mark.parametrize("width", [1, 6, 12, 20, 40, 130, 700])
def test_short_rows_of_large_results(width):
    """Results that are put together in order: of rows that are written at once, in the first cache, and one by one, past the caches too."""
    for size in (3 << 20, 18 << 20):
        rows = size // (width * 12)
        values = np.arange(rows * width, dtype=np.float32).reshape(rows, width)
        parts = [values, values[::-1], values]
        shape = (rows, 3 * width)
        assert_same(kernel("cat")[0](parts, dim=1, shape=shape), np.concatenate(parts, 1))


@pytest.mark.parametrize("size", [(1 << 14) - 1, 1 << 14, (1 << 14) + 1, 100_003])
def test_many_bytes_side_by_side(size):
    """Wherever source and result begin, a few lines or bytes apart but for whole pages too; what lies around is left alone."""
    copy, _ = kernel("copy")
    values = np.resize(np.arange(251, dtype=np.uint8), size + 8192)
    room = np.empty(size + 8192, np.uint8)
    for start in (0, 1, 63, 64):
        for behind in (0, 1, 64, 65, 448, 511, 512, 2048, 4032, 4095):
            source, place = values[start:][:size], room[(start + behind) % 4096 :][:size]
            room.fill(255)
            copy(place, source)
            assert (place == source).all()
            assert (room == 255).sum() == 8192
    assert_same(kernel("clone")[0](values[3:]), values[3:])
    one = values.copy()
    copy(one, one)
    assert (one == values).all()


def test_parts_of_one_memory():
    """A part may be joined with views of itself, and what is written into a slice does not touch what lies beside it."""
    x = tc.arange(30).reshape(10, 3)
    assert tc.cat([x[:, 1:], x[:, :1]], 1).tolist() == [[3 * i + 1, 3 * i + 2, 3 * i] for i in range(10)]
    around = tc.full((10, 5), -1)
    around[:, 1:4] = x.flip(1)
    assert around.tolist() == [[-1, 3 * i + 2, 3 * i + 1, 3 * i, -1] for i in range(10)]


ROLLS = [((2, 1, 2), (3, 3, 3), (0, 1, 2)), ((2, 1, 3), (1,), (0,)), ((3, 1, 1, 5), (1, 2), (0, 3)), ((4, 3, 2), (1, 1), (0, 2)),
         ((4, 3, 2), (2, 1), (0, 1)), ((70, 1, 2), (7, 1), (0, 2))]  # fmt: skip


@pytest.mark.parametrize("shape, shifts, dims", ROLLS)
def test_rolls_around_dims_of_one_element(shape, shifts, dims):
    """Rows follow one another in the source only where no dim outside is rolled, dims of one element among them."""
    values = np.arange(np.prod(shape)).reshape(shape)
    for dtype in ("int64", "uint8", "float32"):
        got = kernel("roll")[0](values.astype(dtype), shifts=shifts, dims=dims)
        np.testing.assert_array_equal(got, np.roll(values, shifts, dims).astype(dtype))
