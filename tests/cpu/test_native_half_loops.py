"""Elementwise kernels of half types: computed in single precision and rounded once, beside tensors and beside numbers."""

import ml_dtypes
import numpy as np
import pytest

from .native import assert_same, awkward, kernel, laid_out, layouts, needs_native

pytestmark = [needs_native, pytest.mark.usefixtures("isa")]

HALVES = [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)]
# Those whose vectors are computed in registers, and some that pass through a buffer.
UNARY = ["square", "relu", "reciprocal", "sqrt", "floor", "isnan"]
BINARY = ["add", "sub", "mul", "div", "maximum", "minimum", "eq", "ne", "lt", "le", "gt", "ge", "fmod"]
NUMBERS = [2.5, 0.1, -3, 0.0, float("inf"), float("nan")]
TIES = ("relu", "maximum", "minimum", "clamp", "clamp_min", "clamp_max")  # of zeros with different signs either may win


def check(name, got, expected, dtype, *operands):
    """As floats, which NumPy compares; in the memory order of the operands."""
    half = expected.dtype != bool
    assert got.dtype == (dtype if half else bool)
    wanted = laid_out(np.asarray(expected).astype(got.dtype), *operands)
    if half:
        got, wanted = got.astype(np.float32), wanted.astype(np.float32)
    assert_same(got, wanted, name not in TIES)


def wide(*operands):
    return [one.astype(np.float32) if isinstance(one, np.ndarray) else one for one in operands]


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("name", UNARY)
def test_one_operand(name, dtype):
    """Any layout and length: the float's result, rounded once."""
    native, fallback = kernel(name)
    values = awkward(dtype, 131)
    for x in [*layouts(values).values(), *[values[:count] for count in (1, 7, 16, 31, 32, 33, 64, 97)]]:
        check(name, np.asarray(native(x)), fallback(*wide(x)), dtype, x)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("name", BINARY)
