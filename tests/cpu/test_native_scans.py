"""Running sums and products in C beside NumPy's, along each dim."""

import ml_dtypes
import numpy as np
import pytest

import tensorcore

from .native import assert_same, awkward, kernel, layouts, needs_native

pytestmark = [needs_native, pytest.mark.usefixtures("isa")]

INTEGERS = ["int8", "int16", "int32", "int64", "uint8"]
SHAPES = [(3, 70, 5), (2, 9, 600), (5, 1, 1), (1, 4, 2), (40000, 3)]


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers(name, dtype):
    """Of integers they are NumPy's to the bit, those that wrap around too, in any layout and along any dim."""
    native, fallback = kernel(name)
    for x in layouts(awkward(dtype, 1000)).values():
        for dim in range(x.ndim):
            assert_same(native(x, dim=dim), fallback(x, dim=dim))
    for shape in SHAPES:
        x = awkward(dtype, int(np.prod(shape))).reshape(shape)
        for dim in range(len(shape)):
            assert_same(native(x, dim=dim), fallback(x, dim=dim))


@pytest.mark.parametrize("name", ["cummax", "cummin"])
@pytest.mark.parametrize("dtype", [*INTEGERS, "bool"])
def test_extremes_of_integers(name, dtype):
    """The extreme so far and where it was met last are NumPy's, in any layout and along any dim."""
    native, fallback = kernel(name)
    few = awkward("int8", 1000) // 50 if dtype == "int8" else awkward(dtype, 1000)
    arrays = [*layouts(few).values(), *(awkward(dtype, int(np.prod(shape))).reshape(shape) for shape in SHAPES)]
    for x in arrays:
        for dim in range(x.ndim):
            for got, expected in zip(native(x, dim=dim), fallback(x, dim=dim), strict=True):
                assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
                np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("dtype", [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)], ids=str)
def test_products_of_halves(dtype):
    """They are NumPy's but for a unit: those are products of floats, rounded one by one."""
    native, fallback = kernel("cumprod")
    for shape in SHAPES[:-1]:
        x = np.random.default_rng(8).uniform(0.9, 1.1, shape).astype(dtype)
        for dim in range(3):
            got, expected = native(x, dim=dim), fallback(x, dim=dim)
            assert got.dtype == dtype
            np.testing.assert_allclose(
                got.astype(np.float32), expected.astype(np.float32), float(ml_dtypes.finfo(dtype).eps)
            )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products(dtype):
    """Products of floats are NumPy's, which are made in double, one factor after the other."""
    native, fallback = kernel("cumprod")
    for x in layouts(awkward(dtype, 1000)).values():
        for dim in range(x.ndim):
            assert_same(native(x, dim=dim), fallback(x, dim=dim))
    for shape in SHAPES[:-1]:
        x = (np.random.default_rng(8).standard_normal(shape) + 1).astype(dtype)
        for dim in range(3):
            assert_same(native(x, dim=dim), fallback(x, dim=dim))


# Lines of few rows and columns, more of them than are taken side by side.
SHORT = [(*front, rows, *behind) for rows in (1, 2, 3, 4, 5, 9, 33, 70) for front, behind in (
    ((1,), ()), ((11,), ()), ((103,), ()), ((7,), (2,)), ((7,), (3,)), ((1,), (4,)), ((9,), (7,)), ((2,), (40,)))]  # fmt: skip


