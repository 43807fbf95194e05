"""LAPACK's routines from C: each kernel beside its NumPy twin, over dtypes, batches, layouts and matrices that have no answer."""

import ctypes
import itertools

import numpy as np
import pytest

import tensorcore
from tensorcore_cpu import blas, native
from tests.cpu.native import kernel, needs_native, running

pytestmark = needs_native
DTYPES = "fdFD"
# Products of 17 rows of float32, some of them of badly conditioned matrices; rounding alone is 6e-8.
TOLERANCES = {"f": 2e-4, "F": 2e-4, "d": 1e-11, "D": 1e-11}


@pytest.fixture(autouse=True)
def _three_threads():
    with running(None, "own"):
        yield


def drawn(dtype, *shape, seed=5):
    """Matrices that are far from singular."""
    random = np.random.default_rng(seed)
    made = random.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        made = made + 1j * random.standard_normal(shape)
    return (0.3 * made + 2 * np.eye(*shape[-2:])).astype(dtype)


def layouts(x):
    """The matrices row after row, column after column, and backwards with gaps."""
    yield x
    yield np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2)
    yield np.repeat(x[..., ::-1], 2, -1)[..., ::-2]


def several(made):
    return made if type(made) is tuple else (made,)


def agree(name, *args, **options):
    """The kernel and its twin give the same values, dtypes, shapes and memory order; the kernel's are given back."""
    mine, twin = kernel(name)
    got, expected = several(mine(*args, **options)), several(twin(*args, **options))
    tolerance = TOLERANCES.get(args[0].dtype.char, 0)
    assert len(got) == len(expected)
    for one, other in zip(got, expected, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        if 1 not in one.shape and one.size:
            assert one.strides == other.strides
        np.testing.assert_allclose(one, other, tolerance, tolerance)
    return got


CASES = list(itertools.product(DTYPES, [(), (3,), (2, 3)], [(1, 1), (3, 3), (5, 3), (3, 5), (17, 17)]))


@pytest.mark.parametrize(("dtype", "batch", "size"), CASES)
def test_factors_of_any_matrix(dtype, batch, size):
    """LU, QR, reflections and least squares are NumPy's twins' for square, tall and wide matrices in any layout."""
    rows, columns = size
    right = drawn(dtype, *batch, rows, 4, seed=6)
    for x in layouts(drawn(dtype, *batch, rows, columns)):
        lu, pivots, _ = agree("lu_factor", x)
        agree("unpack_pivots", pivots, rows=rows)
        p, lower, upper = agree("unpack_lu", lu, pivots)
        np.testing.assert_allclose(p @ lower @ upper, x, 1e-4, 1e-4)
        for complete in (False, True):
            q, r = agree("qr", x, complete=complete)
            np.testing.assert_allclose(q @ r, x, 1e-4, 1e-4)
        agree("qr_triangle", x)
        a, tau = agree("geqrf", x)
        if rows >= columns:
            agree("householder_product", a, tau)
        for transpose in (False, True):
            agree("ormqr", a, tau, right, left=True, transpose=transpose)
            agree("ormqr", a, tau, right.swapaxes(-1, -2), left=False, transpose=transpose)
        for driver in ("gels", "gelsy", "gelsd", "gelss"):
            agree("lstsq", x, right, driver=driver, rcond=1e-6)


@pytest.mark.parametrize(("dtype", "batch", "size"), CASES)
def test_singular_values(dtype, batch, size):
    """Singular values are the twin's, and the vectors of both sides give the matrix again."""
    mine, twin = kernel("svd")
    for x, full, vectors in itertools.product(layouts(drawn(dtype, *batch, *size)), (False, True), (False, True)):
        got, expected = mine(x, full=full, vectors=vectors), twin(x, full=full, vectors=vectors)
        np.testing.assert_allclose(got[0], expected[0], 1e-5, 1e-5)
        assert [one.shape for one in got] == [one.shape for one in expected]
        assert [one.dtype for one in got] == [one.dtype for one in expected]
        if vectors:
            least = min(size)
            made = (got[2][..., :least] * got[0][..., None, :]) @ got[3][..., :least, :]
            np.testing.assert_allclose(made, x, 1e-4, 1e-4)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [(11, 6), (12, 6), (33, 1), (100, 5), (3, 60, 17)])
