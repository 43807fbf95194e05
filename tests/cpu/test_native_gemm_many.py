"""Batches of small matrix products in C against NumPy's, in every layout, and what is made of them."""

import numpy as np
import pytest

import tensorcore

from .native import awkward, kernel, needs_native

pytestmark = [needs_native, pytest.mark.usefixtures("isa")]

RANDOM = np.random.default_rng(9)
DTYPES = [np.float32, np.float64, np.int32, np.int64]


def numbers(*shape, dtype=np.float32):
    values = RANDOM.standard_normal(shape) if np.dtype(dtype).kind == "f" else RANDOM.integers(-1000, 1000, shape)
    return values.astype(dtype)


def assert_product(got, x, y, plus=0):
    """Integers are exact, floats as near as rounding each step of the sum leaves them."""
    assert type(got) is np.ndarray
    exact = (
        np.matmul(x, y) + plus if x.dtype.kind == "i" else np.matmul(x.astype(np.float64), y.astype(np.float64)) + plus
    )
    assert (got.dtype, got.shape) == (x.dtype, exact.shape)
    assert got.flags.c_contiguous
    if x.dtype.kind == "i":
        np.testing.assert_array_equal(got, exact)
        return
    sums = np.matmul(abs(x.astype(np.float64)), abs(y.astype(np.float64))) + abs(np.asarray(plus, np.float64))
    assert (abs(got - exact) <= (x.shape[-1] + 1) * np.finfo(x.dtype).eps * sums).all()


def layouts(x):
    """A batch as it is made; its matrices turned over; batch behind them; parts of longer rows, beside NaN; backwards."""
    yield x
    yield np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2)
    yield np.ascontiguousarray(x.transpose(1, 2, 0)).transpose(2, 0, 1)
    beside = np.full((x.shape[0], x.shape[1] + 2, x.shape[2] + 3), np.nan if x.dtype.kind == "f" else 7, x.dtype)
    beside[:, 1:-1, 2:-1] = x
    yield beside[:, 1:-1, 2:-1]
    yield x[::-1, ::-1, ::-1].copy()[::-1, ::-1, ::-1]


@pytest.mark.parametrize("dtype", DTYPES)
def test_tiny_matrices(dtype):
    """Products of one to five rows, columns and terms are right in every pair of layouts."""
    matmul = kernel("matmul")[0]
    for rows, inner, columns in np.ndindex(5, 5, 5):
        x, y = numbers(7, rows + 1, inner + 1, dtype=dtype), numbers(7, inner + 1, columns + 1, dtype=dtype)
        for a in layouts(x):
            for b in layouts(y):
                assert_product(matmul(a, b), x, y)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("inner", [1, 3, 4, 17, 64, 128, 129])
def test_every_width(dtype, inner):
    """Rows and columns that fill no block or vector are right, however many whole ones and rests they are."""
    for size in [*range(1, 20), 31, 32, 33, 47, 63, 65]:
        x, y = numbers(3, 6, inner, dtype=dtype), numbers(3, inner, size, dtype=dtype)
        assert_product(kernel("matmul")[0](x, y), x, y)
        assert_product(kernel("matmul_nt")[0](x, np.ascontiguousarray(y.swapaxes(1, 2))), x, y)
        turned, other = y.swapaxes(1, 2), x.swapaxes(1, 2)
        assert_product(kernel("matmul_tn")[0](y, np.ascontiguousarray(other)), turned, other)


@pytest.mark.parametrize("dtype", DTYPES)
def test_vectors_and_numbers(dtype):
    """Matrices by one column, one row by matrices, rows by columns and columns by rows are batches too, in every layout."""
    matmul = kernel("matmul")[0]
    for size in [1, 2, 3, 4, 5, 8, 15, 33, 70]:
        square, column = numbers(6, size, size, dtype=dtype), numbers(6, size, 1, dtype=dtype)
        row = np.ascontiguousarray(column.swapaxes(1, 2))
        for x, y in ((square, column), (row, square), (row, column), (column, row)):
            for a in layouts(x):
                for b in layouts(y):
                    assert_product(matmul(a, b), x, y)


