"""Kernels of sparse tensors in C beside NumPy's and SciPy's: products, orders, softmax, and indices that lie outside."""

import itertools

import numpy as np
import pytest

import tensorcore as torch

from .native import isa, kernel, needs_native  # noqa: F401

pytestmark = [needs_native, pytest.mark.usefixtures("isa")]

ROWS, ACROSS = 9, 7
# The rows of elements: in order or not, some more than once, some rows without any.
PLACES = {
    "in order": [0, 0, 2, 2, 2, 5, 8, 8],
    "as they came": [8, 2, 0, 5, 2, 8, 0, 2],
    "one": [4],
    "all in one row": [3] * 30,
    "none": [],
}


def stored(name, dtype, seed=8):
    """Rows, columns and values."""
    made = np.random.default_rng(seed)
    rows = np.array(PLACES[name], np.int64)
    return rows, made.integers(0, ACROSS, len(rows)), made.standard_normal(len(rows)).astype(dtype)


def starts_of(rows, count=ROWS):
    return np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=count))]).astype(np.int64)


def whole(rows, columns, values):
    made = np.zeros((ROWS, ACROSS))
    np.add.at(made, (rows, columns), values.astype(float))
    return made


def dense(width, dtype, seed=9):
    return np.random.default_rng(seed).standard_normal((ACROSS, width)).astype(dtype)


def close(found, expected, dtype, terms=40):
    """Within as many roundings as there are terms."""
    assert found.dtype == dtype
    assert found.shape == np.shape(expected)
    np.testing.assert_allclose(found, expected, rtol=terms * np.finfo(dtype).eps, atol=terms * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("compressed", [False, True])
def test_products_are_those_of_whole_matrices(name, dtype, compressed):
    """Forward and both gradients, for widths around those of vectors, dense matrices that lie in other orders, and repeated ones."""
    rows, columns, values = stored(name, dtype)
    if compressed:
        rows = np.sort(rows)
    lines = starts_of(rows) if compressed else rows
    options = {"count": ROWS, "compressed": compressed}
    (forward, numpys), (backward, numpys_backward) = kernel("sparse_matmul"), kernel("sparse_matmul_backward")
    for width in (0, 1, 5, 16, 67):
        plain = dense(width, dtype)
        g = np.random.default_rng(10).standard_normal((ROWS, width)).astype(dtype)
        for x in (plain, np.asfortranarray(plain), plain[::-1], np.broadcast_to(plain[:1], plain.shape)):
            found = forward(lines, columns, values, x, **options)
            close(found, whole(rows, columns, values) @ x.astype(float), dtype)
            close(numpys(lines, columns, values, x, **options), found, dtype)
            for sent in (g, np.asfortranarray(g), np.broadcast_to(g[:, :1], g.shape)):
                given = (sent, lines, columns, values, x)
                found = backward(*given, needs=(False, False, True, True), **options)
                assert found[:2] == (None, None)
                close(found[2], np.einsum("ij,ij->i", sent[rows].astype(float), x[columns].astype(float)), dtype)
                close(found[3], whole(rows, columns, values).T @ sent.astype(float), dtype)
                for one, other in zip(
                    found[2:], numpys_backward(*given, needs=(False, False, True, True), **options)[2:], strict=True
                ):
                    close(one, other, dtype)
                assert backward(*given, needs=(False, False, False, False), **options) == (None,) * 4


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_of_two_are_those_of_whole_matrices(dtype):
    """Of all pairs, by rows or by index on either side: columns in order, each once, zeros that were stored with them."""
    native, numpys = kernel("sparse_product")
    for (one, other), compressed in itertools.product(
        itertools.product(PLACES, PLACES), itertools.product([False, True], [False, True])
    ):
        a, b = stored(one, dtype), stored(other, dtype, 9)
        b = (b[0] % ACROSS, b[1], b[2])  # as many rows as a has columns
        given = []
        for (rows, columns, values), packed, count in zip((a, b), compressed, (ROWS, ACROSS), strict=True):
            order = np.argsort(rows, kind="stable") if packed else np.arange(len(rows))
            given += [starts_of(rows[order], count) if packed else rows, columns[order], values[order]]
        options = {"shape": (ROWS, ACROSS, ACROSS), "compressed": compressed}
        rows, columns, values = native(*given, **options)
        for x, y in zip((rows, columns, values), numpys(*given, **options), strict=True):
            assert x.dtype == y.dtype
            np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6)
        if compressed[0]:
            rows = np.repeat(np.arange(ROWS), np.diff(rows))
        keys = rows * ACROSS + columns
        assert (np.diff(keys) > 0).all()
        expected = whole(*a) @ whole(*b)[:ACROSS]
        close(whole(rows, columns, values).astype(dtype), expected, dtype)


