"""The matrix products in C against NumPy's, in every layout that a caller can bring."""

import itertools

import numpy as np
import pytest

import tensorcore
from tensorcore_cpu import native

from .native import kernel, needs_native

pytestmark = [needs_native, pytest.mark.usefixtures("products")]

RANDOM = np.random.default_rng(8)


def numbers(*shape, dtype=np.float32):
    return RANDOM.standard_normal(shape).astype(dtype)


_last = []  # two arrays and what is known of their product: a test multiplies the same ones in many ways


def product_of(x, y):
    """The product, and the sums of the absolute values of what it adds up, in double precision."""
    if not (_last and _last[0] is x and _last[1] is y):
        one, other = x.astype(np.float64), y.astype(np.float64)
        _last[:] = x, y, np.matmul(one, other), np.matmul(abs(one), abs(other))
    return _last[2:]


def assert_product(got, x, y, plus=0.0):
    """No further from the product than rounding each step of the sum can take it: (k + 1) units of the sum of absolute values."""
    product, sizes = product_of(x, y)
    exact, sums = product + np.asarray(plus, np.float64), sizes + abs(np.asarray(plus, np.float64))
    assert type(got) is np.ndarray
    assert (got.dtype, got.shape) == (x.dtype, exact.shape)
    assert got.flags.c_contiguous
    bound = (min(x.shape[-1], 64) + 1) * np.finfo(x.dtype).eps * sums
    assert (abs(got - exact) <= bound).all(), float((abs(got - exact) - bound).max())


def layouts(x):
    """The same matrix as rows, as columns, every other one of both, flipped."""
    yield x
    yield np.asfortranarray(x)
    yield np.repeat(np.repeat(x, 2, 0), 3, 1)[::2, ::3]
    yield x[::-1, ::-1].copy()[::-1, ::-1]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sizes", [(1, 1, 1), (5, 3, 7), (12, 32, 16), (13, 17, 33), (64, 64, 64), (97, 300, 131)])
def test_layouts(dtype, sizes):
    """Products of matrices are right in every pair of layouts, with sizes that leave rests and with those that leave none."""
    rows, inner, columns = sizes
    x, y = numbers(rows, inner, dtype=dtype), numbers(inner, columns, dtype=dtype)
    matmul, nt, tn = (kernel(name)[0] for name in ("matmul", "matmul_nt", "matmul_tn"))
    for a, b in itertools.product(layouts(x), layouts(y)):
        assert_product(matmul(a, b), x, y)
        assert_product(nt(a, b.T), x, y)
        assert_product(tn(a.T, b), x, y)


@pytest.mark.parametrize("inner", [255, 256, 257, 511, 513, 1000])
def test_long_sums(inner):
    """Sums that are made in several parts are as right as short ones."""
    x, y = numbers(30, inner), numbers(inner, 40)
    assert_product(kernel("matmul")[0](x, y), x, y)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_number_of_last_columns(dtype):
    """Columns that fill no tile are right, however many vectors, halves of one and single ones they are."""
    x = numbers(27, 20, dtype=dtype)
    for columns in range(1, 70):
        y = numbers(20, columns, dtype=dtype)
        assert_product(kernel("matmul")[0](x, y), x, y)
        assert_product(kernel("matmul_nt")[0](x, np.ascontiguousarray(y.T)), x, y)


def test_many_rows_and_columns():
    """More rows and columns than are packed at a time give the same."""
    x, y = numbers(700, 20), numbers(20, 5000)
    assert_product(kernel("matmul")[0](x, y), x, y)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("rows", "columns"), [(5, 20), (150, 33), (150, 300), (700, 33), (310, 257)])
@pytest.mark.parametrize("step", [130, 1024, 1030])
def test_left_sides_between_other_numbers(rows, columns, step, dtype):
    """Rows that are a part of longer ones are read where they lie or packed, also where their steps are whole pages."""
    x, y = numbers(rows, step, dtype=dtype)[:, :130], numbers(130, columns, dtype=dtype)
    assert_product(kernel("matmul")[0](x, y), x, y)
    assert_product(kernel("matmul_nt")[0](x, np.ascontiguousarray(y.T)), x, y)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("rows", "columns"), [(1, 9), (5, 20), (11, 70), (13, 33), (150, 300), (205, 257), (500, 40)])
@pytest.mark.parametrize("step", [503, 1024])
def test_left_sides_turned_over_between_others(rows, columns, step, dtype):
    """Columns that are read where they lie or packed in strips, of sums in one part and in three, take nothing from beside them."""
    for inner in (7, 530):
        beside = np.full((inner, step), np.nan, dtype)
        beside[:, 2 : 2 + rows] = numbers(inner, rows, dtype=dtype)
        turned, y = beside[:, 2 : 2 + rows], numbers(inner, columns, dtype=dtype)
        assert_product(kernel("matmul_tn")[0](turned, y), turned.T, y)
        assert_product(kernel("matmul")[0](turned.T, np.asfortranarray(y)), turned.T, y)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("inner", [15, 64, 257, 784])
