"""Kernels that move elements of short rows, many rows at a time: what they give, and that a wrong number in any of them is seen."""

import numpy as np
import pytest

import tensorcore as tc

from .native import assert_same, awkward, kernel, needs_native

pytestmark = [needs_native, pytest.mark.usefixtures("isa")]

WIDTHS = [1, 2, 3, 4, 5, 8, 11, 16, 17, 31, 33, 70]
DTYPES = ["float32", "float64", "int8", "float16"]
ROWS = [1, 2, 37, 1100]


def of_shape(dtype, *shape):
    """Awkward values, repeated, so that neighbours differ."""
    return np.resize(awkward(dtype, 97), shape)


def numbers(below, *shape):
    return np.random.default_rng(8).integers(0, below, shape)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", WIDTHS)
def test_rolls(width, dtype):
    """Along the last dim, one before it, both, and an outer and an inner one, by less and by more than their sizes."""
    roll, twin = kernel("roll")
    for rows in ROWS:
        values = of_shape(dtype, rows, width)
        for shifts, dims in ((1, 1), (-2, 1), (width + 1, 1), (3, 0), ((1, 2), (0, 1)), (5, None)):
            options = {"shifts": shifts, "dims": dims}
            assert_same(roll(values, **options), twin(values, **options))
    deep = of_shape(dtype, 3, 5, 4, width)
    for shifts, dims in (((1, 2), (0, 3)), ((1, 1), (1, 2)), ((2, 1, 1), (0, 2, 3)), (2, 1)):
        assert_same(roll(deep, shifts=shifts, dims=dims), twin(deep, shifts=shifts, dims=dims))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", WIDTHS)
def test_pads(width, dtype):
    """At the ends of rows, before and behind all of them, both, of arrays in other orders, and nothing at all."""
    pad, twin = kernel("constant_pad")
    for rows in ROWS:
        values = of_shape(dtype, rows, width)
        for x in (values, np.asfortranarray(values), values[::-1], of_shape(dtype, rows, width + 2)[:, 1:-1]):
            for left, right, above, below in ((1, 2, 0, 0), (0, 0, 2, 1), (3, 0, 1, 0), (0, 0, 0, 0)):
                options = {"shape": (above + rows + below, left + width + right), "value": 1,
                           "key": (slice(above, above + rows), slice(left, left + width))}  # fmt: skip
                assert_same(pad(x, **options), twin(x, **options))


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("dtype", [*DTYPES, "bool"])
def test_triangles(dtype, upper):
    """Of many small matrices, of tall and of wide ones, by diagonals inside and far outside, new and in place, turned and repeated."""
    tri, twin = kernel("tri")
    keep = kernel("keep_triangle")[0]
    for shape in ((300, 3, 3), (50, 4, 7), (2, 5, 4, 2), (700, 2), (2, 90, 11), (3, 200), (1, 1), (9, 1)):
        values = of_shape(dtype, *shape)
        for diagonal in (-300, -2, -1, 0, 1, 3, 300):
            options = {"diagonal": diagonal, "upper": upper}
            expected = twin(values, **options)
            assert_same(tri(values, **options), expected)
            assert_same(keep(values.copy(), **options), expected)
            for x in (values[::-1], values.swapaxes(-1, -2), np.broadcast_to(values[..., :1], shape)):
                assert_same(tri(x, **options), twin(x, **options))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", WIDTHS)
def test_columns_picked(width, dtype):
    """Columns by number, in any order and more of them than there are, of rows alone and of rows of pairs."""
    select, twin = kernel("index_select")
    for rows in ROWS:
        for count in (1, 2, 5, 16, 19):
            at = numbers(width, count)
            values, pairs = of_shape(dtype, rows, width), of_shape(dtype, rows, width, 2)
            assert_same(select(values, at, dim=1), twin(values, at, dim=1))
            assert_same(select(pairs, at, dim=1), twin(pairs, at, dim=1))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", WIDTHS)
def test_elements_picked_and_put(width, dtype):
    """One, some and all of each row, by numbers of their own, along the last dim and the first; and the other way round."""
    gather, picked = kernel("gather")
    scatter, put = kernel("scatter")
    for rows in ROWS:
        values = of_shape(dtype, rows, width)
        for count in sorted({1, 2, 3, 4, 9, width}):
            at = numbers(width, rows, count)
            assert_same(gather(values, at, dim=1), picked(values, at, dim=1))
            source = of_shape(dtype, rows, count)[::-1].copy()
            assert_same(scatter(values, at, source, dim=1), put(values, at, source, dim=1))
            assert_same(scatter(values, at, source[0, 0], dim=1), put(values, at, source[0, 0], dim=1))
        at = numbers(rows, rows + 3, width)
        assert_same(gather(values, at, dim=0), picked(values, at, dim=0))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("width", WIDTHS)
