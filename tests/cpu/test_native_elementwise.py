"""The elementwise kernels in C beside NumPy's: values, strides and dtypes over layouts, corners and instruction sets."""

import math

import numpy as np
import pytest

import tensorcore as tc

from .native import assert_same, assert_within, awkward, instruction_sets, kernel, laid_out, layouts, needs_native

pytestmark = [needs_native, pytest.mark.usefixtures("isa")]

FLOATS = ["float32", "float64"]
NUMBERS = [*FLOATS, "int8", "int16", "int32", "int64", "uint8"]
EVERYWHERE = [*NUMBERS, "bool"]

UNARY = {
    "neg": NUMBERS, "abs": NUMBERS, "square": NUMBERS, "relu": NUMBERS, "sign": NUMBERS, "sqrt": FLOATS, "rsqrt": FLOATS,
    "reciprocal": FLOATS, "floor": FLOATS, "ceil": FLOATS, "trunc": FLOATS, "round": FLOATS,
    "bitwise_not": EVERYWHERE[2:], "logical_not": EVERYWHERE, "isnan": FLOATS, "isinf": FLOATS, "isfinite": FLOATS,
    "angle": FLOATS,
}  # fmt: skip
BINARY = {
    "add": EVERYWHERE, "sub": NUMBERS, "mul": EVERYWHERE, "div": FLOATS, "maximum": EVERYWHERE, "minimum": EVERYWHERE,
    "bitwise_and": EVERYWHERE[2:], "bitwise_or": EVERYWHERE[2:], "bitwise_xor": EVERYWHERE[2:],
    **dict.fromkeys(("logical_and", "logical_or", "logical_xor", "eq", "ne"), EVERYWHERE),
    **dict.fromkeys(("lt", "le", "gt", "ge"), NUMBERS),
    **dict.fromkeys(("fmod", "remainder", "floor_divide", "nextafter"), FLOATS),
}  # fmt: skip
# Kernel -> the most units in the last place between the result and the exact one, and where they are counted.
FUNCTIONS = {
    "exp": (1.5, -200.0, 100.0), "expm1": (2.5, -200.0, 80.0), "log": (1.5, 0.0, 1e30), "log1p": (2.0, -1.0, 1e30),
    "tanh": (3.0, -30.0, 30.0), "sigmoid": (3.5, -85.0, 85.0), "silu": (4.5, -85.0, 85.0), "erf": (3.5, -10.0, 10.0),
}  # fmt: skip
EXACT = {
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "erf": lambda x: np.array([math.erf(one) for one in x.tolist()]),
}


def check(name, got, expected):
    """The same, but for the sign of a zero where NumPy's own vectors and tails differ in it."""
    assert_same(got, expected, signs=name not in ("maximum", "minimum", "relu", "sign"))


@pytest.mark.parametrize("name, dtype", [(name, dtype) for name, dtypes in UNARY.items() for dtype in dtypes])
def test_one_operand(name, dtype):
    """Every layout gives NumPy's values in NumPy's order of dims."""
    native, fallback = kernel(name)
    for values in layouts(awkward(dtype, 100)).values():
        check(name, native(values), fallback(values))


@pytest.mark.parametrize("name, dtype", [(name, dtype) for name, dtypes in BINARY.items() for dtype in dtypes])
def test_two_operands(name, dtype):
    """Layouts of one shape, numbers on either side, rows and columns that are broadcast."""
    native, fallback = kernel(name)
    values = awkward(dtype, 100)
    for one in layouts(values).values():
        for other in (one[::-1] if one.ndim else one, one.copy()):
            check(name, native(one, other), laid_out(fallback(one, other), one, other))
    matrix, other = values.reshape(10, 10), values[::-1].reshape(10, 10)
    for pair in (
        (matrix, other.T), (matrix.T, other.T), (matrix, other[0]), (matrix[:, :1], other), (matrix[:, :1], other[0]),
        (matrix.T, other[1:2]), (matrix[:, 2:9], other[:, 9:2:-1]), (matrix, other[3, 3]), (matrix[:3, None], other[:2, :]),
    ):  # fmt: skip
        first, second = pair if isinstance(pair[1], np.ndarray) else (pair[0], np.asarray(pair[1]))
        if first.shape == (3, 1, 10):
            second = second[:2]
        check(name, native(first, second), laid_out(fallback(first, second), first, second))
    if dtype != "bool":
        number = 3 if np.dtype(dtype).kind in "iu" else 2.5
        check(name, native(values, number), fallback(values, values.dtype.type(number)))
        check(name, native(number, values), fallback(values.dtype.type(number), values))


