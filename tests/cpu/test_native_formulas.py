"""Functions of several steps in C beside NumPy's in the widest type: ordinary numbers, corners, layouts, each instruction set."""

import math

import numpy as np
import pytest

import tensorcore

from .native import assert_same, assert_within, awkward, kernel, layouts, needs_native

pytestmark = [needs_native, pytest.mark.usefixtures("isa")]

SINGLE = [
    "lgamma", "digamma", "atan", "asin", "acos", "tan", "atanh", "asinh", "acosh", "sinh", "cosh", "exp2", "log2", "log10",
]  # fmt: skip
STEPS = [
    ("hardswish", {}), ("hardsigmoid", {}), ("hardshrink", {}), ("hardshrink", {"lambd": 1.25}), ("softshrink", {"lambd": 0.25}),
    ("threshold", {"threshold": 0.5, "value": -1.25}), ("threshold", {"threshold": -2, "value": 7}),
    ("frac", {}), ("nan_to_num", {}), ("nan_to_num", {"nan": 2.5, "posinf": 7, "neginf": -1.5}),
]  # fmt: skip


def spread(dtype, count=1003):
    """Ordinary numbers of all sizes, and corners."""
    ordinary = np.random.default_rng(8).standard_normal(count) * 10.0 ** np.random.default_rng(9).integers(-6, 3, count)
    return np.concatenate([ordinary.astype(dtype), awkward(dtype)])


@pytest.mark.parametrize("name", SINGLE)
def test_functions_of_floats(name):
    """To one unit of the exact value rounded to a float, signs of zeros too; doubles are NumPy's own, but for
    lgamma and digamma, see test_native_borrowed.py."""
    native, fallback = kernel(name)
    x = spread(np.float32)
    exact = fallback(x.astype(np.float64)).astype(np.float32)
    got = native(x)
    assert_within(got, exact, 1)
    there = exact == 0
    np.testing.assert_array_equal(np.signbit(got[there]), np.signbit(exact[there]))
    if name not in ("lgamma", "digamma"):
        assert_same(native(x.astype(np.float64)), fallback(x.astype(np.float64)))


def test_the_derivative_of_digamma():
    """trigamma of floats to one unit of SciPy's of doubles, left of a half by reflection to two; infinite at its poles."""
    native, fallback = kernel("trigamma")
    x = np.abs(spread(np.float32))
    x = x[(x > 0) & (x < np.inf)]
    exact = fallback(x.astype(np.float64))
    assert_within(native(x), exact.astype(np.float32), 1)
    left = -x[(x > 1e-3) & (x < 1e3) & (np.abs(x - np.round(x)) > 1e-3)]
    sine = np.sin(np.pi * (left - np.round(left)).astype(np.float64))
    mirrored = (np.pi / sine) ** 2 - fallback(1 - left.astype(np.float64))
    assert_within(native(left), mirrored.astype(np.float32), 2)
    np.testing.assert_array_equal(
        native(np.float32([0, -0.0, -1, -7, np.inf, -np.inf, np.nan])), [np.inf] * 4 + [0, np.nan, np.nan]
    )
    assert_same(kernel("polygamma")[0](x, n=1), native(x))


def test_the_derivative_of_no_order_is_digamma():
    """polygamma of order 0 has digamma's bits, of floats and of doubles, also into a place."""
    for x in (spread(np.float32), spread(np.float32).astype(np.float64)):
        expected, place = kernel("digamma")[0](x), np.empty_like(x)
        assert_same(kernel("polygamma")[0](x, n=0), expected)
        kernel("polygamma")[0](x, n=0, out=place)
        assert_same(place, expected)


