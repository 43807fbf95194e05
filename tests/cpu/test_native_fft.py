"""Fourier transforms in C: errors beside sums in extended precision, and SciPy's results for everything else.

Lines that are cut into rows are in ``test_native_fft_cut.py``.
"""

import functools

import numpy as np
import pytest

import tensorcore
from tests.cpu.native import isa, kernel, needs_native  # noqa: F401

pytestmark = [needs_native, pytest.mark.usefixtures("isa")]
SIZES = [*range(1, 65), 72, 121, 128, 210, 243, 625, 1000, 1024, 2048]


@functools.cache
def roots(n):
    """The matrix of a transform, in extended precision."""
    turns = np.outer(np.arange(n), np.arange(n)) % n
    angles = turns.astype(np.longdouble) * (2 * np.arccos(np.longdouble(-1)) / n)
    return np.cos(angles), np.sin(angles)


def exact(x, forward):
    """The transform along the last dim by its definition."""
    cosines, sines = roots(x.shape[-1])
    sines = -sines if forward else sines
    real, imaginary = x.real.astype(np.longdouble), x.imag.astype(np.longdouble)
    return (real @ cosines - imaginary @ sines) + 1j * (real @ sines + imaginary @ cosines)


def assert_close(got, expected, most=1.5):
    """The error's norm is under 1.5 of the dtype's epsilon times the result's: measured are 1.2, of any size here."""
    eps = np.finfo(got.dtype).eps
    error = np.sqrt((np.abs(got - expected) ** 2).sum()) / np.sqrt((np.abs(expected) ** 2).sum())
    assert error <= most * eps


def drawn(dtype, *shape):
    random = np.random.default_rng(shape[-1])
    made = random.standard_normal(shape)
    return (made + 1j * random.standard_normal(shape) if np.dtype(dtype).kind == "c" else made).astype(dtype)