def test_the_first_operand_decides_the_memory_order():
    """Of two layouts the sum has the first one's, as in PyTorch, so that dropout after it draws the same elements there."""
    turned, plain = tc.ones(3, 4).t(), tc.zeros(4, 3)
    assert (turned + plain).stride() == (1, 4)
    assert (plain + turned).stride() == (3, 1)
    assert (plain[0] + turned).stride() == (1, 4)
    tc.manual_seed(0)
    dropped = tc.nn.functional.dropout(turned + plain)
    tc.manual_seed(0)
    assert dropped.tolist() == tc.nn.functional.dropout(tc.ones(3, 4)).t().tolist()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_exact_to_a_few_units(name, dtype):
    """NaN, infinities and zeros come out as from NumPy; ordinary numbers within the stated units in the last place."""
    native, fallback = kernel(name)
    ulp, low, high = FUNCTIONS[name]
    check(name, native(awkward(dtype)[:8]), fallback(awkward(dtype)[:8]))
    random = np.random.default_rng(8)
    values = np.concatenate([random.standard_normal(5003) * scale for scale in (1e-30, 1e-3, 0.3, 1, 5, 30)])
    values = values[(values > low) & (values < high)].astype(dtype)
    wide = values.astype(np.longdouble)
    expected = EXACT.get(name, getattr(np, name, None))(values.astype(np.float64) if name == "erf" else wide)
    assert_within(native(values), np.asarray(expected).astype(dtype), ulp)
    spread = np.repeat(values, 2)[::2]
    np.testing.assert_array_equal(native(spread), native(values))


@pytest.mark.parametrize("name, least, most", [("tanh", 1e-6, 10.0), ("sigmoid", -86.0, 20.0), ("silu", -84.0, 20.0)])
def test_functions_keep_their_digits_between_the_entries_of_tables(name, least, most):
    """Within the stated units on an even grid too, and never beyond the function's bounds."""
    values = np.linspace(least, most, 200_003).astype(np.float32)
    made = kernel(name)[0](values)
    wide = values.astype(np.float64)
    assert_within(made, EXACT.get(name, np.tanh)(wide).astype(np.float32), FUNCTIONS[name][0])
    if name != "silu":
        far = kernel(name)[0](np.array([20, 100, 1e30, np.inf], np.float32))
        assert made.max() <= 1
        np.testing.assert_array_equal(far, np.ones(4, np.float32))


# Kernel -> the largest relative difference from SciPy's in units of the dtype's precision, and the largest operand.
SPECIAL = {
    "erfc": (40, 8.5), "erfinv": (12, 1.0), "ndtr": (60, 8.5), "i0": (20, 80.0), "i0e": (20, 1e30), "i1": (20, 80.0),
    "i1e": (20, 1e30), "modified_bessel_i0": (20, 80.0), "modified_bessel_i1": (20, 80.0),
}  # fmt: skip


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", SPECIAL)
def test_special_functions_are_scipys(name, dtype):
    """Corners are the same; ordinary numbers agree within the stated share of a part."""
    native, fallback = kernel(name)
    units, most = SPECIAL[name]
    corners = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan], dtype)
    np.testing.assert_allclose(native(corners), fallback(corners), rtol=units * np.finfo(dtype).eps)
    values = np.concatenate(
        [np.random.default_rng(8).standard_normal(3001) * scale for scale in (1e-30, 0.3, 1, 4, 30)]
    )
    values = values[np.abs(values) < most].astype(dtype)
    expected = fallback(values.astype(np.float64))
    np.testing.assert_allclose(native(values), expected, rtol=units * np.finfo(dtype).eps, atol=np.finfo(dtype).tiny)
    np.testing.assert_array_equal(native(np.repeat(values, 2)[::2]), native(values))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["hypot", "logaddexp", "logaddexp2"])