def test_singular_values_of_tall_matrices(dtype, size):
    """The triangle of Q and R gives what LAPACK makes of the whole, to 32 roundings of the largest value, of matrices as well whose
    squares leave the dtype's range; where one is not finite, there is no answer. Values by dqds are off by up to 19, PyTorch's too."""
    mine, twin = kernel("svd")
    limits = np.finfo(dtype)
    for scale in (1, limits.max / 64, limits.tiny * 64):
        x = drawn(dtype, *size) * limits.dtype.type(scale)
        for vectors in (False, True):
            got, expected = mine(x, full=False, vectors=vectors), twin(x, full=False, vectors=vectors)
            assert not got[1].any()
            np.testing.assert_allclose(got[0], expected[0], 32 * limits.eps, 32 * limits.eps * expected[0].max())
        u, vh = got[2], got[3]
        np.testing.assert_allclose(u.conj().swapaxes(-1, -2) @ u, vh @ vh.conj().swapaxes(-1, -2), 0, 40 * limits.eps)
        np.testing.assert_allclose((u * got[0][..., None, :]) @ vh, x, 0, 20 * limits.eps * float(got[0].max()))
    for bad in (np.nan, np.inf):
        x = drawn(dtype, *size)
        x[..., 3, 0] = bad
        assert (mine(x, full=False, vectors=True)[1] != 0).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [(5, 5), (100, 5), (3, 60, 17)])
def test_least_squares_of_any_rank(dtype, size):
    """Solutions, ranks and values are the twin's where columns repeat, are zeros, are of very different sizes, or leave the range
    when they are squared."""
    right, limits = drawn(dtype, *size[:-1], 3, seed=6), np.finfo(dtype)
    plain = drawn(dtype, *size)
    twice, empty, graded = plain.copy(), plain.copy(), plain * np.logspace(0, -2, size[-1]).astype(limits.dtype)
    twice[..., 1] = 2 * twice[..., 0]
    empty[..., 2] = 0
    for x, rank in ((plain, 0), (twice, -1), (empty, -1), (graded, 0), (plain * limits.dtype.type(limits.max / 64), 0)):
        for driver in ("gelsy", "gelsd") if rank else ("gelsy", "gelsd", "gels"):
            (got, ranks, *_), (expected, *others) = (
                run(x, right, driver=driver, rcond=1e-5) for run in kernel("lstsq")
            )
            used = size[-1] if driver == "gelsy" else None  # what lies behind follows the order of the columns
            np.testing.assert_allclose(got[..., :used, :], expected[..., :used, :], *2 * [TOLERANCES[dtype]])
            np.testing.assert_array_equal(ranks, others[0])
            assert driver == "gels" or (ranks == size[-1] + rank).all()


@pytest.mark.parametrize(
    ("dtype", "batch", "n"), list(itertools.product(DTYPES, [(), (3,), (2, 3), (40,)], [1, 3, 17]))
)
def test_square_matrices(dtype, batch, n):
    """Inverses, determinants, solutions and eigenvalues of square matrices are the twins', by either triangle and side."""
    right = drawn(dtype, *batch, n, 4, seed=6)
    for x in layouts(drawn(dtype, *batch, n, n)):
        agree("inverse", x)
        lu, pivots, _ = kernel("lu_factor")[0](x)
        agree("log_determinant", lu, pivots)
        np.testing.assert_allclose(agree("determinant", lu, pivots)[0], np.linalg.det(x), 1e-4)
        for way, factors in itertools.product("NTC", layouts(lu)):
            agree("lu_solve", factors, pivots, right, way=way)
        definite = x @ x.conj().swapaxes(-1, -2) + np.eye(n, dtype=dtype)
        for upper in (False, True):
            agree("cholesky", definite, upper=upper)
            agree("cholesky_inverse", x, upper=upper)
            values, _, vectors = kernel("eigh")[0](definite, upper=upper, vectors=True)
            np.testing.assert_allclose(definite @ vectors, vectors * values[..., None, :], 1e-3, 1e-3)
            agree("eigh", definite, upper=upper, vectors=False)
            for left, unit in itertools.product((False, True), (False, True)):
                side = right if left else right.swapaxes(-1, -2)
                agree("solve_triangular", x, side, upper=upper, left=left, unitriangular=unit)
        for hermitian in (False, True):
            symmetric = definite if hermitian else x + x.swapaxes(-1, -2)
            ld, swaps, _ = agree("ldl_factor", symmetric, hermitian=hermitian)
            agree("ldl_solve", ld, swaps, right, hermitian=hermitian)
        values, info, vectors = kernel("eig")[0](x, vectors=True)
        np.testing.assert_allclose(x @ vectors, vectors * values[..., None, :], 1e-3, 1e-3)
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=-2), 1, 1e-5)
        np.testing.assert_allclose(kernel("eig")[0](x, vectors=False)[0], values, 1e-3)
        assert not info.any()


