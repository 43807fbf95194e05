"""Complex numbers in C beside NumPy's: as pairs of floats."""

import numpy as np
import pytest

import tensorcore

from .native import assert_within, awkward, kernel, layouts, needs_native

pytestmark = [needs_native, pytest.mark.usefixtures("isa")]

DTYPES = ["complex64", "complex128"]
SHAPES = [(1,), (3,), (4,), (19,), (40000,), (7, 550), (3, 1, 5), (2, 70, 6), (5, 600), (40000, 2), ()]


def pairs(dtype, *shape):
    """Numbers around 0."""
    parts = np.random.default_rng(8).standard_normal((*shape, 2))
    return (parts[..., 0] + 1j * parts[..., 1]).astype(dtype)


def wild(dtype, count=67):
    """Parts with zeros, infinities, NaN, denormals and extremes in all pairs."""
    parts = awkward("float32" if dtype == "complex64" else "float64", count)
    made = np.empty(count, dtype)
    made.real, made.imag = parts, np.roll(parts, 5)
    return made


@pytest.mark.parametrize("dtype", DTYPES)
def test_negation(dtype):
    """Both parts get the other sign, zeros and NaN among them, also where the result has a place."""
    native, fallback = kernel("neg")
    for x in layouts(wild(dtype)).values():
        got, expected = native(x), np.asarray(fallback(x))
        assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
        assert got.tobytes() == expected.tobytes()
        place = np.empty_like(expected)
        assert native(x, out=place) is place
        assert place.tobytes() == expected.tobytes()
    x = wild(dtype)
    expected = np.concatenate([x[:1], -x[:-1]])
    assert native(x, out=x) is x
    x = -x
    native(x[:-1], out=x[1:])  # memory that overlaps
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_conjugates(dtype):
    """The imaginary part gets the other sign, zeros and NaN among them, in every layout, in memory order, and in place."""
    native, fallback = kernel("conj_physical")
    for x in layouts(wild(dtype)).values():
        got, expected = native(x), np.asarray(fallback(x))
        assert (got.dtype, got.shape, got.tobytes()) == (expected.dtype, expected.shape, expected.tobytes())
    x = wild(dtype)
    expected = fallback(x)
    assert native(x, out=x) is x
    assert x.tobytes() == expected.tobytes()