def test_sums_of_two_neither_overflow_nor_vanish(name, dtype):
    """NumPy's values to a few roundings of the larger operand, infinities and NaN included."""
    native, fallback = kernel(name)
    values = awkward(dtype, 60)
    first, second = (one.ravel() for one in np.meshgrid(values, values))
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(native(first, second), fallback(first, second), rtol=4 * eps, atol=2 * eps)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "x, y",
    [
        (1e30, 3.0), (-1e30, 3.0), (7.0, np.inf), (-7.0, np.inf), (np.inf, 2.0), (2.0, 0.0), (-6.0, 2.0), (1e10, 0.7),
        (-3e15, 0.3),
    ],
)  # fmt: skip
def test_division_of_far_numbers(x, y, dtype):
    """Quotients beyond what a fast division knows, infinities and zeros: as from NumPy, signs of zeros included, in place too."""
    left, right = np.full(1067, x, dtype), np.full(1067, y, dtype)
    left[::3], left[1:90:5] = 5.5, np.nextafter(left[1:90:5], left.dtype.type(0))
    for name in ("fmod", "remainder", "floor_divide"):
        native, fallback = kernel(name)
        assert_same(native(left, right), fallback(left, right), signs=True)
        assert_same(native(left, y), fallback(left, right.dtype.type(y)), signs=True)
        for place in (0, 1):
            operands = [left.copy(), right.copy()]
            native(*operands, out=operands[place])
            assert_same(operands[place], fallback(left, right), signs=True)


@pytest.mark.parametrize("dtype", FLOATS)
def test_exp_and_log_know_denormals(dtype):
    """Results and operands below the least normal number keep their digits."""
    exp, log = kernel("exp")[0], kernel("log")[0]
    least = np.finfo(dtype).smallest_subnormal
    small = np.array([least, least * 1000, np.finfo(dtype).tiny / 3], dtype)
    assert_within(log(small), np.log(small.astype(np.longdouble)).astype(dtype), 1.0)
    edge = np.log(np.finfo(dtype).tiny)
    values = np.linspace(edge - 10, edge + 1, 57).astype(dtype)
    assert_within(exp(values), np.exp(values.astype(np.longdouble)).astype(dtype), 1.0)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu(dtype, approximate):
    """Within a few roundings of the size of the operand; infinities and NaN as NumPy's formula gives them."""
    native, fallback = kernel("gelu")
    values = np.concatenate([np.random.default_rng(8).standard_normal(4001) * scale for scale in (0.1, 1, 6)])
    values = values.astype(dtype)
    exact = np.array([0.5 * x * math.erfc(-x / math.sqrt(2)) for x in values.tolist()])
    if approximate == "tanh":
        inner = math.sqrt(2 / math.pi) * (values.astype(np.float64) + 0.044715 * values.astype(np.float64) ** 3)
        exact = values / (1 + np.exp(-2 * inner))
    made = native(values, approximate=approximate)
    assert made.dtype == values.dtype
    assert (np.abs(made - exact) <= 4 * np.finfo(dtype).eps * np.maximum(np.abs(exact), 0.25 * np.abs(values))).all()
    corners = np.array([0.0, -0.0, np.inf, np.nan, -40.0, 40.0], dtype)
    np.testing.assert_array_equal(native(corners, approximate=approximate), fallback(corners, approximate=approximate))


def test_gelu_keeps_its_digits_far_on_the_left():
    """Between the entries of tables too; rounding the square costs as many units as it is large; further left than tables reach, where
    less than 4e-9 is left, it may be zeros, and at last they are negative."""
    native = kernel("gelu")[0]
    values = np.linspace(-12.5, 6, 100_003).astype(np.float32)
    exact = np.array([0.5 * x * math.erfc(-x / math.sqrt(2)) for x in values.tolist()])
    limit = (6 + values.astype(np.float64) ** 2) * np.finfo(np.float32).eps * np.abs(exact)
    wrong = np.abs(native(values) - exact)
    assert (wrong <= np.where(values < -6.1, np.abs(exact), limit)).all()
    far = native(np.array([-0.0, -40.0, -1e30], np.float32))
    np.testing.assert_array_equal(far, np.zeros(3))
    assert np.signbit(far).all()


