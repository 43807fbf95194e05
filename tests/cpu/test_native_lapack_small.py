"""Factors of small matrices in C, and what is solved with them, beside LAPACK's by way of the NumPy twins."""

import numpy as np
import pytest

from .native import kernel, needs_native

pytestmark = [needs_native, pytest.mark.usefixtures("isa")]

SIZES = [*range(1, 10), 13, 15, 16, 17, 32, 33]  # of the last one and of a single 17 or 32 LAPACK's own
TOLERANCES = {np.float32: 3e-5, np.float64: 1e-13}


def drawn(dtype, *shape):
    """Matrices whose largest element of a column is anywhere, so that rows are swapped; none of them near a singular one."""
    random = np.random.default_rng(8)
    turned = np.linalg.qr(random.standard_normal(shape))[0] if shape[-1] == shape[-2] else random.standard_normal(shape)
    return (turned * random.uniform(0.5, 2, shape[:-1])[..., None]).astype(dtype)


def agree(name, *args, exact=(), **options):
    """The kernel's answers are its twin's, those numbered in ``exact`` to the bit."""
    got, expected = (run(*args, **options) for run in kernel(name))
    for i, (one, other) in enumerate(zip(*[x if type(x) is tuple else (x,) for x in (got, expected)], strict=True)):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        tolerance = 0 if i in exact else TOLERANCES[args[0].dtype.type]
        np.testing.assert_allclose(one, other, tolerance, tolerance)
    return got


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("n", SIZES)
def test_each_size(dtype, n):
    """Triangular factors, row swaps, inverses, determinants and solutions of batches are LAPACK's, for few right sides and many."""
    x = drawn(dtype, 25, n, n)
    lu, pivots, info = agree("lu_factor", x, exact=(1, 2))
    assert not info.any()
    p, lower, upper = kernel("unpack_lu")[0](lu, pivots)
    tolerance = TOLERANCES[dtype]
    np.testing.assert_allclose(p @ lower @ upper, x, tolerance, tolerance)
    agree("inverse", x, exact=(1,))
    agree("determinant", lu, pivots)
    agree("log_determinant", lu, pivots)
    for count in (1, 3, 16, 35):
        right = drawn(dtype, 25, n, count)
        for way, factors in (("N", lu), ("T", lu), ("C", np.ascontiguousarray(lu))):
            agree("lu_solve", factors, pivots, right, way=way)
        for upper_one in (False, True):
            for unit in (False, True):
                factor = x + 4 * np.eye(n, dtype=dtype)
                agree("solve_triangular", factor / 4, right, upper=upper_one, left=True, unitriangular=unit)


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("upper", [False, True])
def test_definite_matrices(dtype, n, upper):
    """The factor of a definite matrix is LAPACK's and reads one triangle; where there is none, the row is named at which it ends."""
    x = drawn(dtype, 25, n, n)
    x = x @ x.swapaxes(1, 2) + np.eye(n, dtype=dtype)
    rows, columns = np.tril_indices(n, -1) if upper else np.triu_indices(n, 1)
    x[:, rows, columns] = np.nan
    factor, info = agree("cholesky", x, upper=upper, exact=(1,))
    assert not info.any()
    whole = np.swapaxes(factor, 1, 2) @ factor if upper else factor @ np.swapaxes(factor, 1, 2)
    for given in (factor, factor[:3], factor[0]):
        agree("cholesky_inverse", given, upper=upper, exact=(1,))
    kept = ~np.isnan(x)
    np.testing.assert_allclose(whole[kept], x[kept], TOLERANCES[dtype] * 10, TOLERANCES[dtype] * 10)
    for row in range(n):
        for bad in (-1, 0, np.nan):
            less = x[:2].copy()
            less[1, row, row] = bad
            for run in kernel("cholesky"):
                assert run(less, upper=upper)[1].tolist() == [0, row + 1]


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("n", SIZES)
def test_singular_matrices(dtype, n):
    """The first zero on the diagonal of a singular matrix is named as LAPACK names it, and the neighbours' answers are theirs."""
    x = drawn(dtype, 5, n, n)
    expected = kernel("inverse")[0](x)[0]
    for column in range(n):
        x = drawn(dtype, 5, n, n)
        x[2, :, column] = 0
        for name in ("lu_factor", "inverse"):
            assert kernel(name)[0](x)[-1].tolist() == kernel(name)[1](x)[-1].tolist() == [0, 0, column + 1, 0, 0]
        made = kernel("inverse")[0](x)[0]
        assert not np.isfinite(made[2]).all()
        np.testing.assert_array_equal(made[[0, 1, 3, 4]], expected[[0, 1, 3, 4]])


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("n", SIZES)
def test_values_out_of_the_ordinary(dtype, n):
    """A NaN or an infinity in a right side stays in its column, and a triangle's infinity reaches no row that is done before."""
    factor = np.tril(drawn(dtype, 2, n, n)) + 2 * np.eye(n, dtype=dtype)
    right = drawn(dtype, 2, n, 4)
    right[0, 0, 1], right[1, n - 1, 2] = np.nan, np.inf
    factor[1, n - 1, 0] = np.inf
    for turned in (False, True):
        x = np.ascontiguousarray(factor.swapaxes(1, 2)) if turned else factor
        got, expected = (
            run(x, right, upper=turned, left=True, unitriangular=False) for run in kernel("solve_triangular")
        )
        assert np.isfinite(got[0][:, [0, 2, 3]]).all()
        np.testing.assert_allclose(got[0], expected[0], TOLERANCES[dtype], TOLERANCES[dtype])
        if not turned and n > 1:
            np.testing.assert_allclose(got[1, : n - 1], expected[1, : n - 1], TOLERANCES[dtype], TOLERANCES[dtype])


