"""Sorting and the k-th element in C beside NumPy's: order of ties, NaN, zeros, each dtype, layout and length of rows."""

import numpy as np
import pytest

import tensorcore
from tensorcore import dtypes

from .native import awkward, isa, kernel, needs_native  # noqa: F401

pytestmark = needs_native

BFLOAT16 = np.dtype(dtypes.bfloat16.numpy)
DTYPES = ["float32", "float64", "float16", BFLOAT16, "int8", "int16", "int32", "int64", "uint8", "bool"]
# Side by side, in narrow digits, in wide ones.
COUNTS = [1, 2, 31, 40, 700, 5000]
SIDE_BY_SIDE = [1, 3, 16, 65, 129]


def rows(dtype, count):
    """Three rows: awkward values, a few values met often, and values in order."""
    random = np.random.default_rng(count)
    few = random.integers(0, 2 if dtype == "bool" else 5, count).astype(np.float32).astype(dtype)
    return np.stack([random.permutation(awkward(dtype, max(count, 12)))[:count], few, np.sort(few)])


def bits(array):
    """What tells NaN from NaN and zero from zero."""
    return array.view(f"u{array.dtype.itemsize}")


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_sort(dtype, count, descending):
    """Values and places are NumPy's: equal elements keep their order, zeros are equal, NaN is the largest."""
    native, fallback = kernel("sort")
    x = rows(dtype, count)
    for one, dim in ((x, 1), (np.ascontiguousarray(x.T), 0), (x.T, 0), (x[:, ::-1], 1), (x, 0), (x[0], 0)):
        values, places = native(one, dim=dim, descending=descending, stable=False)
        expected, at = fallback(one, dim=dim, descending=descending, stable=False)
        assert (values.dtype, places.dtype) == (x.dtype, np.int64)
        np.testing.assert_array_equal(places, at)
        np.testing.assert_array_equal(bits(values), bits(np.ascontiguousarray(expected)))


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("count", [33, 513, 4095, 4096, 33000, 140_000, 600_000])
@pytest.mark.parametrize("dtype", ["int32", "int64", "float64"])
def test_long_keys(dtype, count, threads):
    """Equal elements keep their order whichever digits the elements differ in, high ones, low ones, some of both; on any threads."""
    before = tensorcore.get_num_threads()
    random = np.random.default_rng(8)
    wide = random.integers(-(2**30), 2**30, count)
    high = random.integers(0, 3, count) << (29 if dtype == "int32" else 60)
    tensorcore.set_num_threads(threads)
    try:
        for x in (wide, high, high + random.integers(0, 2**20, count), wide >> 24, np.sort(wide), wide * 0 - 7):
            for descending in (False, True):
                one = x.astype(dtype)
                values, places = kernel("sort")[0](one, dim=0, descending=descending, stable=True)
                expected = np.argsort(-one if descending else one, kind="stable")
                np.testing.assert_array_equal(places, expected)
                np.testing.assert_array_equal(values, one[expected])
    finally:
        tensorcore.set_num_threads(before)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("count", [5000, 140_000, 600_000])
def test_many_of_normal_distribution(dtype, count):
    """Numbers that share their highest digits are in NumPy's order, and zeros keep their signs and NaN its bits."""
    x = np.random.default_rng(9).standard_normal(count).astype(dtype)
    x[::7], x[1::77], x[2::91] = 0.0, -0.0, -np.nan
    values, places = kernel("sort")[0](x, dim=0, descending=False, stable=True)
    np.testing.assert_array_equal(places, np.argsort(x, kind="stable"))
    np.testing.assert_array_equal(bits(values), bits(x[places]))


