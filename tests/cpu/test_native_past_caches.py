"""Elementwise results too large for the caches, which are stored past them, and those that threads share from both ends in turn."""

import numpy as np
import pytest

import tensorcore as tc

from .native import awkward, kernel, needs_native

pytestmark = [needs_native, pytest.mark.usefixtures("isa")]

FLOATS = ["float32", "float64"]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["add", "maximum", "exp"])
def test_results_too_large_for_the_caches(name, dtype):
    """What is stored past the caches is what smaller results hold, wherever it begins and with numbers beside arrays."""
    native = kernel(name)[0]
    count = (33 << 20) // np.dtype(dtype).itemsize + 5
    x = np.resize(awkward(dtype, 1009), count)
    rest = {"exp": ()}.get(name, (x[::-1].copy(),))
    made = native(x, *rest)
    place = np.empty(count + 3, dtype)[3:]
    np.testing.assert_array_equal(native(x, *rest, out=place), made)
    for begin in (0, 517, count - 700):
        part = slice(begin, begin + 700)
        np.testing.assert_array_equal(made[part], native(x[part], *(one[part] for one in rest)))
    if rest:
        np.testing.assert_array_equal(native(x, 2.5)[-700:], native(x[-700:], 2.5))
        native(x, *rest, out=x)
        np.testing.assert_array_equal(x, made)


@pytest.mark.parametrize("step", [2, -3])
def test_functions_of_steps_too_large_for_the_caches(step):
    """Operands in steps are copied a piece at a time, forwards and backwards: each element is that of a dense operand."""
    native = kernel("exp")[0]
    count = (33 << 20) // 4 + 5
    x = np.resize(awkward("float32", 1009), count * abs(step))[::step][:count]
    made = native(x)
    place = np.empty(count + 3, np.float32)[3:]
    np.testing.assert_array_equal(native(x, out=place), made)
    spread = np.zeros(2 * count, np.float32)[::2]
    np.testing.assert_array_equal(native(x, out=spread), made)
    for begin in (0, 517, count - 700):
        part = slice(begin, begin + 700)
        np.testing.assert_array_equal(made[part], native(x[part].copy()))
    rows = np.resize(x[:700], (9000, 1001))[:, ::-1][:, :1000]
    np.testing.assert_array_equal(native(rows)[::1000], native(rows[::1000].copy()))


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("count", [2_400_001, 2_500_000, 3_000_017])
def test_loops_that_go_back_miss_nothing(count, threads):
    """Sums, copies and joins of more than the second caches hold, whose every second loop begins at the end, are whole each time."""
    tc.set_num_threads(threads)
    x = np.arange(count, dtype=np.float32)
    a, b = tc.from_numpy(x), tc.from_numpy(x[::-1].copy())
    for _ in range(3):
        np.testing.assert_array_equal((a + b).numpy(), np.full(count, count - 1, np.float32))
        np.testing.assert_array_equal(a.clone().numpy(), x)
        np.testing.assert_array_equal(tc.cat([a, b]).numpy(), np.concatenate([x, x[::-1]]))
        np.testing.assert_array_equal(a.to(tc.float64).numpy(), x)