@pytest.mark.parametrize("dtype", TOLERANCES)
def test_logarithms_of_the_largest_and_smallest(dtype):
    """A determinant that is too large or too small for its dtype has a logarithm, however many rows are multiplied."""
    limits = np.finfo(dtype)
    for size in (limits.max, limits.tiny, limits.smallest_subnormal):
        x = size * np.eye(13, dtype=dtype)[None]
        sign, logarithm = agree("log_determinant", *kernel("lu_factor")[0](x)[:2])
        np.testing.assert_allclose(logarithm, 13 * np.log(np.float64(size)), 1e-6)
        assert sign.tolist() == [1]


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("n", SIZES)
def test_a_batch_is_its_matrices(dtype, n):
    """A matrix of a batch gets the bits that it gets alone: in any group, beside a singular one, from any place in memory.
    Of more than 16 rows, the bits that it gets among as many."""
    least = 16 if n > 16 else 1
    x = drawn(dtype, 41, n, n)
    x[5, :, n - 1] = 0
    definite = x @ x.swapaxes(1, 2) + np.eye(n, dtype=dtype)
    definite[37, 0, 0] = -1
    right = drawn(dtype, 41, n, 18)
    lu, pivots, _ = kernel("lu_factor")[0](drawn(dtype, 41, n, n))
    apart = np.zeros((41, n + 1, 2 * n), dtype)[::-1, 1:, ::2]
    apart[...] = x
    for name, arrays, options in [
        ("lu_factor", [x], {}),
        ("lu_factor", [apart], {}),
        ("lu_factor", [x.swapaxes(1, 2)], {}),
        ("lu_factor", [x[:19]], {}),
        ("inverse", [x], {}),
        ("cholesky", [definite], {"upper": False}),
        ("cholesky", [definite], {"upper": True}),
        ("cholesky_inverse", [definite], {"upper": False}),
        ("cholesky_inverse", [definite], {"upper": True}),
        ("lu_solve", [lu, pivots, right], {"way": "N"}),
        ("lu_solve", [lu, pivots, right[:, ::-1, :1]], {"way": "T"}),
        *[
            ("solve_triangular", [definite, right], {"upper": upper, "left": True, "unitriangular": unit})
            for upper in (False, True)
            for unit in (False, True)
        ],
    ]:
        run = kernel(name)[0]
        together = run(*arrays, **options)
        for i in range(0, len(arrays[0]) - least + 1, least):
            alone = run(*[array[i : i + least] for array in arrays], **options)
            for one, whole in zip(
                *[made if type(made) is tuple else (made,) for made in (alone, together)], strict=True
            ):
                np.testing.assert_array_equal(one, whole[i : i + least], err_msg=f"{name} {options} {i}")


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize(
    "shape", [(1, 1), (2, 2), (3, 3), (4, 4), (7, 7), (16, 16), (16, 3), (5, 4), (3, 8), (1, 6), (6, 1), (17, 3)]
)
@pytest.mark.parametrize("complete", [False, True])
def test_orthogonal_factors(dtype, shape, complete):
    """Q and R of a batch are LAPACK's with their signs, for square matrices, tall and wide ones, and those that have nothing to turn."""
    x = np.random.default_rng(8).standard_normal((41, *shape)).astype(dtype)
    x[3] = 0
    x[4] = np.eye(*shape, dtype=dtype)
    x[5, :, 0] = 0
    x[6] = np.triu(x[6])
    for given in (x, x[:3], x[::-2], np.ascontiguousarray(x.swapaxes(1, 2)).swapaxes(1, 2)):
        q, r = kernel("qr")[0](given, complete=complete)
        tolerance = 20 * TOLERANCES[dtype]
        for one, other in zip((q, r), kernel("qr")[1](given, complete=complete), strict=True):
            assert (one.dtype, one.shape) == (other.dtype, other.shape)
            np.testing.assert_allclose(one, other, tolerance, tolerance)
        np.testing.assert_allclose(
            q.swapaxes(1, 2) @ q, np.broadcast_to(np.eye(q.shape[2]), (len(q), *q.shape[2:] * 2)), 0, tolerance
        )
        np.testing.assert_allclose(q @ r, given, tolerance, tolerance)
        np.testing.assert_array_equal(kernel("qr_triangle")[0](given), r[:, : min(shape)])
        a, taus = kernel("geqrf")[0](given)
        for one, other in zip((a, taus), kernel("geqrf")[1](given), strict=True):
            assert (one.dtype, one.shape) == (other.dtype, other.shape)
            np.testing.assert_allclose(one, other, tolerance, tolerance)
        wide = a[..., : min(shape)]
        for factors in (taus, taus[..., :1]):
            left, right = (run(wide, factors) for run in kernel("householder_product"))
            np.testing.assert_allclose(left, right, tolerance, tolerance)


