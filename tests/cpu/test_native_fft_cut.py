"""Long Fourier transforms, cut into rows and columns: errors beside SciPy's in extended precision, ways through memory, threads."""

import numpy as np
import pytest
import scipy.fft

import tensorcore
from tests.cpu.native import isa, kernel, needs_native  # noqa: F401
from tests.cpu.test_native_fft import assert_close, drawn

pytestmark = [needs_native, pytest.mark.usefixtures("isa")]
SIZES = [256, 272, 289, 512, 1000, 2048, 2304, 2500, 3721, 4096, 6561, 8190, 44100, 65536]


def expected(x, forward):
    """The transform along the last dim in extended precision."""
    x = x.astype("G")
    return scipy.fft.fft(x) if forward else scipy.fft.ifft(x, norm="forward")


def expected_of_half(half, n, forward):
    """Real numbers from half a spectrum in extended precision."""
    half = half.astype("G")
    return scipy.fft.irfft(half.conj() if forward else half, n, norm="forward")


def every_way(name, x, **options):
    """A kernel's result for rows of ``x``: side by side, every second number of longer rows, and as columns."""
    run = kernel(name)[0]
    yield run(x, dims=(1,), **options)
    yield run(np.repeat(x, 2, axis=1)[:, ::2], dims=(1,), **options)
    yield run(np.ascontiguousarray(x.T), dims=(0,), **options).T


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize("forward", [True, False])
def test_errors(n, single, forward):
    """Each transform is as accurate as that of short lines, of one line, of a few and of more than there are lanes."""
    for lines in (1, 3, 19) if n < 5000 else (1, 2):
        x, z = drawn("f" if single else "d", lines, n), drawn("F" if single else "D", lines, n)
        half = np.ascontiguousarray(z[:, : n // 2 + 1])
        of_complex, of_real, of_half = expected(z, forward), expected(x, forward), expected_of_half(half, n, forward)
        options = {"forward": forward, "scale": 0.5}
        for made in every_way("fft_c2c", z, **options):
            assert_close(made, 0.5 * of_complex)
        for made in every_way("fft_c2c", x, **options):
            assert_close(made, 0.5 * of_real)
            assert not made[:, 0].imag.any()
        for made in every_way("fft_r2c", x, **options):
            assert_close(made, 0.5 * of_real[:, : n // 2 + 1])
            assert not made[:, 0].imag.any()
            assert n % 2 or not made[:, -1].imag.any()
        for made in every_way("fft_c2r", half, size=n, **options):
            assert_close(made, 0.5 * of_half)


@pytest.mark.parametrize("dims", [(0, 1), (1, 0), (1, 2, 0)])
def test_several_dims(dims):
    """What was transformed along one dim is transformed in its own place along the next: SciPy's, with a factor."""
    z = drawn("D", 2500, 2, 256)[:, :, ::-1].transpose(1, 0, 2)
    x = np.ascontiguousarray(z.real)
    options = {"dims": dims, "forward": True, "scale": 0.5}
    for name, a in (("fft_c2c", z), ("fft_c2c", x), ("fft_r2c", x)):
        mine, twin = kernel(name)
        assert_close(mine(a, **options), twin(a, **options), 4)
    mine, twin = kernel("fft_c2r")
    size = 2 * z.shape[dims[-1]] - 2
    assert_close(mine(z, size=size, **options), twin(z, size=size, **options), 4)


def test_a_line_keeps_its_nan_to_itself():
    """NaN and infinities fill their own line, also where lines are copied together."""
    x = drawn("f", 5, 2304)
    x[1, 5], x[3, 0] = np.nan, np.inf
    for name in ("fft_r2c", "fft_c2c"):
        for made in every_way(name, x, forward=True, scale=1.0):
            bad = ~np.isfinite(made)
            assert bad[1].all()
            assert bad[3].all()
            assert not np.delete(bad, [1, 3], 0).any()


def test_denormals():
    """Numbers under the normal range keep their transform: a shifted impulse of the smallest one has that magnitude everywhere."""
    x = np.zeros((1, 4096), np.float64)
    x[0, 0] = 5e-324
    made = kernel("fft_c2c")[0](x.astype("D"), dims=(1,), forward=True, scale=1.0)
    np.testing.assert_array_equal(made, np.full((1, 4096), 5e-324 + 0j))


@pytest.mark.parametrize("shape", [(1, 44100), (1, 65536), (2, 8192), (40, 2304)])
def test_the_number_of_threads_changes_no_bit(shape):
    """One line shared out and many lines give the same bits on one thread and on three, each way through memory."""
    z = drawn("F", *shape)
    found = []
    for count in (1, 3):
        tensorcore.set_num_threads(count)
        found.append(
            [*every_way("fft_c2c", z, forward=True, scale=1.0), *every_way("fft_r2c", z.real, forward=True, scale=1.0)]
        )
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


def test_more_sizes_than_are_kept():
    """A cut plan outlives the plans of its rows and columns, and is right when it is made again."""
    twin = kernel("fft_c2c")[1]
    options = {"dims": (1,), "forward": True, "scale": 1.0}
    for n in [*range(2304, 4608, 48), *range(2304, 4608, 48)]:
        if all(n % prime for prime in range(67, 97)):
            z = drawn("D", 1, n)
            np.testing.assert_allclose(kernel("fft_c2c")[0](z, **options), twin(z, **options), atol=1e-11)