@pytest.mark.parametrize("dtype", NUMBERS)
def test_clamp(dtype):
    """Between numbers, between arrays; a NaN bound gives NaN."""
    native, fallback = kernel("clamp")
    for values in layouts(awkward(dtype, 100)).values():
        np.testing.assert_array_equal(native(values, 1, 3), np.minimum(np.maximum(values, 1), 3))
        np.testing.assert_array_equal(native(values, values, values), values)
    values, low, high = (
        awkward(dtype, 90).reshape(9, 10),
        awkward(dtype, 97)[7:].reshape(9, 10),
        awkward(dtype, 93)[3:].reshape(9, 10),
    )
    for least, most in ((low, high), (low, high[0]), (low[0], high), (low[:, :1], high), (low, high[:, :1]), (low[0], high[:, 1:2]),
                        (low.T.reshape(10, 9).T, high), (low[::-1], high[:, ::-1])):  # fmt: skip
        assert_same(native(values, least, most), np.minimum(np.maximum(values, least), most), False)
    if dtype in FLOATS:
        values = awkward(dtype)
        assert np.isnan(native(values, math.nan, 1.0)).all()
        np.testing.assert_array_equal(native(values, -0.5, math.inf), fallback(values, -0.5, math.inf))


@pytest.mark.parametrize("dtype", [*EVERYWHERE, "float16"])
def test_where(dtype):
    """Chosen element by element, with broadcast operands and numbers."""
    native, fallback = kernel("where")
    values = awkward(dtype, 100).reshape(10, 10)
    choice = np.random.default_rng(8).integers(0, 2, (10, 10)).astype(bool)
    for chosen in (choice, choice.T, choice[0], choice[:, :1]):
        for one, other in ((values, values.T), (values, values[:, 1:2]), (values[0], values), (values, values[1, 1:2])):
            np.testing.assert_array_equal(native(chosen, one, other), fallback(chosen, one, other))
    if dtype in NUMBERS:
        np.testing.assert_array_equal(native(choice, values, 1), np.where(choice, values, values.dtype.type(1)))
        np.testing.assert_array_equal(native(choice, 1, values), np.where(choice, values.dtype.type(1), values))


@pytest.mark.parametrize("dtype", FLOATS)
def test_powers_and_slopes(dtype):
    """Exponents for which a product is exact, one for which a power is to one unit, and leaky_relu."""
    native, fallback = kernel("pow")
    values = awkward(dtype)
    for exponent in (2, 3, 0.5, -1, -0.5, -2, 2.0, 0, 0.0, 1, 1.0):
        np.testing.assert_array_equal(native(values, exponent), fallback(values, exponent))
    assert_within(native(values, 1.5), fallback(values, 1.5), 1)
    native, fallback = kernel("leaky_relu")
    for slope in (0.01, -0.5, 2.0):
        np.testing.assert_array_equal(
            native(values, negative_slope=slope), np.where(values > 0, values, values * values.dtype.type(slope))
        )


def test_powers_of_floats(isa):
    """To one unit, corners and signs of zeros as IEEE 754 has them; the bits are the same whatever stands beside.

    With AVX-512 they are those of the exact power but for a few near the middle of two floats, so that whole powers are exact; else
    NumPy's, where it is fast.
    """
    native, _ = kernel("pow")
    corners = [0.0, -0.0, 1, -1, 2, -3, 0.5, -1.5, np.inf, -np.inf, np.nan, 1e-40, -1e38, 16777217.0, 1.0000001]
    random, grid = np.random.default_rng(8), np.meshgrid(corners, corners)
    x, y = [np.concatenate([one.ravel(), random.normal(0, 9, 1200)]).astype(np.float32) for one in grid]
    y[-600:] = np.rint(y[-600:])
    with np.errstate(all="ignore"):
        exact = np.power(x.astype(np.float64), y)
        expected = exact.astype(np.float32)
    made = native(x, y)
    assert_within(made, expected, 1)
    np.testing.assert_array_equal(np.signbit(made[exact == 0]), np.signbit(exact[exact == 0]))
    np.testing.assert_array_equal(made, [native(x[i : i + 1], y[i : i + 1])[0] for i in range(len(x))])
    np.testing.assert_array_equal(native(x[::2], y[::2]), made[::2])
    assert native(x, y, out=y) is y
    np.testing.assert_array_equal(y, made)
    assert_same(native(x[:, None], y[:3]), np.stack([native(x, one) for one in y[:3]], 1))
    ordinary = random.uniform(0.5, 20, 1200).astype(np.float32)
    if isa == "avx512":
        exact = ordinary.astype(np.float64) ** 2.5
        assert np.abs((native(ordinary, 2.5) - exact) / np.spacing(exact.astype(np.float32))).max() < 0.51
        whole, exponents = np.meshgrid(np.arange(-15, 16), np.arange(7))
        np.testing.assert_array_equal(native(whole.astype(np.float32), exponents.astype(np.float32)), whole**exponents)
    else:
        np.testing.assert_array_equal(native(ordinary, 2.5), np.power(ordinary, np.float32(2.5)))