@pytest.mark.parametrize("n", [n for n in SIZES if n <= 128])
@pytest.mark.parametrize("single", [True, False])
def test_errors(n, single):
    """Each transform of each size is as accurate as rounding allows, of one line and of many side by side."""
    for lines in (1, 19):
        x, z = drawn("f" if single else "d", lines, n), drawn("F" if single else "D", lines, n)
        for forward in (True, False):
            whole = exact(z, forward)
            assert_close(kernel("fft_c2c")[0](z, dims=(1,), forward=forward, scale=1.0), whole)
            turned = kernel("fft_c2c")[0](np.ascontiguousarray(z.T), dims=(0,), forward=forward, scale=1.0)
            assert_close(turned.T, whole)
            of_real = exact(x, forward)
            assert_close(kernel("fft_c2c")[0](x, dims=(1,), forward=forward, scale=1.0), of_real)
            half = kernel("fft_r2c")[0](x, dims=(1,), forward=forward, scale=1.0)
            assert_close(half, of_real[:, : n // 2 + 1])
            back = kernel("fft_c2r")[0](half, dims=(1,), size=n, forward=not forward, scale=1.0 / n)
            np.testing.assert_allclose(back, x, atol=4e-6 if single else 1e-14)


@pytest.mark.parametrize("n", [n for n in SIZES if n > 128])
def test_errors_of_long_lines(n):
    """The same of lines of hundreds of elements, of float32."""
    x, z = drawn("f", 3, n), drawn("F", 3, n)
    expected = np.fft.fft(z.astype("D"))
    assert_close(kernel("fft_c2c")[0](z, dims=(1,), forward=True, scale=1.0), expected)
    assert_close(kernel("fft_r2c")[0](x, dims=(1,), forward=True, scale=1.0), np.fft.rfft(x.astype("d")))
    half = z[:, : n // 2 + 1]
    expected = np.fft.irfft(half.astype("D"), n, norm="forward")
    assert_close(kernel("fft_c2r")[0](half, dims=(1,), size=n, forward=False, scale=1.0), expected)


@pytest.mark.parametrize("dims", [(0, 1), (3, 1, 2), (0, 1, 2, 3), (2,)])
@pytest.mark.parametrize("forward", [True, False])
def test_dims_and_strides(dims, forward):
    """Several dims, in any order, of arrays that lie in any way, are SciPy's, with a factor."""
    x, z = drawn("d", 5, 6, 7, 4), drawn("D", 5, 6, 7, 4)
    options = {"dims": dims, "forward": forward, "scale": 0.5}
    for a in (x, x[::-1, :, ::2], z, z.transpose(2, 0, 3, 1)[:, ::-2], np.broadcast_to(z[:1], z.shape)):
        for name in ("fft_c2c", "fft_r2c") if a.dtype.kind == "f" else ("fft_c2c",):
            mine, twin = kernel(name)
            got, expected = mine(a, **options), twin(a, **options)
            assert (got.dtype, got.shape, got.strides) == (expected.dtype, expected.shape, expected.strides)
            np.testing.assert_allclose(got, expected, atol=1e-12)
        if a.dtype.kind == "c":
            for size in (2 * a.shape[dims[-1]] - 2, 2 * a.shape[dims[-1]] - 1):
                mine, twin = kernel("fft_c2r")
                np.testing.assert_allclose(mine(a, size=size, **options), twin(a, size=size, **options), atol=1e-12)


def test_a_line_keeps_its_nan_to_itself():
    """NaN and infinities fill their own line, also where others are transformed beside it."""
    x = drawn("f", 16, 12)
    x[3, 5], x[9, 0] = np.nan, np.inf
    made = kernel("fft_r2c")[0](x, dims=(1,), forward=True, scale=1.0)
    bad = ~np.isfinite(made)
    assert bad[3].all()
    assert bad[9].all()
    assert not np.delete(bad, [3, 9], 0).any()


def test_ends_of_real_spectra_are_real():
    """The first number of a real signal's spectrum, and of even sizes the last, have an imaginary part of exactly 0."""
    for n in (6, 7):
        made = kernel("fft_r2c")[0](drawn("f", 5, n), dims=(1,), forward=True, scale=1.0)
        assert not made[:, 0].imag.any()
        assert n % 2 or not made[:, -1].imag.any()


@pytest.mark.parametrize("n", [67, 134, 223])
@pytest.mark.parametrize("single", [True, False])
def test_sizes_with_a_large_prime(n, single):
    """Convolutions with a chirp: the error is under 4 epsilons of the norm, measured are 2.6; both ways, of one line and many."""
    for lines in (1, 19):
        z = drawn("F" if single else "D", lines, n)
        x = np.ascontiguousarray(z.real)
        for forward in (True, False):
            whole, of_real = exact(z, forward), exact(x, forward)
            assert_close(kernel("fft_c2c")[0](z, dims=(1,), forward=forward, scale=1.0), whole, 4)
            turned = kernel("fft_c2c")[0](np.ascontiguousarray(z.T), dims=(0,), forward=forward, scale=1.0)
            assert_close(turned.T, whole, 4)
            assert_close(kernel("fft_c2c")[0](x, dims=(1,), forward=forward, scale=1.0), of_real, 4)
            half = kernel("fft_r2c")[0](x, dims=(1,), forward=forward, scale=1.0)
            assert_close(half, of_real[:, : n // 2 + 1], 4)
            assert not half[:, 0].imag.any()
            back = kernel("fft_c2r")[0](half, dims=(1,), size=n, forward=not forward, scale=1.0 / n)
            assert_close(back, x, 8)


@pytest.mark.parametrize("n", [997, 1994])
def test_the_longest_sizes_with_a_large_prime(n):
    """Floats beside a transform of doubles, under 4 epsilons, and doubles beside SciPy's, under 5: theirs has errors too."""
    mine, twin = kernel("fft_r2c")
    x = drawn("d", 3, n)
    expected = twin(x, dims=(1,), forward=True, scale=1.0)
    assert_close(mine(x, dims=(1,), forward=True, scale=1.0), expected, 5)
    narrow = x.astype(np.float32)
    expected = twin(narrow.astype(np.float64), dims=(1,), forward=True, scale=1.0)
    assert_close(mine(narrow, dims=(1,), forward=True, scale=1.0), expected, 4)


def test_more_sizes_than_are_kept():
    """A plan by way of another size outlives those that its own takes the place of."""
    twin = kernel("fft_c2c")[1]
    for n in [*range(66, 1000, 29), *range(66, 1000, 29)]:
        z = drawn("D", 1, n)
        options = {"dims": (1,), "forward": True, "scale": 1.0}
        np.testing.assert_allclose(kernel("fft_c2c")[0](z, **options), twin(z, **options), atol=1e-11)


@pytest.mark.parametrize("n", [1031, 2049, 4124])
def test_other_sizes(n):
    """Sizes over 1024 with a large prime are SciPy's, bit for bit."""
    z = drawn("D", 2, n)
    mine, twin = kernel("fft_c2c")
    options = {"dims": (1,), "forward": False, "scale": 0.25}
    np.testing.assert_array_equal(mine(z, **options), twin(z, **options))


@pytest.mark.parametrize("name", ["fft_c2c", "fft_r2c"])
def test_a_size_that_a_kernel_does_not_take(name):
    """Nothing is read behind the end of a line: the twin refuses the option."""
    with pytest.raises(TypeError, match="size"):
        kernel(name)[0](np.ones(4), dims=(0,), forward=True, scale=1.0, size=64)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0, 2)])
def test_without_elements(shape):
    """Without elements there are zeros of the right shape."""
    made = kernel("fft_c2c")[0](np.empty(shape), dims=(len(shape) - 1,), forward=True, scale=1.0)
    assert (made.shape, made.dtype) == (shape, np.complex128)


def test_many_sizes_in_turn():
    """Sizes that were forgotten in favour of later ones are right when they come again."""
    for n in [*range(1, 60), *range(1, 60)]:
        x = drawn("d", n)
        np.testing.assert_allclose(
            kernel("fft_r2c")[0](x, dims=(0,), forward=True, scale=1.0), np.fft.rfft(x), atol=1e-12
        )


def test_the_number_of_threads_changes_no_bit():
    """A batch of lines gives the same bits on one thread and on three."""
    z = drawn("F", 300, 360)
    found = []
    for count in (1, 3):
        tensorcore.set_num_threads(count)
        found.append(kernel("fft_c2c")[0](z, dims=(0, 1), forward=True, scale=1.0))
    np.testing.assert_array_equal(*found)
