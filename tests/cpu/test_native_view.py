"""Views in C beside NumPy's, and operands that lie crosswise."""

import itertools

import numpy as np
import pytest

from .native import awkward, isa, kernel, needs_native  # noqa: F401

pytestmark = needs_native

VALUES = np.arange(2 * 3 * 4 * 5, dtype=np.float32).reshape(2, 3, 4, 5)
LAYOUTS = [VALUES, VALUES.transpose(2, 0, 3, 1), VALUES[:, ::2], VALUES[1:, 1], VALUES[..., :1], VALUES[:0]]


def same_view(made, expected, base):
    """Of the same elements in the same places."""
    np.testing.assert_array_equal(made, expected)
    assert made.strides == expected.strides
    assert made.ctypes.data == expected.ctypes.data
    assert made.flags.writeable == expected.flags.writeable
    assert made.flags.c_contiguous == expected.flags.c_contiguous
    assert np.shares_memory(made, base) or not made.size


@pytest.mark.parametrize("values", LAYOUTS)
@pytest.mark.parametrize(
    "key",
    [(), (0,), (-1, 1), (slice(None), 0), (slice(0, 1), slice(1, 3, 2)), (slice(-2, None),), (slice(5, 9),), (0, 0)],
)
def test_parts_lie_where_numpy_finds_them(values, key):
    """Ints and slices give the memory, strides and flags of the NumPy kernel, or its error."""
    ours, reference = kernel("index")
    try:
        expected = reference(values, key=key)
    except IndexError:
        with pytest.raises(IndexError):
            ours(values, key=key)
        return
    same_view(ours(values, key=key), expected, values)


@pytest.mark.parametrize("values", LAYOUTS)
def test_dims_are_permuted(values):
    """Every order of the dims is the one of the NumPy kernel."""
    ours, reference = kernel("permute")
    for dims in itertools.permutations(range(values.ndim)):
        same_view(ours(values, dims=dims), reference(values, dims=dims), values)


SHAPES = [(120,), (6, 20), (2, 1, 60), (0,), (24,), (4, 5), (4, 3, 2), (10, 12), (2, 3, 4, 5), (0, 3)]


@pytest.mark.parametrize(
    ("values", "shape"), [(one, shape) for one in LAYOUTS for shape in SHAPES if np.prod(shape) == one.size]
)
def test_shapes_are_those_of_the_reference(values, shape):
    """A shape that the memory allows is a view with the reference's strides, any other is None."""
    ours, reference = kernel("view")
    made, expected = ours(values, shape=shape), reference(values, shape=shape)
    assert (made is None) == (expected is None)
    if made is not None:
        same_view(made, expected, values)


def test_a_shape_of_other_elements_raises():
    """As the reference does, which gets what the kernel in C does not take."""
    with pytest.raises(ValueError, match="reshape"):
        kernel("view")[0](VALUES, shape=(7, 7))


@pytest.mark.parametrize("values", LAYOUTS)
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_a_dim_of_one_is_put_in(values, dim):
    """Its stride is the reference's."""
    ours, reference = kernel("unsqueeze")
    same_view(ours(values, dim=dim), reference(values, dim=dim), values)


def test_a_read_only_array_has_read_only_views():
    """What must not be written cannot be written through a view either."""
    frozen = VALUES.copy()
    frozen.flags.writeable = False
    for name, options in (("index", {"key": (0,)}), ("view", {"shape": (120,)}), ("permute", {"dims": (3, 2, 1, 0)})):
        assert not kernel(name)[0](frozen, **options).flags.writeable


BLOCK = np.arange(120.0, dtype=np.float32).reshape(4, 6, 5)
SHOWN = [
    BLOCK,
    BLOCK.transpose(2, 0, 1),
    BLOCK[1:, ::2],
    BLOCK[:, :1],
    BLOCK[:0],
    BLOCK.astype(np.complex64),
    BLOCK.astype("O"),
]
CALLS = [
    ("diagonal", {"offset": 0, "dim1": 0, "dim2": 1}),
    ("diagonal", {"offset": 1, "dim1": 2, "dim2": 0}), ("diagonal", {"offset": -2, "dim1": 1, "dim2": 2}),
    ("diagonal", {"offset": 9, "dim1": 0, "dim2": 1}), ("as_strided", {"shape": (2, 2), "strides": (3, 1), "offset": 1}),
    ("as_strided", {"shape": (), "strides": (), "offset": 0}), ("as_strided", {"shape": (2, 0), "strides": (1, 1), "offset": 0}),
    ("windows", {"dim": 0, "size": 2, "step": 1}), ("windows", {"dim": 2, "size": 1, "step": 3}),
    ("windows", {"dim": 1, "size": 0, "step": 1}), ("unsqueeze", {"dim": 0, "step": 7}),
]  # fmt: skip


def assert_shown_alike(got, expected):
    """The same elements of one memory, in the same order."""
    assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
    if expected.size:
        assert got.strides == expected.strides
        assert got.__array_interface__["data"] == expected.__array_interface__["data"]
    assert got.flags.writeable == expected.flags.writeable


@pytest.mark.parametrize("name, options", CALLS)
def test_views(name, options):
    """Each of the ways an array may lie, elements of any kind."""
    native, fallback = kernel(name)
    for x in SHOWN:
        try:
            expected = fallback(x, **options)
        except Exception as error:
            with pytest.raises(type(error)):
                native(x, **options)
        else:
            assert_shown_alike(native(x, **options), expected)


