"""Rows beside what is broadcast to them: operands are written out in the first cache, and short rows copied many at a time."""

import numpy as np
import pytest

import tensorcore as tc

from .native import assert_same, awkward, kernel, needs_native

pytestmark = [needs_native, pytest.mark.usefixtures("isa")]

# Widths under, at and over a vector, half of one and the longest row that is written out; enough rows for several pieces.
WIDTHS = [2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 40, 63, 64, 65, 100]
DTYPES = ["float32", "float64", "int8", "int16", "int64"]


def of_shape(dtype, *shape):
    """Awkward values, repeated, so that neighbours differ."""
    return np.resize(awkward(dtype, 97), shape)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", WIDTHS)
def test_rows_beside_columns_and_slices(width, dtype):
    """A number for each row, on either side, one row for all, both, short rows that lie apart, and numbers beside them."""
    add, twin = kernel("add")
    for rows in (1, 5, 700):
        matrix, column = of_shape(dtype, rows, width), of_shape(dtype, rows, 1)
        row, wide = of_shape(dtype, 1, width), of_shape(dtype, rows, width + 3)
        for pair in (
            (matrix, column), (column, matrix), (column, row), (row, column), (wide[:, 1 : width + 1], matrix),
            (wide[:, :width], column), (wide[:, -width:], wide[:, :width]), (wide[::-1, :width], column[::-1]),
        ):  # fmt: skip
            assert_same(add(*pair), np.ascontiguousarray(twin(*pair)))


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_beside_a_number_each_in_their_own_place(dtype, name):
    """The last vector of a row, which lies over the one before it, is of the row as it was; widths up to where rows are calls."""
    op, twin = kernel(name)
    for width in (*WIDTHS, 128, 129, 255, 257):
        matrix, column = of_shape(dtype, 70, width), of_shape(dtype, 70, 1)
        for pair in ((matrix, column), (column, matrix)):
            want, place = np.asarray(twin(*pair)), matrix.copy()
            assert_same(op(*(place if one is matrix else one for one in pair), out=place), want)
            apart = np.repeat(matrix, 2, axis=0)[::-2]
            assert_same(
                op(*(apart if one is matrix else column[::-1] for one in pair)), np.ascontiguousarray(want[::-1])
            )


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_beside_rows_that_lie_apart(dtype, name):
    """Each operand's rows as far apart as it has them, backwards, in rows of rows, and in the place of either one."""
    op, twin = kernel(name)
    for width in (*WIDTHS, 128, 129, 255, 257):
        matrix, wide = of_shape(dtype, 70, width), of_shape(dtype, 140, width + 5)
        for other in (wide[:70, 1:-4], wide[::-2, 5:], matrix[::-1], wide[:70, :width]):
            for pair in ((matrix, other), (other, matrix), (other, wide[1::2, 2:-3])):
                assert_same(op(*pair), np.ascontiguousarray(twin(*pair)))
            place = matrix.copy()
            assert_same(op(place, other, out=place), np.asarray(twin(matrix, other)))
            place = matrix.copy()
            assert_same(op(other, place, out=place), np.asarray(twin(other, matrix)))
        cubes = wide.reshape(7, 20, width + 5)
        for pair in ((cubes[:, :10, 1:-4], cubes[:, ::2, 5:]), (cubes[:, 10:, 5:], matrix.reshape(7, 10, width)),
                     (cubes[:, :1, 5:], cubes[:1, :10, 5:])):  # fmt: skip
            assert_same(op(*pair), np.ascontiguousarray(twin(*pair)))


@pytest.mark.parametrize("width", WIDTHS)
def test_rows_of_several_dims(width):
    """What is broadcast along an outer, a middle or the last dim, or along two of them, whose rows are carried over."""
    multiply, twin = kernel("mul")
    values = of_shape("float32", 6, 37, width)
    for other in ((6, 1, 1), (1, 37, 1), (37, 1), (6, 1, width), (6, 37, 1), (1, 1, width)):
        other = of_shape("float32", *other)
        assert_same(multiply(values, other), twin(values, other))
        assert_same(multiply(other, values), twin(other, values))


@pytest.mark.parametrize("width", [3, 8, 20, 49])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_halves_in_short_rows(dtype, width):
    """Rows of half types beside a number each have the bits of the same numbers laid out in full."""
    values = tc.from_numpy(of_shape("float32", 300, width)).nan_to_num(0, 3, -3).to(getattr(tc, dtype))
    column = values[:, :1].clone()
    divided, in_full = values / (column + 1), values / (column + 1).expand(300, width).contiguous()
    assert tc.equal(divided.view(tc.int16), in_full.view(tc.int16))


@pytest.mark.parametrize("width", WIDTHS)
def test_comparisons_and_choices_in_short_rows(width):
    """Bools made of short rows, and choices by one bool for each row, on each side."""
    less, less_twin = kernel("lt")
    where, where_twin = kernel("where")
    values, column = of_shape("float32", 300, width), of_shape("float32", 300, 1)
    assert_same(less(values, column), less_twin(values, column))
    mask = np.resize([True, False, False], (300, 1))
    for a, b in ((values, column), (column, values), (values, values[::-1].copy()), (values, 2.5), (column, column)):
        assert_same(where(mask, a, b), where_twin(mask, a, b))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", [*WIDTHS, 300, 700])
def test_copies_of_short_rows(width, dtype):
    """Slices, repeated numbers and repeated rows become row-major arrays, or are put into slices, and nothing beside them changes."""
    contiguous, twin = kernel("contiguous")
    wide, column = of_shape(dtype, 130, width + 2), of_shape(dtype, 130, 1)
    for one in (wide[:, 1:-1], wide[::2, :width], np.broadcast_to(column, (130, width)), np.broadcast_to(wide[:1, :width], (130, width)),
                np.broadcast_to(wide[:13, None, :width], (13, 10, width))):  # fmt: skip
        assert_same(contiguous(one), twin(one))
    around = tc.from_numpy(np.full((130, width + 2), 7, dtype))
    around[:, 1:-1] = tc.from_numpy(wide[:, 2:])
    assert_same(around.numpy()[:, 1:-1], wide[:, 2:])
    assert (around[:, 0] == 7).all()
    assert (around[:, -1] == 7).all()


def test_into_the_place_of_an_operand():
    """Rows are written over the operand that lies as the result does; the other one is read as it was."""
    values, column = tc.from_numpy(of_shape("int64", 700, 5)), tc.from_numpy(of_shape("int64", 700, 1))
    expected = values.numpy() + column.numpy()
    assert_same(values.add_(column).numpy(), expected)
