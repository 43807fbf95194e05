"""What the tests of the C kernels share: the instruction sets, and arrays of awkward values and layouts."""

import contextlib
import datetime
import zlib

import numpy as np
import pytest

import tensorcore
from tensorcore_cpu import blas, native

needs_native = pytest.mark.skipif(not native.available(), reason=f"no C kernels here: {native.reason}")


def instruction_sets():
    """Those that this machine can run; one that is not there has nothing to test."""
    found = []
    best = native.isa()
    for name in ("plain", "avx2", "avx512"):
        try:
            native.isa(name)
        except ValueError:
            continue
        found.append(name)
    native.isa(best)
    return found if native.available() else ["none"]


def is_left_to_another_day(item, sets, day=None):
    """Whether a test is one with an instruction set of these, and its case has the turn of another one of them on that day."""
    given = item.callspec.params if hasattr(item, "callspec") else {}
    name = given.get("isa", given.get("products"))
    if name not in sets:
        return False
    case = "-".join(one for one in item.callspec.id.split("-") if one != name)
    day = datetime.datetime.now(datetime.UTC).toordinal() if day is None else day
    return sets[(zlib.crc32(f"{item.path.name}:{item.originalname}:{case}".encode()) + day) % len(sets)] != name


@contextlib.contextmanager
def running(isa, products):
    """Kernels of that instruction set, and products by those kernels or a library; what NumPy warns of is part of the values.

    On three threads: what they do to each other is seen by all tests. NumPy's BLAS and LAPACK, which most expected values come from,
    keep theirs: two of them that wait for one another on two busy cores took a second of a core for a matrix of a millisecond.
    """
    before, threads = (native.isa(), native.products()), tensorcore.get_num_threads()
    native.isa(isa)
    native.products(products)
    if products == "own" and native.available():
        native.threads(3)
    else:
        tensorcore.set_num_threads(3)
    try:
        with np.errstate(all="ignore"):
            yield isa
    finally:
        native.isa(before[0])
        native.products(before[1])
        tensorcore.set_num_threads(threads)


@pytest.fixture(params=instruction_sets())
def isa(request):
    """Runs the test with each instruction set in turn."""
    with running(request.param, "own"):
        yield request.param


def has_tiles():
    """Whether products of float32 can be made by a unit for tiles of bfloat16 here."""
    before = native.products()
    try:
        return native.products("tiles") == "tiles"
    except ValueError:
        return False
    finally:
        native.products(before)


needs_tiles = pytest.mark.skipif(not native.available() or not has_tiles(), reason="no unit for tiles here")


@pytest.fixture(params=[*instruction_sets(), "mkl", "tiles"])
def products(request):
    """Runs the test with the products of each instruction set, of each library and of the unit for tiles in turn."""
    if request.param == "tiles":
        if not native.available() or not has_tiles():
            pytest.skip("needs the C kernels and a unit for tiles")
        with running(None, "tiles"):
            yield request.param
        return
    if request.param != "mkl":
        with running(request.param, "own"):
            yield request.param
        return
    if blas.find_mkl() is None or not native.available():
        pytest.skip("needs the C kernels and oneMKL: pip install tensorcore[mkl]")
    with running(None, "mkl"):
        yield request.param


def kernel(name):
    """The C kernel of that name and the NumPy kernel behind it, or behind another one in C between the two."""
    found = tensorcore.device("cpu").kernels[name]
    return found, getattr(found.fallback, "fallback", found.fallback)


def awkward(dtype, count=67):
    """Zeros, infinities, NaN, denormals, the extremes and a spread of ordinary values; as many as make tails."""
    dtype = np.dtype(dtype)
    random = np.random.default_rng(8)
    if dtype.itemsize == 2 and dtype.kind not in "iu":
        with np.errstate(over="ignore"):
            return awkward(np.float32, count).astype(dtype)
    if dtype.kind == "b":
        return random.integers(0, 2, count).astype(bool)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        values = random.integers(limits.min, limits.max, count, dtype=dtype, endpoint=True)
        values[:4] = [limits.min, limits.max, 0, 1]
        return values
    values = (random.standard_normal(count) * 10.0 ** random.integers(-4, 4, count)).astype(dtype)
    limits = np.finfo(dtype)
    corners = [0.0, -0.0, np.inf, -np.inf, np.nan, limits.max, limits.min, limits.tiny, limits.tiny / 2,
               -limits.tiny / 4, 1.0, -1.0]  # fmt: skip
    values[: len(corners)] = np.array(corners, np.float64).astype(dtype)
    return values


