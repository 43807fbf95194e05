"""Distinct bytes and slices, and runs of equal elements, in C beside NumPy's."""

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


INTEGERS = ["int8", "uint8", "bool", "int16", "int32", "int64"]


def everywhere(values):
    """The values in all layouts, a few as they are."""
    return layouts(values).values() if len(values) > 5 else [values]


def spread(dtype):
    """Integers of which some lie near each other, around zero and at both ends of their dtype, and some far apart."""
    if dtype == "bool":
        return [awkward(dtype, 4000), awkward(dtype)[:7]]
    random, ends = np.random.default_rng(8), np.iinfo(dtype)
    near = [random.integers(0, 100, count).astype(dtype) for count in (1, 5, 4000)]
    near += [
        random.integers(ends.min, ends.min + 90, 300).astype(dtype),
        random.integers(ends.max - 90, ends.max, 300).astype(dtype),
    ]
    return [*near, awkward(dtype, 4000), awkward(dtype), np.array([ends.min, ends.max, ends.min, 0]).astype(dtype)]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_distinct_elements(dtype):
    """Values in order, where each element is among them, and counts are NumPy's, of integers near each other and far apart."""
    native, fallback = kernel("unique")
    for values in spread(dtype):
        for x in everywhere(values):
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


@pytest.mark.parametrize("count", [1, 63, 64, 65, 16319, 16320, 16321, 40000])
def test_many_bools(count):
    """All of one kind, or both, of more than a byte counts; every byte but 0 is true, and the value of these is 1."""
    native, fallback = kernel("unique")
    mixed = np.random.default_rng(8).integers(0, 2, count).astype(bool)
    for x in (mixed, np.ones(count, bool), np.zeros(count, bool)):
        for found, expected in zip(native(x, dim=None), fallback(x, dim=None), strict=True):
            assert_same(found, expected)
    values, inverse, lengths = native((mixed * np.uint8(7)).view(bool), dim=None)
    assert values.view(np.uint8).tolist() == np.unique(mixed).tolist()
    np.testing.assert_array_equal(values[inverse], mixed)
    assert lengths.sum() == count


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", *INTEGERS])
def test_values_alone(dtype):
    """Distinct values without the rest are the first of the three, in order and as they come, NaN each by itself."""
    native, _ = kernel("distinct")
    if dtype.startswith("float"):
        some = [
            awkward(dtype, 4000),
            awkward(dtype),
            np.full(9, np.nan, dtype),
            np.array([-0.0, 0.0, -0.0, 1]).astype(dtype),
        ]
    else:
        some = spread(dtype)
    for values in some:
        for x in everywhere(values):
            assert_same(native(x), kernel("unique")[1](x)[0])
            assert_same(native(x, consecutive=True), kernel("unique_consecutive")[1](x)[0])


@pytest.mark.parametrize("count", [16384, 16385, 40001])
@pytest.mark.parametrize("distinct", [1, 2, 40, 10**9])
@pytest.mark.parametrize("threads", [1, 3])
def test_many_runs(threads, count, distinct):
    """The first of each run is found where threads share the elements and where one does not count first, long runs and short ones."""
    tensorcore.set_num_threads(threads)  # which the fixture puts back
    x = np.random.default_rng(8).integers(0, distinct, count)
    for one in (x, np.sort(x), x.astype(np.float32), x.astype(np.uint8)):
        assert_same(kernel("distinct")[0](one, consecutive=True), kernel("unique_consecutive")[1](one)[0])


@pytest.mark.parametrize("count", [16384, 16385, 50001])
@pytest.mark.parametrize("distinct", [1, 2, 40, 10**9])
@pytest.mark.parametrize("threads", [1, 3])
def test_many_elements_far_apart(threads, count, distinct):
    """Runs that go through several threads' pieces are one: values, places and counts are NumPy's, NaN each by itself."""
    tensorcore.set_num_threads(threads)  # which the fixture puts back
    native, fallback = kernel("unique")
    x = np.random.default_rng(8).integers(0, distinct, count) << 28
    floats = x.astype(np.float32)
    missing = np.where(floats == 0, np.nan, floats)
    for one in (x, np.sort(x), floats, missing, floats.astype(np.float64)):
        for found, expected in zip(native(one, dim=None), fallback(one, dim=None), strict=True):
            assert_same(found, expected)
