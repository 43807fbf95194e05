"""Norms of any order in C beside NumPy's: values, corners, dims, layouts, half types."""

import ml_dtypes
import numpy as np
import pytest

from .native import FOLDS, awkward, kernel, layouts, needs_native

pytestmark = [needs_native, pytest.mark.usefixtures("isa")]

ORDERS = [0.0, 0.5, 1.0, 1.5, 3.0, 4.0, -1.5, -3.0, np.inf, -np.inf]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("shape, dim", [fold for fold in FOLDS if np.prod(fold[0]) < 20_000])
def test_norms_of_other_orders(shape, dim, order, dtype):
    """To a few roundings of the exact norm, along any dims."""
    norm, fallback = kernel("norm")
    x = np.random.default_rng(8).standard_normal(shape).astype(dtype)
    x.flat[::7] = 0 if order > 0 else 1
    for keepdim in (False, True):
        exact = fallback(x.astype(np.longdouble), p=order, dim=dim, keepdim=keepdim)
        made = norm(x, p=order, dim=dim, keepdim=keepdim)
        assert (made.dtype, made.shape) == (x.dtype, exact.shape)
        np.testing.assert_allclose(made, exact.astype(dtype), 8 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("order", ORDERS)
def test_corners_and_layouts(order, dtype):
    """Zeros, infinities, NaN, denormals and elements that lie anyhow have NumPy's norms."""
    norm, fallback = kernel("norm")
    for values in (awkward(dtype), awkward(dtype)[:3], awkward(dtype)[[0, 2, 5]], awkward(dtype)[5:40]):
        for name, x in layouts(np.resize(values, 67)).items():
            if not x.size:
                continue
            for dim in (None, *[(i,) for i in range(x.ndim)]):
                got, expected = norm(x, p=order, dim=dim), fallback(x, p=order, dim=dim)
                np.testing.assert_allclose(
                    got, expected, 2e-6 if dtype == "float32" else 1e-14, err_msg=f"{name} {dim}"
                )


@pytest.mark.parametrize("dtype", [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)], ids=str)
@pytest.mark.parametrize("order", ORDERS)
def test_half_types(order, dtype):
    """One rounding of the norm of the elements as floats."""
    norm = kernel("norm")[0]
    x = (np.random.default_rng(8).standard_normal((9, 31)) + 0.1).astype(dtype)
    for dim in (None, (0,), (1,)):
        made, exact = norm(x, p=order, dim=dim), norm(x.astype(np.float32), p=order, dim=dim)
        assert made.dtype == dtype
        np.testing.assert_array_equal(made, exact.astype(dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_no_elements(dtype):
    """The norm of nothing is 0, of nothing along a dim too."""
    norm = kernel("norm")[0]
    assert norm(np.empty(0, dtype), p=3.0) == 0
    assert norm(np.empty((2, 0), dtype), p=1.5, dim=(1,)).tolist() == [0, 0]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("order", [0.0, 0.5, 1.5, 3.0, 7.0])
def test_distances_of_other_orders(order, dtype):
    """Of the rows of two matrices, of pairs of one and of batches, rows that are longer than a piece and rows that lie anyhow too."""
    (native, fallback), (pairs, slow) = kernel("cdist"), kernel("pdist")
    random = np.random.default_rng(8)
    for batch, rows, others, width in (((), 1, 1, 1), ((), 5, 3, 8), ((), 3, 33, 2), ((), 31, 9, 19), ((), 2, 3, 5003), ((3, 2), 4, 7, 5),
                                       ((9,), 40, 30, 3), ((), 3, 7, 2048), ((), 2, 5, 1500)):  # fmt: skip
        x, y = [np.round(random.standard_normal((*batch, count, width)), 1).astype(dtype) for count in (rows, others)]
        expected = fallback(x.astype(np.longdouble), y.astype(np.longdouble), p=order).astype(dtype)
        np.testing.assert_allclose(native(x, y, p=order), expected, 32 * np.finfo(dtype).eps)
        np.testing.assert_allclose(native(x[..., ::-1], y[..., ::-1], p=order), expected, 32 * np.finfo(dtype).eps)
        if not batch:
            expected = slow(x.astype(np.longdouble), p=order).astype(dtype)
            np.testing.assert_allclose(pairs(x, p=order), expected, 32 * np.finfo(dtype).eps)
    x = awkward(dtype)[: 33 * 2].reshape(-1, 2)
    np.testing.assert_allclose(native(x, x[::-1].copy(), p=order), fallback(x, x[::-1].copy(), p=order), 1e-5)
    assert pairs(x[:1], p=order).shape == (0,)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", ml_dtypes.bfloat16], ids=str)
def test_sums_without_what_is_no_number(dtype):
    """Is the sum of the same elements with zeros for NaN, to its last bits, along any dims; an infinity's NaN stays one."""
    nansum, fallback = kernel("nansum")
    total = kernel("sum")[0]
    for values in (awkward(dtype), awkward(dtype)[10:], np.full(67, np.nan, dtype), np.ones(67, dtype)):
        for name, x in layouts(np.resize(values, 67)).items():
            plain = np.array(np.where(np.isnan(x), np.array(0, dtype), x), order="C")
            for dim in (None, *[(i,) for i in range(x.ndim)], *([(0, x.ndim - 1)] if x.ndim > 1 else [])):
                for keepdim in (False, True):
                    got, expected = nansum(x, dim=dim, keepdim=keepdim), total(plain, dim=dim, keepdim=keepdim)
                    assert (got.dtype, got.shape) == (expected.dtype, expected.shape), name
                    near = 8 * float(ml_dtypes.finfo(dtype).eps)
                    np.testing.assert_allclose(
                        got.astype(np.float64), expected.astype(np.float64), near, err_msg=f"{name} {dim}"
                    )
    x = np.array([[1, np.nan], [np.inf, -np.inf]], dtype)
    np.testing.assert_array_equal(nansum(x, dim=(1,)).astype(np.float64), [1, np.nan])
    np.testing.assert_array_equal(nansum(x).astype(np.float64), np.asarray(fallback(x)).astype(np.float64))
