"""Reflections of large matrices by products, beside LAPACK's by way of the NumPy twins."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import tensorcore

from .native import kernel, needs_native

pytestmark = [needs_native, pytest.mark.usefixtures("isa")]

DTYPES = ["float32", "float64"]
# Panels that are whole, cut short and alone; squares, tall and wide ones, whose columns lie 4 KiB apart as well. Without vectors
# of 32 bytes those of up to 48 rows and columns are made so, and the others by LAPACK.
SIZES = [
    (16, 16),
    (17, 16),
    (33, 33),
    (48, 40),
    (31, 48),
    (64, 64),
    (97, 65),
    (65, 97),
    (300, 50),
    (1024, 70),
    (131, 260),
]


def drawn(dtype, *shape, seed=5):
    """Matrices far from singular."""
    return (np.random.default_rng(seed).standard_normal(shape) + 6 * np.eye(*shape[-2:])).astype(dtype)


def near(got, expected, times=1):
    """Equal but for roundings, four for each of the root of the rows."""
    allowed = (
        4 * times * np.finfo(expected.dtype).eps * np.sqrt(expected.shape[-2] if expected.ndim > 1 else expected.size)
    )
    np.testing.assert_allclose(got, expected, 0, allowed * np.abs(expected).max())


def layouts(x):
    """Row after row, column after column, and backwards with gaps."""
    yield x
    yield np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2)
    yield np.repeat(x[..., ::-1], 2, -1)[..., ::-2]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", SIZES)
def test_products_give_the_matrix_again(dtype, size):
    """The error of Q and R is under eps times the root of the rows, Q is orthogonal to that in each column, and R a triangle."""
    rows, columns = size
    eps, given = np.finfo(dtype).eps, np.random.default_rng(3).standard_normal(size).astype(dtype)
    for x in layouts(given):
        for complete in (False, True):
            q, r = kernel("qr")[0](x, complete=complete)
            assert q.dtype == r.dtype == given.dtype
            assert q.shape == (rows, rows if complete else min(size))
            assert r.shape == (q.shape[1], columns)
            np.testing.assert_array_equal(r, np.triu(r))
            q, r = q.astype(float), r.astype(float)
            assert np.linalg.norm(q @ r - given) <= eps * np.sqrt(rows) * np.linalg.norm(given)
            assert np.linalg.norm(q.T @ q - np.eye(q.shape[1])) <= eps * np.sqrt(rows * q.shape[1])
        np.testing.assert_array_equal(kernel("qr_triangle")[0](x), kernel("qr")[0](x, complete=False)[1])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", SIZES)
def test_reflections_are_lapacks(dtype, size):
    """Vectors, factors, signs, and what is multiplied by reflections from either side, are LAPACK's."""
    rows, columns = size
    for x in layouts(drawn(dtype, *size)):
        (a, taus), (expected, factors) = (run(x) for run in kernel("geqrf"))
        near(a, expected)
        np.testing.assert_allclose(taus, factors, 0, 60 * np.finfo(dtype).eps)
        if rows >= columns:
            for count in (columns, columns - 3):
                near(*(run(expected, factors[:count]) for run in kernel("householder_product")))
        for others in (1, 33):
            right = drawn(dtype, rows, others, seed=6)
            for transpose in (False, True):
                near(*(run(expected, factors, right, left=True, transpose=transpose) for run in kernel("ormqr")))
                near(
                    *(run(expected, factors, right.T, left=False, transpose=transpose) for run in kernel("ormqr")),
                    times=8,
                )


