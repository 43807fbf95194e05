"""Tables by number, sums at places, masks, triangles and the largest of rows in C beside NumPy's."""

import numpy as np
import pytest

import tensorcore

from .native import assert_same, awkward, kernel, layouts, needs_native

pytestmark = [needs_native, pytest.mark.usefixtures("isa")]

FLOATS = ["float32", "float64"]
INTEGERS = ["int8", "int16", "int32", "int64", "uint8"]


def close(got, expected):
    """To four roundings of the summands: NumPy adds up in another order."""
    eps = np.finfo(got.dtype).eps
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    np.testing.assert_allclose(got, expected, rtol=16 * eps, atol=16 * eps)


def random(shape, dtype="float32", seed=8):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def places(size, count, seed=9):
    return np.random.default_rng(seed).integers(0, size, count)


@pytest.mark.parametrize("index", [[3, -2, 7], [], [5], [[1, 2], [0, 9]]])
def test_bounds(index):
    """The smallest and the largest; 0 and -1 of nothing."""
    native, fallback = kernel("index_bounds")
    for dtype in (np.int64, np.int32):
        found = native(np.array(index, dtype))
        assert found == fallback(np.array(index, dtype))
        assert [type(one) for one in found] == [int, int]


@pytest.mark.parametrize("dtype", [*FLOATS, "float16", "int8", "bool"])
@pytest.mark.parametrize("shape", [(), (0,), (7,), (3, 5)])
def test_embedding(shape, dtype):
    """Rows in the order of their numbers, of any dtype; int32 numbers and tables that are not dense too."""
    native, fallback = kernel("embedding")
    table, index = random((11, 5), "float64").astype(dtype), places(11, shape)
    options = {"padding": None, "by_count": False}
    for given in (table, table[:, ::2], table.T):
        numbers = np.asarray(index % len(given))
        for kind in (np.int64, np.int32):
            np.testing.assert_array_equal(
                native(given, numbers.astype(kind), **options), fallback(given, numbers.astype(kind), **options)
            )


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("padding", [None, 4])
@pytest.mark.parametrize("by_count", [False, True])
@pytest.mark.parametrize("shape, width", [((7,), 5), ((3, 50), 67), ((200,), 1), ((0,), 3), ((), 3)])
def test_embedding_gradient(shape, width, by_count, padding, dtype):
    """Rows of equal number are added up, the others are zero, and so is the padding's."""
    native, fallback = kernel("embedding_gradient")
    g, index = random((*shape, width), dtype), places(11, shape)
    options = {"rows": 11, "padding": padding, "by_count": by_count}
    close(native(g, index, **options), fallback(g, np.asarray(index), **options))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape, dim", [((9, 5), 0), ((9, 5), 1), ((4, 6, 70), 1), ((30,), 0), ((3, 4, 5), 2)])
@pytest.mark.parametrize("alpha", [1, 2.0])
def test_index_add(shape, dim, alpha, dtype):
    """Into a copy, or into the array itself; transposed sources too."""
    native, fallback = kernel("index_add")
    x, index = random(shape, dtype), places(shape[dim], 13)
    source = random((*shape[:dim], 13, *shape[dim + 1 :]), dtype, 10)
    expected = fallback(x, index, source, dim=dim, alpha=alpha)
    close(native(x, index, source, dim=dim, alpha=alpha), expected)
    close(native(x, index, np.asfortranarray(source), dim=dim, alpha=alpha), expected)
    out = x.copy()
    assert native(out, index, source, dim=dim, alpha=alpha, out=out) is out
    close(out, expected)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("start", ["dense", "zero", "one number", "strided"])
def test_sums_of_long_slices(start, dtype):
    """Places that get none, one or many slices, on threads too, with NaN and infinities; what the places begin with may be one
    number for all."""
    native, fallback = kernel("index_add")
    for rows, width, count in ((7, 16, 40), (300, 70, 100), (50, 1000, 200)):
        x = {"dense": random((rows, width), dtype), "zero": np.broadcast_to(np.zeros((), dtype), (rows, width)),
             "one number": np.broadcast_to(np.full((), -1.5, dtype), (rows, width)),
             "strided": random((rows, 2 * width), dtype)[:, ::2]}[start]  # fmt: skip
        source, index = random((count, width), dtype, 10), places(rows, count)
        source[:3, :3] = [[np.nan], [np.inf], [-0.0]]
        close(native(x, index, source, dim=0, alpha=1), fallback(x, index, source, dim=0, alpha=1))
        batches = np.stack([np.ascontiguousarray(x)] * 3)
        sources = np.stack([source, -source, source])
        close(native(batches, index, sources, dim=1, alpha=1), fallback(batches, index, sources, dim=1, alpha=1))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("width", [3, 16, 300])
