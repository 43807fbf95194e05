"""One value for every element, in C as in NumPy."""

import math

import numpy as np
import pytest

from tensorcore.plugin import dtypes

from .native import assert_same, awkward, kernel, needs_native

pytestmark = needs_native

REAL = [one for one in dtypes.ALL if not one.is_complex]
NUMBERS = [0, 1, -3, 2.75, -0.0, math.inf, math.nan, True, 10**30, 300]


def assert_alike(ours, reference, *arguments, **options):
    """Both give the same bits, or raise the same error."""
    try:
        expected = reference(*arguments, **options)
    except Exception as error:
        with pytest.raises(type(error)):
            ours(*arguments, **options)
        return
    got = ours(*arguments, **options)
    assert (got.dtype, got.shape, got.strides) == (expected.dtype, expected.shape, expected.strides)
    assert got.tobytes() == expected.tobytes()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("number", NUMBERS, ids=repr)
@pytest.mark.parametrize("dtype", dtypes.ALL, ids=lambda one: one.name)
def test_numbers(dtype, number):
    """New arrays and old ones of every dtype hold the number as NumPy would write it; what NumPy refuses raises its error."""
    for shape in ((), (3,), (0, 2), (5, 7)):
        assert_alike(*kernel("full"), shape, number, dtype=dtype)
        assert_alike(*kernel("fill"), np.zeros(shape, dtype.numpy), number)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", REAL, ids=lambda one: one.name)
def test_numbers_a_step_apart(dtype):
    """Whole ones and fractions, upwards and downwards, large ones and none, to the last bit."""
    pairs = [(0, 1), (3, -2), (0.0, 0.1), (-1, 0.3), (1e30, 7.5), (2**53, 1), (2**60, 3), (0.1, 1), (5, 0), (0.0, 1e-320)]  # fmt: skip
    for start, step in pairs:
        for length in (0, 1, 2, 10, 67, 1000):
            assert_alike(*kernel("arange"), start, step, length, dtype=dtype)


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=lambda one: one.name)
def test_ones_where_the_row_is_the_column(dtype):
    """Square or not, without elements, and so large that several threads share the zeros."""
    for rows, columns in ((0, 0), (0, 3), (3, 0), (1, 1), (4, 4), (3, 7), (7, 3), (600, 500)):
        assert_alike(*kernel("eye"), rows, columns, dtype=dtype)


def test_large_arrays_are_full_to_the_end():
    """Also where several threads share the work."""
    for dtype in (dtypes.int8, dtypes.float16, dtypes.float32, dtypes.float64):
        assert (kernel("full")[0](((1 << 20) + 3,), 2, dtype=dtype) == 2).all()


def test_only_the_place_is_written():
    """Of a part with gaps no other element changes, a 0-d array is a value too, and memory that is read only stays as it is."""
    fill = kernel("fill")[0]
    whole = np.zeros((4, 6), np.float32)
    fill(whole[:, 1::2], 2.0)
    assert whole.tolist() == [[0, 2, 0, 2, 0, 2]] * 4
    fill(whole.T, np.float32(3))
    assert (whole == 3).all()
    fill(whole, np.array(4, np.float64))
    assert (whole == 4).all()
    whole.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        fill(whole, 1)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "int64", "bool", "complex64", "complex128"])
@pytest.mark.parametrize("shape, before, after", [
    ((5,), (2,), (0,)), ((3, 4), (0, 1), (2, 0)), ((2, 3, 4), (1, 0, 3), (0, 2, 1)), ((1, 1), (4, 4), (4, 4)), ((0, 3), (1, 1), (1, 1)),
])  # fmt: skip
def test_around_another_array(shape, before, after, dtype):
    """Its elements in their place, from any layout, and one value everywhere else."""
    native, fallback = kernel("constant_pad")
    x = awkward(dtype, 80)[: int(np.prod(shape))].reshape(shape)
    whole = tuple(n + a + b for n, a, b in zip(shape, before, after, strict=True))
    key = tuple(slice(a, a + n) for n, a in zip(shape, before, strict=True))
    values = {"b": (0, True), "f": (0, 3, 1.5), "c": (0, 0.0, -0.0, 0j, 3, 1.5, 2 - 1j)}
    for one in (x, np.asfortranarray(x), x[::-1]):
        for value in values.get(x.dtype.kind, (0, 3)):
            options = {"shape": whole, "key": key, "value": value}
            assert_same(native(one, **options), fallback(one, **options))


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64], ids=str)
@pytest.mark.parametrize("steps", [0, 1, 2, 3, 7, 256, 257, 600, 1500])
def test_numbers_evenly_apart(dtype, steps):
    """They have NumPy's bits: of half types each step is rounded, and the middle is where counting from the end begins."""
    for start, end in ((0, 1), (-3.3, 7.1), (5.0, -2.5), (0.1, 0.1), (-6e4, 6e4)):
        with np.errstate(over="ignore", invalid="ignore"):
            assert_alike(*kernel("linspace"), start, end, steps, base=None, dtype=dtype)
