"""Remainders and whole quotients of floats in C against NumPy's, to the bit, where a rounded quotient would be off by one."""

import numpy as np
import pytest

from .native import assert_same, kernel, needs_native

pytestmark = [needs_native, pytest.mark.usefixtures("isa")]

RANDOM = np.random.default_rng(8)


def operands(dtype, kind):
    """Dividends that lie beside whole multiples, of any size, or among denormals; divisors."""
    y = (RANDOM.standard_normal(3001) * 2.0 ** RANDOM.integers(-20, 20, 3001)).astype(dtype)
    if kind == "denormals":
        least = np.finfo(dtype).smallest_subnormal
        return RANDOM.integers(0, 10**6, 3001).astype(dtype) * least, RANDOM.integers(0, 1000, 3001).astype(
            dtype
        ) * least
    if kind == "any":
        most = np.finfo(dtype).maxexp // 2
        return (RANDOM.standard_normal(3001) * 2.0 ** RANDOM.integers(-most, most, 3001)).astype(dtype), y
    x = y * np.rint(RANDOM.standard_normal(3001) * 2.0 ** RANDOM.integers(0, 56, 3001)).astype(dtype)
    return np.nextafter(x, RANDOM.choice(np.array([-np.inf, np.inf], dtype), 3001)), y


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["beside multiples", "any", "denormals"])
@pytest.mark.parametrize("name", ["fmod", "remainder", "floor_divide"])
def test_division(name, kind, dtype):
    """What is left, and how often the divisor fits, in rows, with one divisor and in steps."""
    native, fallback = kernel(name)
    x, y = operands(dtype, kind)
    assert_same(native(x, y), fallback(x, y))
    assert_same(native(x, y[7:8]), fallback(x, y[7:8]))
    assert_same(native(x[::3], y[::-3]), fallback(x[::3], y[::-3]))


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8"])
@pytest.mark.parametrize("name", ["floor_divide", "trunc_divide", "remainder", "fmod"])
def test_division_of_integers(name, dtype):
    """Of numbers of all sizes beside small and large divisors, the least of them by -1 too: in rows, crosswise, in steps, by a number."""
    native, fallback = kernel(name)
    limits = np.iinfo(dtype)
    corners = np.array([limits.min, limits.min + 1, limits.max, limits.max - 1, 1, 2, 3, 0], dtype)
    if limits.min:
        corners = np.concatenate([corners, -corners[4:]])
    most = min(limits.max, 2**52)
    near = RANDOM.integers(-most if limits.min else 0, most, 999, dtype)
    any_size = RANDOM.integers(limits.min, limits.max, 999, dtype, endpoint=True)
    few = RANDOM.integers(-9 if limits.min else 0, 9, 999, dtype)
    for x in (corners, near, any_size):
        for y in (corners, near, any_size, few):
            y = y[y != 0]
            with np.errstate(over="ignore"):
                if name == "trunc_divide":  # in integers that hold every answer
                    sign = np.sign(x[:, None].astype(object)) * np.sign(y[:31].astype(object))
                    exact = (
                        abs(x[:, None].astype(object)) // abs(y[:31].astype(object)) * sign + 2**70
                    ) % 2**limits.bits
                    expected = exact.astype(np.uint64).astype(dtype)
                else:
                    expected = fallback(x[:, None], y[:31])
                assert_same(native(x[:, None], y[:31]), expected)
                size = min(len(x), len(y))
                one, other = x[:size], y[:size]
                row = np.array([native(one[i : i + 1], other[i : i + 1])[0] for i in range(size)], dtype)
                assert_same(native(one, other), row)
                assert_same(native(one[::2], other[::-2]), native(one[::2].copy(), other[::-2].copy()))
                place = one.copy()
                assert native(place, other, out=place) is place
                assert_same(place, row)
        assert_same(native(x, 3), native(x, np.full_like(x, 3)))
        assert_same(native(100, y), native(np.full_like(y, 100), y))


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8"])
def test_powers_of_integers(dtype):
    """They wrap around as products do, crosswise, in steps and beside numbers; of negative exponents the quotient is cut off."""
    native, fallback = kernel("pow")
    limits = np.iinfo(dtype)
    signs = -1 if limits.min else 1
    x = np.array([limits.min, limits.max, 0, 1, 2, 3, 7, 10, signs, signs * 2, signs * 5], dtype)
    y = np.array([0, 1, 2, 3, 4, 5, 13, 62, 63, 64, limits.max, signs, signs * 2, limits.min], dtype)
    assert_same(native(x[:, None], y), fallback(x[:, None], y))
    assert_same(native(x[:, None], y[::-2]), fallback(x[:, None], y[::-2]))
    assert_same(native(x[:7], y[:7]), fallback(x[:7], y[:7]))
    place = x[:7].copy()
    assert native(place, y[:7], out=place) is place
    assert_same(place, fallback(x[:7], y[:7]))
    for number in (0, 1, 2, 3, 5, 64, 101):
        assert_same(native(x, number), fallback(x, number))
        assert_same(native(number, y), fallback(np.full_like(y, number), y))
    with pytest.raises(RuntimeError, match="negative integer powers"):
        native(x, -1)


@pytest.mark.parametrize("name", ["floor_divide", "trunc_divide", "remainder", "fmod"])
def test_a_divisor_of_zero_is_refused(name):
    """Wherever it stands, a number too, and before anything is written."""
    native, _ = kernel(name)
    x = np.arange(9)
    for divisor in (0, np.array(0), np.arange(9)[::-1], np.arange(9).reshape(3, 3).T[:, :1]):
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            native(x.copy(), divisor)