@pytest.mark.parametrize("dtype", DTYPES)
def test_batches_broadcast(dtype):
    """Factors of one matrix serve a batch of right sides, and a batch of factors one right side."""
    x, right = drawn(dtype, 2, 1, 3, 3), drawn(dtype, 4, 3, 2)
    agree("solve_triangular", x, right, upper=True, left=True, unitriangular=False)
    lu, pivots, _ = kernel("lu_factor")[0](x)
    agree("lu_solve", lu, pivots, right, way="N")
    agree("lu_solve", lu, pivots, right[0], way="N")
    agree("lu_solve", lu[0, 0], pivots[0, 0], right, way="C")
    for n in (32, 33):  # few rows are solved one right side after the other
        large, many = drawn(dtype, n, n), drawn(dtype, 4, n, 2)
        factors, swaps, _ = kernel("lu_factor")[0](large)
        for way in "NTC":
            agree("lu_solve", factors, swaps, many, way=way)
        for upper in (False, True):
            agree(
                "solve_triangular",
                large + n * np.eye(n, dtype=dtype),
                many,
                upper=upper,
                left=True,
                unitriangular=False,
            )


def test_answers_for_matrices_that_have_none():
    """Of a batch each matrix has an answer of its own: where a pivot or a minor is not positive, 0 where all went well."""
    good, zero = np.eye(3) * 2, np.diag([1.0, 0.0, 3.0])
    negative, nan = np.diag([1.0, 2.0, -3.0]), np.diag([1.0, np.nan, 3.0])
    batch = np.stack([good, zero, negative, nan])
    assert kernel("lu_factor")[0](batch[:3])[2].tolist() == [0, 2, 0]
    assert kernel("ldl_factor")[0](batch[:3], hermitian=False)[2].tolist() == [0, 2, 0]
    assert kernel("cholesky")[0](batch, upper=False)[1].tolist() == [0, 2, 3, 2]
    assert kernel("cholesky_inverse")[0](batch, upper=True)[1].tolist() == [0, 2, 0, 0]
    made, info = kernel("inverse")[0](batch[:2])
    assert info.tolist() == [0, 2]
    assert not np.isfinite(made[1]).all()
    np.testing.assert_array_equal(made[0], np.eye(3) / 2)
    values, info = kernel("eig")[0](batch, vectors=False)
    assert info.tolist() == [0, 0, 0, -1]
    assert np.isnan(values[3]).all()
    assert np.isfinite(values[:3]).all()
    made = kernel("lstsq")[0](batch[:2], np.ones((2, 3, 1)), driver="gels", rcond=1e-6)
    assert made[3].tolist() == [0, 2]


def test_determinants_of_singular_matrices():
    """A zero on the diagonal makes the determinant 0, its sign 0 and its logarithm minus infinity."""
    lu, pivots = np.diag([2.0, 0.0, -3.0]), np.array([1, 2, 3], np.int32)
    assert kernel("determinant")[0](lu, pivots) == 0
    sign, size = agree("log_determinant", lu, pivots)
    assert (sign, size) == (0, -np.inf)
    lu[1, 1], pivots[0] = 5, 3
    sign, size = agree("log_determinant", lu, pivots)
    assert sign == 1
    np.testing.assert_allclose(size, np.log(30), 1e-15)


@pytest.mark.parametrize("shape", [(0, 3, 3), (2, 0, 0), (0, 0), (4, 0, 3)])
def test_without_elements(shape):
    """Matrices without elements and batches without matrices are the twin's to answer."""
    x = np.empty(shape)
    for name in ("lu_factor", "geqrf"):
        agree(name, x)
    agree("svd", x, full=False, vectors=True)
    if shape[-1] == shape[-2]:
        agree("inverse", x)
        agree("cholesky", x, upper=False)
        agree("eigh", x, upper=False, vectors=True)


def test_swaps_with_rows_that_are_not_there():
    """A swap with a row that the matrix lacks reads no other memory: the twin raises."""
    with pytest.raises(IndexError):
        kernel("unpack_pivots")[0](np.array([1, 9], np.int32), rows=3)
    with pytest.raises(IndexError):
        kernel("unpack_lu")[0](np.eye(2), np.array([1, 9], np.int32))


def test_more_dims_of_vectors_than_of_matrices():
    """A batch of vectors may have a dim more than one of matrices can: NumPy's turn, and no memory behind a list of sizes."""
    factors, swaps = np.eye(2).reshape((1,) * 6 + (2, 2)), np.array([1, 2], np.int32).reshape((1,) * 7 + (2,))
    with pytest.raises(ValueError, match="more dimensions than allowed"):
        kernel("lu_solve")[0](factors, swaps, np.ones((1,) * 6 + (2, 1)), way="N")


@pytest.mark.parametrize("n", [4, 24])
def test_the_number_of_threads_changes_no_bit(n):
    """A batch gives the same bits on one thread and on three."""
    x = drawn("f", 200, n, n)
    found = []
    for count in (1, 3):
        tensorcore.set_num_threads(count)
        found.append(
            [*kernel("lu_factor")[0](x), *kernel("inverse")[0](x), *kernel("svd")[0](x, full=False, vectors=True)]
        )
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


