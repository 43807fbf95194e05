"""Elementwise calls of arrays of one shape in a row, which need no plan of a loop."""

import numpy as np
import pytest

from .native import assert_same, kernel, needs_native

pytestmark = [needs_native, pytest.mark.usefixtures("isa")]


@pytest.mark.parametrize("count", [7, 9_001, 70_001])
def test_rows_of_one_shape_need_no_plan(count):
    """Arrays without dims stand for numbers, also beside a place; a place that shares some memory with an operand is NumPy's."""
    add, where, fill = kernel("add")[0], kernel("where")[0], kernel("masked_fill")[0]
    x, one, mask = np.linspace(-2, 3, count, dtype=np.float32), np.array(2.5, np.float32), np.arange(count) % 3 == 0
    sums = x + np.float32(2.5)
    assert_same(add(x, one), sums)
    assert_same(add(one, x), sums)
    assert_same(add(one, one), np.array(5, np.float32))
    assert_same(where(mask, one, x), np.where(mask, np.float32(2.5), x))
    place = x.copy()
    assert add(place, one, out=place) is place
    assert_same(place, sums)
    assert fill(place, mask, one, out=place) is place
    assert_same(place, np.where(mask, np.float32(2.5), sums))
    shared = np.concatenate([x, x[:3]])
    add(shared[3:], shared[:-3], out=shared[3:])
    assert_same(shared[3:], np.concatenate([x, x[:3]])[3:] + np.concatenate([x, x[:3]])[:-3])
    start = x.copy()
    add(start, start[:1].reshape(()), out=start)
    assert_same(start, x + x[0])