def test_sums_at_places(width, dtype):
    """Rows and columns by number, elements by numbers of their own, and slices that share one, into new arrays and in place."""
    index_add, added = kernel("index_add")
    reduce, reduced = kernel("scatter_reduce")
    for rows in ROWS:
        values = np.round(np.resize(np.arange(97, dtype=dtype), (rows, width)) - 40)
        for dim, places in ((0, 7), (1, 5)):
            into = np.ones((places, width) if dim == 0 else (rows, places), dtype)
            at = numbers(places, values.shape[dim])
            assert_same(index_add(into, at, values, dim=dim, alpha=1), added(into, at, values, dim=dim, alpha=1))
            shared = np.broadcast_to(at[:, None] if dim == 0 else at, values.shape)
            options = {"dim": dim, "reduce": "sum", "include_self": True}
            expected = reduced(into, np.ascontiguousarray(shared), values, **options)
            assert_same(reduce(into, shared, values, **options), expected)
            there = into.copy()
            assert reduce(there, shared, values, out=there, **options) is there
            assert_same(there, expected)
            each = numbers(places, *values.shape)
            assert_same(reduce(into, each, values, **options), reduced(into, each, values, **options))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", WIDTHS)
def test_columns_written(width, dtype):
    """One value and a source in a few columns, counted from the end too, and in many: of equal numbers the last one counts."""
    fill, filled = kernel("index_fill")
    copy, copied = kernel("index_copy")
    for rows in ROWS:
        values = of_shape(dtype, rows, width)
        for count in (1, 3, 20):
            at = numbers(width, count)
            source = of_shape(dtype, rows, count)[::-1].copy()
            assert_same(
                fill(values, at - width, source[0, 0, ...], dim=1), filled(values, at, source[0, 0, ...], dim=1)
            )
            assert_same(copy(values, at, source, dim=1), copied(values, at, source, dim=1))


@pytest.mark.parametrize("wrong", [-1, 5, 2**40, -(2**63)])
@pytest.mark.parametrize("row", [0, 600, 1099])
@pytest.mark.parametrize("count", [1, 2, 3, 4, 9])
def test_a_number_outside_is_seen_in_any_row(count, row, wrong):
    """The first, one behind what is looked at together, and the last; NumPy says which it is."""
    values, at = of_shape("float32", 1100, 5), numbers(5, 1100, count)
    at[row, -1] = wrong
    source = np.ones(at.shape, np.float32)
    with pytest.raises(IndexError):
        kernel("gather")[0](values, at, dim=1)
    with pytest.raises(IndexError):
        kernel("scatter")[0](values, at, source, dim=1)
    with pytest.raises(IndexError):
        kernel("scatter_reduce")[0](values, at, source, dim=1, reduce="sum", include_self=True)
    shared = numbers(1100, 1100)
    shared[row] = 1100 if wrong > 0 else wrong
    spread = np.broadcast_to(shared[:, None], values.shape)
    with pytest.raises(IndexError):
        kernel("scatter_reduce")[0](values, spread, values, dim=0, reduce="sum", include_self=True)
    columns = at[:, -1].copy()
    with pytest.raises(IndexError):
        kernel("gather")[0](values.T.copy(), np.broadcast_to(columns, (2, 1100)).copy(), dim=0)


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("width", [1, 2, 3, 10, 70])
def test_losses_of_short_rows(width, reduction):
    """Of classes, some of them ignored or weighted, and their gradients: of rows, and of columns of images."""
    weight = (np.arange(width) + 1).astype(np.float32)
    for shape in ((300, width), (6, width, 7)):
        scores = of_shape("int8", *shape).astype(np.float32)
        target = numbers(width, shape[0], *shape[2:])
        target.flat[::5] = -100
        for by in (None, weight):
            x = tc.tensor(scores, requires_grad=True)
            loss = tc.nn.functional.nll_loss(
                x, tc.tensor(target), None if by is None else tc.tensor(by), reduction=reduction
            )
            loss.sum().backward()
            at = np.clip(target, 0, None)
            each = np.where(target < 0, 0, np.ones(width, np.float32)[at] if by is None else by[at])
            picked = -np.take_along_axis(scores, at[:, None], 1)[:, 0] * each
            whole = {"none": picked, "sum": picked.sum(), "mean": picked.sum() / each.sum()}[reduction]
            np.testing.assert_allclose(loss.detach().numpy(), whole, rtol=1e-5)
            expected = np.zeros_like(scores)
            np.put_along_axis(expected, at[:, None], -(each / (each.sum() if reduction == "mean" else 1))[:, None], 1)
            np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "int64"])
