"""Half types in formulas and in kernels that round on their way, beside NumPy's kernels: all values, corners, each instruction set."""

import itertools

import ml_dtypes
import numpy as np
import pytest

from .native import awkward, kernel, layouts, needs_native

pytestmark = [needs_native, pytest.mark.usefixtures("isa")]

HALVES = [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)]
DIGITS = {HALVES[0]: 11, HALVES[1]: 8}
EXACT = [
    ("hardshrink", {}), ("hardshrink", {"lambd": 0.3}), ("threshold", {"threshold": 0.3, "value": -7.7}), ("frac", {}),
    ("nan_to_num", {}), ("nan_to_num", {"nan": 0.3}), ("nan_to_num", {"nan": 2.5, "posinf": 7e3, "neginf": -1.5}),
]  # fmt: skip
ROUNDED = [
    ("hardswish", {}), ("hardsigmoid", {}), ("softshrink", {"lambd": 0.3}), ("logit", {}), ("logit", {"eps": 0.05}), ("sinc", {}),
    ("lgamma", {}), ("digamma", {}), ("entr", {}), ("elu", {"alpha": 1.3}), ("celu", {"alpha": 0.7}), ("softplus", {}), ("mish", {}),
]  # fmt: skip
PAIRS = [
    ("copysign", {}), ("fmax", {}), ("fmin", {}), ("heaviside", {}), ("xlogy", {}), ("xlog1py", {}), ("atan2", {}),
    ("hardswish_backward", {}), ("tanh_backward", {}), ("softplus_backward", {}),
]  # fmt: skip


def every(dtype):
    """All values of a half type."""
    return np.arange(1 << 16, dtype=np.uint16).view(dtype)


