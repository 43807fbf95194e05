"""Bessel's and Airy's functions of floats in C beside SciPy's of doubles, on each instruction set."""

import numpy as np
import pytest

from .native import kernel, layouts, needs_native

pytestmark = [needs_native, pytest.mark.usefixtures("isa")]

WAVES = ["bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "airy_ai"]
DECAYS = ["modified_bessel_k0", "modified_bessel_k1", "scaled_modified_bessel_k0", "scaled_modified_bessel_k1"]
CORNERS = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 3e38, 2.0, -2.0, 5.0, 1.0], np.float32)


def exact(name, x):
    with np.errstate(over="ignore"):
        return kernel(name)[1](x.astype(np.float64))


def points(most):
    """Numbers of both signs on both sides of the limits between the formulas, near ones and far ones mixed and apart."""
    random = np.random.default_rng(8)
    parts = [random.uniform(-6, 6, 1500), random.uniform(-most, most, 1500), 10 ** random.uniform(-38, 0.5, 700)]
    return np.concatenate([*parts, random.permutation(np.concatenate(parts))]).astype(np.float32)


@pytest.mark.parametrize("name", WAVES + DECAYS)
def test_special_functions_of_floats(name):
    """To 0.51 units of the exact value rounded to a float, or to 1e-14 of the wave's height beside a zero; NaN in the same places."""
    x = points(3e3)
    got, expected = kernel(name)[0](x), exact(name, x)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
    usual = np.isfinite(expected) & (np.abs(expected) < 3.4e38) & (np.abs(expected) > 1e-37)
    error = np.abs(got - expected)[usual]
    units = error / np.spacing(np.abs(expected[usual]).astype(np.float32))
    assert np.where(error < 1e-14, 0, units).max() < 0.51
    assert (got[np.abs(expected) > 3.5e38] == expected[np.abs(expected) > 3.5e38].astype(np.float32)).all()


@pytest.mark.parametrize("name", WAVES[:4])
def test_waves_far_out(name):
    """To 1e-7 of the wave's height, where the angle is a sine of the C library's."""
    x = np.abs(np.random.default_rng(8).uniform(9e4, 1e6, 700)).astype(np.float32)
    height = np.sqrt(2 / np.pi / x.astype(np.float64))
    assert (np.abs(kernel(name)[0](x) - exact(name, x)) / height).max() < 1e-7


@pytest.mark.parametrize("name", WAVES + DECAYS)
def test_corners_are_scipys(name):
    """Zeros, infinities, NaN, denormals, the largest numbers and the limits between formulas."""
    corners = CORNERS[CORNERS < 1e38] if name in WAVES[:4] else CORNERS
    np.testing.assert_allclose(kernel(name)[0](corners), exact(name, corners).astype(np.float32), rtol=2e-7)


def test_airys_function_far_on_the_left():
    """NaN where the phase is beyond the floats, as from PyTorch; before that a number, where SciPy has none."""
    got = kernel("airy_ai")[0](np.array([-3e38, -1e26, -1e25, -1e9], np.float32))
    np.testing.assert_array_equal(np.isnan(got), [True, True, False, False])


@pytest.mark.parametrize("name", ["bessel_y0", "airy_ai"])
def test_layouts(name):
    """Elements are taken where they lie."""
    native, _ = kernel(name)
    for values in layouts(points(30)[:67]).values():
        np.testing.assert_array_equal(native(values), native(values.copy()))
