"""Products of float32 by the unit for tiles of bfloat16: as exact as sums in single precision, however large the numbers are."""

import itertools

import numpy as np
import pytest

import tensorcore
from tensorcore_cpu import native

from .native import kernel, needs_tiles, running

pytestmark = needs_tiles
RANDOM = np.random.default_rng(28)
UNIT = 2.0**-24  # by half of which rounding changes a float at most, relative to the next power of two
SIZES = [(64, 64, 64), (48, 1, 70), (96, 31, 96), (97, 33, 130), (129, 200, 101), (111, 300, 1100), (260, 129, 33 * 32)]


@pytest.fixture(autouse=True)
def tiles():
    """Each test multiplies by tiles."""
    with running(None, "tiles"):
        yield


def numbers(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def error(got, x, y, plus=0.0):
    """The largest error in units of the sum of the absolute values that are added up, beyond what denormals are rounded by."""
    one, other, plus = (np.asarray(each, np.float64) for each in (x, y, plus))
    sums = np.abs(one) @ np.abs(other) + np.abs(plus)
    off = np.abs(got - (one @ other + plus)) - x.shape[-1] * 2.0**-149
    return (off / np.maximum(sums, 2.0**-200)).max() / UNIT


@pytest.mark.parametrize("sizes", SIZES)
def test_errors_are_those_of_single_precision(sizes):
    """No error is beyond 3 units of the sum of absolute values, for whole tiles and rests; in the mean it is less than NumPy's."""
    rows, inner, columns = sizes
    x, y = numbers(rows, inner), numbers(inner, columns)
    got, plain = kernel("matmul")[0](x, y), x @ y
    assert error(got, x, y) < 3
    exact, sums = x.astype(float) @ y.astype(float), np.abs(x).astype(float) @ np.abs(y)
    assert inner < 64 or np.mean(abs(got - exact) / sums) < np.mean(abs(plain - exact) / sums)


@pytest.mark.parametrize("inner", [700, 1025, 4096, 16384])
def test_long_sums_are_as_exact(inner):
    """The mean error of long sums is no larger than NumPy's, whose library adds them up in parts, and than half of a unit."""
    x, y = numbers(96, inner), numbers(inner, 96)
    exact, sums = x.astype(float) @ y.astype(float), np.abs(x).astype(float) @ np.abs(y)
    mine, other = (np.mean(abs(got - exact) / sums) / UNIT for got in (kernel("matmul")[0](x, y), x @ y))
    assert mine < min(0.5, 1.1 * other)


def layouts(x):
    """The same matrix as rows, as columns, as every other one of both, flipped, and as a row repeated by a step of zero."""
    yield x
    yield np.asfortranarray(x)
    yield np.repeat(np.repeat(x, 2, 0), 3, 1)[::2, ::3]
    yield x[::-1, ::-1].copy()[::-1, ::-1]
    yield np.broadcast_to(x[:1], x.shape)


def test_layouts():
    """Steps of any kind and sign are read on both sides, with and without a bias, and a matrix is added."""
    x, y, bias, more = numbers(113, 150), numbers(150, 105), numbers(105), numbers(113, 105)
    for a, b in itertools.product(layouts(x), layouts(y)):
        assert error(kernel("matmul")[0](a, b), a, b) < 4
        assert error(kernel("linear")[0](a, b.T, bias), a, b, bias) < 6
        assert error(kernel("addmm")[0](more, a, b, beta=1, alpha=1), a, b, more) < 6


def test_it_is_the_unit_that_multiplies():
    """These sizes are made of thirds: their last bits are others than those of the loops in single precision."""
    x, y = numbers(128, 100), numbers(100, 128)
    got = kernel("matmul")[0](x, y)
    native.products("own")
    assert (got != kernel("matmul")[0](x, y)).any()


@pytest.mark.parametrize("least, most", [(-149, 127), (-149, -100), (-60, 0), (0, 60), (-126, -62), (40, 62)])
@pytest.mark.parametrize("how", ["rows and columns", "inner", "each"])
def test_numbers_of_any_size(least, most, how):
    """Numbers that lie up to 276 powers of two apart, denormals too, are multiplied as exactly: rows, columns, terms and elements."""
    x, y = (RANDOM.uniform(1, 2, shape) for shape in ((130, 200), (200, 140)))
    shapes = {"rows and columns": ((130, 1), (1, 140)), "inner": ((1, 200), (200, 1)), "each": (x.shape, y.shape)}[how]
    for side, shape in zip((x, y), shapes, strict=True):
        side *= 2.0 ** RANDOM.integers(least, most, shape) * RANDOM.choice([-1, 1], side.shape)
    x, y = x.astype(np.float32), y.astype(np.float32)
    with np.errstate(all="ignore"):
        got, plain = kernel("matmul")[0](x, y).astype(float), (x @ y).astype(float)
    exact, sums = x.astype(float) @ y.astype(float), abs(x).astype(float) @ abs(y).astype(float)
    fits = sums < 2.0**127
    off, others = (
        np.maximum(abs(each - exact) - 200 * 2.0**-149, 0)[fits] / (UNIT * sums[fits]) for each in (got, plain)
    )
    assert off.max(initial=0) <= 1 + 1.25 * others.max(initial=0)
    assert not np.isfinite(got[abs(exact) > 2.0**128 + 1e-5 * sums]).any()


def test_whole_numbers_are_exact():
    """Sums of products of integers under 2^24 have no error, as in single precision."""
    x, y = (RANDOM.integers(-900, 900, shape).astype(np.float32) for shape in ((100, 20), (20, 100)))
    np.testing.assert_array_equal(kernel("matmul")[0](x, y), x.astype(np.int64) @ y.astype(np.int64))
    large, few = RANDOM.integers(-(1 << 20), 1 << 20, (100, 1)), RANDOM.integers(-15, 16, (1, 100))
    np.testing.assert_array_equal(kernel("matmul")[0](large.astype(np.float32), few.astype(np.float32)), large @ few)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("place", [(0, 0), (99, 129), (50, 70)])
def test_what_is_not_finite(value, side, place):
    """NaN and infinities reach exactly the results that they are part of, wherever they are; with a bias, too."""
    sides = [numbers(130, 130), numbers(130, 130)]
    sides[side][place] = value
    sides[0][3] = 0
    bias = numbers(130)
    expected = sides[0] @ sides[1]
    for got in (kernel("matmul")[0](*sides), kernel("linear")[0](sides[0], sides[1].T, bias) - bias):
        np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
        np.testing.assert_array_equal(got[np.isinf(expected)], expected[np.isinf(expected)])
        good = np.isfinite(expected)
        np.testing.assert_allclose(got[good], expected[good], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("sizes", [(300, 200, 400), (400, 200, 300), (97, 500, 1300)])
def test_threads_do_not_change_the_result(sizes):
    """A product has the same bits on one thread and on several, cut by rows or by columns; so has a row of it by itself."""
    rows, inner, columns = sizes
    x, y = numbers(rows, inner), numbers(inner, columns)
    made = []
    for count in (1, 2, 5):
        tensorcore.set_num_threads(count)
        made.append(kernel("matmul")[0](x, y))
    for other in made[1:]:
        np.testing.assert_array_equal(made[0], other)
    part = kernel("matmul")[0](x[:96], y[:, :96].copy())
    np.testing.assert_array_equal(part, made[0][:96, :96])


def test_batches():
    """Products of a batch are those of its matrices, also where one side is the same for all."""
    x, y = numbers(5, 100, 70), numbers(5, 70, 100)
    got = kernel("matmul")[0](x, y)
    for i in range(5):
        np.testing.assert_array_equal(got[i], kernel("matmul")[0](x[i], y[i]))
    same = kernel("matmul")[0](x, y[:1])
    assert max(error(same[i], x[i], y[0]) for i in range(5)) < 3


@pytest.mark.parametrize("sizes", [(64, 40, 32), (97, 33, 70), (130, 150, 129), (100, 300, 600)])
def test_complex_numbers(sizes):
    """Complex numbers are multiplied by their parts, as exactly, however either side lies; so are very small and large ones."""
    rows, inner, columns = sizes
    x, y = (numbers(*shape) + 1j * numbers(*shape) for shape in ((rows, inner), (inner, columns)))
    for a, b in itertools.product(layouts(x), layouts(y)):
        for factor in (1, 2.0**70, 2.0**-40):
            got = kernel("matmul")[0](a * np.float32(factor), b * np.float32(1 / factor))
            exact = a.astype(complex) @ b.astype(complex)
            assert got.dtype == np.complex64
            assert (abs(got - exact) <= 8 * UNIT * (abs(a).astype(float) @ abs(b).astype(float))).all()
    x[5, 7] = np.nan
    got = kernel("matmul")[0](x, y)
    assert np.isnan(got[5]).all()
    assert np.isfinite(np.delete(got, 5, 0)).all()


def test_own_loops_are_asked_for_by_name(monkeypatch):
    """``TENSORCORE_BLAS`` leaves the unit out, since it names what makes all products."""
    for name, expected in (("own", "own"), ("", "tiles")):
        monkeypatch.setenv("TENSORCORE_BLAS", name)
        native.blas.prepare(native._library)
        assert native.products() == expected
