"""LU of large matrices, and inverses, by products, beside LAPACK's by way of the NumPy twins."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import tensorcore

from .native import kernel, needs_native

pytestmark = [needs_native, pytest.mark.usefixtures("isa")]

DTYPES = ["float32", "float64"]
# Panels that are whole, cut short and alone, before columns that are a vector's, fewer or many; wider blocks from 513 columns on.
SIZES = [
    (32, 32),
    (33, 32),
    (49, 50),
    (64, 64),
    (65, 97),
    (97, 65),
    (130, 131),
    (100, 700),
    (700, 100),
    (513, 515),
    (577, 520),
    (570, 700),
]


def drawn(dtype, *shape, seed=5):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def layouts(x):
    """Row after row, column after column, and backwards with gaps."""
    yield x
    yield np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2)
    yield np.repeat(x[..., ::-1], 2, -1)[..., ::-2]


def swapped(x, pivots):
    """The rows in the order that the swaps give them."""
    x = x.copy()
    for one, other in enumerate(pivots - 1):
        x[[one, other]] = x[[other, one]]
    return x


def both(lu):
    """The product of the factors that lie in one matrix."""
    least = min(lu.shape)
    lower = np.tril(lu.astype(float), -1)[:, :least] + np.eye(lu.shape[0], least)
    return lower @ np.triu(lu.astype(float))[:least]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", SIZES)
def test_products_give_the_matrix_again(dtype, size):
    """The error of L and U is under eps times the root of the rows, and the rows that are chosen are LAPACK's."""
    given = drawn(dtype, *size)
    for x in layouts(given):
        lu, pivots, info = kernel("lu_factor")[0](x)
        assert (lu.dtype, lu.shape, pivots.dtype) == (given.dtype, size, np.int32)
        assert info == 0
        assert np.abs(np.tril(lu, -1)).max() <= 1
        allowed = np.finfo(dtype).eps * np.sqrt(size[0]) * np.linalg.norm(given)
        assert np.linalg.norm(both(lu) - swapped(given.astype(float), pivots)) <= allowed
        np.testing.assert_array_equal(pivots, kernel("lu_factor")[1](x)[1])


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_first_of_equal_numbers_is_chosen(dtype):
    """Of numbers of one size the first one in its column is the pivot, whatever its sign."""
    x = drawn(dtype, 150, 150)
    x[:, 0] = 3
    x[::2, 0] = -3
    x[:5, 0] = 1
    assert kernel("lu_factor")[0](x)[1][0] == 6


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("zero", [0, 40, 63, 149])
def test_singular_matrices(dtype, zero):
    """A column of zeros is named by info, counted from 1, its pivot is its own row, and the factors are still the matrix."""
    x = drawn(dtype, 150, 150)
    x[:, zero] = 0
    x[:, 148] = 0
    lu, pivots, info = kernel("lu_factor")[0](x)
    assert info == min(zero, 148) + 1
    assert pivots[zero] == (zero + 1 if zero < 149 else 150)
    allowed = np.finfo(dtype).eps * np.sqrt(150) * np.linalg.norm(x)
    assert np.linalg.norm(both(lu) - swapped(x.astype(float), pivots)) <= allowed
    lu, pivots, info = kernel("lu_factor")[0](np.zeros((70, 64), dtype))
    assert info == 1
    np.testing.assert_array_equal(pivots, 1 + np.arange(64))
    np.testing.assert_array_equal(lu, 0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("change", ["nan", "inf", "late nan", "large", "small", "smallest"])
def test_numbers_at_the_ends(isa, dtype, change):
    """What is not finite gives LAPACK's answers, and numbers so small or large that they have no inverse are factored."""
    x, limits = drawn(dtype, 90, 90), np.finfo(dtype)
    if change == "nan":
        x[3, 5] = np.nan
    elif change == "inf":
        x[60, 2] = -np.inf
    elif change == "late nan":
        x[89, 89] = np.nan
    elif change == "large":
        x *= limits.max / 64
    elif change == "small":
        x *= limits.tiny
    else:
        x = (np.round(x * 1000) * limits.smallest_subnormal).astype(dtype)
    got, expected = (run(x) for run in kernel("lu_factor"))
    if isa == "plain" or change in ("nan", "inf", "late nan"):
        for one, other in zip(got, expected, strict=True):
            np.testing.assert_array_equal(one, other)
    else:
        scale = float(abs(x).max())
        wanted = swapped(x.astype(float) / scale, got[1])
        lu = got[0].astype(float)
        lower = np.tril(lu, -1) + np.eye(90)
        error = np.linalg.norm(lower @ (np.triu(lu) / scale) - wanted)
        rounding = max(limits.eps, float(limits.smallest_subnormal) / scale)
        assert error <= 10 * rounding * np.linalg.norm(wanted)
        assert got[2] == expected[2]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [(70, 70), (300, 300), (97, 130)])