@pytest.mark.parametrize("n", [2, 3, 7, 33])
def test_higher_derivatives_of_digamma(n):
    """polygamma of floats to one unit of SciPy's of doubles, of strided ones and into a place too; infinite at its poles."""
    native, fallback = kernel("polygamma")
    x = np.abs(spread(np.float32))
    x = x[(x > 0) & (x < np.inf)]
    exact = fallback(x.astype(np.float64), n=n).astype(np.float32)
    assert_within(native(x, n=n), exact, 1)
    place = np.empty_like(x)
    native(x, n=n, out=place)
    assert_within(place, exact, 1)
    assert_within(native(x[::2], n=n), exact[::2], 1)
    sign = 1 if n % 2 else -1
    terms = (np.float64([-0.5, -2.25, -63.75]) + np.arange(100_000)[::-1, None]) ** -(n + 1.0)
    assert_within(
        native(np.float32([-0.5, -2.25, -63.75]), n=n),
        (sign * float(math.factorial(n)) * terms.sum(0)).astype(np.float32),
        1,
    )
    np.testing.assert_array_equal(
        native(np.float32([0, -0.0, -1, -7, np.inf, np.nan]), n=n), [sign * np.inf] * 4 + [np.nan] * 2
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_signs_are_copied(dtype):
    """As NumPy copies them, of zeros and NaN too, and of a number beside an array."""
    native, fallback = kernel("copysign")
    values = awkward(np.dtype(dtype), 40)
    x, y = np.meshgrid(values, values)
    for one, other in ((x, y), (x.T, y), (x[0], y), (x, -0.0)):
        got, expected = native(one, other), fallback(one, other)
        np.testing.assert_array_equal(got, expected)
        np.testing.assert_array_equal(np.signbit(got), np.signbit(expected))


def test_entropy_terms_of_floats():
    """To 3 units of SciPy's of doubles: 0 at 0, minus infinity below and at infinity."""
    native, fallback = kernel("entr")
    x = np.abs(spread(np.float32))
    exact = fallback(x.astype(np.float64))
    with np.errstate(over="ignore"):
        expected = exact.astype(np.float32)
    near_one = np.abs(x - 1) < 0.1  # where the result is a difference
    assert_within(native(x)[~near_one], expected[~near_one], 3)
    np.testing.assert_array_equal(native(np.array([0, -0.0, -1, -np.inf, np.nan, np.inf], np.float32)),
                                  np.array([0, 0, -np.inf, -np.inf, np.nan, -np.inf], np.float32))  # fmt: skip


@pytest.mark.parametrize("name", ["sinc", "spherical_bessel_j0"])
def test_sines_over_angles(name):
    """To 0.51 units of the exact quotient rounded to a float, of angles near and far; doubles to 2 units of NumPy's."""
    native, fallback = kernel(name)
    random = np.random.default_rng(8)
    x = np.concatenate([random.uniform(-30, 30, 1200), random.uniform(-9e3, 9e3, 600), random.uniform(-1e7, 1e7, 300)])
    x = np.concatenate([x.astype(np.float32), spread(np.float32)])
    angle = x * np.float32(np.pi) if name == "sinc" else x
    finite = np.isfinite(angle)
    wide = np.where(angle == 0, 1, angle).astype(np.float64)
    exact = np.where(angle == 0, 1, np.sin(wide) / wide)[finite]
    got = native(x)
    assert np.abs((got[finite] - exact) / np.spacing(np.abs(exact).astype(np.float32))).max() < 0.51
    np.testing.assert_array_equal(got[~finite], fallback(x)[~finite])
    for values in layouts(spread(np.float64, 60)).values():
        assert_within(native(values), fallback(values), 2)
    for values in layouts(x[:60]).values():
        np.testing.assert_array_equal(native(values), native(values.copy()))


def test_angles_of_points():
    """Every quadrant, zeros and infinities of either sign, and a number beside an array."""
    native, fallback = kernel("atan2")
    y, x = [one.ravel() for one in np.meshgrid(awkward(np.float32, 40), awkward(np.float32, 41))]
    exact = fallback(y.astype(np.float64), x.astype(np.float64)).astype(np.float32)
    got = native(y, x)
    assert_within(got, exact, 1)
    np.testing.assert_array_equal(np.signbit(got[exact == 0]), np.signbit(exact[exact == 0]))
    assert_same(native(y[::3], x[::3]), native(y[::3].copy(), x[::3].copy()))
    one = np.ones_like(y)
    assert_same(native(y, 1.0), native(y, one))
    assert_same(native(-2, y), native(-2 * one, y))
    assert_same(native(y[::2], 0.5), native(y[::2], one[::2] / 2))
    y, x = np.random.default_rng(8).normal(size=(2, 20_000)).astype(np.float32)
    exact = np.arctan2(y.astype(np.float64), x)
    assert (np.abs(native(y, x) - exact) / np.spacing(np.abs(exact).astype(np.float32))).max() < 1.3


@pytest.mark.parametrize("name", ["sinh", "cosh"])
def test_hyperbolic_functions_up_to_the_largest_float(name):
    """To 1.3 units of the exact value, beyond what e^x can be; from there on infinite, and exact where little is left of them."""
    native, fallback = kernel(name)
    x = np.concatenate([np.linspace(-89.5, 89.5, 20_001), np.geomspace(1e-40, 3e38, 9000)]).astype(np.float32)
    exact = fallback(x.astype(np.float64))
    with np.errstate(over="ignore"):
        rounded = exact.astype(np.float32)
    got, finite = native(x), np.isfinite(rounded)
    np.testing.assert_array_equal(got[~finite], rounded[~finite])
    assert (np.abs(got - exact)[finite] / np.spacing(np.abs(rounded[finite]))).max() < 1.3
    np.testing.assert_array_equal(native(x[::3]), got[::3])


@pytest.mark.parametrize("name", ["tan", "atan"])
def test_tangents_of_far_angles(name, isa):
    """To 1.3 units of the exact value beside multiples of a right angle and where the C library goes on.

    With AVX-512 an angle's bits do not depend on those beside it, nor on where it lies.
    """
    native, fallback = kernel(name)
    turns = np.arange(-90_000, 90_000, 7) * (np.pi / 2)
    x = np.concatenate([turns, [48039.664, 1e5, -1e5, 3e38], np.geomspace(1e-38, 3e38, 5000)]).astype(np.float32)
    exact = fallback(x.astype(np.float64))
    got = native(x)
    assert (np.abs(got - exact) / np.spacing(np.abs(exact).astype(np.float32))).max() < 1.3
    if isa == "avx512":
        np.testing.assert_array_equal(native(x[1::9]), got[1::9])


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_angles_of_doubles(name):
    """To one unit of NumPy's beside multiples of a right angle and where the C library goes on; signs of zeros; any layout."""
    native, fallback = kernel(name)
    turns = np.concatenate([np.arange(-3000, 3000), np.arange(600_000, 640_000, 7)]) * (np.pi / 2)
    x = np.concatenate(
        [turns, np.random.default_rng(8).uniform(-40, 40, 3000), spread(np.float64), [1e6, -1e6, 1e22, 5e-324]]
    )
    with np.errstate(invalid="ignore"):
        expected = fallback(x)
    got = native(x)
    assert_within(got, expected, 1)
    np.testing.assert_array_equal(np.signbit(got[expected == 0]), np.signbit(expected[expected == 0]))
    for values in layouts(spread(np.float64, 60)).values():
        np.testing.assert_array_equal(native(values), native(values.copy()))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("name", ["sin", "cos"])
def test_angles_of_half_types(name, dtype):
    """Those of floats, rounded once."""
    native, _ = kernel(name)
    x = spread(np.float32).astype(getattr(tensorcore, dtype).numpy)
    with np.errstate(invalid="ignore"):
        expected = getattr(np, name)(x.astype(np.float32)).astype(x.dtype)
    for got, wanted in ((native(x), expected), (native(x[::3]), expected[::3])):
        assert got.dtype == x.dtype
        assert_same(got.astype(np.float32), wanted.astype(np.float32))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name, options", STEPS)
def test_functions_of_one(name, options, dtype):
    """As NumPy's, to the roundings of a sine; whatever lies elsewhere is taken where it lies."""
    native, fallback = kernel(name)
    for x in layouts(spread(np.dtype(dtype), 60)).values():
        got, expected = native(x, **options), fallback(x, **options)
        assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
        np.testing.assert_allclose(got, expected, rtol=8 * np.finfo(dtype).eps, atol=np.finfo(dtype).tiny)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_logit(dtype):
    """Infinite at 0 and 1, NaN beyond them unless eps keeps the number inside."""
    native, fallback = kernel("logit")
    x = np.linspace(-0.25, 1.25, 601).astype(dtype)
    for eps in (None, 0.125):
        np.testing.assert_allclose(
            native(x, eps=eps), fallback(x, eps=eps), rtol=1e-5, atol=16 * float(np.finfo(dtype).eps)
        )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["heaviside", "xlogy", "xlog1py"])
