"""Joins and picks in C beside NumPy's."""

import numpy as np
import pytest

from .native import awkward, isa, kernel, needs_native  # noqa: F401

pytestmark = needs_native

DTYPES = ["float32", "float64", "float16", "int8", "int32", "int64", "uint8", "bool"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_cat_and_stack(dtype, dim):
    """Parts of several lengths, long and short rows, other layouts and empty parts."""
    values = awkward(dtype, 4000).reshape(10, 20, 20)
    shorter = np.ascontiguousarray(values[tuple([slice(0, 7) if i == dim else slice(None) for i in range(3)])])
    for parts in (
        [values],
        [values, shorter],
        [values, shorter, values],
        [values, values.transpose(0, 2, 1)],
        [values[:, :0], values[:, :0]],
    ):
        shape = list(parts[0].shape)
        shape[dim] = sum(part.shape[dim] for part in parts)
        made = kernel("cat")[0](parts, dim=dim, shape=tuple(shape))
        np.testing.assert_array_equal(made, np.concatenate(parts, dim))
        assert made.flags.c_contiguous
    for parts in ([values, values], [values, values.transpose(0, 2, 1)], [values] * 70):
        np.testing.assert_array_equal(kernel("stack")[0](parts, dim=dim), np.stack(parts, dim))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("count", [2, 3, 64])
def test_single_elements_are_woven(isa, dtype, count):  # noqa: F811
    """Parts that give one element to each row: a stack at the end, and columns side by side; sizes with tails, on threads."""
    for size in (2, 255, 100_003):
        parts = [np.resize(awkward(dtype, 999), size)[::-1].copy() for _ in range(count if size < 1000 else 2)]
        made = kernel("stack")[0](parts, dim=1)
        np.testing.assert_array_equal(made, np.stack(parts, 1))
        columns = [one[:, None] for one in parts]
        made = kernel("cat")[0](columns, dim=1, shape=(size, len(parts)))
        np.testing.assert_array_equal(made, np.concatenate(columns, 1))


@pytest.mark.parametrize("dims", [(0, 2, 1, 3), (2, 0, 1, 3), (1, 0, 2, 3), (0, 1, 3, 2)])
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_turned_parts_are_joined_as_they_lie(dims, dim):
    """Parts whose dims are in another order, one of them every other element, and one in row-major order between them."""
    values = np.random.default_rng(8).random((6, 10, 8, 40), np.float32)
    turned = values.transpose(dims)
    parts = [turned, np.ascontiguousarray(turned), np.repeat(values, 2, 1)[:, ::2].transpose(dims)]
    shape = [3 * size if i == dim else size for i, size in enumerate(turned.shape)]
    made = kernel("cat")[0](parts, dim=dim, shape=tuple(shape))
    np.testing.assert_array_equal(made, np.concatenate(parts, dim))
    assert made.flags.c_contiguous


def test_large_parts_are_joined_in_pieces():
    """Pieces begin and end inside parts and rows."""
    values = np.random.default_rng(8).random((301, 1009), np.float32)
    made = kernel("cat")[0]([values, values[:, :77].copy(), values], dim=1, shape=(301, 2095))
    np.testing.assert_array_equal(made, np.concatenate([values, values[:, :77], values], 1))
    made = kernel("cat")[0]([values, values], dim=0, shape=(602, 1009))
    np.testing.assert_array_equal(made, np.concatenate([values, values]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_index_select_and_gather(dtype, dim):
    """Rows and elements by number, some of them twice."""
    values = awkward(dtype, 4000).reshape(10, 20, 20)
    random = np.random.default_rng(8)
    for count in (1, 5, 40):
        index = random.integers(0, values.shape[dim], count)
        np.testing.assert_array_equal(kernel("index_select")[0](values, index, dim=dim), values.take(index, dim))
        shape = list(values.shape)
        shape[dim] = count
        index = random.integers(0, values.shape[dim], shape)
        np.testing.assert_array_equal(
            kernel("gather")[0](values, index, dim=dim), np.take_along_axis(values, index, dim)
        )
        narrow = index[:, :3]
        compiled, fallback = kernel("gather")
        np.testing.assert_array_equal(compiled(values, narrow, dim=dim), fallback(values, narrow, dim=dim))


@pytest.mark.parametrize("name", ["index_select", "gather"])
@pytest.mark.parametrize("wrong", [-1, 4, 2**62, -(2**63)])
def test_an_index_outside_is_refused(name, wrong):
    """The NumPy kernel says which one."""
    index = np.array([0, wrong, 1])
    with pytest.raises(IndexError):
        kernel(name)[0](np.arange(4.0), index, dim=0)


@pytest.mark.parametrize("width", [*range(1, 100), 127, 128, 300, 2049, 16_384, 20_001])
def test_rows_of_any_width_are_picked(isa, width):  # noqa: F811
    """Rows are copied in parts that may overlap; none is read or written beyond its end."""
    rng = np.random.default_rng(width)
    table, index = rng.integers(0, 255, (19, width), dtype=np.uint8), rng.integers(0, 19, (3, 7))
    np.testing.assert_array_equal(kernel("embedding")[0](table, index, padding=None, by_count=False), table[index])
    values = np.stack([table, table[::-1]])
    np.testing.assert_array_equal(kernel("index_select")[0](values, index[0], dim=1), values[:, index[0]])


def test_rows_that_begin_within_an_element(isa):  # noqa: F811
    """Rows with the bytes of a wider element that begin where none may are joined and picked as others are."""
    index = np.array([3, 0, 69, 3])
    for dtype, width in (("int8", 2), ("int8", 8), ("float16", 4), ("float32", 2)):
        one, other = (np.resize(awkward(dtype, 97), 70 * width + 1)[1:].reshape(70, width) for _ in range(2))
        np.testing.assert_array_equal(kernel("cat")[0]([one, other], dim=1), np.concatenate([one, other], 1))
        np.testing.assert_array_equal(kernel("embedding")[0](one, index, padding=None, by_count=False), one[index])
        planes = one.reshape(2, 35, width)
        np.testing.assert_array_equal(kernel("index_select")[0](planes, index[:2], dim=1), planes[:, index[:2]])


@pytest.mark.parametrize("width", [63, 64, 200, 1500])
def test_rows_of_a_large_table_are_picked(isa, width):  # noqa: F811
    """Rows that are asked for early, from both ends of a table that no second cache holds, few and many, in several batches."""
    rows = (5 << 20) // width // 2 * 2
    table = np.arange(rows * width, dtype=np.float32).reshape(2, rows // 2, width)
    for count in (1, 2, 30, 2000):
        index = np.random.default_rng(count).integers(0, rows // 2, count)
        index[-1] = rows // 2 - 1
        np.testing.assert_array_equal(kernel("index_select")[0](table, index, dim=1), table[:, index])


def test_long_gathers_run_on_threads():
    """All rows of a large matrix, along both dims."""
    values = np.random.default_rng(8).random((1003, 517), np.float32)
    index = np.random.default_rng(9).integers(0, 517, (1003, 517))
    np.testing.assert_array_equal(kernel("gather")[0](values, index, dim=1), np.take_along_axis(values, index, 1))
    np.testing.assert_array_equal(kernel("gather")[0](values, index, dim=0), np.take_along_axis(values, index, 0))
    np.testing.assert_array_equal(kernel("index_select")[0](values, index[0], dim=0), values[index[0]])


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64"])
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_rows_added_up(isa, dtype, dim):  # noqa: F811
    """Slices with one number are added, numbers without a slice are zeros; in any order and layout as NumPy does it."""
    random = np.random.default_rng(8)
    x = (random.standard_normal((6, 9, 20)) * 8).astype(dtype)
    native, fallback = kernel("add_rows")
    for index in (random.integers(0, 7, x.shape[dim]), np.arange(x.shape[dim]) // 2):
        for view in (x, np.ascontiguousarray(x.T).T, x[:, :, ::-1]):
            found, expected = (run(view, dim=dim, index=index, size=30) for run in (native, fallback))
            assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
            tolerance = 0 if dtype == "int64" else 8 * np.finfo(dtype).eps
            np.testing.assert_allclose(found, expected, tolerance, 8 * tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_taken(dtype):
    """Slices by number along each dim, with repeats and negative numbers, as NumPy takes them."""
    x = awkward(dtype, 1200).reshape(6, 10, 20)
    native, _ = kernel("take_rows")
    for dim in range(3):
        for index in (np.random.default_rng(8).integers(0, x.shape[dim], 33), np.array([0, -1])):
            for view in (x, x[:, :, ::-1]):
                found = native(view, dim=dim, index=index, size=x.shape[dim])
                np.testing.assert_array_equal(found, np.take(view, index, dim))


def test_rows_of_wrong_numbers_are_numpys():
    """A number that is too large raises NumPy's error and writes nothing."""
    native, _ = kernel("add_rows")
    with pytest.raises(IndexError):
        native(np.ones((3, 4), np.float32), dim=0, index=np.array([0, 1, 9]), size=5)