@pytest.mark.parametrize(("left", "right"), [
    ((2, 3, 4, 3, 3), (2, 3, 4, 3, 2)), ((2, 1, 4, 3, 3), (5, 1, 3, 2)), ((1, 1, 3, 3), (6, 5, 3, 3)), ((3, 3), (9, 3, 4)),
    ((0, 3, 3), (0, 3, 3)), ((4, 3, 0), (4, 0, 2)),
])  # fmt: skip
def test_batches_of_several_dims(left, right):
    """Dims of the batch are broadcast, in the order in which they are given or another, and empty ones give what NumPy gives."""
    x, y = numbers(*left), numbers(*right)
    assert_product(kernel("matmul")[0](x, y), x, y)
    front = tuple(reversed(range(x.ndim - 2)))
    if len(front) == y.ndim - 2:
        a, b = x.transpose(*front, -2, -1), y.transpose(*front, -2, -1)
        assert_product(kernel("matmul")[0](a, b), a, b)
    middle = np.ascontiguousarray(np.moveaxis(x, -2, 0))
    assert_product(kernel("matmul")[0](np.moveaxis(middle, 0, -2), y), x, y)


@pytest.mark.parametrize("size", [2, 3, 4, 9])
def test_values_out_of_the_ordinary(size):
    """Infinities, NaN, zeros and denormals come out as NumPy has them, and one matrix takes nothing from its neighbours."""
    values = awkward(np.float32, 67 * size * size).reshape(67, size, size)
    one = np.broadcast_to(np.eye(size, dtype=np.float32), values.shape)
    for name in ("matmul", "matmul_nt", "matmul_tn"):
        got, expected = (run(values, one) for run in kernel(name))
        np.testing.assert_array_equal(got, expected)
    x = numbers(67, size, size)
    x[30] = np.nan
    assert (np.isnan(kernel("matmul")[0](x, x)).any((1, 2)) == (np.arange(67) == 30)).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("terms", [1024, 1150, 20_001])