# Shapes and dims that are reduced: odd lengths, rows that are several pieces long, columns that are several strips wide.
FOLDS = [(shape, dim) for shape, dims in {
    (1,): [None, (0,)], (5,): [None, (0,)], (67,): [None, (0,)], (1027,): [(0,)], (100_003,): [None, (0,)],
    (7, 33): [None, (0,), (1,)], (1, 9): [(0,), (1,)], (9, 1): [(0,), (1,)], (3, 5, 21): [None, (0,), (1,), (2,), (0, 1), (1, 2)],
    (3, 1, 5, 21): [(0, 3), (0, 1, 3)], (4, 30, 2): [(0, 2)], (3, 2, 40_001): [(0, 2)], (2, 3, 4, 5): [(0, 2, 3), (0, 2), (1, 3)],
    (700, 3): [(0,), (1,)], (3001, 2): [(0,), (1,)], (130, 7): [(0,), (1,)], (90, 64): [(1,)], (5, 71, 16): [(1,), (2,)],
    (70, 5, 4): [(0, 2)], (3, 40_001): [(1,), (0,)], (531, 1100): [(0,), (1,), None], (2, 70_001, 2): [(1,)],
}.items() for dim in dims]  # fmt: skip


def layouts(values):
    """The same kind of values as a row, every third of a row, reversed, a matrix, its transpose, a slice, 0-d, empty."""
    count = len(values)
    square = int(count**0.5)
    matrix = values[: square * square].reshape(square, square).copy()
    return {
        "row": values,
        "unaligned start": values[1:],
        "every third": np.repeat(values, 3)[::3],
        "reversed": values[::-1],
        "matrix": matrix,
        "transpose": matrix.T,
        "columns": matrix[:, 1:-1],
        "flipped columns": matrix[:, ::-1],
        "three dims": values[: square // 2 * 2 * square].reshape(2, square // 2, square).transpose(2, 0, 1),
        "0-d": values[5:6].reshape(()),
        "empty": values[:0].reshape(0, 3),
        "one": values[3:4],
    }


def laid_out(result, *operands):
    """``result`` in the memory order that PyTorch gives it: of two dims, the first operand that has both decides."""
    steps = [[0] * (result.ndim - one.ndim) + [abs(step) for step in one.strides] for one in operands]
    shapes = [[1] * (result.ndim - one.ndim) + list(one.shape) for one in operands]

    def outside(inner, outer):
        for step, shape in zip(steps, shapes, strict=True):
            if shape[inner] > 1 and shape[outer] > 1:
                return step[inner] > step[outer]
        return None

    axes = list(range(result.ndim))
    for start in range(result.ndim - 2, -1, -1):
        axis, place = axes[start], start
        for position in range(start + 1, result.ndim):
            moves = outside(axes[position], axis)
            if moves is False:
                break
            place = position if moves else place
        axes.insert(place, axes.pop(start))
    return np.ascontiguousarray(result.transpose(axes)).transpose(np.argsort(axes)) if result.ndim else result


def assert_same(got, expected, signs=True):
    """Values, NaN included and zeros with their signs (unless told), dtype, shape and strides are the same."""
    assert type(got) is np.ndarray
    expected = np.asarray(expected)
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    if got.size and got.ndim:
        assert got.strides == expected.strides
    np.testing.assert_array_equal(got, expected)
    if signs and got.dtype.kind == "f":
        sure = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(got)[sure], np.signbit(expected)[sure])


def assert_within(got, expected, ulp):
    """Each value is at most ``ulp`` units in the last place of its dtype from the exact one; NaN and infinities match."""
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
    finite = np.isfinite(expected) & np.isfinite(got)
    np.testing.assert_array_equal(got[~finite], expected[~finite])
    apart = np.abs(got[finite].astype(np.float64) - expected[finite].astype(np.float64))
    unit = np.spacing(np.abs(expected[finite])).astype(np.float64)
    worst = float((apart / unit).max(initial=0.0))
    assert worst <= ulp, f"{worst} ulp"