@pytest.mark.parametrize("step", [2, 3, 7, -1, -2])
def test_elements_evenly_apart(step, dtype):
    """Operands of one, two and three, beside dense ones and numbers, of elements of the result's size and of others."""
    add, added = kernel("add")
    less, smaller = kernel("lt")
    where, chosen = kernel("where")
    for count in (1, 63, 64, 65, 3000):
        values = of_shape(dtype, 2, count * abs(step))
        a, b, dense = values[0, ::step], values[1, ::step], of_shape(dtype, count)
        for pair in ((a, b), (a, dense), (dense, a), (a, b[::-1])):
            assert_same(add(*pair), added(*pair))
            assert_same(less(*pair), smaller(*pair))
        mask = np.resize([True, False, False], (count, 2))[:, 1]
        assert_same(where(mask, a, dense), chosen(mask, a, dense))
        assert_same(where(mask, a, 3), chosen(mask, a, 3))


@pytest.mark.parametrize("dtype", ["float32", "int64", "int8"])
@pytest.mark.parametrize("width", [5, 6, 9, 16, 17, 33])
def test_narrow_gaps_between_rows(width, dtype):
    """Slices of one width beside each other and beside numbers, to results of their size and to bools."""
    subtract, difference = kernel("sub")
    less, smaller = kernel("lt")
    for rows in (1, 2, 300, 3000):
        values = of_shape(dtype, rows, width)
        pair = values[:, 1:], values[:, :-1]
        assert_same(subtract(*pair), np.ascontiguousarray(difference(*pair)))
        assert_same(less(*pair), np.ascontiguousarray(smaller(*pair)))
    flipped = of_shape(dtype, 300, width)[::-1]
    assert_same(subtract(flipped[:, 1:], flipped[:, :-1]), np.ascontiguousarray(flipped[:, 1:] - flipped[:, :-1]))


def test_doubles_are_rounded_to_float16_once():
    """Halfway between two halves, one bit to each side of that, beyond the largest and under the smallest, and what is no number."""
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    halves = halves[np.isfinite(halves)].astype(np.float64)
    ties = (halves + np.nextafter(halves.astype(np.float16), np.float16(np.inf)).astype(np.float64)) / 2
    least = 2.0**-25
    odd = np.array(
        [np.nan, np.inf, -np.inf, 1e308, -1e308, 65519.999999999, 65520, 5e-324, least, np.nextafter(least, 1), -0.0]
    )
    low = np.array([0x7FF0000000000001, 0xFFF0000000000001], np.uint64).view(np.float64)
    short_rows = ties[:3000].reshape(1000, 3)[:, 1:]
    for values in (ties, np.nextafter(ties, np.inf), np.nextafter(ties, -np.inf), odd, low, short_rows):
        made = kernel("cast")[0](values, dtype=tc.float16)
        assert_same(np.ascontiguousarray(made), np.ascontiguousarray(values.astype(np.float16)))


def test_one_thread_and_two_give_the_same():
    """Batches that are added to, rows that are picked and rows that are joined, in as many pieces as there are threads."""
    x, at = tc.arange(120_000).reshape(40_000, 3).float(), tc.tensor(numbers(3, 40_000, 3))

    def run():
        return [
            x.roll(1, 1), x.flip(1), tc.cat([x, x[:, :1]], 1), x.gather(1, at), x.scatter(1, at, x), x.tril(),
            x.new_zeros(40_000, 2).index_add(1, tc.tensor([1, 0, 1]), x), x.index_select(1, tc.tensor([2, 0])),
            x.diff(dim=1), x[:, 0] * x[:, 1], x.index_fill(1, tc.tensor([1]), 7.0), x[:39_999].view(-1, 3, 3).mT.contiguous(),
        ]  # fmt: skip

    made = []
    for threads in (1, 2):
        tc.set_num_threads(threads)
        made.append(run())
    assert all(tc.equal(one, two) for one, two in zip(*made, strict=True))