def test_sums_of_slices_of_half_types(width, dtype):
    """The bits of sums of floats that are rounded once: into a copy, a repeated zero and a table's gradient, with its padding."""
    half = getattr(tensorcore, dtype).numpy
    add, table = kernel("index_add")[0], kernel("embedding_gradient")[0]
    x, source, index = random((40, width)).astype(half), random((90, width), seed=10).astype(half), places(40, 90)
    source[:3, :3] = np.array([[np.nan], [np.inf], [-0.0]], half)
    wide, nothing = source.astype(np.float32), np.broadcast_to(np.zeros((), half), x.shape)
    with np.errstate(invalid="ignore"):
        for start in (x, nothing, np.repeat(x, 2, 1)[:, ::2]):
            expected = add(start.astype(np.float32), index, wide, dim=0, alpha=1).astype(half)
            assert_same(add(start, index, source, dim=0, alpha=1).astype(np.float64), expected.astype(np.float64))
        twice = add(x.astype(np.float32), index, wide, dim=0, alpha=2.0).astype(half)
        assert_same(add(x, index, source, dim=0, alpha=2.0).astype(np.float64), twice.astype(np.float64))
    for padding in (None, 4):
        options = {"rows": 40, "padding": padding, "by_count": False}
        got = table(source, index, **options)
        assert got.dtype == half
        assert_same(got.astype(np.float64), table(wide, index, **options).astype(half).astype(np.float64))
    batches = np.stack([x, -x]), np.stack([source, -source])
    expected = add(batches[0].astype(np.float32), index, np.stack([wide, -wide]), dim=1, alpha=1)
    assert_same(
        add(batches[0], index, batches[1], dim=1, alpha=1).astype(np.float64), expected.astype(half).astype(np.float64)
    )


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("wrong", [-1, 9, 2**40, -(2**63)])
def test_a_place_outside_along_the_last_dim_is_an_error(wrong, dtype):
    """Wherever in a row it stands; no sum is handed out."""
    native, _ = kernel("scatter_reduce")
    x, source = random((300, 9), dtype), random((300, 13), dtype)
    for at in (0, 3, 4, 12):
        index = places(9, source.shape)
        index[299, at] = wrong
        with pytest.raises((IndexError, ValueError)):
            native(x, index, source, dim=1, reduce="sum")


@pytest.mark.parametrize("name", ["index_add", "scatter_reduce"])
def test_places_outside_are_numpys_error(name):
    """Nothing is written."""
    native, _ = kernel(name)
    x, source = np.zeros((3, 2), np.float32), np.ones((2, 2), np.float32)
    options = {"reduce": "sum"} if name == "scatter_reduce" else {}
    for wrong in (3, -1):
        index = np.array([0, wrong]) if name == "index_add" else np.array([[0, 0], [1, wrong]])
        with pytest.raises(IndexError):
            native(x, index, source, dim=0, out=x, **options)
        assert not x.any()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape, dim", [((9, 5), 0), ((9, 5), 1), ((4, 6, 70), 1), ((30,), 0)])
