"""Reductions in C of integers, bools and half types: sums to the bit, extremes and where they are, counts, pieces and threads."""

import ml_dtypes
import numpy as np
import pytest

import tensorcore as tc

from .native import FOLDS, awkward, kernel, needs_native

pytestmark = [needs_native, pytest.mark.usefixtures("isa")]

INTEGERS = ["int8", "int16", "int32", "int64", "uint8"]
HALVES = [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)]
COUNTED = [*INTEGERS, "bool", "float32", "float64", *HALVES]


def drawn(shape, dtype):
    """The whole range of integers; few different numbers around zero of a half type, both zeros among them."""
    random = np.random.default_rng(8)
    if np.dtype(dtype).kind in "iub":
        size = int(np.prod(shape))
        return awkward(dtype, size + 4)[random.permutation(size + 4)[:size]].reshape(shape)
    return (np.round(random.standard_normal(shape) * 4) * random.choice([-0.25, 0.25], shape)).astype(dtype)


def holes(x):
    """The same with NaN of both signs here and there, and one infinity."""
    made = x.copy()
    made.flat[0] = np.inf
    made.flat[:: max(1, x.size // 7)] = np.nan
    made.flat[:: max(1, x.size // 3)] = -made.flat[:: max(1, x.size // 3)]
    return made


@pytest.mark.parametrize("dtype", [*INTEGERS, "bool"])
@pytest.mark.parametrize("shape, dim", FOLDS)
def test_sums_of_integers(shape, dim, dtype):
    """They are NumPy's in the dtype that is asked for, in which they wrap around; int64 asks for none."""
    x = drawn(shape, dtype)
    native = kernel("sum")[0]
    for keepdim in (False, True):
        for wanted in INTEGERS:
            got = native(x, dim=dim, keepdim=keepdim, dtype=getattr(tc, wanted))
            expected = np.asarray(np.sum(x, axis=dim, dtype=wanted, keepdims=keepdim))
            assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
            np.testing.assert_array_equal(got, expected)
    if dtype == "int64":
        np.testing.assert_array_equal(native(x, dim=dim), np.sum(x, axis=dim))


@pytest.mark.parametrize("shape, dim", FOLDS)
def test_products_of_int64(shape, dim):
    """They wrap around as NumPy's do; other integers are NumPy's."""
    x = drawn(shape, "int64") | 1
    for one in (x, x.astype("int32")):
        for keepdim in (False, True):
            got = kernel("prod")[0](one, dim=dim, keepdim=keepdim)
            expected = np.prod(one, axis=dim, dtype=one.dtype, keepdims=keepdim)
            assert (got.dtype, got.shape) == (one.dtype, np.shape(expected))
            np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_the_longest_sums_of_blocks(dtype):
    """Rows and columns of the least and of the largest number there is, longer than what is added at once."""
    for number in (np.iinfo(dtype).min, np.iinfo(dtype).max):
        x = np.full((2, 70_000), number, dtype)
        for one, dim in ((x, (1,)), (x.T.copy(), (0,)), (x, None)):
            expected = np.sum(one, axis=dim, dtype=np.int64)
            np.testing.assert_array_equal(kernel("sum")[0](one, dim=dim, dtype=tc.int64), expected)


@pytest.mark.parametrize("dtype", [*INTEGERS, "bool", *HALVES], ids=str)
@pytest.mark.parametrize("shape, dim", FOLDS)
def test_extremes(shape, dim, dtype):
    """The values of NumPy, and the first of equal places; the first NaN where there is one."""
    x = drawn(shape, dtype)
    half = x.dtype in HALVES
    for one in (x, np.zeros_like(x), *((holes(x), -np.abs(x)) if half else ())):
        wide = one.astype(np.float32) if half else one
        for keepdim in (False, True):
            for name, reference in (("amax", np.max), ("amin", np.min)):
                made = kernel(name)[0](one, dim=dim, keepdim=keepdim)
                expected = np.asarray(reference(wide, dim, keepdims=keepdim))
                assert (made.dtype, made.shape) == (one.dtype, expected.shape)
                np.testing.assert_array_equal(made.astype(expected.dtype), expected)
            if dim is not None and len(dim) > 1:
                continue
            axis = None if dim is None else dim[0]
            for name, reference in (("argmax", np.argmax), ("argmin", np.argmin)):
                made = kernel(name)[0](one, dim=axis, keepdim=keepdim)
                assert made.dtype == np.int64
                np.testing.assert_array_equal(made, reference(wide, axis=axis, keepdims=keepdim))
            if axis is None:
                continue
            for name, place in (("max_dim", np.argmax), ("min_dim", np.argmin)):
                values, at = kernel(name)[0](one, dim=axis, keepdim=keepdim)
                expected = place(wide, axis=axis, keepdims=True)
                np.testing.assert_array_equal(at, expected if keepdim else expected.squeeze(axis))
                picked = np.take_along_axis(one.view(np.int16) if half else one, expected, axis)
                picked = picked if keepdim else picked.squeeze(axis)
                np.testing.assert_array_equal(values.view(np.int16) if half else values, picked)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_every_number_of_a_half_type_has_its_place(dtype):
    """Each beside each of some, zeros with their signs, denormals, infinities and NaN among them."""
    every = np.arange(1 << 16, dtype=np.uint16).view(dtype)
    few = awkward(dtype, 40)
    pairs = np.stack([np.repeat(every, 40), np.tile(few, 1 << 16)])
    wide = pairs.astype(np.float32)
    for name, reference in (("amax", np.maximum), ("amin", np.minimum)):
        got, expected = kernel(name)[0](pairs, dim=(0,)).astype(np.float32), reference(*wide)
        np.testing.assert_array_equal(got, expected)
        alike = (wide[0] == wide[1]) & (np.signbit(wide[0]) == np.signbit(wide[1]))
        np.testing.assert_array_equal(np.signbit(got)[alike], np.signbit(expected)[alike])


@pytest.mark.parametrize("dtype", COUNTED, ids=str)
@pytest.mark.parametrize("shape, dim", FOLDS)
def test_counts(shape, dim, dtype):
    """How many elements are not zero, whether any or all are; one that differs is found wherever it is."""
    zeros, ones = np.zeros(shape, dtype), np.ones(shape, dtype)
    zeros.flat[1::2] = -zeros.flat[1::2] if dtype != "bool" else False
    mixed = drawn(shape, dtype)
    cases = [zeros, ones, mixed]
    for place in (0, -1, zeros.size // 2):
        cases += [zeros.copy(), ones.copy()]
        cases[-2].flat[place], cases[-1].flat[place] = 1, 0
    for x in cases:
        truth = x.astype(np.float32) != 0 if x.dtype in HALVES else x != 0
        for name, reference in (("count_nonzero", np.sum), ("any", np.any), ("all", np.all)):
            got, expected = kernel(name)[0](x, dim=dim), reference(truth, axis=dim)
            assert got.dtype == (np.int64 if name == "count_nonzero" else bool)
            np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("shape, dim", FOLDS)
def test_sums_of_halves_are_rounded_once(shape, dim, dtype):
    """Half a unit of the exact sum, and what floats lose on the way; so are means, variances and norms."""
    x = np.random.default_rng(8).uniform(0.5, 2, shape).astype(dtype)
    exact = x.astype(np.longdouble)
    count = x.size // max(exact.sum(dim).size, 1)
    unit = float(ml_dtypes.finfo(dtype).eps) / 2
    with np.errstate(over="ignore"):
        for name, expected, options in (
            ("sum", exact.sum(dim), {}),
            ("mean", exact.mean(dim), {}),
            ("var", exact.var(dim), dict(keepdim=False, correction=0, root=False)),
            ("norm", np.sqrt((exact**2).sum(dim)), dict(p=2.0)),
        ):
            got = kernel(name)[0](x, dim=dim, **options)
            rounded = np.asarray(expected, np.float32).astype(dtype).astype(np.float32)
            assert (got.dtype, got.shape) == (x.dtype, np.shape(expected))
            close = np.abs(got.astype(np.longdouble) - expected) <= unit * 1.001 * np.abs(expected) + 1e-6 * (
                count if name == "var" else 0
            )
            assert (close | (got.astype(np.float32) == rounded)).all(), name


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_corners_of_halves(dtype):
    """NaN and infinities spread; denormals count; a mean whose sum no half type holds is finite."""
    values = awkward(dtype, 67)
    for name in ("sum", "mean"):
        native, fallback = kernel(name)
        for part in (values[7:], values[:2], values[:3], values[2:4], values[3:4], values[7:10]):
            for count in (1, 40):
                row = np.ascontiguousarray(np.tile(part, count))
                columns = np.ascontiguousarray(np.repeat(row[:, None], 3, 1))
                for x, options in ((row, {}), (columns, {"dim": (0,)})):
                    got, expected = native(x, **options), fallback(x, **options)
                    np.testing.assert_allclose(got.astype(np.float32), expected.astype(np.float32), 2**-7)
    large = np.full((4, 90), ml_dtypes.finfo(dtype).max, dtype)
    expected = np.inf if dtype == ml_dtypes.bfloat16 else float(large[0, 0])
    for options in ({}, {"dim": (1,)}, {"dim": (0,)}):
        assert (kernel("mean")[0](large, **options).astype(np.float32) == expected).all()
        assert np.isinf(kernel("sum")[0](large, **options).astype(np.float32)).all()


@pytest.mark.parametrize("name", ["sum", "amax", "argmin", "any", "count_nonzero"])
def test_what_they_do_not_take_is_numpys(name):
    """Other layouts, dims that are apart, no dims and no elements, dtypes that hold no integers."""
    native, fallback = kernel(name)
    x = drawn((2, 3, 4), "int32")
    options = {"dtype": tc.int64} if name == "sum" else {}
    for one, dim in ((x.T, 0), (x[:, ::2], 1), (x, None)):
        dim = dim if name == "argmin" or dim is None else (dim,)
        np.testing.assert_array_equal(native(one, dim=dim, **options), fallback(one, dim=dim, **options))
    if name == "argmin":
        return
    np.testing.assert_array_equal(native(x, dim=(0, 2), **options), fallback(x, dim=(0, 2), **options))
    if name != "amax":
        np.testing.assert_array_equal(native(x[:0], dim=(0,), **options), fallback(x[:0], dim=(0,), **options))
    if name == "sum":
        for wanted in (None, tc.float32, tc.bool):
            got, expected = native(x, dim=(1,), dtype=wanted), fallback(x, dim=(1,), dtype=wanted)
            assert got.dtype == expected.dtype
            np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(
    "shape, dim", [((1_000_003,), None), ((900, 1100), (0,)), ((900, 1100), (1,)), ((90, 11, 1000), (0, 2))]
)
def test_the_number_of_threads_changes_no_bit(shape, dim):
    """Pieces are cut by length alone."""
    for dtype in ("int16", *HALVES):
        x = drawn(shape, dtype)
        options = {"dtype": tc.int64} if dtype == "int16" else {}
        made = []
        for count in (1, 3, 3, 3):
            tc.set_num_threads(count)
            made.append(kernel("sum")[0](x, dim=dim, **options).tobytes() + kernel("amax")[0](x, dim=dim).tobytes())
        assert len(set(made)) == 1
