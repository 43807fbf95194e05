"""Matrices times vectors in C against sums in double precision: both sides, what is added, layouts, threads."""

import itertools

import numpy as np
import pytest

import tensorcore

from .native import kernel, needs_native
from .test_native_gemm import assert_product, layouts, numbers

pytestmark = [needs_native, pytest.mark.usefixtures("isa")]

FLOATS = [np.float32, np.float64]
# Rows and inner: whole vectors, tails of both, fewer rows than a vector has lanes, rows whole pages apart, short rows.
SIZES = [(16, 32), (37, 67), (70, 16), (3, 300), (1, 40), (40, 1), (9, 1024), (129, 5), (64, 33), (5, 3)]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("rows, inner", SIZES)
def test_both_sides(rows, inner, dtype):
    """A matrix by a vector and a vector by a matrix are right in every layout of both."""
    x, vector = numbers(rows, inner, dtype=dtype), numbers(inner, dtype=dtype)
    matmul = kernel("matmul")[0]
    for matrix, by in itertools.product(layouts(x), (vector, np.repeat(vector, 2)[::2], vector[::-1].copy()[::-1])):
        assert_product(matmul(matrix, by), x, vector)
        assert_product(matmul(by, matrix.T), vector, np.ascontiguousarray(x.T))
        assert_product(matmul(matrix, by[:, None]), x, vector[:, None])
        assert_product(matmul(by[None], matrix.T), vector[None], np.ascontiguousarray(x.T))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("rows, inner", SIZES)
def test_what_is_added(rows, inner, dtype):
    """A vector or a number is added to the product, each times its factor; one times 0 is not read."""
    x, vector = numbers(rows, inner, dtype=dtype), numbers(inner, dtype=dtype)
    addmm = kernel("addmm")[0]
    given = numbers(rows, dtype=dtype)
    for added in (given, np.repeat(given, 3)[::3], given[:1], np.array(given[0])):
        for alpha, beta in ((1, 1), (1, 0.5), (2.0, 1), (-0.25, 4)):
            for matrix in layouts(x):
                made = addmm(added, matrix, vector, beta=beta, alpha=alpha)
                plus = np.broadcast_to(added, (rows,)).astype(np.float64) * beta
                assert_product(made, x * dtype(alpha), vector, plus)
    assert_product(addmm(np.full(rows, np.nan, dtype), x, vector, beta=0, alpha=1), x, vector)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("rows, inner", SIZES)
def test_linear_layers(rows, inner, dtype):
    """A layer of one feature, of one row, and of a vector adds its bias."""
    x, weight, bias = (numbers(*shape, dtype=dtype) for shape in ((rows, inner), (1, inner), (1,)))
    linear = kernel("linear")[0]
    assert_product(linear(x, weight, bias), x, weight.T, bias)
    assert_product(linear(x, weight, None), x, weight.T)
    outs = numbers(rows, dtype=dtype)
    assert_product(linear(weight, x, outs), weight, x.T, outs)
    assert_product(linear(weight[0], x, outs), weight[0], x.T, outs)
    assert_product(linear(weight[0], x, None), weight[0], x.T)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("inner", [33, 67, 70, 5])
def test_what_is_not_finite_stays_in_its_row(inner, dtype):
    """Infinities and NaN give what NumPy's product gives, in their own rows; elements of the last vector are met once, denormals too."""
    x, matmul = numbers(70, inner, dtype=dtype), kernel("matmul")[0]
    x[1, 0] = x[4, 0] = x[69, inner - 2] = np.inf
    x[2, -1] = x[4, -1] = -np.inf
    x[3, inner // 2] = np.nan
    one = np.ones(inner, dtype)
    tiny = np.full((70, inner), np.finfo(dtype).smallest_subnormal, dtype)
    for y in (x, np.asfortranarray(x)):
        np.testing.assert_allclose(matmul(y, one), y.astype(np.float64).sum(1), 1e-5, 1e-5)
    for y in (tiny, np.asfortranarray(tiny)):
        np.testing.assert_array_equal(matmul(y, one), tiny[:, 0] * dtype(inner))


@pytest.mark.parametrize("dtype", FLOATS)
def test_threads_change_no_bit(dtype):
    """Pieces of rows and of columns on several threads give the bits that one thread gives."""
    vector, added = numbers(1000, dtype=dtype), numbers(1237, dtype=dtype)
    x, y = numbers(1237, 1000, dtype=dtype), numbers(40, 3001, dtype=dtype)
    made = []
    for threads in (1, 3):
        tensorcore.set_num_threads(threads)
        matmul, addmm = kernel("matmul")[0], kernel("addmm")[0]
        made.append([matmul(x, vector), addmm(added, x, vector, beta=2, alpha=3), matmul(vector[:40], y)])
    for one, other in zip(*made, strict=True):
        np.testing.assert_array_equal(one, other)
