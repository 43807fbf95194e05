"""Orthogonal polynomials in C, several elements at once, against NumPy's kernels and against one element at a time."""

import numpy as np
import pytest

import tensorcore

from .native import awkward, kernel, needs_native

pytestmark = [needs_native, pytest.mark.usefixtures("isa")]

FLOATS = [np.float32, np.float64]
NAMES = [
    *(f"{shifted}chebyshev_polynomial_{kind}" for shifted in ("", "shifted_") for kind in "tuvw"),
    "hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p",
]  # fmt: skip


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", NAMES)
def test_orthogonal_polynomials_are_scipys(name, dtype):
    """Of orders up to 20, negative and broken ones, inside and outside of the interval they are orthogonal on."""
    native, fallback = kernel(name)
    x, n = np.meshgrid(np.linspace(-1.5, 1.5, 31), [-3, -1, -0.5, 0, 0.5, 1, 2, 3.7, 6, 7, 12, 20, np.nan])
    expected = fallback(x.ravel(), n.ravel())
    found = native(x.ravel().astype(dtype), n.ravel().astype(dtype))
    scale = np.maximum(np.abs(expected), 1)
    assert (np.abs(found - expected) / scale <= 2000 * np.finfo(dtype).eps).all()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", NAMES)
def test_neighbours_do_not_matter(name, dtype, threads):
    """An element is what it is by itself, whatever the orders beside it, wherever it lies and whatever is left behind whole vectors."""
    tensorcore.set_num_threads(threads)
    native = kernel(name)[0]
    random = np.random.default_rng(8)
    for count in (1, 15, 16, 17, 67, 5001):
        x = awkward(dtype, max(count, 67))[-count:] if count > 12 else np.array([0.5], dtype)
        n = random.choice([-1, 0, 1, 2, 5, 6, 7, 64, 65, 300, np.nan], count).astype(dtype)
        single = np.array([native(x[i : i + 1], n[i : i + 1])[0] for i in range(min(count, 67))], dtype)
        strided = np.repeat(x, 3)[::3], np.repeat(n, 2)[::2]
        out = np.empty(2 * count, dtype)[::2]
        for found in (native(x, n), native(*strided), native(x, n, out=out), native(x[::-1], n[::-1])[::-1]):
            np.testing.assert_array_equal(found[:67], single)
        assert native(x, n[:1]).tobytes() == native(x, np.repeat(n[:1], count)).tobytes()
    assert native(np.empty((0, 3), dtype), n[:3]).shape == (0, 3)
    assert native(x[:1].reshape(()), n[0:1].reshape(())).shape == ()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", NAMES)
def test_the_ends_of_the_interval(name, dtype):
    """Where formulas by angles divide by zero, and at zeros of either sign and the least number, it is what NumPy's kernel gives."""
    native, fallback = kernel(name)
    x, n = np.meshgrid(np.array([1, -1, 0, -0.0, 1e-45], dtype), np.array([-1, 0, 1, 2, 3, 9, 70], dtype))
    bound = 2000 * np.finfo(dtype).eps
    np.testing.assert_allclose(
        native(x, n), fallback(x.astype(np.float64), n.astype(np.float64)).astype(dtype), rtol=bound, atol=bound
    )


# The first order, and order k + 1 from the two before it.
STEPS = {
    "chebyshev_polynomial_w": (lambda x: 2 * x + 1, lambda x, last, before, k: 2 * x * last - before),
    "hermite_polynomial_h": (lambda x: 2 * x, lambda x, last, before, k: (x * last - k * before) * 2),
    "laguerre_polynomial_l": (
        lambda x: 1 - x,
        lambda x, last, before, k: ((2 * k + 1 - x) * last - k * before) / (k + 1),
    ),
    "legendre_polynomial_p": (lambda x: x, lambda x, last, before, k: ((2 * k + 1) * x * last - k * before) / (k + 1)),
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", STEPS)
def test_infinities_and_nan(name, dtype):
    """They go through the recurrence as any number does, also beside an element of a higher order; order 0 is 1 all the same."""
    first, following = STEPS[name]
    for x in np.array([np.inf, -np.inf, np.nan]):
        expected = [1.0, first(x)]
        for k in range(1, 5):
            expected.append(following(x, expected[-1], expected[-2], k))
        found = kernel(name)[0](np.full(6, x, dtype), np.arange(6, dtype=dtype))
        np.testing.assert_array_equal(found, np.array(expected, dtype))


@pytest.mark.parametrize("kind", "tuvw")
def test_high_orders_of_single_precision_are_those_of_double(kind):
    """A recurrence in double is as near as the formula by angles, up to where the one takes the other's place and beyond."""
    native = kernel(f"chebyshev_polynomial_{kind}")[0]
    x, n = np.meshgrid(np.linspace(-0.999, 0.999, 501, dtype=np.float32), np.array([20, 50, 64, 65, 100], np.float32))
    expected = native(x.astype(np.float64), n.astype(np.float64))
    assert (abs(native(x, n) - expected) <= 1e-6 * np.maximum(abs(expected), 1)).all()
