"""Matrix products with short sums, which read both sides where they lie, against sums made one step after the other."""

import numpy as np
import pytest

import tensorcore

from .native import kernel, needs_native

pytestmark = [needs_native, pytest.mark.usefixtures("products")]

RANDOM = np.random.default_rng(8)
SIZES = [
    (rows, inner, columns)
    for rows in (1, 2, 3, 5, 16, 17)
    for inner in (1, 3, 16, 17)
    for columns in (33, 64, 100, 3001)
] + [
    (40_001, 3, 16),
    (1027, 4, 32),
    (301, 16, 128),
    (7001, 2, 160),
]


def numbers(*shape, dtype):
    if np.dtype(dtype).kind == "i":
        return RANDOM.integers(-1000, 1000, shape, dtype=dtype)
    return RANDOM.standard_normal(shape).astype(dtype)


def summed(x, y, plus=0):
    """The product, each of whose sums begins with what is added and has one term after the other, and what rounding may do to it."""
    wide = np.int64 if x.dtype.kind == "i" else np.float64
    exact = x.astype(wide) @ y.astype(wide) + plus
    size = abs(x).astype(wide) @ abs(y).astype(wide) + abs(plus)
    return exact, 0 if wide is np.int64 else (x.shape[-1] + 1) * np.finfo(x.dtype).eps * size


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
def test_short_sums(dtype, threads):
    """Few rows by many columns and many rows by few, with sums up to as long as these ways take and longer, on any threads."""
    tensorcore.set_num_threads(threads)
    for rows, inner, columns in SIZES:
        x, y = numbers(rows, inner, dtype=dtype), numbers(inner, columns, dtype=dtype)
        exact, bound = summed(x, y)
        for left in (x, np.asfortranarray(x), np.repeat(x, 2, 1)[:, ::2], x[::-1].copy()[::-1]):
            for right in (y, np.asfortranarray(y), np.repeat(y, 2, 0)[::2], np.repeat(y.T, 2, 0)[::2].T):
                got = kernel("matmul")[0](left, right)
                assert (got.dtype, got.shape) == (x.dtype, exact.shape)
                assert (abs(got - exact) <= bound).all(), (rows, inner, columns)


@pytest.mark.parametrize("shape", [(5, 70), (70,), (5, 1), (1, 1)])
def test_what_is_added_is_where_the_result_goes(shape):
    """A sum may begin with what lies where the product is written, also in the columns behind the last whole vector."""
    x, y = tensorcore.tensor(numbers(5, 3, dtype=np.float32)), tensorcore.tensor(numbers(3, 70, dtype=np.float32))
    plus = tensorcore.tensor(numbers(*shape, dtype=np.float32))
    exact, bound = summed(x.numpy(), y.numpy(), plus.numpy().astype(np.float64))
    whole = plus.expand(5, 70).clone()
    for got in (tensorcore.addmm(plus, x, y), whole.clone().addmm_(x, y), tensorcore.addmm(whole, x, y, out=whole)):
        assert (abs(got.numpy() - exact) <= bound).all()


@pytest.mark.parametrize("columns", [64, 70])
def test_infinities_and_nan_stay_in_their_rows_and_columns(columns):
    """An infinity by a zero is NaN, and nothing beside its row and its column is."""
    x, y = np.ones((6, 4), np.float32), np.ones((4, columns), np.float32)
    x[2, 1], y[1, 5], y[3, columns - 1], y[0, 9] = np.inf, 0, np.nan, 1e-45
    got = kernel("matmul")[0](x, y)
    assert np.isnan(got[2, 5])
    assert np.isnan(got[:, -1]).all()
    assert np.isinf(np.delete(got[2], [5, columns - 1])).all()
    assert np.isfinite(np.delete(np.delete(got, 2, 0), columns - 1, 1)).all()


def test_nothing_beside_the_sides_is_read():
    """Rows and columns between other numbers take nothing of them."""
    left, right = np.full((5, 9), np.nan, np.float32), np.full((6, 90), np.nan, np.float32)
    left[:, 2:5], right[1:4, 3:80] = numbers(5, 3, dtype=np.float32), numbers(3, 77, dtype=np.float32)
    exact, bound = summed(left[:, 2:5], right[1:4, 3:80])
    assert (abs(kernel("matmul")[0](left[:, 2:5], right[1:4, 3:80]) - exact) <= bound).all()