@pytest.mark.parametrize("nan", [False, True])
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_median(dtype, count, nan):
    """The lower of the middle elements and its place are NumPy's; the first NaN, or as if there were none."""
    native, fallback = kernel("median_dim")
    x = rows(dtype, count)
    for one, dim in ((x, 1), (np.ascontiguousarray(x.T), 0), (x[:, ::-1], 1), (x[1], 0)):
        for keepdim in (False, True):
            values, places = native(one, dim=dim, keepdim=keepdim, nan=nan)
            expected, at = fallback(one, dim=dim, keepdim=keepdim, nan=nan)
            assert (values.dtype, values.shape, places.shape) == (x.dtype, expected.shape, at.shape)
            np.testing.assert_array_equal(places, at)
            np.testing.assert_array_equal(values.astype(np.float64), expected.astype(np.float64))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_median_of_nothing_but_nan(dtype):
    """Without a number the first NaN is the answer, whether NaN counts or not."""
    native, fallback = kernel("median_dim")
    x = np.full((2, 50), np.nan, dtype)
    for nan in (False, True):
        np.testing.assert_array_equal(native(x, dim=1, nan=nan)[1], fallback(x, dim=1, nan=nan)[1])


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_kth_value(dtype, count):
    """The value is NumPy's, and stands at the place that comes with it."""
    native, fallback = kernel("kthvalue")
    x = rows(dtype, count)
    for k in {1, 2, count // 2 + 1, count}:
        if k > count:
            continue
        for keepdim in (False, True):
            values, places = native(x, k=k, dim=1, keepdim=keepdim)
            expected, _ = fallback(x, k=k, dim=1, keepdim=keepdim)
            np.testing.assert_array_equal(values.astype(np.float64), expected.astype(np.float64))
            at = places if keepdim else places[:, None]
            np.testing.assert_array_equal(bits(np.take_along_axis(x, at, 1).reshape(values.shape)), bits(values))


def many(dtype, count):
    """Rows that are several blocks and a few more, each in an order of its own: what `rows` has, and NaN in some of them alone."""
    random = np.random.default_rng(count)
    made = np.concatenate([rows(dtype, count)[[0, 1]], *(rows(dtype, count)[1:] for _ in range(2048 // count + 11))])
    if made.dtype.kind not in "iub":
        made[random.random(made.shape) < 0.1] = np.nan
    return random.permuted(made, axis=1)


@pytest.mark.usefixtures("isa")
@pytest.mark.parametrize("count", SIDE_BY_SIDE)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_short_rows(dtype, count):
    """Many short rows are NumPy's along the last dim, along the first one and along one between others."""
    x = many(dtype, count)
    lying = np.ascontiguousarray(x[: len(x) // 5 * 5].reshape(-1, 5, count).transpose(0, 2, 1))
    for one, dim in ((x, 1), (np.ascontiguousarray(x.T), 0), (lying, 1)):
        for descending in (False, True):
            native, fallback = kernel("sort")
            answers = (sort(one, dim=dim, descending=descending) for sort in (native, fallback))
            for made, wanted in zip(*answers, strict=True):
                np.testing.assert_array_equal(bits(made), bits(np.ascontiguousarray(wanted)))
        native, fallback = kernel("median_dim")
        for nan in (False, True):
            np.testing.assert_array_equal(native(one, dim=dim, nan=nan)[1], fallback(one, dim=dim, nan=nan)[1])
        native, fallback = kernel("kthvalue")
        for k in {1, count // 2 + 1, count}:
            values, places = native(one, k=k, dim=dim, keepdim=True)
            wanted = fallback(one, k=k, dim=dim, keepdim=True)[0]
            np.testing.assert_array_equal(values.astype(np.float64), wanted.astype(np.float64))
            np.testing.assert_array_equal(bits(np.take_along_axis(one, places, dim)), bits(values))


@pytest.mark.usefixtures("isa")
@pytest.mark.parametrize("count", [*SIDE_BY_SIDE, 700, 5000])
@pytest.mark.parametrize("dtype", DTYPES[:-1], ids=str)
def test_topk(dtype, count):
    """The largest and the smallest are the first of NumPy's sorted rows, over the last dim and over another, of many rows and of few."""
    native, order = kernel("topk")[0], kernel("sort")[1]
    for x in (many(dtype, count), rows(dtype, count)):
        for one, dim in ((x, 1), (np.ascontiguousarray(x.T), 0)):
            for k in {1, count // 3 + 1, count}:
                for largest in (False, True):
                    values, places = native(one, k=k, dim=dim, largest=largest, sorted=True)
                    wanted, at = (np.take(part, range(k), dim) for part in order(one, dim=dim, descending=largest))
                    np.testing.assert_array_equal(values.astype(np.float64), wanted.astype(np.float64))
                    np.testing.assert_array_equal(places, at)


REDUCING = ["kthvalue", "median_dim", "mode_dim", "max_dim", "min_dim"]


@pytest.mark.parametrize("value", [np.float32(3), np.float64(np.nan), np.int64(-3), BFLOAT16.type(np.nan)])
@pytest.mark.parametrize(
    "name", [*REDUCING, "sort", "topk", "cummax", "cummin", "cumsum", "cumprod", "softmax", "log_softmax"]
)
def test_an_array_without_dims_is_a_row_of_one(name, value):
    """Along dim 0 an array without dims gives what NumPy's kernel gives, without dims, of a NaN too."""
    native, fallback = kernel(name)
    x = np.array(value, np.float32 if "softmax" in name and value.dtype == np.int64 else value.dtype)
    given = {"dim": 0, **({"k": 1} if name in ("topk", "kthvalue") else {})}
    for options in [given | {"keepdim": kept} for kept in (False, True)] if name in REDUCING else [given]:
        found, expected = native(x, **options), fallback(x, **options)
        for one, other in zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]:
            assert (one.shape, one.dtype) == ((), np.asarray(other).dtype)
            np.testing.assert_array_equal(one.astype(np.float64), np.asarray(other).astype(np.float64))


def test_what_is_empty_stays_so():
    """Arrays without elements have no order and no places."""
    values, places = kernel("sort")[0](np.zeros((0, 3), np.float32), dim=0)
    assert values.shape == places.shape == (0, 3)


def test_rows_are_sorted_on_threads():
    """Many rows in pieces come out as one by one, over the last dim and over another."""
    from tensorcore_cpu import native as library

    native, _ = kernel("sort")
    x = np.random.default_rng(8).standard_normal((40, 900, 3)).astype(np.float32)
    before = library.threads()
    library.threads(2)
    try:
        values, places = native(x, dim=1, descending=True)
    finally:
        library.threads(before)
    np.testing.assert_array_equal(values, -np.sort(-x, axis=1))
    np.testing.assert_array_equal(np.take_along_axis(x, places, 1), values)
