"""What goes along a dim in C beside NumPy's: NaN, ties, every dim, dtypes and layouts that are left to NumPy."""

import functools

import numpy as np
import pytest

import tensorcore

from .native import assert_same, awkward, kernel, needs_native

pytestmark = needs_native

FLOATS = ["float32", "float64"]


def blocks(dtype):
    """Numbers with ties and NaN in three dims, as they lie and turned around."""
    values = np.concatenate([awkward(dtype), np.random.default_rng(8).integers(0, 4, 53).astype(dtype)])
    block = values.reshape(4, 6, 5)
    return block, block.transpose(2, 0, 1), block[:, ::2], block[:0], np.clip(block, -9, 9).astype(np.float16)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["cummax", "cummin", "mode_dim"])
def test_extremes_and_modes(name, dtype):
    """Values and places, the later one of two equal ones; NaN is larger and smaller than all, and equals itself."""
    native, fallback = kernel(name)
    for x in blocks(dtype):
        for dim in range(3):
            if not x.size and name == "mode_dim":
                continue
            for got, expected in zip(native(x, dim=dim), fallback(x, dim=dim), strict=True):
                np.testing.assert_array_equal(got, expected)
                assert (got.dtype, got.shape) == (expected.dtype, expected.shape)


@pytest.mark.parametrize("dtype", [*FLOATS, "int8", "int16", "int32", "int64", "uint8", "bool"])
def test_modes_of_long_lines(dtype):
    """The smallest of those met most often, whichever is met first, of a few values, many and all different ones; zeros are one."""
    native, fallback = kernel("mode_dim")
    random = np.random.default_rng(8)
    for most in (2, 40, 4000):
        x = (random.integers(0, most, (3, 1000, 2)) - (np.dtype(dtype).kind in "fi") * most // 2).astype(dtype)
        if np.dtype(dtype).kind == "f":
            x[random.random(x.shape) < 0.01] = -0.0
        for dim in range(3):
            for got, expected in zip(native(x, dim=dim), fallback(x, dim=dim), strict=True):
                np.testing.assert_array_equal(got, expected)
                assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    for x in (np.arange(1000)[::-1].astype(dtype).copy(), awkward(dtype)):
        for got, expected in zip(native(x, dim=0), fallback(x, dim=0), strict=True):
            np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("dtype", FLOATS)
def test_modes_keep_a_dim(dtype):
    """With ``keepdim`` the reduced dim stays at size 1."""
    native, fallback = kernel("mode_dim")
    for got, expected in zip(native(blocks(dtype)[0], dim=1, keepdim=True),
                             fallback(blocks(dtype)[0], dim=1, keepdim=True), strict=True):  # fmt: skip
        assert_same(got, expected, signs=False)


@pytest.mark.usefixtures("isa")
@pytest.mark.parametrize("dtype", FLOATS)
def test_running_logarithms_of_sums(dtype):
    """To 1 unit of the result or the largest so far for floats, 8 for doubles, of any length and where no power spans a step."""
    native, _ = kernel("logcumsumexp")
    random = np.random.default_rng(8)
    block = random.standard_normal((3, 67, 70)) * 3
    block[1, 20:40] *= 500
    block[2, :, 9:] -= np.linspace(3000, 0, 61)
    block = block.astype(dtype)
    narrow = [
        block.reshape(-1)[: 200 * n * width].reshape(200, n, width) for n, width in ((7, 4), (3, 16), (4, 17), (17, 3))
    ]
    for x in (block, block[:, :1], block[:, :, :3].copy(), block.transpose(2, 0, 1), block[0, 0, :1], *narrow):
        for dim in range(x.ndim):
            expected = np.logaddexp.accumulate(x.astype(np.longdouble), dim)
            size = np.maximum(np.maximum.accumulate(np.abs(x), dim), np.abs(expected)).astype(dtype)
            unit = np.spacing(np.maximum(size, 1))
            assert (np.abs(native(x, dim=dim) - expected) / unit).max() < (1 if dtype == "float32" else 8)


@pytest.mark.usefixtures("isa")
@pytest.mark.parametrize("dtype", FLOATS)
def test_running_logarithms_of_sums_of_infinities(dtype):
    """As NumPy's: minus infinity adds nothing, infinity stays, and from a NaN on all are."""
    native, fallback = kernel("logcumsumexp")
    rows = [[-np.inf, -np.inf, 1, -np.inf, 2], [1, np.inf, np.inf, -np.inf, 3], [0, 1, np.nan, 5, np.inf],
            [-np.inf, np.inf, -1e30, 1e30, np.nan], [-1e30, 1e30, -1e30, 1e30, 0], [np.nan, np.inf, -np.inf, 0, 0]]  # fmt: skip
    x = np.array(rows, dtype)
    with np.errstate(all="ignore"):
        for values in (x, x.T, np.tile(x, 30), np.repeat(np.tile(x, (40, 1))[..., None], 3, 2)):
            for dim in (0, 1):
                np.testing.assert_allclose(native(values, dim=dim), fallback(values, dim=dim), rtol=1e-6)


@pytest.mark.parametrize("dtype", [*FLOATS, "int8", "int16", "int32", "int64", "uint8"])
def test_cross_products(dtype):
    """Of the vectors along the dim of size 3, whichever it is."""
    native, fallback = kernel("cross")
    x = np.random.default_rng(8).integers(-9, 9, (3, 4, 3)).astype(dtype)
    y = np.random.default_rng(9).integers(-9, 9, (3, 4, 3)).astype(dtype)
    for dim in (0, 2):
        np.testing.assert_array_equal(native(x, y, dim=dim), fallback(x, y, dim=dim))
    for one, other in ((x, y[:, :1]), (x[:1, ::-1], y), (x[:, :1], y[:1])):
        np.testing.assert_array_equal(native(one, other, dim=2), fallback(one, other, dim=2))
    with pytest.raises(ValueError, match="broadcast"):
        native(x, y[:, :2], dim=2)


@pytest.mark.parametrize("dtype", [*FLOATS, "int32", "bool", "float16"])
def test_equality(dtype):
    """Of all elements, wherever they differ; zeros of either sign are equal, NaN is not."""
    native, fallback = kernel("equal")
    x = np.arange(3001).astype(dtype)
    assert native(x, x.copy()) is True is fallback(x, x.copy())
    for place in (0, 1023, 1024, 3000):
        other = x.copy()
        other[place] = not other[place] if dtype == "bool" else other[place] + np.array(64, dtype)
        assert native(x, other) is False is fallback(x, other)
    assert native(x[:0], x[:0]) is True
    if dtype in FLOATS:
        assert native(np.array([0.0], dtype), np.array([-0.0], dtype)) is True
        assert native(np.array([np.nan], dtype), np.array([np.nan], dtype)) is False


@pytest.mark.usefixtures("isa")
@pytest.mark.parametrize("dtype", FLOATS)
def test_distances_of_pairs(dtype):
    """In the order of the pairs, to 4 units, for any numbers of rows and columns; other norms are NumPy's."""
    native, fallback = kernel("pdist")
    for shape in ((0, 3), (1, 3), (2, 1), (5, 0), (5, 8), (7, 19), (33, 2), (70, 300)):
        x = np.random.default_rng(8).standard_normal(shape).astype(dtype)
        np.testing.assert_allclose(
            native(x, p=2.0),
            fallback(x.astype(np.longdouble), p=2.0).astype(dtype),
            rtol=4 * float(np.finfo(dtype).eps),
        )
        np.testing.assert_allclose(native(x, p=1.0), fallback(x, p=1.0), rtol=1e-5)
    x = awkward(dtype).reshape(-1, 1)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(native(x, p=2.0), fallback(x, p=2.0), rtol=1e-5)


@pytest.mark.parametrize("dtype", FLOATS)
def test_distances_of_the_rows_of_two(dtype, isa):
    """Euclid's in C for shapes around a panel of columns, NaN and infinities too; other powers, layouts and dtypes are NumPy's."""
    native, fallback = kernel("cdist")
    random = np.random.default_rng(8)
    for rows, others, width in ((1, 1, 1), (5, 3, 8), (3, 33, 2), (70, 31, 19), (4, 64, 300)):
        x, y = [random.standard_normal((count, width)).astype(dtype) for count in (rows, others)]
        expected = fallback(x.astype(np.longdouble), y.astype(np.longdouble), p=2.0).astype(dtype)
        np.testing.assert_allclose(native(x, y, p=2.0), expected, rtol=4 * float(np.finfo(dtype).eps))
        np.testing.assert_allclose(native(x, y, p=1.0), fallback(x, y, p=1.0), rtol=1e-5)
        np.testing.assert_allclose(native(x[::-1], y.T.copy().T, p=2.0), expected[::-1], rtol=1e-5)
    x, y = awkward(dtype).reshape(-1, 1), awkward(dtype)[::-1].copy().reshape(-1, 1)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(native(x, y, p=2.0), fallback(x, y, p=2.0), rtol=1e-5)
    assert native(x[:0], y, p=2.0).shape == (0, len(y))
    assert native(x.astype(np.float16), y.astype(np.float16), p=2.0).dtype == np.float16


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("p", [1.0, 2.0, np.inf])
def test_distances_by_other_norms_and_of_batches(dtype, p, isa):
    """Sums of sizes and the largest of them, which NaN is, of the rows of two matrices, of pairs of one and of each pair of a batch."""
    native, fallback = kernel("cdist")
    random = np.random.default_rng(8)
    tolerance = 4 * float(np.finfo(dtype).eps)
    for batch in ((), (1,), (7,), (2, 3), (300,)):
        for rows, others, width in ((1, 1, 1), (5, 3, 8), (3, 33, 2), (9, 31, 19)):
            x, y = [random.standard_normal((*batch, count, width)).astype(dtype) for count in (rows, others)]
            expected = fallback(x.astype(np.longdouble), y.astype(np.longdouble), p=p).astype(dtype)
            np.testing.assert_allclose(native(x, y, p=p), expected, rtol=tolerance)
    np.testing.assert_allclose(native(x[:1], y, p=p), fallback(x[:1], y, p=p), rtol=1e-5)
    pairs, slow = kernel("pdist")
    x = random.standard_normal((37, 5)).astype(dtype)
    np.testing.assert_allclose(pairs(x, p=p), slow(x.astype(np.longdouble), p=p).astype(dtype), rtol=tolerance)
    x = awkward(dtype)[: 33 * 2].reshape(-1, 2)
    with np.errstate(all="ignore"):
        for y in (x[::-1].copy(), x[:, ::-1].copy()):
            np.testing.assert_allclose(native(x, y, p=p), fallback(x, y, p=p), rtol=1e-5)


def few_long_rows(dtype):
    """Pairs of matrices, and matrices by themselves, whose rows have any length around whole vectors."""
    random = np.random.default_rng(8)
    for width in (128, 129, 159, 160, 161, 1027, 20_003):
        for batch, rows, others in (((), 5, 3), ((), 1, 1), ((), 70, 2), ((3, 2), 4, 7), ((), 6, 7)):
            yield [random.standard_normal((*batch, count, width)).astype(dtype) for count in (rows, others)]
        yield [random.standard_normal((7, width)).astype(dtype)]


@functools.cache
def their_distances(dtype, p):
    """What NumPy's kernels give in extended precision, once for all instruction sets."""
    slow = {2: kernel("cdist")[1], 1: kernel("pdist")[1]}
    wide = ([one.astype(np.longdouble) for one in some] for some in few_long_rows(dtype))
    return [slow[len(some)](*some, p=p).astype(dtype) for some in wide]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("p", [1.0, 2.0, np.inf])
def test_distances_of_few_long_rows(dtype, p, threads, isa):
    """Rows that are read as they lie, of any length around whole vectors, one by one and in batches; NaN and infinities too."""
    tensorcore.set_num_threads(threads)
    native, pairs = kernel("cdist")[0], kernel("pdist")[0]
    for some, expected in zip(few_long_rows(dtype), their_distances(dtype, p), strict=True):
        found = (native if len(some) == 2 else pairs)(*some, p=p)
        np.testing.assert_allclose(found, expected, rtol=16 * float(np.finfo(dtype).eps))
    for value in (np.nan, np.inf, np.finfo(dtype).smallest_subnormal):
        for at in (0, 17, 158):
            x = np.zeros((3, 159), dtype)
            x[1, at] = value
            expected = [abs(value), 0, abs(value)] if p != 2 or value > 1 or value != value else [0, 0, 0]
            np.testing.assert_array_equal(pairs(x, p=p), np.array(expected, dtype))


@pytest.mark.parametrize("dtype", FLOATS)
def test_products_of_two_vectors_added_to_a_matrix(dtype, isa):
    """Rows that lie anywhere, vectors with gaps, and a place to go; a part of the matrix as a vector is left to NumPy."""
    native, fallback = kernel("addr")
    random = np.random.default_rng(8)
    tolerance = 4 * float(np.finfo(dtype).eps)
    for rows, columns in ((1, 1), (3, 70), (300, 129), (0, 3), (3, 0)):
        wide = random.standard_normal((rows, 2 * columns)).astype(dtype)
        u, v = random.standard_normal(2 * rows).astype(dtype)[::2], random.standard_normal(columns).astype(dtype)
        for x in (wide[:, :columns], wide[:, ::2], wide[:, :columns].copy(), np.asfortranarray(wide[:, :columns])):
            for beta, alpha in ((1, 1), (0.5, -2.0), (3, 0)):
                expected = fallback(x, u, v, beta=beta, alpha=alpha)
                np.testing.assert_allclose(native(x, u, v, beta=beta, alpha=alpha), expected, tolerance, tolerance)
                place = x.copy(order="K")
                assert native(place, u, v, beta=beta, alpha=alpha, out=place) is place
                np.testing.assert_allclose(place, expected, tolerance, tolerance)
    x = np.resize(awkward(dtype), (9, 9))
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(
            native(x, x[0], x[1], beta=1, alpha=2), fallback(x, x[0], x[1], beta=1, alpha=2), tolerance
        )
    x = np.arange(9, dtype=dtype).reshape(3, 3)
    expected = fallback(x, x[:, 0].copy(), x[1].copy(), beta=1, alpha=1)
    np.testing.assert_array_equal(native(x, x[:, 0], x[1], beta=1, alpha=1, out=x), expected)