def test_integers_have_few_powers():
    """Squares are computed, of 0 and 1 too, negative exponents are refused by NumPy's kernel."""
    native, _ = kernel("pow")
    for dtype in ("int64", "uint8"):
        x = np.array([3, 0, 7], dtype)
        assert native(x, 0).tolist() == [1, 1, 1]
        assert native(x, 1).tolist() == [3, 0, 7]
        assert native(x, 0).dtype == native(x, 1).dtype == x.dtype
        out = np.empty_like(x)
        assert native(x, 0, out=out) is out
        assert out.tolist() == [1, 1, 1]
    assert native(np.array([3, -4]), 2).tolist() == [9, 16]
    with pytest.raises(RuntimeError, match="negative integer powers"):
        native(np.array([3, -4]), -1)


@pytest.mark.parametrize("name", ["add", "mul", "div", "lt", "exp", "tanh", "sqrt", "abs"])
def test_narrow_floats_compute_in_single_precision(name):
    """float16 and bfloat16 are rounded once, from the float32 result."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    native, _ = kernel(name)
    for dtype in (np.float16, ml_dtypes.bfloat16):
        values = np.random.default_rng(8).standard_normal(1300).astype(dtype)
        operands = (values, values[::-1])[: 1 if name in ("exp", "tanh", "sqrt", "abs") else 2]
        wide = native(*[one.astype(np.float32) for one in operands])
        made = native(*operands)
        assert made.dtype == (bool if name == "lt" else dtype)
        np.testing.assert_array_equal(made.astype(np.float32), wide.astype(made.dtype).astype(np.float32))


def test_a_result_can_have_a_place():
    """``out`` is written and returned; it may be an operand, and where it overlaps one in part NumPy takes over."""
    add, _ = kernel("add")
    x = np.arange(100, dtype=np.float32)
    out = np.empty((10, 10), np.float32).T
    assert add(x.reshape(10, 10), 1.0, out=out) is out
    assert out.tolist() == (x + 1).reshape(10, 10).tolist()
    assert add(x, x, out=x) is x
    assert x.tolist() == [2.0 * i for i in range(100)]
    assert add(x[:-1], 1.0, out=x[1:]).tolist() == [2.0 * i + 1 for i in range(99)]
    assert add(x, x, out=None) is not x
    with pytest.raises(ValueError, match="broadcast"):
        add(x, x, out=np.empty(3, np.float32))


@pytest.mark.parametrize(
    ("name", "options"), [("gelu", {"approximate": "none"}), ("leaky_relu", {"negative_slope": 0.1})]
)
def test_a_result_of_an_op_with_options_can_have_a_place(name, options):
    """The bits in a given array are those of a new one."""
    native, _ = kernel(name)
    x = np.linspace(-4, 4, 101, dtype=np.float32)
    place = np.empty_like(x)
    assert native(x, **options, out=place) is place
    assert_same(place, native(x, **options))


@pytest.mark.parametrize("dtype", ["float64", "float32", "int16", "int8"])
@pytest.mark.parametrize("rows", [2, 4, 9, 31, 130, 1031])
def test_a_row_beside_many(rows, dtype):
    """One row for all rows, of any width: on either side, reversed, beside another such row, and where rows begin between lines."""
    add, added = kernel("add")
    equal, equals = kernel("eq")
    where, chosen = kernel("where")
    random = np.random.default_rng(rows)
    for width in (1, 3, 8, 10, 31, 64, 316, 317, 2049):
        x = random.integers(-3, 4, rows * width + 1).astype(dtype)[1:].reshape(rows, width)
        row, other = x[rows // 2].copy(), x[0] + x.dtype.type(1)
        for one in (row, row[::-1]):
            assert_same(add(x, one), added(x, one))
            assert_same(add(one, x), added(one, x))
            assert_same(equal(x, one), equals(x, one))
        assert_same(where(row > 0, x, other), chosen(row > 0, x, other))
        assert_same(where(x > 0, row, other), chosen(x > 0, row, other))
        assert_same(where(row > 0, x, 2), chosen(row > 0, x, 2))
        assert_same(where(x > 0, row, 2), chosen(x > 0, row, 2))
        assert_same(where(x > 0, other, x[:1, :1]), chosen(x > 0, other, x[:1, :1]))
        assert_same(add(x.T, row[:, None]), added(x.T, row[:, None]))
        expected = added(x, row)
        assert add(x, row, out=x) is x
        assert_same(x, expected)


def test_a_row_beside_many_on_several_threads():
    """Pieces begin in the middle of the row's repetitions."""
    add, added = kernel("add")
    x = np.random.default_rng(8).random((4001, 317), np.float32)
    before = tc.get_num_threads()
    try:
        for count in (1, 2, 5):
            tc.set_num_threads(count)
            assert_same(add(x, x[7]), added(x, x[7]))
    finally:
        tc.set_num_threads(before)