def corners(dtype):
    """Columns of zeros, ones that are reflected already, numbers whose squares leave the range, and no numbers."""
    x, limits = drawn(dtype, 45, 40), np.finfo(dtype)
    for change in (
        "zeros",
        "repeated",
        "triangle",
        "negative zeros",
        "small",
        "large",
        "small tail",
        "zero first",
        "nan",
        "inf",
        "late nan",
    ):
        y = x.copy()
        if change == "zeros":
            y[:, [0, 7, 39]] = 0
        elif change == "repeated":
            y[:, 20] = y[:, 3]
        elif change == "triangle":
            y = np.triu(y)
        elif change == "negative zeros":
            y = np.triu(y) * -1
        elif change == "small":
            y *= limits.tiny
        elif change == "large":
            y *= limits.max / 64
        elif change == "small tail":
            y = np.triu(y)
            y[20, 5] = np.sqrt(limits.tiny) / 4
        elif change == "zero first":
            y[0, 0] = 0
        else:
            y[(3, 2) if change == "inf" else (44, 39) if change == "late nan" else (30, 17)] = (
                np.inf if change == "inf" else np.nan
            )
        yield change, y


@pytest.mark.parametrize("dtype", DTYPES)
def test_matrices_with_zeros_or_out_of_range(dtype):
    """Where a column is zero below the diagonal its factor is zero; what leaves the range, or is not finite, is what LAPACK makes of it."""
    for change, x in corners(dtype):
        with np.errstate(all="ignore"):
            (a, taus), (expected, factors) = (run(x) for run in kernel("geqrf"))
        if "nan" in change or change == "inf":
            np.testing.assert_array_equal(np.isfinite(a), np.isfinite(expected))
            continue
        if change == "repeated":  # what is left of the column is rounding
            a, expected, taus, factors = (y[..., :20] for y in (a, expected, taus, factors))
        near(a, expected)
        np.testing.assert_array_equal(taus == 0, factors == 0)
        np.testing.assert_allclose(taus, factors, 0, 60 * np.finfo(dtype).eps)
        np.testing.assert_array_equal(np.signbit(np.diagonal(a)), np.signbit(np.diagonal(expected)))
    wide = drawn(dtype, 30, 60)
    wide[4, 50] = np.inf  # in no column that is reflected
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(*(np.isfinite(run(wide)[0]) for run in kernel("geqrf")))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [(40, 40), (90, 70), (70, 90)])
def test_no_bit_depends_on_threads_or_the_batch(dtype, size):
    """A matrix has the same Q, R and reflections by itself and in a batch, on one thread and on three, and beside other callers."""
    x = drawn(dtype, 5, *size)
    alone = [[*kernel("qr")[0](one, complete=True), *kernel("geqrf")[0](one)] for one in x]
    for count in (1, 3):
        tensorcore.set_num_threads(count)
        for got in (
            [*kernel("qr")[0](x, complete=True), *kernel("geqrf")[0](x)],
            [*kernel("qr")[0](x[:2], complete=True)],
        ):
            for k, made in enumerate(got):
                for i, one in enumerate(made):
                    np.testing.assert_array_equal(one, alone[i][k])
    with ThreadPoolExecutor(4) as pool:
        for _ in range(5):
            for i, (q, r) in enumerate(pool.map(lambda one: kernel("qr")[0](one, complete=True), x)):
                np.testing.assert_array_equal(q, alone[i][0])
                np.testing.assert_array_equal(r, alone[i][1])


def agree_on_solutions(got, expected, columns, times):
    """The first rows; of what lies behind them only the lengths, since their directions follow the order of the columns."""
    near(got[..., :columns, :], expected[..., :columns, :], times)
    lengths = [np.linalg.norm(made[..., columns:, :], axis=-2) for made in (got, expected)]
    near(*lengths, times)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [(16, 16), (48, 40), (100, 64), (70, 70), (3, 60, 33)])
@pytest.mark.parametrize("driver", ["gels", "gelsy"])
def test_least_squares(dtype, size, driver):
    """Solutions and ranks are the twin's, of one right side and several, where the rank is full and, by gelsy, where it is not."""
    x = drawn(dtype, *size)
    for others in (1, 5):
        right = drawn(dtype, *size[:-1], others, seed=6)
        got, expected = (run(x, right, driver=driver, rcond=1e-6) for run in kernel("lstsq"))
        agree_on_solutions(got[0], expected[0], size[-1], times=8)
        for one, other in zip(got[1:], expected[1:], strict=True):
            np.testing.assert_array_equal(one, other)
    if driver == "gels":
        return
    x[..., 9] = 2 * x[..., 3]
    got, expected = (run(x, right, driver=driver, rcond=1e-5) for run in kernel("lstsq"))
    assert (got[1] == size[-1] - 1).all()
    agree_on_solutions(got[0], expected[0], size[-1], times=40)
    right[..., 2, 0] = np.nan
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(
            *(np.isfinite(run(x, right, driver=driver, rcond=1e-5)[0]) for run in kernel("lstsq"))
        )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [(1, 64), (3, 70), (5, 1000), (16, 17), (40, 48), (64, 300), (3, 33, 60)])
