"""Norms and variances of complex numbers in C against NumPy's."""

import numpy as np
import pytest

import tensorcore
from tensorcore.plugin import dtypes

from .native import FOLDS, kernel, layouts, needs_native
from .test_native_complex_formulas import pairs

pytestmark = needs_native

_NEAR = {np.complex64: 1e-5, np.complex128: 1e-12}
_FEW = [(shape, dim) for shape, dim in FOLDS if np.prod(shape) < 3000]
_DTYPES = [np.complex64, np.complex128]


def assert_alike(got, expected, dtype, rtol=None):
    assert (got.dtype, got.shape) == (dtype, np.shape(expected))
    np.testing.assert_allclose(got, expected, rtol=rtol or 1e-5)


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("p", [2, 1, 3, 0, 0.5, -1.5, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", _DTYPES)
def test_norms(isa, dtype, p, keepdim):
    """Along any dims, of any order and layout, they are those of the sizes of the numbers."""
    native, numpy = kernel("norm")
    for shape, dim in _FEW:
        x = pairs(dtype, int(np.prod(shape))).reshape(shape)
        for one in (x, np.asfortranarray(x), np.repeat(x, 2, -1)[..., ::2]):
            expected = np.asarray(numpy(one.astype(np.complex128), p=p, dim=dim, keepdim=keepdim))
            assert_alike(native(one, p=p, dim=dim, keepdim=keepdim), expected, x.real.dtype, 10 * _NEAR[dtype])


@pytest.mark.parametrize("p", [2, 1, 3, np.inf])
@pytest.mark.parametrize("dtype", _DTYPES)
def test_norms_of_what_is_not_finite(isa, dtype, p):
    """An infinity is one, a NaN too, and nothing at all is 0; numbers without dims have their sizes."""
    native, numpy = kernel("norm")
    inf, nan = np.inf, np.nan
    for values in ([inf, 1j], [complex(1, inf), 2], [nan, 1j], [complex(0, nan), 2], []):
        if values or not np.isinf(p):
            x = np.array(values, dtype)
            np.testing.assert_array_equal(
                native(x, p=p, dim=None, keepdim=False), numpy(x, p=p, dim=None, keepdim=False)
            )
    assert_alike(native(np.array(3 - 4j, dtype), p=p, dim=None, keepdim=False), 5, np.zeros(0, dtype).real.dtype)


@pytest.mark.parametrize("correction", [0, 1, 2.5])
@pytest.mark.parametrize("root", [False, True])
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("dtype", _DTYPES)
def test_variances(isa, dtype, keepdim, root, correction):
    """They are those of both parts together, with the means beside them, along any dims and of any layout."""
    options = {"keepdim": keepdim, "correction": correction, "root": root}
    for shape, dim in _FEW:
        x = pairs(dtype, int(np.prod(shape))).reshape(shape) + dtype(3 - 1j)
        for one in (x, np.asfortranarray(x)):
            with np.errstate(all="ignore"):
                spread, centre = kernel("var_mean")[1](one.astype(np.complex128), dim=dim, **options)
            made, mean = kernel("var_mean")[0](one, dim=dim, **options)
            assert_alike(made, spread, x.real.dtype, 10 * _NEAR[dtype])
            assert_alike(mean, centre, x.dtype, 10 * _NEAR[dtype])
            assert_alike(kernel("var")[0](one, dim=dim, **options), made, x.real.dtype)


@pytest.mark.parametrize("dtype", _DTYPES)
def test_threads_change_nothing(isa, dtype):
    """Sizes of many numbers are the same on one thread and on two."""
    x, before, made = pairs(dtype, 60_000).reshape(300, 200), tensorcore.get_num_threads(), []
    try:
        for threads in (1, 2):
            tensorcore.set_num_threads(threads)
            made.append([kernel("norm")[0](x, p=p, dim=(1,), keepdim=False).tobytes() for p in (2, 3)])
    finally:
        tensorcore.set_num_threads(before)
    assert made[0] == made[1]


@pytest.mark.parametrize("layout", sorted(layouts(np.zeros(9))))
@pytest.mark.parametrize("dtype", _DTYPES)
def test_what_is_not_zero(isa, dtype, layout):
    """A number counts where either part does, a NaN too; it is listed, counted, and looked for along dims."""
    random = np.random.default_rng(3)
    values = (random.integers(-1, 2, 67) + 1j * random.integers(-1, 2, 67)).astype(dtype)
    values[3:6] = complex(0, np.nan), complex(np.nan, 0), complex(0, -0.0)
    x = layouts(values)[layout]
    whole, along = {"dim": None, "keepdim": False}, [{"dim": (0,), "keepdim": True}] if x.ndim else []
    for name, calls in {
        "nonzero": [{}], "nonzero_by_dim": [{}], "any": [whole, *along], "all": [whole, *along],
        "count_nonzero": [{"dim": None}, *[{"dim": (0,)} for _ in along]],
    }.items():  # fmt: skip
        native, numpy = kernel(name)
        for options in calls:
            got, expected = native(x, **options), numpy(x, **options)
            for one, other in zip(*[made if type(made) is tuple else (made,) for made in (got, expected)], strict=True):
                assert one.dtype == other.dtype
                np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("given", [np.float32, np.float64, *_DTYPES])
@pytest.mark.parametrize("into", [dtypes.complex64, dtypes.complex128], ids=lambda one: one.name)
def test_numbers_become_complex_ones(isa, given, into):
    """Of one precision or the other, real ones with no imaginary part."""
    native, numpy = kernel("cast")
    for x in layouts(
        pairs(np.complex128).astype(given) if given in _DTYPES else pairs(np.complex128).real.astype(given)
    ).values():
        np.testing.assert_array_equal(native(x, dtype=into), numpy(x, dtype=into))
        assert native(x, dtype=into).dtype == into.numpy