@pytest.mark.parametrize("to", [(4, 6, 5), (3, 4, 6, 5), (1, 4, 6, 5), (2, 1, 4, 6, 5)])
def test_stretched_views(to):
    """New dims in front have a stride of 0, or reach over what is behind them where their size is 1."""
    native, fallback = kernel("expand")
    for x in (BLOCK, BLOCK[:, :1], BLOCK[:1, :, :1], BLOCK[0, 0]):
        assert_shown_alike(native(x, shape=to), fallback(x, shape=to))


def test_memory_is_not_left():
    """A view that would reach beyond the storage is refused, and one of memory that may not be written to neither."""
    native = kernel("as_strided")[0]
    with pytest.raises((TypeError, ValueError)):
        native(BLOCK, shape=(121,), strides=(1,), offset=0)
    with pytest.raises((TypeError, ValueError)):
        native(BLOCK, shape=(2,), strides=(1,), offset=119)
    fixed = BLOCK.copy()
    fixed.flags.writeable = False
    assert not native(fixed, shape=(2,), strides=(1,), offset=0).flags.writeable


SIZES = [(1, 1), (3, 100), (100, 3), (7, 9), (8, 8), (31, 31), (33, 65), (64, 200), (300, 129)]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "int16", "int64", "bool"])
def test_turned_arrays_are_copied(isa, dtype, size):  # noqa: F811
    """Copies of transposed arrays to row-major order and back, with tails of tiles and blocks."""
    values = np.resize(awkward(dtype, 999), size)
    np.testing.assert_array_equal(kernel("contiguous")[0](values.T), values.T)
    place = np.zeros(size[::-1], values.dtype)
    kernel("copy")[0](place.T, values)
    np.testing.assert_array_equal(place, values.T)
    wide = np.resize(awkward(dtype, 999), (*size, 2))[..., 0]  # every other element: not turned, but strided
    np.testing.assert_array_equal(kernel("contiguous")[0](wide.T), wide.T)


@pytest.mark.parametrize("dims", list(itertools.permutations(range(4))))
def test_any_order_of_dims_is_copied(isa, dims):  # noqa: F811
    """Tiles lie along the dim in which the source is dense, wherever that dim stands."""
    values = np.random.default_rng(8).random((3, 34, 5, 70), np.float32)
    np.testing.assert_array_equal(kernel("contiguous")[0](values.transpose(dims)), values.transpose(dims))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_turned_operands_are_computed_with(isa, dtype, size):  # noqa: F811
    """One operand or both lie crosswise, or one is a number or broadcast; the result is new, or goes to either layout."""
    x = np.resize(awkward(dtype, 999), size)
    y = np.resize(awkward(dtype, 999)[::-1], size[::-1])
    add = kernel("add")[0]
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(add(x, y.T), x + y.T)
        np.testing.assert_array_equal(add(y.T, x), y.T + x)
        np.testing.assert_array_equal(add(y.T, x[:1]), y.T + x[:1])
        for place in (np.zeros(size, dtype), np.zeros(size[::-1], dtype).T):
            np.testing.assert_array_equal(add(x, y.T, out=place), x + y.T)
        place = x.copy()
        np.testing.assert_array_equal(add(place, y.T, out=place), x + y.T)
        np.testing.assert_array_equal(kernel("where")[0](x > y.T, x, y.T), np.where(x > y.T, x, y.T))


@pytest.mark.parametrize(
    "values",
    [
        VALUES[0, 0, 0],
        VALUES[0, 0],
        VALUES[:, 1].T,
        VALUES[0, :, ::2].astype("int16"),
        VALUES[:0, 0, 0],
        VALUES[:, 1].T.astype("complex64"),
        VALUES[0, 0, 0].astype("complex128"),
    ],
)
@pytest.mark.parametrize("offset", [-2, 0, 1])
def test_diagonals_are_put_among_zeros_as_by_numpy(values, offset):
    """In any two dims, in either order, of any dtype and layout."""
    ours, reference = kernel("undiagonal")
    for first, second in itertools.permutations(range(values.ndim + 1), 2):
        *shape, size = values.shape
        for at in sorted((first, second)):
            shape.insert(at, size + abs(offset))
        options = {"shape": tuple(shape), "offset": offset, "dim1": first, "dim2": second}
        made = ours(values, **options)
        np.testing.assert_array_equal(made, reference(values, **options))
        assert made.dtype == values.dtype
        assert made.flags.c_contiguous


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("shape", "dim", "size", "step"),
    [
        ((7,), 0, 3, 2),
        ((7,), 0, 7, 1),
        ((3, 11, 4), 1, 4, 3),
        ((3, 11, 4), 1, 2, 5),
        ((2, 9), 1, 3, 1),
        ((0, 5), 1, 2, 1),
    ],
)
def test_windows_are_added_with_the_bits_of_numpys(dtype, shape, dim, size, step):
    """Overlapping, apart, and of any layout: sums begin with the first elements of windows."""
    ours, reference = kernel("unwindows")
    count = (shape[dim] - size) // step + 1
    windows = np.random.default_rng(5).standard_normal((*shape[:dim], count, *shape[dim + 1 :], size)).astype(dtype)
    for one in (windows, np.asfortranarray(windows), windows[::-1]):
        options = {"shape": shape, "dim": dim, "size": size, "step": step}
        np.testing.assert_array_equal(ours(one, **options), reference(one, **options))
