"""Slices shortened to a norm, in C beside NumPy's."""

import numpy as np
import pytest

import tensorcore

from .native import kernel, needs_native

pytestmark = [needs_native, pytest.mark.usefixtures("isa")]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, np.inf])
def test_slices_shortened(p, dtype):
    """As NumPy's to 8 roundings, along every dim and in every layout; NaN and infinities make the same."""
    native, fallback = kernel("renorm")
    x = np.random.default_rng(8).standard_normal((4, 5, 30)).astype(dtype)
    x[0, 0, 0], x[1, 1, 1], x[2, 2, 2] = np.nan, np.inf, np.finfo(dtype).max
    tolerance = 8 * np.finfo(dtype).eps
    for view in (x, x[..., 3:8], x[::-1], np.asfortranarray(x), x[3:, :1, :1]):
        for dim in range(3):
            got = native(view, p=p, dim=dim, maxnorm=2.5)
            expected = fallback(view, p=p, dim=dim, maxnorm=2.5)
            assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
            ordinary = np.abs(np.nan_to_num(view, nan=np.inf)) < 1e30
            keep = ordinary.all(axis=tuple([i for i in range(3) if i != dim]), keepdims=True) & np.ones(
                view.shape, bool
            )
            np.testing.assert_allclose(got[keep], expected[keep], tolerance, tolerance)
            np.testing.assert_array_equal(np.isnan(got[~keep & (p != 2)]), np.isnan(expected[~keep & (p != 2)]))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_slices_are_shortened_in_place(dtype):
    """The bits of a result of its own, in an array in row-major order and in one that is not, which is left to NumPy."""
    native, _ = kernel("renorm")
    x = np.random.default_rng(8).standard_normal((4, 5, 30)).astype(dtype)
    for view in (x, x[..., 3:8], np.asfortranarray(x)):
        for dim in range(3):
            expected = native(view.copy(order="K"), p=2.0, dim=dim, maxnorm=2.5)
            place = view.copy(order="K")
            assert native(place, p=2.0, dim=dim, maxnorm=2.5, out=place) is place
            np.testing.assert_allclose(place, expected, rtol=8 * float(np.finfo(dtype).eps))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("p", [1.0, 2.0])
@pytest.mark.parametrize(
    ("shape", "dim"),
    [((50_003, 3), 0), ((3, 50_003), 1), ((301, 200), 1), ((130, 17), 0), ((7, 129, 2), 1), ((0, 3), 0)],
)
def test_many_slices_are_shortened_each_by_itself(shape, dim, p, dtype, threads):
    """Thin tensors: as NumPy's to 8 roundings, with slices that are many, short, or one element of each row; some are left as they are."""
    tensorcore.set_num_threads(threads)
    native, fallback = kernel("renorm")
    x = np.random.default_rng(8).standard_normal(shape).astype(dtype)
    sizes = (abs(x) ** p).sum(axis=tuple(d for d in range(x.ndim) if d != dim)) ** (1 / p)
    most = 1.001 * float(np.median(sizes)) if x.size else 1.0  # no slice is just as long
    got, expected = (one(x, p=p, dim=dim, maxnorm=most) for one in (native, fallback))
    np.testing.assert_allclose(got, expected, 8 * np.finfo(dtype).eps)
    assert x.size == 0 or 0 < (got == x).mean() < 1