@pytest.mark.parametrize("name", ["cumsum", "cumsum_back", "cumprod"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "int64"])
def test_short_lines(name, dtype):
    """Of short lines they are what sums and products in double are, each rounded once, from the end too; of integers to the bit."""
    native = kernel(name)[0]
    make = np.cumprod if name == "cumprod" else np.cumsum
    for shape in SHORT:
        x = awkward(dtype, int(np.prod(shape)) + 12)[12:]  # without the largest numbers, beside which others are lost
        if x.dtype.kind == "f":
            for k, special in enumerate((np.inf, -np.inf, np.nan, -0.0, np.finfo(dtype).tiny / 4)):
                x[k * 7 + 3 :: 41] = special
        x = x.reshape(shape)
        turned = np.flip(x, 1) if name == "cumsum_back" else x
        expected = make(turned, axis=1, dtype=np.float64 if dtype == "float32" else dtype).astype(dtype)
        expected = np.flip(expected, 1) if name == "cumsum_back" else expected
        limits = {"float32": (1e-7, 0), "float64": (1e-14, 1e-12)}  # one by one, but for long lines of doubles
        np.testing.assert_allclose(native(x, dim=1), expected, *limits.get(dtype, (0, 0)))
        assert native(x, dim=1).dtype == x.dtype


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16], ids=["half", "bfloat16"])
def test_sums_from_the_end_of_halves(dtype):
    """They are sums of floats, rounded once."""
    x = np.random.default_rng(8).standard_normal((5, 9, 3)).astype(dtype)
    for dim in range(3):
        expected = np.flip(np.cumsum(np.flip(x.astype(np.float64), dim), axis=dim), dim)
        got = kernel("cumsum_back")[0](x, dim=dim)
        assert got.dtype == dtype
        eps = float(ml_dtypes.finfo(dtype).eps)
        np.testing.assert_allclose(got.astype(np.float64), expected, eps / 2 * 1.01, 1e-6)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_sums_of_complex_numbers(dtype):
    """Those of parts of 32 bits are made in double and rounded once, and others are NumPy's."""
    native = kernel("cumsum")[0]
    for shape in (*SHAPES, (103,), (50, 9), (4, 7)):
        x = np.random.default_rng(8).standard_normal((*shape, 2)).astype("f4" if dtype == "complex64" else "f8")
        x = x.view(dtype)[..., 0]
        for dim in range(len(shape)):
            got, expected = native(x, dim=dim), np.cumsum(x, axis=dim, dtype=np.complex128).astype(dtype)
            assert (got.dtype, got.shape, got.flags.c_contiguous) == (expected.dtype, expected.shape, True)
            np.testing.assert_allclose(got, expected, 2e-7, 0)
    x = x.reshape(2, 14)[:, ::-2]
    np.testing.assert_allclose(native(x, dim=1), np.cumsum(x, axis=1), 1e-5)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_infinities_in_sums_of_complex_numbers(dtype):
    """What follows an infinity is infinite, and NaN from the other one on, in each part on its own."""
    x = np.zeros(11, dtype)
    x.real[3], x.real[6], x.imag[5], x.imag[8] = np.inf, -np.inf, np.nan, 1
    got = kernel("cumsum")[0](x, dim=0)
    np.testing.assert_array_equal(got.real, [0, 0, 0, np.inf, np.inf, np.inf, *[np.nan] * 5])
    np.testing.assert_array_equal(got.imag, [*[0] * 5, *[np.nan] * 6])


def test_another_dtype_is_left_to_numpy():
    """A dtype that the kernel is asked for is NumPy's to give."""
    native, fallback = kernel("cumsum")
    x = awkward("int8", 30)
    assert_same(native(x, dim=0, dtype=tensorcore.int64), fallback(x, dim=0, dtype=tensorcore.int64))


def test_threads():
    """Lines that several threads share have the same bits."""
    x = awkward("int64", 120000)
    c = x.astype(np.float32).view(np.complex64)
    for shape in ((400, 300), (4, 30000), (30000, 4)):
        for dim in (0, 1):
            made = []
            for count in (1, 3):
                tensorcore.set_num_threads(count)
                made.append((kernel("cumsum")[0](x.reshape(shape), dim=dim),
                             kernel("cumsum")[0](c.reshape(shape[0], -1), dim=dim)))  # fmt: skip
            for one, other in zip(*made, strict=True):
                assert_same(one, other)
