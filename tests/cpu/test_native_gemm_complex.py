"""Products of complex numbers in C against NumPy's, in every layout that a caller can bring."""

import itertools

import numpy as np
import pytest

from tensorcore_cpu import native

from .native import kernel, needs_native
from .test_native_gemm import layouts

pytestmark = [needs_native, pytest.mark.usefixtures("products")]

RANDOM = np.random.default_rng(8)
DTYPES = [np.complex64, np.complex128]
WIDE = {np.complex64: np.complex128, np.complex128: np.clongdouble}


def numbers(dtype, *shape):
    return (RANDOM.standard_normal(shape) + 1j * RANDOM.standard_normal(shape)).astype(dtype)


def product_of(x, y):
    """A product, and how far rounding each step of its sums, of two real products a pair, can take one from it."""
    wide = WIDE[x.dtype.type]
    sums = np.matmul(abs(x.astype(wide)), abs(y.astype(wide)))
    return np.matmul(x.astype(wide), y.astype(wide)), (2 * min(x.shape[-1], 64) + 1) * np.finfo(x.dtype).eps * sums


def assert_product(got, x, y, known=None):
    exact, bound = known or product_of(x, y)
    assert type(got) is np.ndarray
    assert (got.dtype, got.shape) == (x.dtype, exact.shape)
    assert got.flags.c_contiguous
    assert (abs(got - exact) <= bound).all(), float((abs(got - exact) - bound).max())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "sizes", [(1, 1, 1), (2, 3, 2), (5, 3, 7), (12, 32, 16), (13, 17, 33), (64, 64, 64), (97, 150, 67)]
)
def test_layouts(dtype, sizes):
    """Products of matrices are right in every pair of layouts, with sizes that leave rests and with those that leave none."""
    rows, inner, columns = sizes
    x, y = numbers(dtype, rows, inner), numbers(dtype, inner, columns)
    known = product_of(x, y)
    for a, b in itertools.product(layouts(x), layouts(y)):
        assert_product(kernel("matmul")[0](a, b), x, y, known)
        assert_product(kernel("matmul_nt")[0](a, b.T), x, y, known)
        assert_product(kernel("matmul_tn")[0](a.T, b), x, y, known)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("inner", [63, 64, 65, 127, 129, 257, 515])
def test_long_sums(dtype, inner):
    """Sums that are made in several parts, an odd number of rows of the right side in some, are as right as short ones."""
    x, y = numbers(dtype, 30, inner), numbers(dtype, inner, 40)
    assert_product(kernel("matmul")[0](x, y), x, y)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("left", "right"), [
    ((3, 4, 5), (3, 5, 6)), ((2, 3, 4, 5), (5, 6)), ((4, 5), (2, 3, 5, 6)), ((2, 1, 4, 5), (3, 5, 6)), ((3, 4, 5), (5,)),
    ((5,), (3, 5, 6)), ((5,), (5,)), ((3, 0, 5), (3, 5, 6)), ((3, 4, 0), (3, 0, 6)), ((40, 30, 50), (40, 50, 20)),
])  # fmt: skip
def test_batches(dtype, left, right):
    """Dims in front are broadcast, those of vectors are left out, and empty ones give what NumPy gives."""
    x, y = numbers(dtype, *left), numbers(dtype, *right)
    assert_product(np.asarray(kernel("matmul")[0](x, y)), x, y)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_left_side_with_zeros_and_a_right_one_that_is_not_finite(dtype):
    """What is zero may be left out only where it is multiplied by numbers: beside infinity and NaN the result is NaN."""
    x, y = numbers(dtype, 192, 128), numbers(dtype, 128, 96)
    x[:, ::3] = 0
    assert_product(kernel("matmul")[0](x, y), x, y)
    y[3, 5], y[6, 7] = np.inf, complex(0, np.nan)
    made = kernel("matmul")[0](x, y)
    assert np.isnan(made[:, [5, 7]]).all()
    assert np.isfinite(np.delete(made, [5, 7], 1)).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("alpha", "beta"), [(1, 1), (2.0, 0.5), (1, 0), (1 - 2j, 3j), (0, 1)])
@pytest.mark.parametrize(
    ("left", "right"), [((3, 4), (4, 5)), ((3, 4), (4,)), ((2, 3, 4), (2, 4, 5)), ((70, 40), (40, 50))]
)
def test_what_is_added(dtype, left, right, alpha, beta):
    """A tensor of any shape that broadcasts is added to a product, both times a number; one times 0 is not read."""
    native = kernel("addmm")[0]
    x, y = numbers(dtype, *left), numbers(dtype, *right)
    shape = (x @ y).shape
    for added in (
        numbers(dtype, *shape),
        numbers(dtype, shape[-1]),
        numbers(dtype, 2 * shape[-1])[::2],
        np.array(2 + 1j, dtype),
    ):
        added = added if beta else np.full_like(added, np.nan)
        wide = alpha * (x.astype(np.complex128) @ y) + (beta * added.astype(np.complex128) if beta else 0)
        got = native(added, x, y, beta=beta, alpha=alpha)
        assert (got.dtype, got.shape) == (dtype, shape)
        np.testing.assert_allclose(
            got, wide, rtol=1e-4 if dtype is np.complex64 else 1e-12, atol=1e-4 if dtype is np.complex64 else 1e-12
        )
    if len(right) == 2:
        bias = numbers(dtype, right[1])
        assert_product(kernel("linear")[0](x, y.T.copy(), None), x, y)
        np.testing.assert_allclose(
            kernel("linear")[0](x, y.T, bias), x.astype(np.complex128) @ y + bias, rtol=1e-4, atol=1e-4
        )


@pytest.mark.parametrize("dtype", DTYPES)
def test_infinities_beside_real_factors(dtype):
    """A real factor is a complex number: beside an infinity the other part is NaN, as in NumPy's products."""
    native, numpy = kernel("addmm")
    x, y, added = numbers(dtype, 2, 1), numbers(dtype, 1, 2), np.zeros((2, 2), dtype)
    added[0, 0], x[1, 0] = np.inf, complex(np.nan, 1)
    got, expected = (one(added, x, y, beta=0.5, alpha=2.0) for one in (native, numpy))
    np.testing.assert_allclose(got.view(got.real.dtype), expected.view(got.real.dtype), rtol=1e-5)


@pytest.mark.parametrize("dtype", DTYPES)
def test_several_threads_compute_the_same(dtype):
    """The bits of a product do not depend on the number of threads."""
    x, y = numbers(dtype, 200, 190), numbers(dtype, 190, 210)
    before, made = native.threads(), []
    try:
        for count in (1, 2, 3):
            native.threads(count)
            made.append(kernel("matmul")[0](x, y).tobytes())
    finally:
        native.threads(before)
    assert made[0] == made[1] == made[2]