def test_long_sums_of_few_rows_and_columns(dtype, terms):
    """Points turned over times points, with a matrix added or not, are right in every layout, and the same on any number of threads."""
    for rows, columns in ((2, 2), (3, 3), (4, 2), (3, 4), (4, 5), (2, 16), (7, 9), (16, 4), (16, 16)):
        added = numbers(rows, columns, dtype=dtype)
        x, y = numbers(1, rows, terms, dtype=dtype), numbers(1, terms, columns, dtype=dtype)
        exact = np.matmul(x[0].astype(np.longdouble), y[0].astype(np.longdouble))
        sums = np.matmul(abs(x[0]), abs(y[0]))
        for a in layouts(x):
            for b in layouts(y):
                tensorcore.set_num_threads(3)
                got = kernel("matmul")[0](a[0], b[0])
                assert (abs(got - exact) <= 140 * np.finfo(dtype).eps * sums).all()
                tensorcore.set_num_threads(1)
                np.testing.assert_array_equal(got, kernel("matmul")[0](a[0], b[0]))
                for one in (added, added[:1]):
                    with_one = kernel("addmm")[0](one, a[0], b[0], beta=1.0, alpha=1.0)
                    assert (abs(with_one - (exact + one)) <= 140 * np.finfo(dtype).eps * (sums + abs(one))).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_many_short_rows_by_a_vector(dtype):
    """Rows of up to a vector, one behind the other, apart or backwards, the last at the end of its memory; a NaN stays in its row."""
    matmul = kernel("matmul")[0]
    for inner in (*range(1, 10), 13, 16, 17):
        by = numbers(inner, 1, 1, dtype=dtype).ravel()
        for rows in (63, 64, 97, 1000):
            wide = numbers(rows, 1, inner + 3, dtype=dtype)[:, 0]
            for x in (np.ascontiguousarray(wide[:, :inner]), wide[:, 3:], wide[::-1, 1 : inner + 1]):
                exact, sums = x.astype(np.longdouble) @ by, abs(x) @ abs(by)
                assert (abs(matmul(x, by) - exact) <= 2 * inner * np.finfo(dtype).eps * sums).all()
                column = matmul(x, by[:, None])
                assert column.shape == (rows, 1)
                assert (abs(column[:, 0] - exact) <= 2 * inner * np.finfo(dtype).eps * sums).all()
            x = np.ascontiguousarray(wide[:, :inner])
            x[rows // 2, 0] = np.nan
            assert (np.isnan(matmul(x, by)) == (np.arange(rows) == rows // 2)).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_long_sums_of_batches_and_of_a_matrix_by_itself(dtype):
    """Each product of a batch has the bits of that product alone; rows by themselves, turned over, are right for few of them."""
    matmul = kernel("matmul")[0]
    x, y = numbers(5, 3, 1300, dtype=dtype), numbers(5, 1300, 6, dtype=dtype)
    made = matmul(x, y)
    for i in range(5):
        np.testing.assert_array_equal(made[i], matmul(x[i], y[i]))
    np.testing.assert_array_equal(matmul(x, y[:1]), np.stack([matmul(one, y[0]) for one in x]))
    for rows in (1, 2, 3, 5):
        one = numbers(rows, 1, 2500, dtype=dtype)[:, 0]
        exact, sums = (a.astype(np.longdouble) @ a.T.astype(np.longdouble) for a in (one, abs(one)))
        assert (abs(matmul(one, one.T) - exact) <= 140 * np.finfo(dtype).eps * sums).all()


@pytest.mark.parametrize("shape", [(20_000, 3, 3), (3000, 9, 9), (2, 4000, 4, 4)])
def test_threads(shape):
    """Any number of threads gives the same bits."""
    x, y = numbers(*shape), numbers(*shape)
    three = [kernel("matmul")[0](a, y) for a in (x, x.swapaxes(-1, -2))]
    tensorcore.set_num_threads(1)
    for got, a in zip(three, (x, x.swapaxes(-1, -2)), strict=True):
        np.testing.assert_array_equal(got, kernel("matmul")[0](a, y))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("added", [(5000, 3, 2), (3, 2), (1, 2), (2,), (1, 3, 1), ()])
def test_products_added_to(dtype, added):
    """A batch of products is added to a tensor that is broadcast to it."""
    x, y, plus = numbers(5000, 3, 4, dtype=dtype), numbers(5000, 4, 2, dtype=dtype), numbers(*added, dtype=dtype)
    addmm = kernel("addmm")[0]
    assert_product(addmm(plus, x, y, beta=1, alpha=1), x, y, plus)
    assert_product(addmm(plus, x, y, beta=0, alpha=1), x, y)
    with pytest.raises(ValueError, match="broadcast"):
        addmm(numbers(4, 2, dtype=dtype), x, y, beta=1, alpha=1)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16", "int64"])
def test_outer_products_of_a_batch(dtype):
    """Einstein's sums in which nothing is summed are the products of each pair, the batch in any place."""
    x, y = (tensorcore.tensor(numbers(6, 5, dtype=np.int64) % 8).to(getattr(tensorcore, dtype)) for _ in range(2))
    expected = x[:, :, None] * y[:, None, :]
    assert tensorcore.equal(tensorcore.einsum("bi,bj->bij", x, y), expected)
    assert tensorcore.equal(tensorcore.einsum("bi,bj->jib", x, y), expected.permute(2, 1, 0))
    assert tensorcore.equal(tensorcore.einsum("i,j", x[0], y[1]), x[0][:, None] * y[1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_signs_of_zeros(dtype):
    """A sum of one product is that product, the sign of a zero included."""
    x, y = (
        np.array([-1, 0, 1], dtype).reshape(1, 3, 1).repeat(4, 0),
        np.array([0, -0.0, 2], dtype).reshape(1, 1, 3).repeat(4, 0),
    )
    np.testing.assert_array_equal(np.signbit(kernel("matmul")[0](x, y)), np.signbit(x * y))
