"""Products of integers in C against NumPy's, to the bit: sums wrap around as the dtype does."""

import itertools

import numpy as np
import pytest

import tensorcore

from .native import assert_same, kernel, needs_native
from .test_native_gemm import layouts

pytestmark = [needs_native, pytest.mark.usefixtures("isa")]

RANDOM = np.random.default_rng(8)
DTYPES = [np.int8, np.int16, np.int32, np.int64, np.uint8]


def integers(dtype, *shape):
    """Any values of the dtype, its limits among them."""
    limits = np.iinfo(dtype)
    made = RANDOM.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True)
    made.flat[:2] = [limits.min, limits.max][: made.size]
    return made


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sizes", [(1, 1, 1), (2, 3, 2), (5, 3, 7), (13, 17, 33), (64, 64, 64), (97, 300, 131)])
def test_layouts(dtype, sizes):
    """Products of matrices have NumPy's bits in every pair of layouts, with sizes that leave rests and with those that leave none."""
    rows, inner, columns = sizes
    x, y = integers(dtype, rows, inner), integers(dtype, inner, columns)
    expected = np.matmul(x, y)
    for a, b in itertools.product(layouts(x), layouts(y)):
        assert_same(kernel("matmul")[0](a, b), expected)
        assert_same(kernel("matmul_nt")[0](a, b.T), expected)
        assert_same(kernel("matmul_tn")[0](a.T, b), expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("inner", [1, 3, 4, 67, 128, 1030])
@pytest.mark.parametrize("width", [1, 2, 33, 1100])
def test_vectors(dtype, inner, width):
    """A row or a column by a matrix in any layout, and by another vector, whichever way the matrix lies."""
    x, y, matrix = integers(dtype, inner), integers(dtype, 3 * inner)[::3], integers(dtype, inner, width)
    matmul = kernel("matmul")[0]
    assert_same(matmul(x, y), np.asarray(np.matmul(x, y)))
    for row, one in itertools.product((x, y, x[::-1]), layouts(matrix)):
        assert_same(matmul(row, one), np.matmul(row, one))
        assert_same(matmul(one.T, row), np.matmul(one.T, row))
        assert_same(matmul(row[None], one), np.matmul(row[None], one))
        assert_same(matmul(one.T, row[:, None]), np.matmul(one.T, row[:, None]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("left", "right"), [
    ((3, 4, 5), (3, 5, 6)), ((2, 3, 4, 5), (5, 6)), ((4, 5), (2, 3, 5, 6)), ((2, 1, 4, 5), (3, 5, 6)), ((3, 4, 5), (5,)),
    ((5,), (3, 5, 6)), ((2, 1, 1, 5), (3, 5, 6)), ((2, 1, 4, 5), (3, 5, 1)), ((3, 0, 5), (3, 5, 6)), ((3, 4, 0), (3, 0, 6)),
    ((0,), (0,)), ((40, 30, 50), (40, 50, 20)),
])  # fmt: skip
def test_batches(dtype, left, right):
    """Dims in front are broadcast, those of vectors are left out, and empty ones give what NumPy gives."""
    x, y = integers(dtype, *left), integers(dtype, *right)
    assert_same(kernel("matmul")[0](x, y), np.asarray(np.matmul(x, y)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_left_sides_with_many_zeros(dtype):
    """Rows that are lists of what is not zero, and units that are zero in all rows, give the same; the least number is none."""
    x, y = integers(dtype, 192, 256), integers(dtype, 256, 128)
    some = x * (RANDOM.random(x.shape) < 0.3)
    some[:, ::5] = 0
    some[::12, 10] = np.iinfo(dtype).min
    assert_same(kernel("matmul")[0](some, y), np.matmul(some, y))
    some = x * (RANDOM.random(x.shape[1]) < 0.3)
    some[:, 10] = np.iinfo(dtype).min
    assert_same(kernel("matmul")[0](some, y), np.matmul(some, y))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(7,), (5, 7), (1, 7)])
def test_addmm_and_linear(dtype, shape):
    """What is added may be a row or a matrix, and both may be scaled."""
    x, y, input = integers(dtype, 5, 30), integers(dtype, 30, 7), integers(dtype, *shape)
    assert_same(kernel("addmm")[0](input, x, y, beta=1, alpha=1), input + np.matmul(x, y))
    assert_same(kernel("addmm")[0](input, x, y, beta=0, alpha=1), np.matmul(x, y))
    assert_same(kernel("addmm")[0](input, x, y, beta=3, alpha=2), input * dtype(3) + np.matmul(x, y) * dtype(2))
    if len(shape) == 1:
        weight = np.ascontiguousarray(y.T)
        assert_same(kernel("linear")[0](x, weight, input), input + np.matmul(x, y))
        assert_same(kernel("linear")[0](x, weight, None), np.matmul(x, y))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("inner", [3, 90])
@pytest.mark.parametrize(("beta", "alpha"), [(1, 1), (0, 1), (0, 3), (5, 1), (3, 100), (1, 0)])
def test_factors(dtype, inner, beta, alpha):
    """Vectors, matrices and batches, in steps too, are scaled and added to as NumPy does it, short ones and long ones."""
    x, y = integers(dtype, 3, 12, inner), integers(dtype, 3, inner, 10)[..., ::2]
    addmm, fallback = kernel("addmm")
    for left, right in ((x, y), (x[0], y[1]), (x[0], y[1, :, 2]), (x[2, :, ::-1], y[0])):
        shape = np.matmul(left, right).shape
        for size in (shape, shape[-1:], (1,) * len(shape), (), (*shape[:-1], 1)):
            input = integers(dtype, *size)
            expected = fallback(input, left, right, beta=beta, alpha=alpha)
            assert_same(addmm(input, left, right, beta=beta, alpha=alpha), expected)
    big = 2**60 + 1
    if dtype is np.int64:
        input = integers(dtype, 12, 5)
        expected = fallback(input, x[0], y[0], beta=big, alpha=-big)
        assert_same(addmm(input, x[0], y[0], beta=big, alpha=-big), expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_threads(dtype):
    """Products that several threads share have the same bits."""
    x, y = integers(dtype, 300, 200), integers(dtype, 200, 2500)
    for count in (1, 3):
        tensorcore.set_num_threads(count)
        assert_same(kernel("matmul")[0](x, y), np.matmul(x, y))
        assert_same(kernel("matmul")[0](x[0], y), np.matmul(x[0], y))
        assert_same(kernel("matmul")[0](y.T, x[0]), np.matmul(y.T, x[0]))


def test_two_dtypes_are_left_to_numpy():
    """Operands of two dtypes get NumPy's dtype."""
    x, y = integers(np.int8, 4, 5), integers(np.int16, 5, 6)
    assert_same(kernel("matmul")[0](x, y), kernel("matmul")[1](x, y))
