"""Eigenvalues and vectors of one symmetric matrix of middle size in C, beside those of its twin in double precision."""

import numpy as np
import pytest

import tensorcore

from .native import kernel, needs_native

pytestmark = [needs_native, pytest.mark.usefixtures("isa")]

SIZES = [
    9,
    16,
    17,
    24,
    31,
    32,
    33,
    64,
    65,
    100,
    129,
    193,
    256,
    257,
    321,
]  # vectors of the last ones are by divide and conquer


def turned(values, seed=3):
    """A symmetric matrix of float64 that has these eigenvalues."""
    n = len(values)
    q = np.linalg.qr(np.random.default_rng(seed).standard_normal((n, n)))[0]
    return (q * values) @ q.T


def given(x, upper):
    """What is read of a matrix is its triangle; NaN is in the other one."""
    triangle = np.tri(len(x), dtype=bool)
    return np.where(triangle.T if upper else triangle, x, np.nan).astype(x.dtype)


def right(x, upper=False):
    """Values from the smallest on and columns of a matrix are right to 2 n roundings of the largest value, what they give again too;
    without columns the values are as right, if not the same to the bit."""
    n, eps = len(x), np.finfo(x.dtype).eps
    wide = x.astype(np.float64)
    expected = np.linalg.eigvalsh(wide)
    scale = abs(expected).max() + np.finfo(x.dtype).tiny
    values, info, vectors = kernel("eigh")[0](given(x, upper), upper=upper, vectors=True)
    assert info == 0
    assert (values.dtype, vectors.dtype, vectors.strides) == (x.dtype, x.dtype, (x.itemsize, n * x.itemsize))
    assert (np.diff(values) >= 0).all()
    bound = 2 * n * eps
    assert abs(values - expected).max() <= bound * scale
    columns = vectors.astype(np.float64)
    assert abs(columns.T @ columns - np.eye(n)).max() <= bound
    assert abs(wide @ columns - columns * values).max() <= bound * scale
    alone, info = kernel("eigh")[0](given(x, upper), upper=upper, vectors=False)
    assert info == 0
    assert (np.diff(alone) >= 0).all()
    assert abs(alone - expected).max() <= bound * scale
    return values, vectors


@pytest.mark.parametrize("dtype", "fd")
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("upper", [False, True])
def test_each_size(dtype, n, upper):
    """Values and vectors are right by either triangle alone, for sizes that fill vectors and others."""
    x = np.random.default_rng(n).standard_normal((n, n))
    right((x + x.T).astype(dtype), upper)


def path(n):
    """Neighbours on a line: nothing on the diagonal."""
    return np.eye(n, k=1) + np.eye(n, k=-1)


