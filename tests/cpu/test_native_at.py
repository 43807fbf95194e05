"""Indexing by arrays of numbers in C beside NumPy's."""

import numpy as np
import pytest

import tensorcore

from .native import awkward, isa, kernel, needs_native  # noqa: F401

pytestmark = needs_native

DTYPES = ["float32", "float64", "float16", "int8", "int64", "bool"]
RNG = np.random.default_rng(8)


def somewhere(size, *shape):
    """Numbers of places from either end, with repetitions."""
    return RNG.integers(-size, size, shape)


KEYS = [
    (somewhere(10, 50),),
    (somewhere(10, 7, 3),),
    (None, somewhere(20, 50)),
    (None, None, somewhere(30, 50)),
    (somewhere(10, 50), somewhere(20, 50)),
    (None, somewhere(20, 50), somewhere(30, 50)),
    (somewhere(10, 50), somewhere(20, 50), somewhere(30, 50)),
    (somewhere(10, 6, 1), somewhere(20, 4)),
    (somewhere(10, 50), None, somewhere(30, 50)),
    (somewhere(10, 50) % 10, None),
]


def full(key):
    return tuple([slice(None) if one is None else one for one in key])


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_elements_at_arrays_of_numbers_are_read(isa, dtype, key):  # noqa: F811
    """One index or several, next to each other or apart, that broadcast, negative ones from the end; turned arrays too."""
    values = awkward(dtype, 6000).reshape(10, 20, 30)
    ours, reference = kernel("index_tensors")
    for one in (values, np.ascontiguousarray(values.transpose(2, 1, 0)).transpose(2, 1, 0)):
        made = ours(one, indices=key)
        np.testing.assert_array_equal(made, values[full(key)])
        np.testing.assert_array_equal(made, reference(one, indices=key))


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_elements_at_arrays_of_numbers_are_written(isa, dtype, key):  # noqa: F811
    """Into a copy and in place; of equal places the last one counts; one value for all of them too."""
    values = awkward(dtype, 6000).reshape(10, 20, 30)
    ours, _ = kernel("index_put")
    for source in (np.ascontiguousarray(values[full(key)][::-1]), values[3, 4, 5:6].reshape(())):
        expected, place = values.copy(), values.copy()
        expected[full(key)] = source
        np.testing.assert_array_equal(ours(values, source, indices=key), expected)
        assert ours(place, source, indices=key, out=place) is place
        np.testing.assert_array_equal(place, expected)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int64"])
def test_elements_at_arrays_of_numbers_are_added_to(isa, dtype, key, threads):  # noqa: F811
    """Each of several equal places counts, into a copy, in place, and into a repeated zero; on threads the sums are the same, and those of
    half types are rounded once."""
    wide = "float32" if np.dtype(dtype).itemsize == 2 else dtype
    values = RNG.integers(-50, 50, (10, 20, 30)).astype(dtype)
    source = RNG.integers(-50, 50, values[full(key)].shape).astype(dtype)
    nothing = np.broadcast_to(np.zeros((), dtype), values.shape)
    ours, _ = kernel("index_put")
    before = tensorcore.get_num_threads()
    tensorcore.set_num_threads(threads)
    try:
        for start in (values, nothing):
            expected = start.astype(wide)
            np.add.at(expected, full(key), source.astype(wide))
            found = ours(start, source, indices=key, accumulate=True)
            assert found.dtype == dtype
            np.testing.assert_array_equal(found, expected.astype(dtype))
        place = values // 8
        expected = place.astype(wide)
        np.add.at(expected, full(key), source.astype(wide))
        assert ours(place, source, indices=key, accumulate=True, out=place) is place
        np.testing.assert_array_equal(place, expected.astype(dtype))
    finally:
        tensorcore.set_num_threads(before)


@pytest.mark.parametrize("width", [1, 3, 16, 200])
@pytest.mark.parametrize("threads", [1, 2])
def test_sums_of_rows_do_not_depend_on_threads(isa, threads, width):  # noqa: F811
    """Many rows that go to few places have the bits of a sum in order."""
    values, source = RNG.random((300, width), np.float32), RNG.random((4000, width), np.float32)
    index = RNG.integers(0, 300, 4000)
    expected = values.copy()
    np.add.at(expected, index, source)
    before = tensorcore.get_num_threads()
    tensorcore.set_num_threads(threads)
    try:
        np.testing.assert_array_equal(kernel("index_add")[0](values, index, source, dim=0), expected)
    finally:
        tensorcore.set_num_threads(before)


@pytest.mark.parametrize("wrong", [10, -11, 2**62, -(2**63)])
def test_a_number_outside_writes_nothing(wrong):
    """The first wrong number raises IndexError, and the array stays as it was, also beside one that would mend the place."""
    values = np.zeros((10, 20), np.float32)
    ones = np.ones((3, 20), np.float32)
    index = np.array([1, wrong, 2])
    with pytest.raises(IndexError):
        kernel("index_tensors")[0](values, indices=(index,))
    with pytest.raises(IndexError):
        kernel("index_tensors")[0](values, indices=(np.array([0, 0, 0]), np.array([0, wrong * 2 % 2**62 + 20, 0])))
    for accumulate in (False, True):
        with pytest.raises(IndexError):
            kernel("index_put")[0](values, ones, indices=(index,), accumulate=accumulate, out=values)
    assert not values.any()


@pytest.mark.parametrize("wrong", [(0, 700), (5, -1), (9, 1000), (3, 2**62)])
@pytest.mark.parametrize("name", ["gather", "scatter", "scatter_reduce"])
def test_a_wrong_number_anywhere_in_a_long_index_is_found(isa, name, wrong):  # noqa: F811
    """Numbers are looked at in blocks while they are used: the last one of a row and the first count like any other."""
    values, index = RNG.random((10, 700), np.float32), RNG.integers(0, 700, (10, 1300))
    source = RNG.random((10, 1300), np.float32)
    ours, reference = kernel(name)
    arguments = {"gather": (), "scatter": (source,), "scatter_reduce": (source,)}[name]
    options = {"dim": 1, **({"reduce": "sum"} if name == "scatter_reduce" else {})}
    np.testing.assert_array_equal(
        ours(values, index, *arguments, **options), reference(values, index, *arguments, **options)
    )
    index[wrong[0], -1 if wrong[0] else 0] = wrong[1]
    with pytest.raises(IndexError):
        ours(values, index, *arguments, **options)
