"""Singular values and vectors of one real matrix by reflections in C, beside those of its twin in double precision."""

import numpy as np
import pytest

import tensorcore

from .native import kernel, needs_native

pytestmark = [needs_native, pytest.mark.usefixtures("isa")]

SIZES = [
    (9, 9), (12, 12), (9, 16), (16, 9), (17, 17), (24, 31), (31, 24), (32, 32), (33, 33), (47, 47), (48, 48), (50, 64), (64, 50),
    (65, 65), (100, 100), (9, 200), (60, 200), (200, 60), (129, 129), (130, 257), (257, 130), (300, 300), (513, 90),
]  # fmt: skip


def singular(values, rows=None, seed=3):
    """A matrix of float64 that has these singular values."""
    n = len(values)
    random = np.random.default_rng(seed)
    u, v = (np.linalg.qr(random.standard_normal((size, n)))[0] for size in (rows or n, n))
    return (u * values) @ v.T


def right(x, full=False):
    """Values from the largest on and columns of both sides are right to 2 n roundings of the largest value, what they give again to 4 n;
    without columns the values are as right, if not the same to the bit."""
    rows, columns = x.shape
    least, eps = min(x.shape), np.finfo(x.dtype).eps
    wide = x.astype(np.float64)
    expected = np.linalg.svd(wide, compute_uv=False)
    scale, bound = expected.max() + np.finfo(x.dtype).tiny, 2 * max(x.shape) * eps
    run = kernel("svd")[0]
    values, info, u, vh = run(x, full=full, vectors=True)
    alone, alone_info = run(x, full=full, vectors=False)
    assert info == alone_info == 0
    for found in (values, alone):
        assert (found.dtype, found.shape) == (x.dtype, (least,))
        assert (np.diff(found) <= 0).all()
        assert (found >= 0).all()
        assert abs(found - expected).max() <= bound * scale
    assert (u.dtype, u.shape, u.strides) == (x.dtype, (rows, rows if full else least), (x.itemsize, rows * x.itemsize))
    assert (vh.dtype, vh.shape) == (x.dtype, (columns if full else least, columns))
    u, vh = u.astype(np.float64), vh.astype(np.float64)
    assert abs(u.T @ u - np.eye(u.shape[1])).max() <= bound
    assert abs(vh @ vh.T - np.eye(len(vh))).max() <= bound
    assert abs((u[:, :least] * values) @ vh[:least] - wide).max() <= 2 * bound * scale


@pytest.mark.parametrize("dtype", "fd")
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("full", [False, True])
def test_each_size(dtype, size, full):
    """Values and vectors are right for sizes that fill vectors and others, of more rows than columns, as many and fewer."""
    right(np.random.default_rng(size[0]).standard_normal(size).astype(dtype), full)


