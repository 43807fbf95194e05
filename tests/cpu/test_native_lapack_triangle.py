"""Triangles of any size with a few right sides and with many: every layout, side and instruction set."""

import itertools

import numpy as np
import pytest

import tensorcore

from .native import kernel, needs_native

pytestmark = [needs_native, pytest.mark.usefixtures("isa")]

DTYPES = ["float32", "float64"]
# Blocks of 16 rows, or of 32 and 128, that are whole, cut short and alone, and right sides that fill registers or leave some over; many of
# them go together, up to 256.
ROWS = [17, 32, 65, 140, 257]
SIDES = [1, 3, 8, 13, 32, 33, 75, 300]


def layouts(x):
    """Row after row, column after column, backwards with gaps, and with room between rows."""
    yield x
    yield np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2)
    yield np.repeat(x[..., ::-1], 2, -1)[..., ::-2]
    yield np.pad(x, ((0, 0), (0, 3)))[:, : x.shape[1]]


def triangle(dtype, n, upper, unit):
    """One far from singular whose other triangle, and diagonal where that counts as ones, nobody may read; and what it is."""
    used = np.random.default_rng(n).standard_normal((n, n)) / n + 2 * np.eye(n)
    used = (np.triu(used) if upper else np.tril(used)).astype(dtype)
    given = np.where(used == 0, np.nan, used).astype(dtype)
    if unit:
        np.fill_diagonal(given, np.nan)
        np.fill_diagonal(used, 1)
    return given, used.astype(float)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", ROWS)
def test_the_triangle_times_the_answer(dtype, n):
    """It is the right side but for an error under eps times the norms of both, from either side."""
    run, eps = kernel("solve_triangular")[0], np.finfo(dtype).eps
    for upper, unit, sides in itertools.product((False, True), (False, True), SIDES):
        given, used = triangle(dtype, n, upper, unit)
        right = np.random.default_rng(7).standard_normal((n, sides)).astype(dtype)
        size = np.linalg.norm(used)
        for x, left in itertools.product(layouts(given), (True, False)):
            y = right if left else right.T
            made = run(x, y, upper=upper, left=left, unitriangular=unit).astype(float)
            error = (used @ made if left else made @ used) - y
            assert np.linalg.norm(error) <= eps * size * np.linalg.norm(made)


@pytest.mark.parametrize("dtype", DTYPES)
def test_factors_and_their_transpose(dtype):
    """What LU's factors solve is the twin's, by them and by them turned over, in any layout."""
    x = np.random.default_rng(3).standard_normal((75, 75)).astype(dtype) + 9 * np.eye(75, dtype=dtype)[::-1]
    lu, pivots, _ = kernel("lu_factor")[0](x)
    mine, twin = kernel("lu_solve")
    for sides, way in itertools.product((1, 4, 32, 33), "NTC"):
        right = np.random.default_rng(7).standard_normal((75, sides)).astype(dtype)
        expected = twin(lu, pivots, right, way=way)
        for factors in layouts(lu):
            allowed = 100 * np.finfo(dtype).eps * np.abs(expected).max()
            np.testing.assert_allclose(mine(factors, pivots, right, way=way), expected, 0, allowed)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("wide", [3, 40])
def test_zeros_on_the_diagonal_and_numbers_that_are_not_finite(dtype, wide):
    """A zero gives infinities or NaN as a division does, and what is not finite reaches only what it counts in."""
    x = np.tril(np.ones((40, 40), dtype))
    right = np.ones((40, wide), dtype)
    right[20, 1] = np.nan
    made = kernel("solve_triangular")[0](x, right, upper=False, left=True, unitriangular=False)
    assert np.isfinite(np.delete(made, 1, 1)).all()
    np.testing.assert_array_equal(np.isnan(made[:, 1]), np.arange(40) >= 20)
    x[17, 17] = 0
    right[:] = 0
    right[17, 0] = 1
    made = kernel("solve_triangular")[0](x, right, upper=False, left=True, unitriangular=False)
    assert made[17, 0] == np.inf
    assert np.isnan(made[17, 1])
    np.testing.assert_array_equal(made[:17], 0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("left", [True, False])
def test_many_sides_of_a_batch_and_on_threads(dtype, left):
    """Many right sides are those of each matrix alone, triangles may have several batches of them, and threads share them."""
    given = np.stack([triangle(dtype, 150, True, False)[0], triangle(dtype, 150, True, False)[0] * 2])
    right = np.random.default_rng(7).standard_normal((3, 2, 150, 201) if left else (3, 2, 201, 150)).astype(dtype)
    run, options = kernel("solve_triangular")[0], {"upper": True, "left": left, "unitriangular": False}
    whole = run(given, right, **options)
    assert whole.shape == right.shape
    for count in (1, 3):
        tensorcore.set_num_threads(count)
        for i, j in itertools.product(range(3), range(2)):
            allowed = 100 * np.finfo(dtype).eps * np.abs(whole).max()
            np.testing.assert_allclose(run(given[j], right[i, j], **options), whole[i, j], 0, allowed)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [40, 600])
def test_no_bit_depends_on_other_sides_or_threads(dtype, n):
    """A right side has the same answer by itself, beside others, in a batch of few, and on one thread or three."""
    given, _ = triangle(dtype, n, True, False)
    right = np.random.default_rng(7).standard_normal((n, 31)).astype(dtype)
    run, options = kernel("solve_triangular")[0], {"upper": True, "left": True, "unitriangular": False}
    for x in (given, np.asfortranarray(given)):
        whole = run(x, right, **options)
        batch = run(np.broadcast_to(x, (3, n, n)), np.broadcast_to(right, (3, n, 31)), **options)
        np.testing.assert_array_equal(batch, np.broadcast_to(whole, (3, n, 31)))
        for count, sides in itertools.product((1, 3), (1, 3, 8, 12)):
            tensorcore.set_num_threads(count)
            np.testing.assert_array_equal(run(x, right[:, -sides:], **options), whole[:, -sides:])