def test_large_arrays_are_cut_into_pieces():
    """Over many rows, with threads, nothing is left out and nothing is done twice."""
    add, fallback = kernel("add")
    x = np.random.default_rng(8).random((301, 7, 211), np.float32)
    for one, other in (
        (x, x),
        (x, x[:, :1]),
        (x.transpose(2, 0, 1), x[0, 0][:, None, None]),
        (x[:, ::2], x[:, 1::2][:, :1]),
    ):
        np.testing.assert_array_equal(add(one, other), fallback(one, other))


def test_numbers_that_do_not_fit_go_to_numpy():
    """An int beyond the dtype raises NumPy's error, a fraction beside integers gives NumPy's dtype."""
    add, _ = kernel("add")
    with pytest.raises(OverflowError):
        add(np.zeros(3, np.int8), 300)
    assert add(np.zeros(3, np.int32), 0.5).dtype == np.float64
    assert add(np.zeros(3, np.float32), 2**70).tolist() == [2.0**70] * 3


def test_there_is_more_than_one_instruction_set():
    """The plain loops run everywhere, so every test here ran at least on them."""
    assert "plain" in instruction_sets()


def test_roots_are_rounded_to_the_nearest():
    """All mantissas under an even and an odd exponent, and each exponent with denormals: bit for bit as NumPy's roots."""
    native, fallback = kernel("sqrt")
    bits = np.arange(0x3F800000, 0x40800000, dtype=np.uint32)
    for first in range(0, len(bits), 1 << 20):
        values = bits[first : first + (1 << 20)].view(np.float32)
        np.testing.assert_array_equal(native(values), fallback(values))
    values = np.arange(0, 0x7F800000, 4001, dtype=np.uint32).view(np.float32)
    np.testing.assert_array_equal(native(values), fallback(values))


def test_functions_of_any_size_and_step():
    """What is left of a vector, and elements that do not lie in a row, have the bits of whole vectors."""
    values = np.linspace(0.01, 30, 100, dtype=np.float32)
    for name in ("exp", "log", "tanh", "sigmoid", "silu", "gelu", "sqrt"):
        native, _ = kernel(name)
        whole = native(values)
        for count in (1, 7, 15, 16, 17, 31, 33, 64, 65, 81):
            np.testing.assert_array_equal(native(values[:count]), whole[:count])
        for step in (2, 3, -1):
            np.testing.assert_array_equal(native(values[::step]), whole[::step])