SPECIAL = {
    "zeros": lambda n: np.zeros((n, n)),
    "identity": np.eye,
    "ones": lambda n: np.ones((n, n)),
    "diagonal": lambda n: np.diag(np.arange(n)[::-1] - n / 2),
    "backwards": lambda n: np.eye(n)[:, ::-1],
    "two diagonals": lambda n: np.eye(n) - np.eye(n, k=1),
    "two diagonals below": lambda n: np.eye(n) - np.eye(n, k=-1),
    "a triangle": lambda n: np.triu(np.ones((n, n))),
    "columns of zeros": lambda n: singular(np.linspace(1, 2, n)) * (np.arange(n) % 3 > 0),
    "rows of zeros": lambda n: (singular(np.linspace(1, 2, n)) * (np.arange(n) % 3 > 0)).T,
    "one column": lambda n: np.outer(np.arange(n) + 1.0, np.eye(n)[0]),
    "last column": lambda n: np.outer(np.arange(n) + 1.0, np.eye(n)[-1]),
    "one row": lambda n: np.outer(np.eye(n)[n // 2], np.arange(n) + 1.0),
    "two values": lambda n: singular(np.repeat([1.0, 2.0], [n - n // 3, n // 3])),
    "a cluster": lambda n: singular(1 + 1e-9 * np.arange(n)),
    "rank three": lambda n: singular(np.r_[np.zeros(n - 3), 1, 2, 3]),
    "graded": lambda n: singular(2.0 ** -np.arange(n)),
    "graded rows": lambda n: np.minimum.outer(*(10.0 ** -np.linspace(0, 12, n),) * 2),
    "graded rows upwards": lambda n: np.minimum.outer(*(10.0 ** np.linspace(-12, 0, n),) * 2),
    "blocks of other scales": lambda n: np.kron(np.diag(10.0 ** -np.arange(n)), 1 + np.eye(3))[:n, :n],
    "with one large number": lambda n: np.eye(n, k=1) + 1e9 * np.outer(np.eye(n)[n // 2], np.eye(n)[n // 2]),
    "tiny columns": lambda n: np.diag(np.r_[np.ones(n - 4), 1e-18, 1e-20, 1e-21, 1e-22]) + 1e-21,
    "nearly one direction": lambda n: np.eye(n) * 1e-6 + np.outer(np.eye(n)[0], np.eye(n)[0]) + 1e-6 * np.ones((n, n)),
}


@pytest.mark.parametrize("dtype", "fd")
@pytest.mark.parametrize("n", [17, 48, 64])
@pytest.mark.parametrize("name", SPECIAL)
def test_special_matrices(dtype, n, name):
    """Equal values, zeros, columns and rows of zeros, gradings in either direction and numbers of all sizes have answers as right."""
    x = SPECIAL[name](n).astype(dtype)
    right(x)
    right(x[:, : n - 3])
    right(x[: n - 3])


@pytest.mark.parametrize("dtype", "fd")
@pytest.mark.parametrize("n", [12, 33, 50])
def test_small_values_of_a_diagonal_are_kept(dtype, n):
    """Values of a matrix of two diagonals are right to 50 roundings of each of them, however small it is."""
    limits = np.finfo(dtype)
    d = np.geomspace(1, limits.tiny**0.25, n).astype(dtype)
    x = np.diag(d)
    np.testing.assert_allclose(kernel("svd")[0](x, full=False, vectors=False)[0], d, 50 * limits.eps)
    x += np.diag(d[1:] / 2, 1).astype(dtype)
    product = np.prod(d.astype(np.longdouble))
    found = kernel("svd")[0](x, full=False, vectors=False)[0]
    np.testing.assert_allclose(np.prod(found.astype(np.longdouble)) / product, 1, n * 50 * limits.eps)


@pytest.mark.parametrize("dtype", "fd")
@pytest.mark.parametrize("n", [12, 33, 48])
def test_any_scale(dtype, n):
    """Numbers whose squares overflow or vanish, down to denormals, give what the same matrix near 1 gives: the same columns to the bit."""
    limits = np.finfo(dtype)
    x = singular(np.linspace(0.1, 1, n)).astype(dtype)
    run = kernel("svd")[0]
    for vectors in (False, True):
        whole = run(x, full=False, vectors=vectors)
        for power in (
            limits.maxexp - 2,
            limits.maxexp // 2 + 3,
            limits.minexp // 2 - 3,
            limits.minexp + 2 * limits.nmant,
        ):
            found = run(np.ldexp(x, power), full=False, vectors=vectors)
            assert found[1] == 0
            np.testing.assert_array_equal(found[0], np.ldexp(whole[0], power))
            for one, other in zip(found[2:], whole[2:], strict=True):
                np.testing.assert_array_equal(one, other)
        for value in (limits.smallest_subnormal, limits.max):
            np.testing.assert_array_equal(
                run(value * np.eye(n, dtype=dtype), full=False, vectors=vectors)[0], np.full(n, value)
            )


@pytest.mark.parametrize("dtype", "fd")
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("vectors", [False, True])
@pytest.mark.parametrize("n", [20, 50])
def test_numbers_that_are_not_finite(dtype, bad, vectors, n):
    """A matrix with a NaN or an infinity has no answer, and its neighbours have theirs."""
    x = np.random.default_rng(8).standard_normal((3, n, n)).astype(dtype)
    good = kernel("svd")[0](x, full=False, vectors=vectors)
    x[1, 7, 3] = bad
    found = kernel("svd")[0](x, full=False, vectors=vectors)
    assert found[1].tolist() == [0, -4, 0]
    for one, other in zip(found, good, strict=True):
        np.testing.assert_array_equal(one[[0, 2]], other[[0, 2]])


@pytest.mark.parametrize("dtype", "fd")
@pytest.mark.parametrize("size", [(17, 17), (50, 50), (50, 64), (64, 50), (130, 60)])
def test_no_bit_depends_on_layout_neighbours_or_threads(dtype, size):
    """A matrix by itself has the bits that it has among others, on one thread and on three, from any place in memory."""
    x = np.random.default_rng(8).standard_normal((5, *size)).astype(dtype)
    apart = np.zeros((5, size[0] + 1, 2 * size[1]), dtype)[::-1, 1:, ::2]
    apart[...] = x
    columns = np.ascontiguousarray(x.swapaxes(1, 2)).swapaxes(1, 2)
    run = kernel("svd")[0]
    for options in (
        {"full": False, "vectors": True},
        {"full": True, "vectors": True},
        {"full": False, "vectors": False},
    ):
        expected = run(x, **options)
        for threads in (1, 3):
            tensorcore.set_num_threads(threads)
            for one in (x, apart, columns):
                for got, whole in zip(run(one, **options), expected, strict=True):
                    np.testing.assert_array_equal(got, whole)
            for i in range(5):
                for got, whole in zip(run(x[i], **options), expected, strict=True):
                    np.testing.assert_array_equal(got, whole[i])


def test_what_rests_on_it():
    """Norms, ranks, conditions and pseudo-inverses of matrices of middle size are what NumPy finds."""
    x = singular(np.r_[np.zeros(5), np.linspace(1, 2, 55)], 70)
    tensor, linalg = tensorcore.tensor(x), tensorcore.linalg
    assert linalg.matrix_rank(tensor).item() == 55
    np.testing.assert_allclose(linalg.matrix_norm(tensor, 2).item(), 2)
    np.testing.assert_allclose(linalg.matrix_norm(tensor, "nuc").item(), np.linspace(1, 2, 55).sum())
    np.testing.assert_allclose(linalg.pinv(tensor, rtol=1e-9).numpy(), np.linalg.pinv(x, 1e-9), 0, 1e-12)
    regular = singular(np.linspace(1, 8, 60))
    np.testing.assert_allclose(linalg.cond(tensorcore.tensor(regular)).item(), 8)