@pytest.mark.parametrize("reduce", ["sum", "amax", "mean"])
def test_scatter(shape, dim, reduce, dtype):
    """Elements added at places along the dim; other reductions and smaller indices are NumPy's."""
    native, fallback = kernel("scatter_reduce")
    x, source = random(shape, dtype), random((*shape[:dim], 13, *shape[dim + 1 :]), dtype, 10)
    index = places(shape[dim], source.shape)
    for part in (source.shape, tuple(max(1, size // 2) for size in source.shape)):
        some = index[tuple(slice(size) for size in part)]
        expected = fallback(x, some, source, dim=dim, reduce=reduce)
        close(native(x, some, source, dim=dim, reduce=reduce), expected)
        out = x.copy()
        native(out, some, source, dim=dim, reduce=reduce, out=out)
        close(out, expected)


@pytest.mark.parametrize("dtype", [*INTEGERS, "bool"])
@pytest.mark.parametrize("alpha", [1, 3])
@pytest.mark.parametrize(
    "shape, dim", [((9, 5), 0), ((9, 5), 1), ((4, 6, 70), 1), ((30,), 0), ((3, 4, 5), 2), ((300, 9), 1)]
)
def test_sums_of_integers_at_places(shape, dim, alpha, dtype):
    """Whole numbers are added as NumPy adds them, which wrap around, in any layout, by an index for each slice or element;
    of bools a sum is whether any holds."""
    x, source = [np.resize(awkward(dtype, 997), one) for one in (shape, (*shape[:dim], 13, *shape[dim + 1 :]))]
    index = places(shape[dim], source.shape)
    for name, at, options in (
        ("index_add", places(shape[dim], 13), {"alpha": alpha}),
        ("scatter_reduce", index, {"reduce": "sum"}),
    ):
        native, fallback = kernel(name)
        expected = fallback(x, at, source, dim=dim, **options)
        assert_same(native(x, at, source, dim=dim, **options), expected)
        np.testing.assert_array_equal(native(x, at, np.asfortranarray(source), dim=dim, **options), expected)
        out = x.copy()
        assert native(out, at, source, dim=dim, out=out, **options) is out
        np.testing.assert_array_equal(out, expected)
    native, fallback = kernel("index_put")
    given = (x, np.resize(source, (13, *shape[1:])))
    options = {"indices": (places(shape[0], 13),), "accumulate": True}
    assert_same(native(*given, **options), fallback(*given, **options))


@pytest.mark.parametrize("dtype", [*FLOATS, "int32", "bool", "float16"])
def test_masked_fill(dtype):
    """Where the mask is true stands the value, whatever was there; masks broadcast."""
    native, fallback = kernel("masked_fill")
    for values in layouts(awkward(dtype, 100)).values():
        mask = np.random.default_rng(8).integers(0, 2, values.shape).astype(bool)
        value = np.array(1, dtype)
        assert_same(native(values, mask, value), fallback(values, mask, value))
    matrix = awkward(dtype, 100).reshape(10, 10)
    for mask in (matrix[0] == 1, matrix[:, :1] == 1, matrix[:1, None] == 1):
        np.testing.assert_array_equal(
            native(matrix, mask, np.array(0, dtype)), fallback(matrix, mask, np.array(0, dtype))
        )
    for mask in (matrix == 1, matrix[0] == 1):
        for out in (matrix.copy(), np.asfortranarray(matrix), np.repeat(matrix, 2, axis=1)[:, ::2]):
            assert native(out, mask, np.array(0, dtype), out=out) is out
            np.testing.assert_array_equal(out, fallback(matrix, mask, np.array(0, dtype)))


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("diagonal", [-9, -1, 0, 2, 9, 1 << 40])
@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
def test_triangles(dtype, diagonal, upper):
    """Of matrices, of stacks of them, transposed; the other part is zero, NaN or not."""
    native, fallback = kernel("tri")
    values = awkward(dtype, 60)
    for x in (values.reshape(6, 10), values.reshape(6, 10).T, values.reshape(3, 4, 5), values.reshape(60, 1)):
        np.testing.assert_array_equal(
            native(x, diagonal=diagonal, upper=upper), fallback(x, diagonal=diagonal, upper=upper)
        )


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("n, k", [(1, 1), (10, 3), (10, 10), (67, 5), (1000, 1), (1000, 128), (1000, 129)])
def test_topk(n, k, largest, dtype):
    """Values in order, and where they were; NaN is the largest, and of equals the first comes first."""
    native, _ = kernel("topk")
    rows = random((6, n), dtype)
    rows[1] = rows[1].round()
    rows[2, ::3] = np.nan
    rows[3] = np.inf
    rows[4] = np.arange(n)
    rows[5] = np.nan
    values, at = native(rows, k=k, dim=1, largest=largest, sorted=True)
    assert (values.dtype, at.dtype, values.shape, at.shape) == (rows.dtype, np.int64, (6, k), (6, k))
    np.testing.assert_array_equal(np.take_along_axis(rows, at, 1), values)
    key = np.where(np.isnan(rows), np.inf, np.clip(rows, -1e30, 1e30))
    order = np.argsort(-key if largest else key, axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(values, np.take_along_axis(rows, order, 1))
    if k <= 128:
        np.testing.assert_array_equal(at, order)
    assert all(len(set(row)) == k for row in at.tolist())


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("n, k", [(1, 1), (10, 3), (67, 5), (1000, 1), (1000, 128), (1000, 129)])
def test_topk_of_integers(n, k, largest, dtype):
    """Values in order, and where they were; of equals the first comes first, at the ends of the type too."""
    native, _ = kernel("topk")
    limits = np.iinfo(dtype)
    rows = np.random.default_rng(8).integers(limits.min, limits.max, (5, n), dtype, endpoint=True)
    rows[1] = rows[1] // 2 * 2
    rows[2], rows[3] = limits.min, limits.max
    rows[4] = np.sort(rows[4])
    values, at = native(rows, k=k, dim=1, largest=largest, sorted=True)
    order = np.argsort(~rows if largest else rows, axis=1, kind="stable")[:, :k]
    assert (values.dtype, at.dtype) == (rows.dtype, np.int64)
    np.testing.assert_array_equal(values, np.take_along_axis(rows, order, 1))
    np.testing.assert_array_equal(at, order)


def test_topk_of_other_dims_is_numpys():
    """Along a dim that is not the last, and of no rows."""
    native, fallback = kernel("topk")
    x = random((20, 4))
    for given in (x, (x * 100).astype(np.int32)):
        for one, other in zip(native(given, k=3, dim=0), fallback(given, k=3, dim=0), strict=True):
            np.testing.assert_array_equal(one, other)
    assert native(x[:0], k=2, dim=1)[0].shape == (0, 2)


@pytest.mark.parametrize("shape", [(20,), (10, 2)])
def test_sums_over_the_numbers_that_say_where(shape):
    """Numbers in the memory of what is written are read before any of them is written."""
    native, fallback = kernel("scatter_reduce")
    index = np.resize(np.repeat(np.roll(np.arange(shape[0]), -1), 20 // shape[0]), shape)
    place, source = index.view(np.float64), np.full(shape, np.finfo(np.float64).smallest_subnormal)
    expected = fallback(place, index, source, dim=0, reduce="sum")
    assert native(place, index, source, dim=0, reduce="sum", out=place) is place
    np.testing.assert_array_equal(place, expected)