def test_right_sides_turned_over_between_others(inner, dtype):
    """Blocks that are turned over and what is left of them, in sums of one part and of several, take nothing from beside them."""
    x = numbers(30, inner, dtype=dtype)
    for columns in (5, 16, 40, 67):
        beside = np.full((columns, inner + 9), np.nan, dtype)
        beside[:, 4:-5] = numbers(columns, inner, dtype=dtype)
        assert_product(kernel("matmul_nt")[0](x, beside[:, 4:-5]), x, beside[:, 4:-5].T)


@pytest.mark.parametrize(("left", "right"), [
    ((3, 4, 5), (3, 5, 6)), ((2, 3, 4, 5), (5, 6)), ((4, 5), (2, 3, 5, 6)), ((2, 1, 4, 5), (3, 5, 6)),
    ((1, 4, 5), (7, 5, 2)), ((3, 0, 5), (3, 5, 6)), ((3, 4, 0), (3, 0, 6)), ((0, 4, 5), (0, 5, 6)),
])  # fmt: skip
def test_batches(left, right):
    """Dims in front are broadcast, and empty ones give what NumPy gives."""
    x, y = numbers(*left), numbers(*right)
    assert_product(kernel("matmul")[0](x, y), x, y)
    assert_product(kernel("matmul_nt")[0](x, np.ascontiguousarray(y.swapaxes(-1, -2))), x, y)
    assert_product(kernel("matmul_tn")[0](np.ascontiguousarray(x.swapaxes(-1, -2)), y), x, y)


def test_batches_in_any_order():
    """Heads that lie between rows and features, as attention has them, are read where they are."""
    x, y = numbers(2, 9, 3, 20), numbers(2, 11, 3, 20)
    a, b = x.transpose(0, 2, 1, 3), y.transpose(0, 2, 3, 1)
    assert_product(kernel("matmul")[0](a, b), a, b)
    assert_product(kernel("matmul_nt")[0](a, y.transpose(0, 2, 1, 3)), a, b)
    weight = numbers(20, 8)
    assert_product(kernel("matmul")[0](a, weight), a, weight)


@pytest.mark.parametrize("shape", [(6, 20), (2, 3, 20), (130, 20)])
@pytest.mark.parametrize("outs", [1, 9, 16, 70])
def test_linear(shape, outs):
    """A linear layer multiplies by the transposed weight and adds the bias to each row."""
    x, weight, bias = numbers(*shape), numbers(outs, 20), numbers(outs)
    linear = kernel("linear")[0]
    assert_product(linear(x, weight, bias), x, weight.T, bias)
    assert_product(linear(x, weight, None), x, weight.T)
    assert_product(linear(x, weight, np.repeat(bias, 2)[::2]), x, weight.T, bias)


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5, 8, 11, 12, 13])
@pytest.mark.parametrize("outs", [1, 3, 4, 9, 130])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_few_rows(rows, outs, dtype):
    """Up to a dozen rows times a transposed weight, which are sums along both operands, are as right as many."""
    x, weight, bias = (numbers(*shape, dtype=dtype) for shape in ((rows, 301), (outs, 301), (outs,)))
    assert_product(kernel("linear")[0](x, weight, bias), x, weight.T, bias)
    assert_product(kernel("matmul_nt")[0](x, weight), x, weight.T)
    assert_product(kernel("matmul")[0](x, np.ascontiguousarray(weight.T)), x, weight.T)


@pytest.mark.parametrize("shape", [(9, 33), (1, 33), (33,), (9, 1), ()])
def test_addmm(shape):
    """The input is added to the product whatever its shape; beta and alpha are factors; an input times 0 is not read."""
    x, y, input = numbers(9, 300), numbers(300, 33), numbers(*shape)
    addmm = kernel("addmm")[0]
    assert_product(addmm(input, x, y, beta=1, alpha=1), x, y, input)
    assert_product(addmm(input, x, y, beta=0.5, alpha=2), 2 * x, y, 0.5 * input)
    assert_product(addmm(np.full(shape, np.nan, np.float32), x, y, beta=0, alpha=1), x, y)


def test_what_is_not_finite():
    """NaN and infinities reach exactly the results that they are part of."""
    x, y = numbers(20, 30), numbers(30, 40)
    x[3, 4], x[7, 8], y[2, 39] = np.nan, np.inf, -np.inf
    got, expected = kernel("matmul")[0](x, y), kernel("matmul")[1](x, y)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
    np.testing.assert_array_equal(np.isinf(got), np.isinf(expected))
    assert np.isnan(got[3]).all()
    assert not np.isnan(got[4, :39]).any()


def sparse(rows, inner, dtype, how):
    """A left side with zeros: anywhere, whole rows of them, whole columns of them, or rows of every kind, zeros of both signs."""
    x = numbers(rows, inner, dtype=dtype)
    if how == "anywhere":
        x *= RANDOM.random(x.shape) < 0.4
    elif how == "rows":
        x *= RANDOM.random((rows, 1)) < 0.5
    elif how == "columns":
        x *= RANDOM.random((1, inner)) < 0.5
    else:
        x *= RANDOM.random(x.shape) < np.linspace(0, 1.2, rows)[:, None]
    return x