def test_wide_products_find_their_columns_in_order():
    """Columns far apart are found by bits of words that have bits, of more than 64 words."""
    native, numpys = kernel("sparse_product")
    made = np.random.default_rng(8)
    across = 64 * 64 * 3 + 5
    rows, columns = made.integers(0, 40, 300), made.integers(0, 50, 300)
    of, far = made.integers(0, 50, 400), made.integers(0, across, 400)
    given = (rows, columns, np.ones(300), of, far, np.ones(400))
    options = {"shape": (40, 50, across), "compressed": (False, False)}
    for x, y in zip(native(*given, **options), numpys(*given, **options), strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("inner", [(), (3,), (2, 0)])
@pytest.mark.parametrize("name", PLACES)
def test_indices_come_in_order_each_once(name, inner, dtype):
    """Blocks of values of one index are added up in the order in which they came."""
    native, numpys = kernel("sparse_coalesce")
    rows, columns, _ = stored(name, dtype)
    values = np.random.default_rng(9).standard_normal((len(rows), *inner)).astype(dtype)
    for indices, shape in (
        (np.stack([rows, columns]), (ROWS, ACROSS)),
        (rows[None], (ROWS,)),
        (np.stack([columns, rows, rows]), (ACROSS, ROWS, 300)),
    ):
        found, expected = native(indices, values, shape=shape), numpys(indices, values, shape=shape)
        np.testing.assert_array_equal(found[0], expected[0])
        close(found[1], expected[1], dtype)


def test_large_indices_are_sorted_by_all_their_digits():
    """Places of more than 32 bits, in falling order."""
    native, _ = kernel("sparse_coalesce")
    indices = np.stack([np.arange(500)[::-1] * 80_000_000, np.arange(500) * 7])
    found, values = native(indices, np.arange(500.0), shape=(1 << 40, 1 << 20))
    np.testing.assert_array_equal(found, indices[:, ::-1])
    np.testing.assert_array_equal(values, np.arange(500.0)[::-1])


@pytest.mark.parametrize("name", ["in order", "one", "all in one row", "none"])
def test_lines_begin_where_their_first_element_is(name):
    """Lines without elements begin where the next one does."""
    native, numpys = kernel("line_starts")
    rows = stored(name, "float32")[0]
    found = native(rows, count=ROWS)
    np.testing.assert_array_equal(found, numpys(rows, count=ROWS))
    np.testing.assert_array_equal(found, starts_of(rows))
    for times in (7, 3000):  # shared out to threads, which begin and end within lines
        many = np.repeat(np.arange(40_000 // times), times)
        np.testing.assert_array_equal(native(many, count=len(many) + 3), starts_of(many, len(many) + 3))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("name", PLACES)
def test_softmax_by_numbers_is_numpys(name, log, dtype):
    """With its gradient, NaN and infinities within, and numbers that no value has."""
    (native, numpys), (backward, numpys_backward) = kernel("sparse_softmax"), kernel("sparse_softmax_backward")
    line = stored(name, dtype)[0]
    plain = 10 * np.random.default_rng(9).standard_normal(len(line)).astype(dtype)
    g = np.random.default_rng(10).standard_normal(len(line)).astype(dtype)
    options = {"count": ROWS, "log": log}
    for special in (None, np.inf, -np.inf, np.nan):
        values = plain.copy()
        if special is not None and len(values):
            values[len(values) // 2] = special
        with np.errstate(all="ignore"):
            close(native(values, line, **options), numpys(values, line, **options), dtype)
            found = backward(g, values, line, needs=(True, False), **options)
            expected = numpys_backward(g, values, line, needs=(True, False), **options)
        close(found[0], expected[0], dtype)
        assert found[1] is expected[1] is None


@pytest.mark.parametrize("wrong", [-1, 9, 1 << 62, -(1 << 63)])
def test_numbers_outside_are_refused(wrong):
    """Nothing is read or written outside: NumPy gets what lies outside, and raises."""
    rows, columns, values = np.array([0, 1, wrong, 2]), np.array([0, 1, 2, 3]), np.ones(4)
    x, options = np.ones((ACROSS, 3)), {"count": ROWS, "compressed": False}
    calls = [
        lambda: kernel("sparse_matmul")[0](rows, columns, values, x, **options),
        lambda: kernel("sparse_matmul")[0](columns, rows, values, x, **options),
        lambda: kernel("sparse_product")[0](
            rows, columns, values, columns, columns, values, shape=(ROWS, ACROSS, ACROSS), compressed=(False, False)
        ),
        lambda: kernel("sparse_coalesce")[0](np.stack([rows, columns]), values, shape=(ROWS, ACROSS)),
        lambda: kernel("sparse_softmax")[0](values, rows, count=ROWS, log=False),
    ]
    for call in calls:
        with pytest.raises((ValueError, IndexError, OverflowError)):
            call()


def test_starts_that_fall_are_left_to_scipy() -> None:
    """Rows of a compressed matrix that do not rise from 0 to the number of elements are none of C's."""
    values, columns, x = np.ones(3), np.arange(3), np.ones((ACROSS, 2))
    native, numpys = kernel("sparse_matmul")
    options = {"count": 3, "compressed": True}
    for starts in ([0, 1, 2, 9], [1, 2, 3, 3]):
        with pytest.raises(ValueError, match="ind"):
            native(np.array(starts), columns, values, x, **options)
    falling = np.array([0, 3, 1, 3]), columns, values, x
    np.testing.assert_array_equal(native(*falling, **options), numpys(*falling, **options))


def test_narrow_indices_and_halves_give_the_same() -> None:
    """A matrix with int32 indices, and one in a half type, multiply as one of int64 and float32."""
    x = torch.randn(ACROSS, 5)
    rows, columns, values = stored("in order", "float32")
    wide = torch.sparse_csr_tensor(
        torch.tensor(starts_of(rows)), torch.tensor(columns), torch.tensor(values), (ROWS, ACROSS)
    )
    narrow = torch.sparse_csr_tensor(
        torch.tensor(starts_of(rows), dtype=torch.int32),
        torch.tensor(columns, dtype=torch.int32),
        torch.tensor(values),
        (ROWS, ACROSS),
    )
    assert (narrow @ x == wide @ x).all()
    torch.testing.assert_close((wide.half() @ x.half()).float(), wide @ x, rtol=1e-2, atol=1e-2)
