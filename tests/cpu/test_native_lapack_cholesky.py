"""Cholesky factors of large matrices by products, beside LAPACK's by way of the NumPy twins."""

import numpy as np
import pytest

import tensorcore

from .native import kernel, needs_native

pytestmark = [needs_native, pytest.mark.usefixtures("isa")]

DTYPES = ["float32", "float64"]


def definite(dtype, *shape, seed=5):
    x = np.random.default_rng(seed).standard_normal((*shape, shape[-1]))
    return (x @ x.swapaxes(-1, -2) / shape[-1] + np.eye(shape[-1])).astype(dtype)


def layouts(x):
    """Row after row, column after column, and backwards with gaps."""
    yield x
    yield np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2)
    yield np.repeat(x[..., ::-1], 2, -1)[..., ::-2]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [40, 41, 63, 64, 65, 96, 130, 257, 520])
@pytest.mark.parametrize("upper", [False, True])
def test_the_factor_times_itself(dtype, n, upper):
    """It is the matrix but for eps times its norm, has zeros beside it, and comes from one triangle alone."""
    given = definite(dtype, n)
    other = np.tril(np.ones((n, n), bool), -1)
    x = np.where(other if upper else other.T, np.nan, given).astype(dtype)
    found = []
    for one in layouts(x):
        made, info = kernel("cholesky")[0](one, upper=upper)
        assert (made.dtype, made.shape, info.dtype, int(info)) == (x.dtype, (n, n), np.int32, 0)
        np.testing.assert_array_equal(made, np.triu(made) if upper else np.tril(made))
        assert (made.diagonal() > 0).all()
        lower = made.astype(float).T if upper else made.astype(float)
        assert np.linalg.norm(lower @ lower.T - given) <= 2 * np.finfo(dtype).eps * np.linalg.norm(given)
        found.append(made)
    for one in found[1:]:
        np.testing.assert_array_equal(one, found[0])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("at", [0, 31, 32, 77, 99])
@pytest.mark.parametrize("value", [-1, 0, np.nan, np.inf])
def test_matrices_that_are_not_definite(dtype, at, value):
    """The first minor that is not positive is named, and what is there is LAPACK's; so is what an infinity gives."""
    x = definite(dtype, 100)
    x[at, at] = value
    for upper in (False, True):
        for one, other in zip(*(run(x, upper=upper) for run in kernel("cholesky")), strict=True):
            np.testing.assert_allclose(one, other, 1e-4, 1e-5)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("where", [(50, 3), (99, 98), (33, 32)])
def test_numbers_beside_the_diagonal_that_are_not_finite(dtype, where):
    """A NaN or an infinity in the triangle that is read is no definite matrix."""
    for value in (np.nan, np.inf):
        x = definite(dtype, 100)
        x[where] = value
        got, expected = (run(x, upper=False) for run in kernel("cholesky"))
        assert got[1] == expected[1] == where[0] + 1


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [70, 260])
def test_no_bit_depends_on_threads_or_the_batch(dtype, n):
    """One matrix has the same factor by itself and in a batch, on one thread and on three."""
    x = definite(dtype, 5, n)
    whole, _ = kernel("cholesky")[0](x, upper=False)
    for count in (1, 3):
        tensorcore.set_num_threads(count)
        for one, other in zip(x, whole, strict=True):
            np.testing.assert_array_equal(kernel("cholesky")[0](one, upper=False)[0], other)