@pytest.mark.parametrize("dtype", TOLERANCES)
def test_orthogonal_factors_out_of_range(dtype):
    """Matrices whose squares overflow or vanish are factored as LAPACK does, and NaN stays in its matrix: bits are those of any group."""
    limits = np.finfo(dtype)
    x = drawn(dtype, 41, 4, 4)
    for i, size in enumerate([limits.max / 8, limits.tiny * 8, limits.smallest_subnormal * 2**20, np.nan, np.inf]):
        x[5 * i + 3] *= dtype(size)
    got, expected = (run(x, complete=False) for run in kernel("qr"))
    for one, other in zip(got, expected, strict=True):
        scale = np.abs(other).max((1, 2), keepdims=True)
        np.testing.assert_allclose(one / scale, other / scale, TOLERANCES[dtype], TOLERANCES[dtype])
    rolled = kernel("qr")[0](np.roll(x, 7, 0), complete=False)
    for one, other in zip(got, rolled, strict=True):
        np.testing.assert_array_equal(np.roll(one, 7, 0), other)


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("n", [17, 24, 33, 64, 100])
@pytest.mark.parametrize("count", [1, 2, 3, 19])
def test_triangles_of_more_rows(dtype, n, count):
    """Systems of one triangle or a few, by rows or columns, with room between them, are LAPACK's; the other triangle is not read."""
    whole = drawn(dtype, 2, n, n) / 8 + np.eye(n, dtype=dtype)
    right = drawn(dtype, 2, n, count)
    for upper in (False, True):
        factor = np.where(np.tri(n, k=-1, dtype=bool) if upper else ~np.tri(n, dtype=bool), dtype(np.nan), whole)
        room = np.zeros((2, n + 3, n + 5), dtype)
        for given in (
            factor,
            np.ascontiguousarray(factor.swapaxes(1, 2)).swapaxes(1, 2),
            room[:, 1:-2, 2:-3],
            room[:, ::-1][:, 1:-2, 2:-3],
        ):
            given[...] = factor
            for unit in (False, True):
                agree("solve_triangular", given, right, upper=upper, left=True, unitriangular=unit)


ROTATED = [(1, 1), (2, 2), (3, 3), (4, 4), (7, 7), (8, 8), (13, 13), (16, 16)]


def right_angles(vectors):
    """How far from the identity the products of the columns are, in roundings."""
    made = vectors.swapaxes(-1, -2).astype(np.float64) @ vectors - np.eye(vectors.shape[-1])
    return abs(made).max() / np.finfo(vectors.dtype).eps


