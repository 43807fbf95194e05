"""Runs of equal elements and slices shortened to a norm, in C beside NumPy's."""

import numpy as np
import pytest

import tensorcore

from .native import assert_same, awkward, kernel, layouts, needs_native

pytestmark = [needs_native, pytest.mark.usefixtures("isa")]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "uint8", "int16", "int32", "int64", "bool"])
def test_runs(dtype):
    """Values, the run of each element and lengths are NumPy's: NaN is equal to nothing, zeros of both signs to each other."""
    native, fallback = kernel("unique_consecutive")
    few = np.random.default_rng(8).integers(0, 2, 60).astype(dtype)
    values = np.concatenate([few, awkward(dtype), few[:1].repeat(9), np.array([0.0, -0.0, 0.0]).astype(dtype)])
    for x in layouts(values).values():
        for mine, its in zip(native(x, dim=None), fallback(x, dim=None), strict=True):
            assert (mine.dtype, mine.shape) == (its.dtype, its.shape)
            np.testing.assert_array_equal(mine, its)
    rows = few.reshape(6, 10)
    for mine, its in zip(native(rows, dim=1), fallback(rows, dim=1), strict=True):
        np.testing.assert_array_equal(mine, its)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "bool", "int16"])
def test_distinct_elements(dtype):
    """Values in order, where each element is among them, and counts are NumPy's, of one byte and of two."""
    native, fallback = kernel("unique")
    for values in (awkward(dtype, 4000), awkward(dtype), awkward(dtype)[:7]):
        for x in layouts(values).values():
            for mine, its in zip(native(x, dim=None), fallback(x, dim=None), strict=True):
                assert (mine.dtype, mine.shape) == (its.dtype, its.shape)
                np.testing.assert_array_equal(mine, its)
    rows = awkward(dtype, 60).reshape(20, 3)
    for mine, its in zip(native(rows, dim=0), fallback(rows, dim=0), strict=True):
        np.testing.assert_array_equal(mine, its)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool"])
@pytest.mark.parametrize("name", ["unique", "unique_consecutive"])
def test_distinct_slices(name, dtype):
    """Slices along any dim of any layout, many and few, are NumPy's: in order or as they come, zeros equal, NaN equal to nothing."""
    native, fallback = kernel(name)
    random = np.random.default_rng(8)
    for shape in ((1, 1), (7, 2), (9, 3), (300, 2), (40,), (5, 4, 3)):
        whole = random.integers(0, 2 if dtype == "bool" else 3, shape) - (dtype not in ("bool", "uint8"))
        some = [whole.astype(dtype)]
        if dtype.startswith("float"):
            some += [np.where(some[0] == 0, -0.0, some[0]).astype(dtype), some[0].copy(), some[0] / 0.75]
            some[1].reshape(-1)[::2] = np.abs(some[1].reshape(-1)[::2])
            some[2].reshape(-1)[::3] = np.nan
        for x in some:
            for one in (x, np.asfortranarray(x), x[::-1], np.repeat(x, 2, axis=0)[::2]):
                for dim in range(x.ndim):
                    for found, expected in zip(native(one, dim=dim), fallback(one, dim=dim), strict=True):
                        assert_same(found, expected, signs=False)


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_many_distinct_slices(dtype):
    """Thousands of rows come out sorted, each at its place, as many times as it occurs."""
    x = np.random.default_rng(8).integers(-20, 20, (5000, 2)).astype(dtype)
    values, inverse, counts = kernel("unique")[0](x, dim=0)
    assert_same(values, np.unique(x, axis=0))
    np.testing.assert_array_equal(values[inverse], x)
    np.testing.assert_array_equal(counts, np.bincount(inverse))


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