def test_without_routines_the_twin_runs():
    """Where SciPy hands out no routines, or ones that are called in another way, the NumPy kernels take over."""
    x = drawn("d", 3, 3)
    routines = blas._lapack()
    try:
        for found in (None, {}, {**routines, "dgetrf": routines["dgetri"]}):
            native._library.lapack_finder(lambda found=found: found)
            agree("lu_factor", x)
            np.testing.assert_allclose(kernel("inverse")[0](x)[0] @ x, np.eye(3), atol=1e-12)
    finally:
        blas.prepare(native._library)
    agree("lu_factor", x)


def test_an_error_of_the_finder_is_raised():
    """What goes wrong while the routines are looked for is said, and looked for again at the next call."""

    def broken():
        raise RuntimeError("no such library")

    try:
        native._library.lapack_finder(broken)
        for _ in range(2):
            with pytest.raises(RuntimeError, match="no such library"):
                kernel("lu_factor")[0](np.eye(2))
    finally:
        blas.prepare(native._library)


def test_blas_has_one_thread_for_matrices_that_are_not_huge():
    """LAPACK runs on one thread of BLAS's, and its count is what it was afterwards; of one thread nothing is said."""
    now, told = [3], []
    get = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: now[0])
    tell = ctypes.CFUNCTYPE(None, ctypes.c_int)(lambda count: (told.append(count), now.__setitem__(0, count))[0])
    addresses = {"get_threads": get, "set_threads": tell}
    found = blas._lapack() | {name: ctypes.cast(one, ctypes.c_void_p).value for name, one in addresses.items()}
    try:
        native._library.lapack_finder(lambda: found)
        agree("lu_factor", drawn("D", 4, 40, 40))
        assert told == [1, 3]
        now[0] = 1
        agree("lu_factor", drawn("D", 40, 40))
        assert told == [1, 3]
    finally:
        blas.prepare(native._library)


@pytest.mark.parametrize("dtype", "fdF")
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("unit", [False, True])
def test_large_triangles(dtype, upper, unit):
    """A few right sides by products and many by shares of their columns, of any layout, give back the right sides."""
    x = np.tril(drawn(dtype, 400, 400) / 20 + 2 * np.eye(400, dtype=dtype))
    x = np.ascontiguousarray(x.T) if upper else x
    noise = np.where(x == 0, np.asarray(np.nan, dtype), 0)  # the other triangle is not read
    used = np.where(np.eye(400) > 0, 1, x) if unit else x
    for wide in (3, 32, 40):
        right = drawn(dtype, 400, wide)
        for one in layouts((x + noise).astype(dtype)):
            made = kernel("solve_triangular")[0](one, right, upper=upper, left=True, unitriangular=unit)
            assert abs(used @ made - right).max() < TOLERANCES[dtype]


def test_large_matrices():
    """Matrices of which each is worth a thread are factored on several."""
    x = drawn("d", 2, 150, 150)
    lu, pivots, _ = kernel("lu_factor")[0](x)
    made = kernel("lu_solve")[0](lu, pivots, np.broadcast_to(np.eye(150), x.shape), way="N")
    np.testing.assert_allclose(made @ x, np.broadcast_to(np.eye(150), x.shape), atol=1e-10)
    q, r = kernel("qr")[0](x, complete=False)
    np.testing.assert_allclose(q @ r, x, atol=1e-10)


@pytest.mark.parametrize("dtype", ["bool", "int8", "int32", "int64", "float16", "bfloat16", "float32", "complex128"])
@pytest.mark.parametrize("batch", [(), (2, 3)])
@pytest.mark.parametrize("size", [(1, 1), (4, 4), (5, 3), (3, 5)])
def test_factors_of_any_type_are_taken_apart(dtype, batch, size):
    """P, L and U as the twin's, elements of any size, and without P where no rows were swapped."""
    random = np.random.default_rng(8)
    lu = random.integers(0, 9, (*batch, *size)).astype(dtype)
    pivots = random.integers(1, size[0] + 1, (*batch, min(size))).astype(np.int32)
    native, twin = kernel("unpack_lu")
    for got, expected in zip(native(lu, pivots), twin(lu, pivots), strict=True):
        assert (got.dtype, got.shape) == (lu.dtype, expected.shape)
        np.testing.assert_array_equal(got, expected)
    none, lower, upper = native(lu, None)
    assert none is None
    np.testing.assert_array_equal(lower, twin(lu, None)[1])
    np.testing.assert_array_equal(upper, twin(lu, None)[2])
