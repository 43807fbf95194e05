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