def test_functions_of_two(name, dtype):
    """Of numbers side by side, and of a row beside a column, which broadcast."""
    native, fallback = kernel(name)
    x, y = spread(np.dtype(dtype), 60), spread(np.dtype(dtype), 60)[::-1]
    for one, other in ((x, y.copy()), (x, y), (x[:, None], y[:7])):
        np.testing.assert_allclose(native(one, other), fallback(one, other), rtol=16 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"])
@pytest.mark.parametrize("name", ["gcd", "lcm"])
def test_divisors(name, dtype):
    """As NumPy's: never negative but for the least number, and 0 beside 0."""
    native, fallback = kernel(name)
    x = np.concatenate([awkward(dtype), np.arange(-9, 60).astype(dtype)])
    y = np.concatenate([np.arange(-9, 60).astype(dtype), awkward(dtype)])[: len(x)]
    x = x[: len(y)]
    if name == "lcm":  # products that fit
        x, y = x % 11, y % 11
    assert_same(native(x, y), fallback(x, y))
    assert_same(native(x[:, None], y[:5]), fallback(x[:, None], y[:5]))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"])
@pytest.mark.parametrize("name", ["bitwise_left_shift", "bitwise_right_shift"])
def test_shifts(name, dtype, isa):
    """As NumPy's, by no bit and by more bits than there are too; by a number beside an array as well."""
    native, fallback = kernel(name)
    x, y = awkward(dtype, 80), np.arange(80).astype(dtype)
    for one, by in ((x, y), (x[::3], y[::3]), (x[:, None], y[:5]), (x[:1], y), (x[:0], y[:0])):
        assert_same(native(one, by), fallback(one, by))
    assert_same(native(x, 3), fallback(x, 3))
    place = x.copy()
    assert native(place, y, out=place) is place
    assert_same(place, fallback(x, y))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["addcdiv", "addcmul"])
