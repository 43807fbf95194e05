"""Functions of doubles that run SciPy's loops: its bits, and PyTorch's corners; Airy's function and trigamma, which have loops of
their own."""

import numpy as np
import pytest

import tensorcore

from .native import awkward, isa, kernel, layouts, needs_native  # noqa: F401

pytestmark = [needs_native, pytest.mark.filterwarnings("ignore")]

RANDOM = np.random.default_rng(8)
ONE = [
    "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "modified_bessel_k0", "modified_bessel_k1",
    "scaled_modified_bessel_k0", "scaled_modified_bessel_k1", "entr", "erfcx", "log_ndtr", "ndtri",
]  # fmt: skip
TWO = ["igamma", "igammac", "zeta"]
ENDS = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 1.0, -1.0, 2.0, -2.5, 5e-324, -5e-324, 1e308, 0.5])


def values(count=67):
    """Ordinary numbers of both signs, and all that is not ordinary."""
    return np.concatenate(
        [awkward(np.float64, count), ENDS, RANDOM.uniform(0, 1, count), RANDOM.uniform(-30, 30, count)]
    )


def assert_equal(got, expected):
    """The same numbers, shape and dtype, NaN where there is one."""
    assert type(got) is np.ndarray
    assert (got.dtype, got.shape) == (np.float64, np.shape(expected))
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("name", ONE)
def test_functions_of_one(name):
    """In every layout, 0-d and empty ones among them, in a place, and on threads."""
    native, fallback = kernel(name)
    for x in layouts(values()).values():
        assert_equal(native(x), fallback(x))
    x = values(9001)
    expected = fallback(x)
    for threads in (1, 2):
        tensorcore.set_num_threads(threads)
        assert_equal(native(x), expected)
    place = np.empty_like(x)
    assert native(x, out=place) is place
    assert_equal(place, expected)


@pytest.mark.parametrize("name", TWO)
def test_functions_of_two(name):
    """All that is not ordinary beside all of it, rows beside columns, and in a place."""
    native, fallback = kernel(name)
    x, y = np.concatenate([ENDS, RANDOM.uniform(0, 30, 40)]), np.concatenate([ENDS, RANDOM.uniform(0, 30, 41)])
    wide = np.broadcast_arrays(x[:, None], y)
    expected = fallback(*[one.copy() for one in wide])
    assert_equal(native(x[:, None], y), expected)
    assert_equal(native(x[::-1, None], y[::2]), expected[::-1, ::2])
    assert_equal(native(x[40:41].reshape(()), y), expected[40])
    place = np.empty_like(expected)
    assert native(x[:, None], y, out=place) is place
    assert_equal(place, expected)


@pytest.mark.parametrize("order", [0, 2, 3, 7, 20, 25])
def test_derivatives_of_digamma(order):
    """Of positive numbers by the zeta function, and of others by the sums of the fallback."""
    native, fallback = kernel("polygamma")
    x = np.concatenate([RANDOM.uniform(0, 40, 50), 10.0 ** RANDOM.uniform(-8, 8, 20), [np.inf]])
    assert_equal(native(x, n=order), fallback(x, n=order))
    assert_equal(native(x[:8].reshape(2, 4).T, n=order), fallback(x[:8].reshape(2, 4).T, n=order))
    if order < 20:
        mixed = np.concatenate([x, ENDS])
        got, expected = native(mixed, n=order), fallback(mixed, n=order)
        np.testing.assert_allclose(got, expected, 0 if order else 1e-15)


def test_digamma(isa):  # noqa: F811
    """SciPy's bits from 0 on; under 0 to 2e-15 of 40 digits, about the root next to 0 too."""
    native, fallback = kernel("digamma")
    right = np.concatenate([ENDS, RANDOM.uniform(0, 30, 600)])
    right = right[~(right < 0)]
    assert_equal(native(right), fallback(right))
    left = np.array(
        [-0.25, -0.504, -0.50408300826, -0.7, -0.80, -0.82, -1e-30, -1.25, -1.9999603198898175, -3.75, -1234.125]
    )
    exact = [
        2.9141391202135276,
        0.0007420716047053968,
        3.983077340911105e-11,
        -2.073952793628704,
        -4.03903989659219,
        -4.650730804222463,
        9.999999999999999e29,
        3.714139120213528,
        -25200.62002495172,
        -1.6923885983113303,
        14.70299817831142,
    ]
    np.testing.assert_allclose(native(left), exact, 2e-15)
    assert np.isnan(native(np.array([-1.0, -2.0, -1e17, -np.inf, np.nan]))).all()
    mixed = np.concatenate([right, left])
    expected = np.concatenate([native(right), native(left)])
    for x in (mixed, np.repeat(mixed, 2)[::2]):
        assert_equal(native(x), expected)
    assert native(mixed, out=mixed) is mixed
    assert_equal(mixed, expected)