@pytest.mark.parametrize("by", ["eq", "ne"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_comparisons_over_the_first_operand(dtype, by):
    """1 or 0 as a number of the operands' type, of NaN and zeros of both signs too; beside numbers, rows, and arrays that lie apart."""
    native, fallback = kernel("compare_over")
    for x in layouts(wild(dtype)).values():
        for other in (x[::-1].copy() if x.ndim else x.copy(), 0, 1.5, 1 - 2j, np.where(x == x, x, 0)):
            got, expected = x.copy(), x.copy()
            assert native(got, other, by=by) is got
            fallback(expected, other, by=by)
            np.testing.assert_array_equal(got, expected)
    wide = np.zeros((4, 6), dtype)
    native(wide[:, ::2], np.array([0, 1, 0], dtype), by=by)
    assert wide.real.tolist() == [[float(by == "eq"), 0, float(by == "ne"), 0, float(by == "eq"), 0]] * 4


@pytest.mark.parametrize("name", ["add", "sub", "mul"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_arithmetic_of_two(dtype, name):
    """Sums have NumPy's bits, products a rounding of each factor's parts; also over either operand, and where memory overlaps."""
    native, fallback = kernel(name)
    operands = [
        (wild(dtype), wild(dtype)[::-1].copy()), (pairs(dtype, 550, 91), pairs(dtype, 91, 550).reshape(550, 91)),
        (pairs(dtype, 0, 1), pairs(dtype, 0, 1)), (pairs(dtype, 7, 3).T, pairs(dtype, 3, 7)), (pairs(dtype, 4), pairs(dtype, 5, 4)),
    ]  # fmt: skip
    for x, y in operands:
        with np.errstate(all="ignore"):
            expected, got = np.asarray(fallback(x, y)), native(x, y)
        assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
        if name == "mul":
            room = 2 * np.finfo(dtype).eps * (np.abs(expected.real) + np.abs(expected.imag))
            close = np.abs(got - expected) <= np.where(np.isfinite(room), room, 0)
            same = (got == expected) | (np.isnan(got) & np.isnan(expected))
            assert (close | same).all()
        else:
            assert got.tobytes() == np.ascontiguousarray(expected).tobytes()
        if x.shape == expected.shape:
            for over in (0, 1)[: 1 + (y.shape == expected.shape)]:
                both = [x.copy(), y.copy()]
                assert native(*both, out=both[over]) is both[over]
                np.testing.assert_array_equal(both[over], native(x.copy(), y.copy()))
    x, y = pairs(dtype, 101)[1:], pairs(dtype, 100)
    expected = native(x, y)
    for few in range(1, 9):  # the bits of a number do not depend on what stands beside it
        np.testing.assert_array_equal(native(x[:few], y[:few]), expected[:few])
    expected = np.asarray(fallback(x[:-1].copy(), x[1:].copy()))
    native(x[:-1], x[1:], out=x[1:])
    # NumPy's own products round by where memory lies.
    room = 4 * np.finfo(dtype).eps * np.abs(expected) if name == "mul" else 0
    assert (np.abs(x[1:] - expected) <= room).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_square_roots(dtype):
    """Parts are C's to 2 ulp, zeros with their signs, infinities, NaN and denormals among them, also in place."""
    native, fallback = kernel("sqrt")
    parts = awkward("float32" if dtype == "complex64" else "float64", 67)
    corners = np.empty((67, 67), dtype)
    corners.real, corners.imag = parts[:, None], parts
    for x in (corners, corners[:1, :3], pairs(dtype, 3001), pairs(dtype, 300)[::3], corners.T):
        got, expected = native(x), fallback(x)
        assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
        for mine, its in ((got.real, expected.real), (got.imag, expected.imag)):
            assert_within(np.ascontiguousarray(mine), np.ascontiguousarray(its), 2)
            np.testing.assert_array_equal(np.signbit(mine)[mine == mine], np.signbit(its)[mine == mine])
    place = pairs(dtype, 700)
    expected = native(place)
    assert native(place, out=place) is place
    np.testing.assert_array_equal(place, expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["sum", "mean", "prod"])
def test_reductions(name, dtype):
    """Over all dims, one or some, as NumPy's in complex128 to roundings of the sum of sizes, 4 of them of floats and 40 of doubles.

    For products, of numbers of size 1, so many for each factor.
    """
    native = kernel(name)[0]
    epsilon = 4 * np.finfo("f4").eps if dtype == "complex64" else 40 * np.finfo("f8").eps
    for shape in SHAPES:
        x = pairs(dtype, *shape)
        if name == "prod":
            x = np.exp(0.1j * x.real).astype(dtype)
        for view in (x, x[..., ::-1] if shape else x, x.T):
            for dim in (None, *[(i,) for i in range(view.ndim)], tuple(range(view.ndim)), (0, 2)):
                if dim and max(dim) >= view.ndim:
                    continue
                for keepdim in (False, True):
                    got = native(view, dim=dim, keepdim=keepdim)
                    wide = view.astype(np.complex128)
                    expected = np.asarray(getattr(np, name)(wide, axis=dim, keepdims=keepdim))
                    assert (got.dtype, got.shape) == (np.dtype(dtype), expected.shape)
                    if name == "prod":
                        scale: object = view.size // max(expected.size, 1)
                    else:
                        scale = np.maximum(getattr(np, name)(abs(wide), axis=dim, keepdims=keepdim), 1e-3)
                    assert (abs(got - expected) <= epsilon * scale).all(), (shape, dim)


@pytest.mark.parametrize("dtype", DTYPES)
def test_infinities_and_nan(dtype):
    """Infinities and NaN stay in their part of a sum; opposite infinities make NaN."""
    native = kernel("sum")[0]
    for count in (5, 100, 40000):
        x = np.ones(count, dtype)
        x.real[3], x.imag[2] = np.inf, np.nan
        got = native(x, dim=None)
        assert np.isposinf(got.real)
        assert np.isnan(got.imag)
        x.real[4] = -np.inf
        assert np.isnan(native(x, dim=None).real)


def test_sums_beyond_the_dtype():
    """A sum of floats that is too large is infinite, and so is its mean, as of real numbers."""
    x = np.full((3, 4), np.finfo("f4").max, np.complex64)
    assert np.isinf(kernel("sum")[0](x, dim=(0,)).real).all()
    assert np.isinf(kernel("mean")[0](x, dim=(1,)).real).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_empty_sums(dtype):
    """What has no elements is NumPy's turn: zeros, ones, and means that are NaN."""
    x = np.empty((3, 0), dtype)
    assert (kernel("sum")[0](x, dim=(1,)) == 0).all()
    assert (kernel("prod")[0](x, dim=(1,)) == 1).all()
    assert np.isnan(kernel("mean")[0](x, dim=(1,))).all()


@pytest.mark.parametrize("name", ["nonzero", "nonzero_by_dim"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_places_that_are_not_zero(name, dtype):
    """A number is zero where both parts are, of either sign; NaN is none, in any layout."""
    x = wild(dtype, 400)
    x[20:60] = 0
    x[30], x[40], x[50] = complex(-0.0, -0.0), 1j, complex(0.0, np.nan)
    for view in layouts(x).values():
        if view.ndim:
            expected = np.array(view.nonzero()).T
            got = kernel(name)[0](view)
            np.testing.assert_array_equal(got if name == "nonzero" else np.stack(got).T, expected)


@pytest.mark.parametrize("name", ["sum", "mean", "neg"])
def test_threads(name):
    """What several threads share has the same bits."""
    for shape in ((90000,), (300, 300), (3, 30000)):
        x = pairs("complex64", *shape)
        for options in ({},) if name == "neg" else ({"dim": None}, {"dim": (0,)}, {"dim": (len(shape) - 1,)}):
            made = []
            for count in (1, 3):
                tensorcore.set_num_threads(count)
                made.append(kernel(name)[0](x, **options).tobytes())
            assert made[0] == made[1]


def test_means_are_pytorchs(torch):
    """A mean is divided by a complex number: beside an infinite part there is none but NaN."""
    for last in (complex(3, 4), complex(np.inf, 4), complex(0, -np.inf), complex(np.inf, -np.inf), complex(np.nan, 1)):
        values = [complex(1, 2), last]
        expected = torch.tensor(values, dtype=torch.complex64).mean().numpy()
        np.testing.assert_array_equal(tensorcore.tensor(values, dtype=tensorcore.complex64).mean().numpy(), expected)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sizes_and_angles(dtype, isa):
    """Products with cosines and sines, NumPy's of floats and those of the kernels of doubles, in pieces and tails, layouts and shapes."""
    native, fallback = kernel("polar")
    with np.errstate(all="ignore"):
        values = awkward(dtype, 1100)
        for x, y in ((values, values[::-1].copy()), (values[:9].reshape(3, 3), values[9:18].reshape(3, 3)), (values[:0], values[:0]),
                     (values[::3], values[1::3][: len(values[::3])]), (values[:6].reshape(2, 3), values[:3])):  # fmt: skip
            y = y[: len(x)] if x.ndim == 1 else y
            x = x[: len(y)] if x.ndim == 1 else x
            got, expected = native(x, y), fallback(x, y)
            assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
            if dtype == "float64":
                whole, turn = np.broadcast_arrays(x, y)
                expected.real, expected.imag = whole * kernel("cos")[0](turn), whole * kernel("sin")[0](turn)
            np.testing.assert_array_equal(got, expected)