@pytest.mark.parametrize("driver", ["gels", "gelsy"])
def test_the_shortest_solution(dtype, size, driver):
    """Of rows that are fewer than columns the solution is the twin's, the shortest, and so where the rows depend on each other."""
    x = drawn(dtype, *size)
    for others in (1, 5):
        right = drawn(dtype, *size[:-1], others, seed=6)
        got, expected = (run(x, right, driver=driver, rcond=1e-6) for run in kernel("lstsq"))
        near(got[0], expected[0], times=8)
        for one, other in zip(got[1:], expected[1:], strict=True):
            np.testing.assert_array_equal(one, other)
        scaled = kernel("lstsq")[0](x * np.asarray(1e-30, dtype), right, driver=driver, rcond=1e-6)
        near(scaled[0] * np.asarray(1e-30, dtype), got[0], times=8)
    if driver == "gels" or size[-2] < 3:
        return
    x[..., 2, :] = 2 * x[..., 1, :]
    got, expected = (run(x, right, driver=driver, rcond=1e-5) for run in kernel("lstsq"))
    assert (got[1] == size[-2] - 1).all()
    near(got[0], expected[0], times=40)
    right[..., 0, 0] = np.nan
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(
            *(np.isfinite(run(x, right, driver=driver, rcond=1e-5)[0]) for run in kernel("lstsq"))
        )


@pytest.mark.parametrize("n", [20, 45, 100])
def test_ranks_near_the_limit_are_lapacks(n):
    """Matrices whose smallest value is a little more or less than rcond allows have LAPACK's rank, also triangles that hide it."""
    tensorcore.set_num_threads(1)  # 288 small matrices, of which each would wake the threads some hundred times
    random = np.random.default_rng(2)
    right = random.standard_normal((n, 1))
    for turn in range(12):
        u, v = (np.linalg.qr(random.standard_normal((n, n)))[0] for _ in range(2))
        values = np.logspace(0, -3, n) if turn % 2 else np.ones(n)
        values[-1] = 1e-5 * 4.0 ** (turn / 2 - 3)
        hidden = np.eye(n) - np.triu(np.full((n, n), 6 / n), 1)
        wide = (u * values) @ np.linalg.qr(random.standard_normal((2 * n, n)))[0].T
        for x, limit in (
            ((u * values) @ v, 1e-5),
            (wide, 1e-5),
            (hidden, 4.0 ** (turn / 2 - 3) / np.linalg.cond(hidden)),
        ):
            for scale in (1, 1e20, 1e-20):
                got, expected = (run(x * scale, right, driver="gelsy", rcond=limit)[1] for run in kernel("lstsq"))
                assert got == expected


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [(48, 20), (200, 33), (400, 100), (2, 90, 40)])
def test_singular_values_of_tall_matrices(dtype, size):
    """Values are the twin's to 16 roundings of the largest, with vectors to 32, and the vectors give the matrix again."""
    x, eps = drawn(dtype, *size), np.finfo(dtype).eps
    for vectors in (False, True):
        got, expected = (run(x, full=False, vectors=vectors) for run in kernel("svd"))
        np.testing.assert_allclose(got[0], expected[0], 0, (32 if vectors else 16) * eps * expected[0].max())
    u, vh = got[2], got[3]
    np.testing.assert_allclose(
        u.swapaxes(-1, -2) @ u, np.broadcast_to(np.eye(size[-1]), (*size[:-2], size[-1], size[-1])), 0, 80 * eps
    )
    np.testing.assert_allclose((u * got[0][..., None, :]) @ vh, x, 0, 40 * eps * float(got[0].max()))