def test_functions_of_three(name, dtype):
    """To the roundings of a product and a sum, with a factor and broadcast."""
    native, fallback = kernel(name)
    random = np.random.default_rng(8)
    x, y, z = [(random.standard_normal((7, 67)) + 3).astype(dtype) for _ in range(3)]
    for given in ((x, y, z), (x, y[:1], z[:, :1]), (x.T, y.T, z.T)):
        for value in (1, -0.5):
            np.testing.assert_allclose(
                native(*given, value=value), fallback(*given, value=value), rtol=16 * np.finfo(dtype).eps, atol=1e-6
            )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_scaled_sums(dtype):
    """The bits of a product and a sum, for awkward numbers, in place, broadcast and in steps; on another array's memory not at all."""
    native, fallback = kernel("add_scaled")
    x, y = awkward(dtype, 1003), awkward(dtype, 1003)[::-1].copy()
    for alpha in (1, -0.3, 3):
        expected = fallback(x, y, alpha=alpha)
        assert_same(native(x, y, alpha=alpha), expected)
        assert_same(native(x[::2], y[::2], alpha=alpha), expected[::2].copy())
        assert_same(native(x[:, None], y[:5], alpha=alpha), fallback(x[:, None], y[:5], alpha=alpha))
        place = x.copy()
        assert native(place, y, alpha=alpha, out=place) is place
        assert_same(place, expected)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64", "bool"])
def test_formulas_of_integers(dtype):
    """Sums and products wrap around, factors are cut off at the point, and a number that the type has not is NumPy's to refuse."""
    x, y, z = awkward(dtype, 303), awkward(dtype, 303)[::-1].copy(), np.roll(awkward(dtype, 303), 5)
    cases = [("heaviside", (x, y), [{}])]
    if dtype != "bool":
        cases += [("threshold", (x,), [{"threshold": 5, "value": 120}, {"threshold": 0, "value": 1.9}]),
                  ("add_scaled", (x, y), [{"alpha": 1}, {"alpha": 100}, {"alpha": 2.9}]),
                  ("addcmul", (x, y, z), [{"value": 1}, {"value": 3}])]  # fmt: skip
    for name, given, options in cases:
        native, fallback = kernel(name)
        column = [one[:, None] if i == 0 else one[:7] for i, one in enumerate(given)]
        for case in options:
            for some in (given, [one[::3] for one in given], column, [one[:0] for one in given]):
                with np.errstate(over="ignore"):
                    assert_same(native(*some, **case), fallback(*some, **case))
    if dtype != "bool":
        for wrong in (2**70, float("nan")) + (() if dtype == "int64" else (2**60,)):
            with pytest.raises((OverflowError, ValueError)):
                kernel("add_scaled")[0](x, y, alpha=wrong)
    if dtype == "int64":
        assert kernel("add_scaled")[0](x[:1] * 0, y[:1] * 0 + 1, alpha=2**60 + 1).tolist() == [2**60 + 1]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_lerp(dtype):
    """From the nearer end, by one weight or one for each element: both ends come out exactly, infinities and NaN as NumPy's."""
    native, fallback = kernel("lerp")
    x = spread(np.dtype(dtype), 60)
    x[np.isfinite(x) & (np.abs(x) > 1e30)] = 1  # a product and a sum rounded at once overflow later
    y = x[::-1].copy()
    for weight in (0.0, 0.25, 0.5, -0.5, 1.0, 7.5, np.linspace(-1, 2, len(x)).astype(dtype)):
        got, expected = native(x, y, weight), fallback(x, y, weight)
        apart = 4 * np.finfo(dtype).eps * (np.abs(x) + np.abs(y)) * (1 + np.abs(weight)) + np.finfo(dtype).tiny
        finite = np.isfinite(expected)
        assert (np.abs(got - expected)[finite] <= apart[finite]).all()
        np.testing.assert_array_equal(got[~finite], expected[~finite])
        some = weight if isinstance(weight, float) else weight[::2]
        np.testing.assert_array_equal(native(x[::2], y[::2], some), got[::2])
    finite = np.isfinite(x) & np.isfinite(y) & np.isfinite(y - x)
    np.testing.assert_array_equal(native(x, y, 0.0)[finite], x[finite])
    np.testing.assert_array_equal(native(x, y, 1.0)[finite], y[finite])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_taken_apart(dtype):
    """Mantissas and exponents give the number again, denormals too; the exponent of what is not finite is 0."""
    native, fallback = kernel("frexp")
    for x in (spread(np.dtype(dtype)), spread(np.dtype(dtype))[::2]):
        for got, expected in zip(native(x), fallback(x), strict=True):
            assert_same(got, expected)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_norms_and_products_of_everything(dtype):
    """To the roundings of a sum, for any count."""
    norm, norm_fallback = kernel("norm")
    product, product_fallback = kernel("prod")
    for count in (0, 1, 15, 16, 67, 1000):
        x = (np.random.default_rng(count).standard_normal(count) * 0.25 + 1).astype(dtype)
        np.testing.assert_allclose(norm(x, p=2.0, dim=None), norm_fallback(x, p=2.0, dim=None), rtol=1e-5)
        np.testing.assert_allclose(product(x), product_fallback(x), rtol=1e-4)
    assert np.isnan(norm(spread(np.dtype(dtype)), p=2.0))


