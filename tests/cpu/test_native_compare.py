"""Comparisons that write over their first operand, in C beside NumPy's: values, layouts, and what is left to NumPy."""

import ml_dtypes
import numpy as np
import pytest

from .native import assert_same, awkward, kernel, layouts, needs_native

pytestmark = needs_native

DTYPES = ["float32", "float64", "float16", ml_dtypes.bfloat16, "int8", "int16", "int32", "int64", "uint8", "bool"]
OPS = ["eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor"]


def both(x, other, by):
    """What each of the two kernels leaves in a copy of ``x``, with gaps between its elements where ``x`` is not in a row."""
    made = []
    for one in kernel("compare_over"):
        apart = np.zeros([2 * size for size in x.shape], x.dtype)[(slice(None, None, 2),) * x.ndim]
        place = x.copy() if x.flags.c_contiguous else apart
        place[...] = x
        with np.errstate(all="ignore"):
            assert one(place, other, by=by) is place
        made.append(place)
    return made


@pytest.mark.parametrize("by", OPS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_of_every_type_and_layout(dtype, by, isa):
    """1 where it holds and 0 elsewhere, of the first operand's type, beside an array of its shape, a row, and itself."""
    values = awkward(dtype)
    for x, y in zip(layouts(values).values(), layouts(np.roll(values, 5)).values(), strict=True):
        others = [y, y.copy(), y[:1] if y.ndim else y]
        for other in others:
            got, expected = both(x, other, by)
            assert_same(got, expected)
            assert set(np.unique(got.astype(np.float64))) <= {0.0, 1.0}


@pytest.mark.parametrize("by", ["lt", "logical_or"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "uint8"])
def test_numbers_beside_arrays(dtype, by, isa):
    """A number that the type holds is compared as one of it, zero and NaN too."""
    x = awkward(dtype)
    for number in (0, 1, 3, *((2.5, -0.0, np.nan, np.inf) if np.dtype(dtype).kind == "f" else ())):
        got, expected = both(x, number, by)
        assert_same(got, expected)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64"])
def test_many_elements_on_threads(dtype, isa):
    """Pieces that threads take, and tails behind them."""
    random = np.random.default_rng(8)
    x, y = [random.integers(-3, 3, 150_001).astype(dtype) for _ in range(2)]
    got, expected = both(x, y, "le")
    assert_same(got, expected)


def test_an_operand_of_the_same_memory():
    """The array itself, element by element; a part of it in another order is read as it was before, as NumPy does."""
    native, _ = kernel("compare_over")
    x = np.arange(6, dtype=np.float32)
    assert native(x, x, by="ge").tolist() == [1] * 6
    y = np.arange(6, dtype=np.float32)
    assert native(y, y[::-1], by="lt").tolist() == [1, 1, 1, 0, 0, 0]


def test_what_is_wrong_changes_nothing():
    """An operand too large for the first one, and an array that may not be written."""
    native, _ = kernel("compare_over")
    x = np.arange(3, dtype=np.float32)
    with pytest.raises(ValueError, match="broadcast"):
        native(x, np.ones((2, 3), np.float32), by="lt")
    x.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        native(x, np.ones(3, np.float32), by="lt")
    assert x.tolist() == [0, 1, 2]