SPECIAL = {
    "zeros": lambda n: np.zeros((n, n)),
    "identity": np.eye,
    "ones": lambda n: np.ones((n, n)),
    "diagonal": lambda n: np.diag(np.arange(n)[::-1] - n / 2),
    "one rotation": lambda n: np.eye(n) + np.eye(n)[:, ::-1],
    "path": path,
    "pairs that are almost equal": lambda n: path(n) + np.diag(abs(np.arange(n) - (n - 1) / 2)),  # Wilkinson's
    "two values": lambda n: turned(np.repeat([1.0, -2.0], [n - n // 3, n // 3])),
    "a cluster": lambda n: turned(1 + 1e-9 * np.arange(n)),
    "rank three": lambda n: turned(np.r_[np.zeros(n - 3), 1, 2, 3]),
    "graded down": lambda n: turned(2.0 ** -np.arange(n)),
    "graded rows": lambda n: np.minimum.outer(*(10.0 ** -np.linspace(0, 12, n),) * 2),
    "graded rows upwards": lambda n: np.minimum.outer(*(10.0 ** np.linspace(-12, 0, n),) * 2),
    "blocks": lambda n: np.kron(np.eye(n), 1 + np.eye(3))[:n, :n],
    "blocks of other scales": lambda n: np.kron(np.diag(10.0 ** -np.arange(n)), 1 + np.eye(3))[:n, :n],
    "second differences": lambda n: 2 * np.eye(n) - path(n),
    "with one large number": lambda n: path(n) + 1e9 * np.outer(np.eye(n)[n // 2], np.eye(n)[n // 2]),
    "tiny columns": lambda n: np.diag(np.r_[np.ones(n - 4), 1e-18, 1e-20, 1e-21, 1e-22]) + 1e-21,
}  # fmt: skip


@pytest.mark.parametrize("dtype", "fd")
@pytest.mark.parametrize("n", [17, 40, 64])
@pytest.mark.parametrize("name", SPECIAL)
def test_special_matrices(dtype, n, name):
    """Equal eigenvalues, zeros, pivots of zero, gradings in either direction and numbers of all sizes have answers as right."""
    x = SPECIAL[name](n)
    right((np.tril(x) + np.tril(x, -1).T).astype(dtype))


@pytest.mark.parametrize("dtype", "fd")
@pytest.mark.parametrize("name", SPECIAL)
def test_special_matrices_by_divide_and_conquer(dtype, name):
    """The same of matrices whose parts are put together, where most values stay as they are and where none does."""
    x = SPECIAL[name](330)
    right((np.tril(x) + np.tril(x, -1).T).astype(dtype))


@pytest.mark.parametrize("dtype", "fd")
@pytest.mark.parametrize("n", [331, 700])
def test_divide_and_conquer_on_threads(dtype, n):
    """Threads that share roots, parts and products find as right values and vectors, by either triangle."""
    x = np.random.default_rng(n).standard_normal((n, n)).astype(dtype)
    for count in (1, 3):
        tensorcore.set_num_threads(count)
        right(np.tril(x) + np.tril(x, -1).T, upper=count == 3)


@pytest.mark.parametrize("dtype", "fd")
def test_divide_and_conquer_of_what_is_not_in_range(dtype):
    """Numbers whose squares overflow or vanish have the answer near 1, scaled, and a NaN or an infinity spoils its own matrix alone."""
    n, limits = 330, np.finfo(dtype)
    x = np.random.default_rng(8).standard_normal((n, n)).astype(dtype)
    x = np.tril(x) + np.tril(x, -1).T
    for power in (limits.maxexp - 8, limits.minexp + 4):
        right(np.ldexp(x, power))
    three = np.stack([x, x, x])
    for bad in (np.nan, np.inf):
        three[1, 200, 100] = bad
        values, info, vectors = kernel("eigh")[0](three, upper=False, vectors=True)
        assert info[1] or not np.isfinite(values[1]).all()
        assert not info[[0, 2]].any()
        np.testing.assert_array_equal(values[0], values[2])
        np.testing.assert_array_equal(vectors[0], vectors[2])


@pytest.mark.parametrize("dtype", "fd")
@pytest.mark.parametrize("n", [17, 33])
def test_any_scale(dtype, n):
    """Numbers whose squares overflow or vanish, down to denormals, give what the same matrix near 1 gives: the same columns to the bit."""
    limits = np.finfo(dtype)
    x = turned(np.linspace(-1, 1, n)).astype(dtype)
    x = np.tril(x) + np.tril(x, -1).T
    values, info, vectors = kernel("eigh")[0](x, upper=False, vectors=True)
    for power in (limits.maxexp - 2, limits.maxexp // 2 + 3, limits.minexp // 2 - 3, limits.minexp + 2 * limits.nmant):
        scaled = np.ldexp(x, power)
        found, info, columns = kernel("eigh")[0](scaled, upper=False, vectors=True)
        assert info == 0
        np.testing.assert_array_equal(columns, vectors)
        np.testing.assert_array_equal(found, np.ldexp(values, power))
    least = limits.smallest_subnormal * np.eye(n, dtype=dtype)
    np.testing.assert_array_equal(kernel("eigh")[0](least, upper=False, vectors=True)[0], np.diag(least))
    most = limits.max * np.eye(n, dtype=dtype)
    np.testing.assert_array_equal(kernel("eigh")[0](most, upper=False, vectors=True)[0], np.diag(most))


@pytest.mark.parametrize("dtype", "fd")
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("vectors", [False, True])
def test_numbers_that_are_not_finite(dtype, bad, vectors):
    """A matrix with a NaN or an infinity in its triangle has the twin's answer, whatever that is, and its neighbours have theirs."""
    x = np.random.default_rng(8).standard_normal((3, 20, 20)).astype(dtype)
    x += x.swapaxes(1, 2)
    good = kernel("eigh")[0](x, upper=False, vectors=vectors)
    x[1, 7, 3] = bad
    found = kernel("eigh")[0](x, upper=False, vectors=vectors)
    assert not found[1][[0, 2]].any()
    assert found[1][1] or not np.isfinite(found[0][1]).all()
    for one, other in zip(found, good, strict=True):
        np.testing.assert_array_equal(one[[0, 2]], other[[0, 2]])


@pytest.mark.parametrize("dtype", "fd")
@pytest.mark.parametrize("n", [12, 17, 50])
def test_no_bit_depends_on_layout_neighbours_or_threads(dtype, n):
    """A matrix by itself has the bits that it has among others, on one thread and on three, from any place in memory."""
    x = np.random.default_rng(8).standard_normal((6, n, n)).astype(dtype)
    x += x.swapaxes(1, 2)
    run = kernel("eigh")[0]
    least = 4 if n <= 16 else 1
    for options in ({"upper": False, "vectors": True}, {"upper": True, "vectors": False}):
        expected = run(x, **options)
        apart = np.zeros((6, n + 1, 2 * n), dtype)[::-1, 1:, ::2]
        apart[...] = x
        tensorcore.set_num_threads(1)
        for whole in (run(x, **options), run(apart, **options), run(x.swapaxes(1, 2), **options)):
            for one, other in zip(whole, expected, strict=True):
                np.testing.assert_array_equal(one, other)
        tensorcore.set_num_threads(3)
        for i in range(6 - least + 1):
            for one, other in zip(run(x[i : i + least], **options), expected, strict=True):
                np.testing.assert_array_equal(one, other[i : i + least])
        if n > 16:
            for one, other in zip(run(x[2], **options), expected, strict=True):
                np.testing.assert_array_equal(one, other[2])