def test_calls_in_one_frame_say_what_is_wrong():
    """A quick call that the kernel refuses ends with the op's own error."""
    x = tensorcore.ones(3)
    with pytest.raises(RuntimeError, match="softshrink: lambda must be greater or equal to 0"):
        tensorcore.nn.functional.softshrink(x, -1.0)
    with pytest.raises(RuntimeError, match="size of tensor"):
        tensorcore.addcdiv(x, tensorcore.ones(2), x)
    with pytest.raises(RuntimeError):
        tensorcore.gcd(tensorcore.tensor([1, 2, 3]), tensorcore.tensor([1, 2]))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("dim", [(0,), (1,), (2,), (0, 1), (1, 2), (0, 2)])
@pytest.mark.parametrize("keepdim", [True, False])
def test_norms_along_dims(dtype, dim, keepdim):
    """To four units of the exact root of the sum of squares; an infinity or a NaN is the norm of its own line alone."""
    native, fallback = kernel("norm")
    x = np.random.default_rng(8).standard_normal((7, 30, 41)).astype(dtype)
    x[1, 2, 3], x[2, 3, 4] = np.inf, np.nan
    exact = fallback(x.astype(np.longdouble), p=2.0, dim=dim, keepdim=keepdim).astype(dtype)
    got = native(x, p=2.0, dim=dim, keepdim=keepdim)
    assert got.shape == exact.shape
    assert_within(got, exact, 4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_complex_numbers_of_two_arrays(dtype):
    """Bit for bit, of any count and layout; of two shapes they broadcast, and there may be none."""
    native, fallback = kernel("complex")
    for values in (*layouts(awkward(dtype)).values(), awkward(dtype, 9000)):
        other = values[::-1].copy() if values.ndim else values
        made = native(values, other)
        assert (made.dtype, made.shape) == (np.result_type(dtype, np.complex64), values.shape)
        np.testing.assert_array_equal(made.real, values)
        np.testing.assert_array_equal(made.imag, other)
    row, column = awkward(dtype, 30), awkward(dtype, 20)[:, None]
    for x, y in (
        (row, column),
        (column, row),
        (row[::2], column[::-1]),
        (row[:1].reshape(()), column),
        (row[:0], column),
    ):
        np.testing.assert_array_equal(native(x, y), fallback(x, y))
        for got, expected in zip(
            *[(made.real, made.imag) for made in (kernel("polar")[0](x, y), kernel("polar")[1](x, y))], strict=True
        ):
            np.testing.assert_allclose(got, expected, 4 * np.finfo(dtype).eps)