def test_no_bit_depends_on_threads_or_the_batch(dtype, size):
    """One matrix has the same factors by itself and in a batch, on one thread and on three, and from several callers at once."""
    x = drawn(dtype, 5, *size)
    whole = kernel("lu_factor")[0](x)
    for count in (1, 3):
        tensorcore.set_num_threads(count)
        for i in range(5):
            for one, other in zip(kernel("lu_factor")[0](x[i]), whole, strict=True):
                np.testing.assert_array_equal(one, other[i])
    with ThreadPoolExecutor(4) as callers:
        for made in callers.map(kernel("lu_factor")[0], [x] * 8):
            for one, other in zip(made, whole, strict=True):
                np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [32, 33, 64, 100, 129, 260, 520])
def test_inverses(dtype, n):
    """The inverse times the matrix is the identity but for eps times the norms of both, in any layout, by itself and in a batch."""
    run, given = kernel("inverse")[0], drawn(dtype, n, n)
    for x in layouts(given):
        made, info = run(x)
        assert (made.dtype, made.shape, info.dtype, int(info)) == (given.dtype, (n, n), np.int32, 0)
        error = np.linalg.norm(made.astype(float) @ given - np.eye(n))
        assert error <= 3 * np.finfo(dtype).eps * np.linalg.norm(made) * np.linalg.norm(given)
    batch, _ = run(np.broadcast_to(given, (2, n, n)))
    for count in (1, 3):
        tensorcore.set_num_threads(count)
        for one in batch:
            np.testing.assert_array_equal(run(given)[0], one)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("change", ["singular", "nan", "inf", "largest"])
def test_inverses_that_are_not_there(dtype, change):
    """Of a singular matrix, and of what is not finite, LAPACK's answers are given."""
    x = drawn(dtype, 70, 70)
    if change == "singular":
        x[:, 40] = 0
    elif change == "largest":
        x[50] = np.finfo(dtype).max
    else:
        x[50, 3] = float(change)
    for one, other in zip(*(run(x) for run in kernel("inverse")), strict=True):
        np.testing.assert_allclose(one, other, 1e-3, 1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [33, 64, 100, 260])
@pytest.mark.parametrize("wide", [33, 64, 131, 300])
def test_many_right_sides(dtype, n, wide):
    """Right sides and factors of any layout leave residuals of a few roundings a row, also turned over, on threads and in a batch."""
    x, right = drawn(dtype, n, n) + n**0.5 * np.eye(n, dtype=dtype), drawn(dtype, n, wide, seed=6)
    lu, pivots, _ = kernel("lu_factor")[0](x)
    eps = np.finfo(dtype).eps
    for factors in layouts(lu):
        for sides in layouts(right):
            for count in (1, 3):
                tensorcore.set_num_threads(count)
                for way, matrix in (("T", x.T), ("C", x.T), ("N", x)):
                    made = kernel("lu_solve")[0](factors, pivots, sides, way=way)
                    wrong = abs(matrix.astype(float) @ made - right)
                    assert (
                        wrong.max()
                        <= 8 * eps * (abs(matrix).astype(float) @ abs(made)).max() + 8 * eps * abs(right).max()
                    )
    batch = kernel("lu_solve")[0](np.stack([lu, lu]), np.stack([pivots, pivots]), np.stack([right, -right]), way="N")
    np.testing.assert_allclose(batch[0], -batch[1], rtol=0, atol=0)
    np.testing.assert_allclose(batch[0], made, rtol=0, atol=64 * n * eps * abs(made).max())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bad", [0.0, np.nan, np.inf])
def test_many_right_sides_without_an_answer(dtype, bad):
    """Where a pivot is zero or not finite, or a right side is not, the answers are LAPACK's, by way of the twin."""
    lu, pivots, _ = kernel("lu_factor")[0](drawn(dtype, 70, 70))
    right = drawn(dtype, 70, 40, seed=6)
    worse = lu.copy()
    worse[50, 50] = bad
    run, twin = kernel("lu_solve")
    np.testing.assert_array_equal(
        np.isfinite(run(worse, pivots, right, way="N")), np.isfinite(twin(worse, pivots, right, way="N"))
    )
    right[3, 30] = np.nan
    np.testing.assert_array_equal(np.isnan(run(lu, pivots, right, way="N")), np.isnan(twin(lu, pivots, right, way="N")))
