"""The reductions in C beside exact ones: values and error, NaN, ties, dims, pieces and threads."""

import math

import ml_dtypes
import numpy as np
import pytest

from tensorcore_cpu import native

from .native import FOLDS, awkward, kernel, needs_native

pytestmark = [needs_native, pytest.mark.usefixtures("isa")]

FLOATS = ["float32", "float64"]
HALVES = [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)]


def drawn(shape, dtype):
    return (np.random.default_rng(8).standard_normal(shape) + 0.5).astype(dtype)


def error_of(made, exact):
    return float(np.abs(made.astype(np.longdouble) - exact).max())


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape, dim", FOLDS)
def test_sum_and_mean(shape, dim, dtype, keepdim):
    """The error is that of one rounding of the result and a few of what is added, and not above NumPy's."""
    values = drawn(shape, dtype)
    exact = values.astype(np.longdouble).sum(dim, keepdims=keepdim)
    size = np.abs(values).astype(np.longdouble).sum(dim, keepdims=keepdim)
    for name, divisor in (("sum", 1), ("mean", values.size // max(exact.size, 1))):
        compiled, fallback = kernel(name)
        made = compiled(values, dim=dim, keepdim=keepdim)
        assert type(made) is np.ndarray
        assert (made.dtype, made.shape) == (values.dtype, exact.shape)
        limit = np.finfo(dtype).eps * (np.abs(exact) + size / 2) / divisor
        assert (np.abs(made - exact / divisor) <= limit).all()
        theirs = error_of(np.asarray(fallback(values, dim=dim, keepdim=keepdim)), exact / divisor)
        assert error_of(made, exact / divisor) <= theirs + float(np.finfo(dtype).eps * np.abs(exact).max() / divisor)


@pytest.mark.parametrize("dtype", FLOATS)
def test_sums_that_cancel(dtype):
    """Long sums of numbers that go up and down lose no more than NumPy's pairwise sums, all in all."""
    compiled, fallback = kernel("sum")
    random = np.random.default_rng(8)
    ours = theirs = 0.0
    for _ in range(30):
        values = random.standard_normal(50_001).astype(dtype)
        exact = math.fsum(values.tolist())
        ours += abs(float(compiled(values)) - exact)
        theirs += abs(float(fallback(values)) - exact)
    assert ours <= theirs


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape, dim", FOLDS)
def test_extremes(shape, dim, dtype):
    """The values of NumPy, and the first of several places; with NaN the first NaN."""
    rough = np.round(drawn(shape, dtype) * 4)  # many ties
    broken = rough.copy()
    broken.flat[:: max(1, broken.size // 7)] = np.nan
    for values in (rough, -rough, broken):
        for keepdim in (False, True):
            for name, reference in (("amax", np.max), ("amin", np.min)):
                made = kernel(name)[0](values, dim=dim, keepdim=keepdim)
                np.testing.assert_array_equal(made, reference(values, dim, keepdims=keepdim))
                assert made.dtype == values.dtype
            if dim is not None and len(dim) > 1:
                continue
            axis = None if dim is None else dim[0]
            for name, reference in (("argmax", np.argmax), ("argmin", np.argmin)):
                made = kernel(name)[0](values, dim=axis, keepdim=keepdim)
                np.testing.assert_array_equal(made, reference(values, axis=axis, keepdims=keepdim))
                assert made.dtype == np.int64
            if axis is not None:
                for name, place, value in (("max_dim", np.argmax, np.max), ("min_dim", np.argmin, np.min)):
                    got, at = kernel(name)[0](values, dim=axis, keepdim=keepdim)
                    np.testing.assert_array_equal(got, value(values, axis, keepdims=keepdim))
                    np.testing.assert_array_equal(at, place(values, axis=axis, keepdims=keepdim))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("count", [8191, 8192, 8231, 40_001, 300_000])
def test_extremes_of_long_rows(count, dtype):
    """Wherever the extreme lies, beside infinities of both signs, and NaN for a NaN anywhere; sums along the way may overflow."""
    values = np.random.default_rng(count).uniform(-1, 1, count).astype(dtype)
    places = [0, 1, 17, count // 3, count - 17, count - 2, count - 1]
    for name, factor in (("amax", 1), ("amin", -1)):
        native, twin = kernel(name)
        for place in places:
            for found in (3.0, np.finfo(dtype).max, math.inf, math.nan):
                x = values.copy()
                x[places[place % 2 :: 2]] = -np.finfo(dtype).max if place % 3 else -math.inf
                x[place] = found
                x *= factor
                np.testing.assert_array_equal(native(x, dim=None, keepdim=False), twin(x, dim=None, keepdim=False))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("width", [1, 3, 7, 32, 33, 40, 64, 101, 600])
def test_extremes_of_columns(width, dtype):
    """A NaN reaches its own column from any row, beside infinities and in columns that are met twice; all else are NumPy's values."""
    for rows in (1, 2, 33, 34, 66, 130):
        values = drawn((rows, width), dtype)
        values[rows // 2, ::5], values[rows - 1, ::7] = np.inf, -np.inf
        for at in (None, 0, rows // 2, rows - 1):
            one = values.copy()
            if at is not None:
                one[at, ::3] = one[at, -1] = np.nan
            for name, reference in (("amax", np.max), ("amin", np.min)):
                np.testing.assert_array_equal(kernel(name)[0](one, dim=(0,)), reference(one, 0))


@pytest.mark.parametrize("dtype", [*FLOATS, *HALVES], ids=str)
@pytest.mark.parametrize("shape, dim", FOLDS)
def test_products(shape, dim, dtype):
    """Of powers of two they are exact, of half types too, which are multiplied as floats; infinities, zeros and NaN are NumPy's."""
    compiled, fallback = kernel("prod")
    random = np.random.default_rng(8)
    x = random.choice([-1, 1], shape).astype(dtype)
    some = x.flat[8::165].size
    x.flat[8::165] = random.choice([0.5, 2], some)
    x.flat[: 165 * some : 165] = 1 / x.flat[8::165]
    with np.errstate(all="ignore"):
        for keepdim in (False, True):
            got = compiled(x, dim=dim, keepdim=keepdim)
            assert got.dtype == x.dtype
            np.testing.assert_array_equal(got, x.astype(np.float64).prod(dim, keepdims=keepdim).astype(dtype))
        for corner in (0, np.inf, np.nan):
            x.flat[x.size // 2] = corner
            got, expected = compiled(x, dim=dim), fallback(x, dim=dim)
            np.testing.assert_array_equal(np.isnan(got.astype(np.float32)), np.isnan(expected.astype(np.float32)))
            np.testing.assert_array_equal(got == 0, expected == 0)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["sum", "mean", "amax", "amin"])
def test_corners_of_floats(name, dtype):
    """NaN and infinities spread as in NumPy's result, denormals count."""
    compiled, fallback = kernel(name)
    values = awkward(dtype, 67)
    for part in (values[7:], values[:2], values[:3], values[2:4], values[3:4], values[7:10], values[6:8]):
        for count in (1, 40):
            row = np.ascontiguousarray(np.tile(part, count))
            np.testing.assert_allclose(compiled(row), fallback(row), rtol=1e-5)
            columns = np.ascontiguousarray(np.repeat(row[:, None], 3, 1))
            np.testing.assert_allclose(compiled(columns, dim=(0,)), fallback(columns, dim=(0,)), rtol=1e-5)


@pytest.mark.parametrize("count", [3, 7, 16, 41, 550, 40_000])
def test_variance_of_neighbours(count):
    """Numbers that differ in their last places alone: as exact as of others, though their sum is not."""
    x = (1000 + np.random.default_rng(8).integers(-20, 20, (40, count)) / 16384).astype(np.float32)
    exact = x.astype(np.longdouble).var(1)
    for one, dim in ((x, (1,)), (x.T.copy(), (0,))):
        made = kernel("var")[0](one, dim=dim, keepdim=False, correction=0, root=False)
        np.testing.assert_allclose(made, exact.astype(np.float64), 2e-7)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape, dim", FOLDS)
def test_variance(shape, dim, dtype):
    """Far from zero as near it: two passes, to a few units of the exact value."""
    for offset in (0, 100):
        values = drawn(shape, dtype) + np.dtype(dtype).type(offset)
        exact = values.astype(np.longdouble).var(dim)
        count = values.size // exact.size
        for correction in (0, 1.0):
            free = max(count - correction, 0)
            with np.errstate(all="ignore"):
                expected = exact * count / np.longdouble(free)
            options = dict(dim=dim, keepdim=False, correction=correction)
            made = kernel("var")[0](values, **options, root=False)
            np.testing.assert_allclose(made, expected.astype(dtype), rtol=8 * np.finfo(dtype).eps)
            root, mean = kernel("var_mean")[0](values, **options, root=True)
            np.testing.assert_allclose(root, np.sqrt(expected).astype(dtype), rtol=8 * np.finfo(dtype).eps)
            np.testing.assert_allclose(mean, values.astype(np.longdouble).mean(dim).astype(dtype), rtol=1e-5)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape, dim", [(shape, dim) for shape, dim in FOLDS if dim is not None and len(dim) == 1])
def test_cumsum(shape, dim, dtype):
    """Running sums in double precision."""
    values = drawn(shape, dtype)
    made = kernel("cumsum")[0](values, dim=dim[0])
    expected = np.add.accumulate(values, dim[0], np.longdouble)
    assert made.dtype == values.dtype
    np.testing.assert_allclose(made, expected, rtol=2 * np.finfo(dtype).eps, atol=1e-9 if dtype == "float64" else 1e-6)


@pytest.mark.parametrize("name", ["sum", "amax", "mean", "any"])
def test_what_they_do_not_take_is_numpys(name):
    """Other layouts, dims that are apart, integers and nothing at all."""
    compiled, fallback = kernel(name)
    values = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    for one, dim in (
        (values.T, (0,)),
        (values[:, ::2], (1,)),
        (values, (0, 2)),
        (values.astype(np.int32), (1,)),
        (values, ()),
    ):
        one = one > 3 if name == "any" else one.astype(np.float64) if name == "mean" else one
        np.testing.assert_array_equal(compiled(one, dim=dim), fallback(one, dim=dim))
    if name == "sum":
        assert compiled(np.zeros((0, 3), np.float32), dim=(0,)).tolist() == [0, 0, 0]
        assert compiled(np.float32([1, 2]).reshape(2), dtype=None).tolist() == 3


@pytest.mark.parametrize(
    "shape, dim", [((1_000_003,), None), ((900, 1100), (0,)), ((900, 1100), (1,)), ((90, 11, 1000), (0, 2))]
)
def test_the_number_of_threads_changes_no_bit(shape, dim):
    """Pieces are cut by length alone."""
    values = drawn(shape, np.float32)
    before = native.threads()
    try:
        native.threads(1)
        expected = [kernel(name)[0](values, dim=dim) for name in ("sum", "amax")]
        native.threads(3)
        for _ in range(20):
            for name, one in zip(("sum", "amax"), expected, strict=True):
                assert kernel(name)[0](values, dim=dim).tobytes() == one.tobytes()
    finally:
        native.threads(before)


@pytest.mark.parametrize("scale", [1e-36, 1e-30, 1e-22, 1e18, 1e20, 1e30])
@pytest.mark.parametrize("dtype", ["float32", HALVES[1]], ids=str)
@pytest.mark.parametrize("shape", [(70, 5), (70, 40), (9, 3000)])
def test_deviations_whose_squares_no_float_holds(shape, dtype, scale):
    """Squares are summed in double where those of single precision would be infinite or zero, along rows and columns."""
    x = (np.random.default_rng(8).standard_normal(shape) * scale).astype(dtype)
    for dim in (0, 1):
        found = kernel("var")[0](x, dim=(dim,), correction=1, root=True)
        np.testing.assert_allclose(
            found.astype("f8"), x.astype("f8").std(dim, ddof=1), rtol=1e-6 if dtype == "float32" else 8e-3
        )


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("count", [3, 10, 24, 97, 1000])
def test_equal_elements_do_not_deviate(count, dtype):
    """What rounding leaves of a mean of equal numbers does not count as their deviation, in rows and in columns."""
    x = np.repeat(np.linspace(-40, 40, 70).astype(dtype)[:, None], count, 1)
    for one, dim in ((x, 1), (np.ascontiguousarray(x.T), 0)):
        assert kernel("var")[0](one, dim=(dim,), correction=1, root=True).max() < 1e-20


@pytest.mark.parametrize("dtype", [*FLOATS, *HALVES], ids=str)
@pytest.mark.parametrize(
    "shape, dim", [*FOLDS, *[((70, width), (1,)) for width in (1, 2, 7, 8, 9, 16, 33, 63, 64, 65, 71, 200, 1030, 2100)]]
)
def test_norms(shape, dim, dtype):
    """To four roundings of the dtype from the root of the exact sum of squares, also of rows that lie apart."""
    values = drawn(shape, dtype)
    exact = np.sqrt((values.astype(np.longdouble) ** 2).sum(dim))
    norm = kernel("norm")[0]
    apart = np.zeros([2 * size for size in shape], dtype)[tuple(slice(None, None, 2) for _ in shape)]
    apart[...] = values
    for x in (values, apart):
        made = norm(x, p=2.0, dim=dim, keepdim=False)
        assert (made.dtype, made.shape) == (values.dtype, exact.shape)
        np.testing.assert_allclose(made.astype(np.longdouble), exact, 4 * float(ml_dtypes.finfo(dtype).eps))