def test_lgamma(isa):  # noqa: F811
    """Within 3 units of 40 digits, beside 1 and 2 too, where the value is nearly 0; under 0 by reflection, but near a root."""
    native, fallback = kernel("lgamma")
    x = np.array(
        [
            0.9999999994411558,
            0.999,
            1.0000000001,
            1.4616321449683622,
            1.9999999998,
            2.5,
            3.25,
            7.9,
            8.1,
            0.2,
            1e-300,
            10000000000.0,
            -0.25,
            -1.5,
            -2.457024738220801,
            -2.75,
            -10.5,
            -49.25,
            -60.75,
        ]
    )
    exact = [
        3.225736227786465e-10,
        0.0005780385328913802,
        -5.772157125783244e-11,
        -0.12148629053584961,
        -8.455687400306129e-11,
        0.2846828704729192,
        0.9358019311087253,
        8.32426586800881,
        8.72738826343204,
        1.5240638224307845,
        690.7755278982137,
        220258509288.81058,
        1.589575312551186,
        0.860047015376481,
        -6.168712140884665e-16,
        0.004487897535955773,
        -15.147270590717842,
        -144.05056812020274,
        -190.2184905728144,
    ]
    np.testing.assert_allclose(native(x), exact, 7e-16)
    ordinary = np.concatenate([ENDS, 10.0 ** RANDOM.uniform(-300, 300, 300), RANDOM.uniform(-60, 60, 700)])
    np.testing.assert_allclose(native(ordinary), fallback(ordinary), 1e-13, 1e-13)
    np.testing.assert_array_equal(native(np.repeat(ordinary, 2)[::2]), native(ordinary))
    expected = native(ordinary)
    assert native(ordinary, out=ordinary) is ordinary
    assert_equal(ordinary, expected)


def test_trigamma(isa):  # noqa: F811
    """Within 6 roundings of SciPy's, which is off by up to 4 of them where this is by up to 3 (measured by 40 digits)."""
    native, fallback = kernel("trigamma")
    x = np.concatenate([RANDOM.uniform(0, 1, 500), RANDOM.uniform(1, 13, 500), 10.0 ** RANDOM.uniform(-100, 150, 200)])
    np.testing.assert_allclose(native(x), fallback(x), 6 * np.finfo(np.float64).eps)
    np.testing.assert_array_equal(native(x[::3]), native(x)[::3])
    np.testing.assert_array_equal(kernel("polygamma")[0](x, n=1), native(x))
    assert native(np.array([np.inf, 0.0, -1.0])).tolist() == [0, np.inf, np.inf]
    assert np.isnan(native(np.array([np.nan, -np.inf]))).all()
    left = np.array([-0.25, -1.5, -7.75, -19.5])
    exact = [18.541879647671607, 9.379246644989124, 19.61814433435229, 9.819614808659397]
    np.testing.assert_allclose(native(left), exact, 2e-15)


def test_airy(isa):  # noqa: F811
    """As near to the truth as SciPy's; both lose as many digits as the phase has before the point."""
    native, fallback = kernel("airy_ai")
    eps = np.finfo(np.float64).eps
    near, right, left = RANDOM.uniform(-2, 2, 500), RANDOM.uniform(2, 90, 500), RANDOM.uniform(-300, -2, 500)
    np.testing.assert_allclose(native(near), fallback(near), 0, 50 * eps)
    np.testing.assert_allclose(native(right), fallback(right), 2000 * eps)
    np.testing.assert_allclose(native(left), fallback(left), 0, 2000 * eps)
    np.testing.assert_array_equal(native(left[::3]), native(left)[::3])
    assert native(np.array([200.0, 1e300])).tolist() == [0, 0]
    assert np.isnan(native(np.array([np.nan, np.inf, -np.inf]))).all()
    far = native(
        np.array([-1e25, -1e205, -1e206])
    )  # where SciPy has NaN, and PyTorch until the phase is infinite a number
    np.testing.assert_array_equal(np.isnan(far), [False, False, True])
    assert native(np.array(0.0)) == 0.3550280538878172