@pytest.mark.parametrize("how", ["anywhere", "rows", "columns", "every kind"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "sizes", [(128, 128, 128), (97, 300, 131), (130, 257, 64), (400, 40, 111), (64, 700, 250), (20, 300, 200)]
)
def test_zeros_on_the_left_change_no_bit(sizes, dtype, how):
    """Zeros that a product leaves out change none of its bits: few columns at a time, where it looks for none, give the same."""
    rows, inner, columns = sizes
    x, y = sparse(rows, inner, dtype, how), numbers(inner, columns, dtype=dtype)
    matmul, nt, tn = (kernel(name)[0] for name in ("matmul", "matmul_nt", "matmul_tn"))
    for function, a, b in ((matmul, x, y), (nt, x, y.T.copy()), (tn, x.T.copy(), y), (tn, np.asfortranarray(x.T), y)):
        got = function(a, b)
        assert_product(got, x, y)
        if native.isa() == "plain" or native.products() != "own":
            continue  # a library makes large products
        across = 0 if function is nt else 1
        parts = [function(a, np.take(b, range(i, min(i + 48, columns)), across)) for i in range(0, columns, 48)]
        assert (got.view(f"u{dtype().itemsize}") == np.concatenate(parts, 1).view(f"u{dtype().itemsize}")).all()


@pytest.mark.parametrize("how", ["columns", "every kind"])
def test_zeros_on_the_left_beside_a_bias(how):
    """What a product is added to is added once, whether or not zeros are left out, and sums in several parts go on."""
    x, weight, bias = sparse(150, 600, np.float32, how), numbers(100, 600), numbers(100)
    assert_product(kernel("linear")[0](x, weight, bias), x, weight.T, bias)
    before = numbers(150, 100)
    assert_product(kernel("addmm")[0](before, x, weight.T, beta=1, alpha=1), x, weight.T, before)


@pytest.mark.parametrize("how", ["anywhere", "columns"])
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_zeros_beside_what_is_not_finite(value, how):
    """Zero times an infinity is NaN, so nothing is left out beside one; and what is not finite on the left is no zero."""
    x, y = sparse(128, 200, np.float32, how), numbers(200, 160)
    x[:, 77] *= how != "columns"
    y[77, 3] = value
    got = kernel("matmul")[0](x, y)
    assert np.isnan(got[x[:, 77] == 0, 3]).all()
    assert (np.isfinite(got) | (np.arange(160) == 3)).all()
    x[5, 9] = value
    assert not np.isfinite(kernel("matmul")[0](x, y)[5]).any()


def test_denormals():
    """Products that are no normal numbers are not flushed to zero."""
    x = np.full((8, 1), 2.0**-74, np.float32)
    np.testing.assert_array_equal(kernel("matmul")[0](x, x.T), np.full((8, 8), 2.0**-148, np.float32))


def test_threads_do_not_change_the_result(products):
    """A product of our own is the same to the last bit on one thread and on several."""
    if products in ("plain", "mkl"):
        pytest.skip("another library makes them, part by part, and promises the same bits for the same sizes only")
    x, y = numbers(500, 300), numbers(300, 400)
    few = numbers(3, 1000), numbers(2000, 1000)
    several = numbers(37, 30, 40), numbers(37, 40, 50)
    before, made = tensorcore.get_num_threads(), []
    try:
        for count in (1, 3):
            tensorcore.set_num_threads(count)
            made.append((kernel("matmul")[0](x, y), kernel("matmul")[0](*several), kernel("matmul_nt")[0](*few)))
    finally:
        tensorcore.set_num_threads(before)
    for one, other in zip(*made, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("sizes", [
    (500, 300, 400), (40, 130, 3000), (3000, 130, 40), (3, 4000, 500), (128, 300, 250),
])  # fmt: skip
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_parts_on_several_threads(sizes, dtype):
    """Products that are cut over threads are right in each layout, with a bias, and with a matrix that is added."""
    rows, inner, columns = sizes
    x, y = numbers(rows, inner, dtype=dtype), numbers(inner, columns, dtype=dtype)
    bias, plus = numbers(columns, dtype=dtype), numbers(rows, columns, dtype=dtype)
    before = tensorcore.get_num_threads()
    try:
        tensorcore.set_num_threads(3)
        for a, b in itertools.product((x, np.asfortranarray(x)), (y, np.asfortranarray(y))):
            assert_product(kernel("matmul")[0](a, b), x, y)
            assert_product(kernel("linear")[0](a, b.T, bias), x, y, bias)
            assert_product(kernel("addmm")[0](plus, a, b, beta=1, alpha=1), x, y, plus)
    finally:
        tensorcore.set_num_threads(before)


@pytest.mark.parametrize("shapes", [((3, 4), (5, 6)), ((2, 3, 4), (3, 4, 5))])
def test_what_does_not_fit(shapes):
    """Sizes that do not fit are refused as NumPy refuses them."""
    with pytest.raises(ValueError, match=r"mismatch|not aligned|broadcast"):
        kernel("matmul")[0](numbers(*shapes[0]), numbers(*shapes[1]))