def test_two_operands(name, dtype):
    """Any layout, a row for all rows, and an array without dims; a result that has a place to go, and one of the operands' own."""
    native, fallback = kernel(name)
    values = awkward(dtype, 131)
    for layout, x in layouts(values).items():
        y = layouts(np.roll(values, 3)[::-1].copy())[layout]
        others = [y, y[..., :1]] if y.ndim else [y]
        for other in [*others, values[20].reshape(())]:
            check(name, np.asarray(native(x, other)), fallback(*wide(x, other)), dtype, x, other)
    x, y = values, np.roll(values, 3)
    expected = fallback(*wide(x, y))
    out = np.empty(x.shape, dtype if expected.dtype != bool else bool)
    assert native(x, y, out=out) is out
    check(name, out, expected, dtype)
    if out.dtype == dtype:
        place = x.copy()
        assert native(place, y, out=place) is place
        check(name, place, expected, dtype)
        steps = np.zeros((131, 2), dtype)
        native(x, y, out=steps[:, 0])
        check(name, steps[:, 0].copy(), expected, dtype)
        assert not steps[:, 1].any()


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("name", [*BINARY, "clamp_min", "clamp_max"])
def test_numbers(name, dtype):
    """0.1 is the float's in products and quotients, and rounded to the half type elsewhere, as PyTorch has it; on either side, in any
    layout, in place, and beside many elements on several threads."""
    native, fallback = kernel(name)
    arrays = [*layouts(awkward(dtype, 131)).values(), awkward(dtype, 40_007)]
    for number in NUMBERS:
        held = number if name in ("mul", "div") else float(dtype.type(number))
        for x in arrays:
            check(name, np.asarray(native(x, number)), fallback(*wide(x), held), dtype, x)
            if name in ("add", "sub", "mul", "div"):
                check(name, native(number, x), fallback(held, *wide(x)), dtype, x)
        place = arrays[0].copy()
        expected = fallback(*wide(place), held)
        if expected.dtype != bool:
            assert native(place, number, out=place) is place
            check(name, place, expected, dtype)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_bounds(dtype):
    """Numbers, arrays and one of each as bounds; a NaN among the three is the result, and the upper one wins where they cross."""
    native, fallback = kernel("clamp")
    values = awkward(dtype, 131)
    for x in layouts(values).values():
        for low, high in (
            (-1, 2.5),
            (0.1, -3.0),
            (float("nan"), 1.0),
            (0.0, float("nan")),
            (x, 0.3),
            (-0.3, x),
            (x, x),
        ):
            held = [one if isinstance(one, np.ndarray) else float(dtype.type(one)) for one in (low, high)]
            check("clamp", native(x, low, high), fallback(*wide(x, *held)), dtype, x)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_powers_with_numbers(dtype):
    """Whole and other exponents, at most one unit of the half type from the exact power."""
    native, _ = kernel("pow")
    x = np.abs(np.random.default_rng(8).uniform(0.3, 3, 131)).astype(dtype)
    for exponent in (2, 3, 2.0, 0.5, -1, -0.5, -2, 1.7, 0):
        got = native(x, exponent)
        assert got.dtype == dtype
        exact = x.astype(np.float64) ** float(dtype.type(exponent))
        unit = 2.0**-8 if dtype == ml_dtypes.bfloat16 else 2.0**-11
        assert (np.abs(got.astype(np.float64) - exact) <= 1.01 * unit * exact).all()


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_a_scaled_sum(dtype):
    """x + factor * y is rounded once, with a factor of the half type; in any layout, and in the place of x."""
    native, _ = kernel("add_scaled")
    values = awkward(dtype, 131)
    for layout, x in layouts(values).items():
        y = layouts(np.roll(values, 3))[layout]
        for factor in (0.1, 2, -1.5):
            expected = x.astype(np.float32) + np.float32(dtype.type(factor)) * y.astype(np.float32)
            check("add_scaled", native(x, y, alpha=factor), expected, dtype, x, y)
            place = x.copy()
            assert native(place, y, alpha=factor, out=place) is place
            np.testing.assert_array_equal(place.astype(np.float32), expected.astype(dtype).astype(np.float32))


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_a_choice_takes_a_number_as_a_half(dtype):
    """where() copies elements: a number is rounded to one first."""
    native, _ = kernel("where")
    x, choice = awkward(dtype, 67), np.arange(67) % 3 == 0
    for number in (0.1, -2, float("nan")):
        for got, one, other in (
            (native(choice, x, number), x, dtype.type(number)),
            (native(choice, number, x), dtype.type(number), x),
        ):
            assert got.dtype == dtype
            np.testing.assert_array_equal(got.astype(np.float32), np.where(choice, one, other).astype(np.float32))


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("kind", ["sgd", "adam"])
def test_a_step_is_rounded_once(dtype, kind):
    """Parameters of several sizes, one of them in more than one piece, and what is remembered: as NumPy's kernel leaves them."""
    native, fallback = kernel(f"{kind}_step")
    random = np.random.default_rng(8)
    sizes = ((3,), (700,), (41, 513), ())
    lists = [[random.uniform(0.1, 1, size).astype(dtype) for size in sizes] for _ in range(5)]
    if kind == "sgd":
        options = {"lr": 0.1, "momentum": 0.9, "dampening": 0.2, "weight_decay": 0.01, "first": False}
        lists = lists[:3]
    else:
        options = {"lr": 0.1, "beta1": 0.9, "beta2": 0.99, "eps": 1e-8, "steps": [3.0] * 4, "weight_decay": 0.01}
    given, expected = ([[one.copy() for one in some] for some in lists] for _ in range(2))
    native(*given, **options)
    fallback(*expected, **options)
    unit = 2.0**-7 if dtype == ml_dtypes.bfloat16 else 2.0**-10
    for k, (got, wanted) in enumerate(zip(given, expected, strict=True)):
        for one, other, before in zip(got, wanted, lists[k], strict=True):
            one, other = one.astype(np.float64), other.astype(np.float64)
            np.testing.assert_allclose(one, other, rtol=unit, atol=unit * 1e-2)
            assert (one != other).mean() < 0.02
            assert k == 1 or not np.array_equal(one, before.astype(np.float64))


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_normalisations_take_a_piece_at_a_time(dtype):
    """Rows longer than there is room for, groups whose weights depend on the row, weights of both precisions or none; channels, also
    of single elements, innermost in memory, and larger than there is room for.
    """
    native, fallback = kernel("standardize")
    random = np.random.default_rng(8)
    half = lambda *shape: random.uniform(-2, 2, shape).astype(dtype)  # noqa: E731
    rows = {"dims": (1,), "eps": 1e-5}
    channels = {"dims": (0, 2), "affine": (3, 1), "centre": True, "eps": 1e-5}
    for x, weight, options in (
        (half(70, 257), half(257), {"view": (70, 257), "affine": (257,), "centre": True, **rows}),
        (half(3, 5000), half(5000).astype(np.float32), {"view": (3, 5000), "affine": (5000,), "centre": False, **rows}),
        (half(70, 257)[::2], None, {"view": (35, 257), "affine": (257,), "centre": True, **rows}),
        (
            half(5, 6, 7),
            half(6),
            {"view": (5, 2, 3, 7), "dims": (2, 3), "affine": (2, 3, 1), "centre": True, "eps": 1e-5},
        ),
        (half(5, 3, 77), half(3), {"view": (5, 3, 77), **channels}),
        (half(2, 3, 40_000), None, {"view": (2, 3, 40_000), **channels}),
        (half(9, 3, 1), half(3).astype(np.float32), {"view": (9, 3, 1), **channels}),
        (
            half(4, 5, 6, 3).transpose(0, 3, 1, 2),
            half(3),
            {"view": (4, 3, 5, 6), **channels, "dims": (0, 2, 3), "affine": (3, 1, 1)},
        ),
    ):
        made, mean, var = native(x, weight, weight, **options)
        expected, *kept = fallback(x, weight, weight, **options)
        assert made.dtype == dtype
        assert (made.shape, var.dtype) == (expected.shape, np.float32)
        unit = 2.0**-7 if dtype == ml_dtypes.bfloat16 else 2.0**-10
        np.testing.assert_allclose(made.astype(np.float64), expected.astype(np.float64), rtol=unit, atol=unit * 1e-2)
        for one, other in zip((mean, var), kept, strict=True):
            assert (one is None) == (other is None)
            assert one is None or np.allclose(one, other, rtol=1e-5, atol=1e-6)