@pytest.mark.parametrize("dtype", "fd")
@pytest.mark.parametrize("size", ROTATED)
def test_eigenvalues_by_rotations(dtype, size):
    """Values, columns and what they give again are right to 2 n roundings of the largest value, by either triangle alone,
    with the same values without columns; equal eigenvalues, zeros, and matrices far from 1 included."""
    n, eps = size[0], np.finfo(dtype).eps
    random = np.random.default_rng(7)
    x = random.standard_normal((37, n, n))
    x += x.swapaxes(-1, -2)
    q = np.linalg.qr(random.standard_normal((n, n)))[0]
    x[:3] = np.eye(n), np.ones((n, n)), np.zeros((n, n))
    x[3] = (q * np.repeat([1.0, 2.0], n)[:n]) @ q.T  # each eigenvalue many times
    x[4] *= 1e20
    x[5] *= 1e-18
    x = np.tril(x.astype(dtype))
    x += np.tril(x, -1).swapaxes(-1, -2)
    wide = np.linalg.eigvalsh(x.astype(np.float64))
    largest = abs(wide).max(-1, keepdims=True) + np.finfo(dtype).tiny
    for upper in (False, True):
        read = np.tri(n, dtype=bool).T if upper else np.tri(n, dtype=bool)
        given = np.where(read, x, np.nan).astype(dtype)
        values, info, vectors = kernel("eigh")[0](given, upper=upper, vectors=True)
        assert not info.any()
        assert (abs(values - wide) / largest).max() <= 2 * n * eps
        assert right_angles(vectors) <= 2 * n
        again = (vectors.astype(np.float64) * values[:, None]) @ vectors.swapaxes(-1, -2)
        assert (abs(again - x) / largest[..., None]).max() <= 2 * n * eps
        np.testing.assert_array_equal(kernel("eigh")[0](given, upper=upper, vectors=False)[0], values)


@pytest.mark.parametrize("dtype", "fd")
@pytest.mark.parametrize("size", [*ROTATED, (5, 3), (3, 5), (32, 16), (16, 32), (9, 1), (1, 9)])
def test_singular_values_by_rotations(dtype, size):
    """Values, both sides and what they give again are right to 2 n roundings of the largest value, of columns and of rows,
    for matrices of any rank and scale; the values by themselves too."""
    eps, most = np.finfo(dtype).eps, max(size)
    random = np.random.default_rng(7)
    x = random.standard_normal((37, *size))
    x[0], x[1] = 0, 1
    x[2, -1] = x[2, 0]
    x[3] *= 1e20
    x[4] *= 1e-18
    x[5] *= 10.0 ** random.uniform(-7, 0, size[-1])
    x = x.astype(dtype)
    wide = np.linalg.svd(x.astype(np.float64), compute_uv=False)
    largest = wide.max(-1, keepdims=True) + np.finfo(dtype).tiny
    values, info, u, vh = kernel("svd")[0](x, full=False, vectors=True)
    assert not info.any()
    assert (abs(values - wide) / largest).max() <= 2 * most * eps
    assert right_angles(u) <= 3 * most
    assert right_angles(vh.swapaxes(-1, -2)) <= 3 * most
    again = (u.astype(np.float64) * values[:, None]) @ vh
    assert (abs(again - x) / largest[..., None]).max() <= 2 * most * eps
    alone = kernel("svd")[0](x, full=False, vectors=False)[0]
    assert (abs(alone - wide) / largest).max() <= 2 * most * eps  # what is too small for its vector went another way


@pytest.mark.parametrize("dtype", "fd")
@pytest.mark.parametrize("n", [2, 3, 8, 12])
def test_no_bit_of_a_rotated_matrix_depends_on_others(n, dtype):
    """A matrix by itself, or four of more rows, have the bits, and so the signs, that they have among others, some of which
    have no answer."""
    x = np.random.default_rng(8).standard_normal((37, n, n)).astype(dtype)
    x = x + x.swapaxes(-1, -2)
    x[9, 0, 0] = np.nan
    for name, options in (("eigh", {"upper": False, "vectors": True}), ("svd", {"full": True, "vectors": True})):
        run = kernel(name)[0]
        whole = run(x, **options)
        assert not np.delete(whole[1], 9).any()  # the ninth is LAPACK's, which finds no fault with some sizes
        some = 1 if n <= 8 else 4
        for begin in range(12, 37 - some, 5):
            for got, expected in zip(run(x[begin : begin + some], **options), whole, strict=True):
                np.testing.assert_array_equal(got, expected[begin : begin + some])
