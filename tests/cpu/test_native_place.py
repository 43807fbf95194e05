"""Writes and reads at places in C beside NumPy's: scatter, index_copy, index_fill, masked_scatter, take."""

import numpy as np
import pytest

from .native import assert_same, awkward, kernel, needs_native

pytestmark = [needs_native, pytest.mark.usefixtures("isa")]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "int64", "bool"])
@pytest.mark.parametrize(
    "shape, dim", [((40,), 0), ((7, 9), 0), ((7, 9), 1), ((3, 4, 5), 1), ((3, 1, 6), 2), ((3, 4, 5), 0)]
)
def test_elements_go_where_the_index_says(shape, dim, dtype):
    """Of equal indices the last counts; an index may be smaller than what is written to, the others have any strides."""
    native, fallback = kernel("scatter")
    random = np.random.default_rng(8)
    x = awkward(dtype, 80)[: int(np.prod(shape))].reshape(shape)
    for count in (1, shape[dim], 2 * shape[dim]):
        smaller = [max(1, size - 1) for size in shape]
        smaller[dim] = count
        index = random.integers(0, shape[dim], smaller)
        src = awkward(dtype, 400)[-index.size :].reshape(smaller)
        backwards = np.asfortranarray(src[::-1])[::-1]
        for one, at, given in ((x, index, src), (np.asfortranarray(x), np.asfortranarray(index), backwards)):
            assert_same(native(one, at, given, dim=dim), fallback(one, at, given, dim=dim))


@pytest.mark.parametrize("dim", [0, 1])
def test_a_source_may_be_larger_than_its_index(dim):
    """Its first elements along each dim count, of any layout, in a copy and in place."""
    native, fallback = kernel("scatter")
    x, index = np.zeros((4, 5), np.float32), np.array([[0, 3, 1], [2, 3, 0]])
    src = np.arange(1, 25, dtype=np.float32).reshape(4, 6)
    for given in (src, np.asfortranarray(src), src[::-1], src[:, ::2]):
        expected = fallback(x, index, given[:2, :3], dim=dim)
        assert_same(native(x, index, given, dim=dim), expected)
        place = x.copy()
        assert native(place, index, given, dim=dim, out=place) is place
        assert_same(place, expected)


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_large_writes_keep_their_order_on_threads(dim):
    """Each place is written by one thread, so that of equal indices the last still counts."""
    native, fallback = kernel("scatter")
    random = np.random.default_rng(8)
    x, src = random.random((6, 130, 150), np.float32), random.random((5, 120, 140), np.float32)
    index = random.integers(0, x.shape[dim], src.shape)
    assert_same(native(x, index, src, dim=dim), fallback(x, index, src, dim=dim))


def test_numbers_and_places():
    """A number is written everywhere; ``out`` is the array itself."""
    native, fallback = kernel("scatter")
    x, index = np.zeros((3, 4), np.float32), np.array([[0, 3], [1, 1], [2, 0]])
    assert_same(native(x, index, 2.5, dim=1), fallback(x, index, 2.5, dim=1))
    made = native(x, index, np.ones((3, 2), np.float32), dim=1, out=x)
    assert made is x
    assert x.tolist() == [[1, 0, 0, 1], [0, 1, 0, 0], [1, 0, 1, 0]]


def test_indices_outside_are_refused():
    """Nothing has been written then."""
    native, _ = kernel("scatter")
    x = np.zeros((3, 4), np.float32)
    for wrong in (4, -1):
        with pytest.raises(IndexError, match="out of bounds"):
            native(x, np.array([[0], [wrong], [1]]), 1.0, dim=1, out=x)
    assert not x.any()


DTYPES = ["float32", "float64", "float16", "int8", "int64", "bool"]


def written_both_ways(native, fallback, x, *args, **options):
    """As a copy, which leaves x as it was, and into x itself."""
    before = x.copy()
    expected = fallback(x, *args, **options)
    np.testing.assert_array_equal(native(x, *args, **options), expected)
    np.testing.assert_array_equal(x, before)
    assert native(x, *args, **options, out=x) is x
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape, dim", [((40,), 0), ((7, 9), 0), ((7, 9), 1), ((3, 4, 5), 1), ((3, 0), 0), ((3, 0), 1)])
def test_slices_are_copied_and_filled(shape, dim, dtype):
    """index_copy takes the last of equal indices, index_fill also counts from the end; x may lie anyhow."""
    size = shape[dim]
    random = np.random.default_rng(8)
    x = awkward(dtype, 80)[: int(np.prod(shape))].reshape(shape)
    for count in (0, 1, 5) if size else (0,):
        index = random.integers(0, max(size, 1), count)
        source = awkward(dtype, 400)[: x.size // max(size, 1) * count]
        source = source.reshape(*shape[:dim], count, *shape[dim + 1 :])
        for one in (x.copy(), np.asfortranarray(x), np.repeat(x, 2, axis=0)[::2]):
            written_both_ways(*kernel("index_copy"), one, index, source, dim=dim)
            written_both_ways(*kernel("index_fill"), one, index - size, np.array(1, dtype), dim=dim)


@pytest.mark.parametrize("dtype", DTYPES)
def test_elements_are_taken(dtype):
    """Numbers into the flattened array, negative ones from the end, in the shape of the index."""
    native, fallback = kernel("take")
    x = awkward(dtype, 84).reshape(7, 12)
    index = np.random.default_rng(8).integers(-84, 84, (4, 3, 5))
    for one in (x, x.T, x[:, ::2][:, :6]):
        for at in (index % one.size, index % one.size - one.size, index[:, :0], np.array(3)):
            np.testing.assert_array_equal(native(one, at), fallback(one, at))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("share", [0, 0.4, 1])
def test_elements_go_where_a_mask_is_true(dtype, share):
    """One after the other, from a source that may be longer."""
    random = np.random.default_rng(8)
    for shape in ((67,), (7, 9), (3, 0)):
        x = awkward(dtype, 80)[: int(np.prod(shape))].reshape(shape)
        mask = random.random(shape) < share
        for one in (x.copy(), np.asfortranarray(x)):
            written_both_ways(*kernel("masked_scatter"), one, mask, awkward(dtype, 100))


def test_operands_that_overlap_are_read_first():
    """A source that lies in what is written counts with the values that it had."""
    for name, args, options in (
        ("index_copy", lambda x: (np.array([1, 2, 0]), x[:3]), {"dim": 0}),
        ("masked_scatter", lambda x: (np.array([False, True, True, True]), x), {}),
    ):
        native, _ = kernel(name)
        x = np.arange(4.0, dtype=np.float32)
        expected = native(x, *[one.copy() for one in args(x)], **options)
        native(x, *args(x), **options, out=x)
        np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("name", ["index_copy", "index_fill", "take"])
def test_numbers_outside_are_refused(name):
    """An index over the end raises, and nothing has been written then."""
    native, _ = kernel(name)
    x = np.zeros((3, 4), np.float32)
    value = np.ones((2, 4) if name == "index_copy" else (), np.float32)
    args, options = ((np.array([0, 3]), value), {"dim": 0, "out": x}) if name != "take" else ((np.array([0, 12]),), {})
    with pytest.raises(IndexError):
        native(x, *args, **options)
    assert not x.any()