def assert_near(got, expected, units=1):
    """At most so many units of the half type's last place apart; NaN and infinities match."""
    expected = np.asarray(expected)
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    one, other = got.astype(np.float64), expected.astype(np.float64)
    np.testing.assert_array_equal(np.isnan(one), np.isnan(other))
    there = np.isfinite(one) & np.isfinite(other)
    np.testing.assert_array_equal(one[~there], other[~there])
    least = 2.0**-24 if got.dtype == np.float16 else 2.0**-133
    unit = np.maximum(2.0 ** (np.frexp(other[there])[1] - DIGITS[got.dtype]), least)
    assert (np.abs(one[there] - other[there]) / unit).max(initial=0) <= units


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("name, options", EXACT + ROUNDED)
def test_formulas_of_all_halves(name, options, dtype):
    """Of every value, in any layout and over an array: of ordinary numbers to a unit of what NumPy's kernel rounds once."""
    native, fallback = kernel(name)
    x = every(dtype)
    if (name, options) in ROUNDED:
        x = x[~(np.abs(x.astype(np.float64)) > 1e4)]  # past them some of NumPy's leave single precision
    units = 0 if (name, options) in EXACT else 1
    assert_near(native(x, **options), fallback(x, **options), units)
    for one in layouts(x[:: len(x) // 1000]).values():
        assert_near(native(one, **options), fallback(one, **options), units)
    if name in ("frac", "nan_to_num", "sinc", "logit"):
        place = np.empty_like(x)
        assert native(x, **options, out=place) is place
        assert_near(place, native(x, **options), 0)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("name, options", PAIRS)
def test_formulas_of_two_halves(name, options, dtype):
    """Each awkward value beside each, dense, turned over, and a row or a number beside all."""
    native, fallback = kernel(name)
    x, y = np.meshgrid(awkward(dtype, 40), awkward(dtype, 40))
    for one, other in (
        (x, y),
        (x.T, y),
        (x, y[0]),
        (x, y[:, :1]),
        (x, np.full_like(x, y[20, 0])),
        (x[::2, ::3], y[::2, ::3]),
    ):
        if name.endswith("backward"):
            one, other = np.broadcast_arrays(one, other)
        assert_near(native(one, other, **options), fallback(one, other, **options))


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("name, options", [("addcmul", {"value": 1.3}), ("addcdiv", {"value": 0.7}), ("lerp", {})])
def test_formulas_of_three_halves(name, options, dtype):
    """Sums with a product or a quotient, and what lies between two numbers, are rounded once; a weight may be a number."""
    native, fallback = kernel(name)
    x, y, z = np.random.default_rng(8).uniform(-2, 2, (3, 61, 37)).astype(dtype)
    others = [
        (x, y, z),
        (x.T, y.T, z.T),
        (x, y[:1], z[:, :1]),
        (x[:, ::2], y[:, ::2], z[:, ::2]),
        (x[:0], y[:0], z[:0]),
    ]
    others += [(x, y, 0.3), (x, y, 0.8)] if name == "lerp" else []
    for given in others:
        wide = [one.astype(np.float32) if isinstance(one, np.ndarray) else one for one in given]
        assert_near(native(*given, **options), fallback(*wide, **options).astype(dtype))
        assert_near(native(*given, **options), fallback(*given, **options))


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_whole_powers_of_two(dtype):
    """Every value times powers of two is rounded once, into infinities and denormals too, whatever type the exponents have."""
    native, fallback = kernel("ldexp")
    x = every(dtype)
    for power in (-300, -130, -20, -1, 0, 3, 15, 127, 260, 10**9):
        n = np.array(power)
        assert_near(native(x, n), fallback(x, n), 0)
    n = np.random.default_rng(8).integers(-100, 100, len(x))
    for one in (n, n.astype(np.int8), n.astype(np.int32), np.abs(n).astype(np.uint8)):
        assert_near(native(x, one), fallback(x, one), 0)
    place = np.empty_like(x)
    assert native(x, n, out=place) is place
    assert_near(place, fallback(x, n), 0)
    turned = x.reshape(256, 256).T
    assert_near(native(turned, n[:256]), fallback(turned, n[:256]), 0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_whole_powers_of_two_beside_floats(dtype):
    """Denormals, infinities and the largest numbers times powers of two: rounded once as by the C library."""
    native, fallback = kernel("ldexp")
    x = awkward(np.dtype(dtype), 200)
    for power in (-2000, -1070, -300, -150, -149, -1, 0, 1, 24, 127, 150, 1000, 2**40):
        for n in (np.array(power), np.full((3, 200), power)):
            np.testing.assert_array_equal(native(x, n), fallback(x, n))
    place = np.empty_like(x)
    assert native(x, np.arange(200) - 100, out=place) is place
    np.testing.assert_array_equal(place, fallback(x, np.arange(200) - 100))


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_equality(dtype):
    """Two zeros are equal, no NaN is, and one other element anywhere is found."""
    native, fallback = kernel("equal")
    x = every(dtype)
    x = x[x == x]
    assert native(x, x.copy())
    assert native(np.zeros(5, dtype), -np.zeros(5, dtype))
    for at in (0, 1023, 1024, len(x) - 1):
        for value in (np.nan, 1.5, np.inf):
            y = x.copy()
            y[at] = value
            assert native(x, y) is fallback(x, y)
            assert not native(y, y.copy()) or value == value


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("shape, dim", [((3,), 0), ((7, 3), 1), ((3, 5), 0), ((2, 3, 4), 1)])
def test_cross_products_round_each_product(shape, dim, dtype):
    """They have the bits of NumPy's, whose products are rounded before their difference; a repeated side and turned ones too."""
    native, fallback = kernel("cross")
    x, y = np.random.default_rng(8).uniform(-3, 3, (2, *shape)).astype(dtype)
    np.testing.assert_array_equal(native(x, y, dim=dim), fallback(x, y, dim=dim))
    np.testing.assert_array_equal(native(np.asfortranarray(x), y, dim=dim), fallback(x, y, dim=dim))
    if len(shape) > 1:
        one = y.take([0], 1 - dim if len(shape) == 2 else 0)
        np.testing.assert_array_equal(native(x, one, dim=dim), fallback(x, one, dim=dim))


WAYS = list(itertools.product(("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection"), (False, True)))


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize(
    "sizes, counts", [((5, 7), (9, 21)), ((1, 4), (3, 2)), ((1, 1), (1, 1)), ((4, 5, 3), (3, 7, 10))]
)
def test_places_in_images_are_rounded_step_by_step(sizes, counts, dtype):
    """Values are those of NumPy's kernel to a unit, the nearest elements exactly, and gradients to some of their sums'."""
    random = np.random.default_rng(8)
    x = random.standard_normal((2, 3, *sizes)).astype(dtype)
    grid = random.uniform(-1.7, 1.7, (2, *counts, len(sizes))).astype(dtype)
    grid.reshape(-1)[0] = np.nan
    g = random.standard_normal((2, 3, *counts)).astype(dtype)
    for mode, padding, corners in WAYS:
        if mode == "bicubic" and len(sizes) == 3:
            continue
        way = dict(mode=mode, padding_mode=padding, align_corners=corners)
        native, fallback = kernel("grid_sample")
        got, expected = native(x, grid, **way), fallback(x, grid, **way)
        atol = 0 if mode == "nearest" else 2.0 ** -DIGITS[dtype] / 64
        rtol = 0 if mode == "nearest" else 2.0 ** (1 - DIGITS[dtype])
        assert got.dtype == expected.dtype == dtype
        np.testing.assert_allclose(got.astype(np.float64), expected.astype(np.float64), rtol, atol)
        native, fallback = kernel("grid_sample_backward")
        found, wanted = (one(g, x, grid, needs=(True, True), **way) for one in (native, fallback))
        for mine, its in zip(found, wanted, strict=True):
            assert mine.dtype == its.dtype == dtype
            np.testing.assert_allclose(mine.astype(np.float64), its.astype(np.float64), 2 * rtol or 2e-2, 2e-3)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("sizes, counts, size", [((9, 11), (4, 7), (3, 2)), ((5, 40, 6), (3, 30, 1), (2, 3, 4))])
def test_windows_at_drawn_places(sizes, counts, size, dtype):
    """Maxima and where they are have the bits of NumPy's, whose windows begin where numbers of that type say."""
    native, fallback = kernel("fractional_max")
    random = np.random.default_rng(8)
    x, drawn = random.standard_normal((2, 3, *sizes)).astype(dtype), random.random((2, 3, len(sizes))).astype(dtype)
    for got, expected in zip(*[one(x, drawn, counts=counts, kernel=size) for one in (native, fallback)], strict=True):
        assert got.dtype == expected.dtype
        np.testing.assert_array_equal(got, expected)
