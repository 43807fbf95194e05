"""Optimizer steps in C beside NumPy's: every switch, many parameters of uneven sizes, each instruction set."""

import itertools

import numpy as np
import pytest

import tensorcore

from .native import kernel, needs_native

pytestmark = [needs_native, pytest.mark.usefixtures("isa")]

FLOATS = ["float32", "float64"]
SIZES = [(3,), (), (40, 50), (0, 4), (1,), (67,), (300, 101)]


def arrays(dtype, seed, positive=False):
    random = np.random.default_rng(seed)
    made = [np.asarray(random.standard_normal(size), dtype) for size in SIZES]
    return [np.asarray(np.abs(one)) for one in made] if positive else made


def copies(*lists):
    return [None if one is None else [each.copy() for each in one] for one in lists]


def check(got, expected):
    """To eight roundings of the numbers that are added."""
    for one, other in zip(got, expected, strict=True):
        for a, b in zip(one or [], other or [], strict=True):
            eps = np.finfo(a.dtype).eps
            np.testing.assert_allclose(a, b, rtol=8 * eps, atol=8 * eps)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "momentum, dampening, nesterov, first",
    [
        (0, 0, False, False), (0.9, 0, False, True), (0.9, 0.1, False, False), (0.9, 0, True, False),
        (0.9, 0, True, True),
    ],
)  # fmt: skip
@pytest.mark.parametrize("weight_decay, maximize", [(0.0, False), (0.01, True)])
def test_sgd(momentum, dampening, nesterov, first, weight_decay, maximize, dtype):
    """Parameters and buffers are NumPy's to a few roundings; the gradients stay as they are."""
    native, fallback = kernel("sgd_step")
    state = [arrays(dtype, 1), arrays(dtype, 2), arrays(dtype, 3) if momentum else None]
    options = dict(lr=0.1, momentum=momentum, dampening=dampening, nesterov=nesterov, first=first,
                   weight_decay=weight_decay, maximize=maximize)  # fmt: skip
    one, other = copies(*state), copies(*state)
    assert native(*one, **options) is None
    fallback(*other, **options)
    check(one, other)
    for a, b in zip(one[1], state[1], strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("amsgrad, decoupled, maximize", list(itertools.product([False, True], repeat=3)))
@pytest.mark.parametrize("weight_decay", [0.0, 0.05])
def test_adam(amsgrad, decoupled, maximize, weight_decay, dtype):
    """Parameters, both means and the largest are NumPy's to a few roundings, after steps of uneven number."""
    native, fallback = kernel("adam_step")
    state = [arrays(dtype, 1), arrays(dtype, 2), arrays(dtype, 3), arrays(dtype, 4, True),
             arrays(dtype, 5, True) if amsgrad else None]  # fmt: skip
    options = dict(steps=[1.0, 2.0, 2.0, 2.0, 1.0, 100.0, 7.0], lr=0.01, beta1=0.9, beta2=0.999, eps=1e-8,
                   weight_decay=weight_decay, decoupled=decoupled, maximize=maximize)  # fmt: skip
    one, other = copies(*state), copies(*state)
    native(*one, **options)
    fallback(*other, **options)
    check(one, other)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("value", [1.0, np.nan, np.inf, -np.inf])
def test_unscale(value, dtype):
    """Gradients are multiplied in place, and one that is not finite is told of."""
    native, _ = kernel("unscale")
    grads = arrays(dtype, 1)
    grads[-1][7, 9] = value
    expected = [one * one.dtype.type(0.25) for one in grads]
    found = native(grads, factor=0.25)
    assert (found.dtype, found.shape, bool(found)) == (np.bool_, (), not np.isfinite(value))
    for one, other in zip(grads, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_what_is_not_dense_goes_to_numpy():
    """One transposed parameter among the others, and none is left out or stepped twice."""
    native, fallback = kernel("sgd_step")
    params, grads = arrays("float32", 1), arrays("float32", 2)
    params[2], grads[2] = params[2].T, grads[2].T
    one, other = copies(params, grads), copies(params, grads)
    one[0][2], other[0][2] = np.asfortranarray(one[0][2]), np.asfortranarray(other[0][2])
    native(*one, None, lr=0.1)
    fallback(*other, None, lr=0.1)
    check(one, other)


def test_steps_do_not_depend_on_the_number_of_threads():
    """Each element is stepped once, by whichever thread."""
    native, _ = kernel("adam_step")
    state = [[np.random.default_rng(i).random(70_001, np.float32) for _ in range(3)] for i in range(4)]
    options = dict(steps=[1.0] * 3, lr=0.01, beta1=0.9, beta2=0.999, eps=1e-8)
    before, made = tensorcore.get_num_threads(), []
    try:
        for count in (1, 3):
            tensorcore.set_num_threads(count)
            made.append(copies(*state))
            native(*made[-1], None, **options)
    finally:
        tensorcore.set_num_threads(before)
    for one, other in zip(made[0][0], made[1][0], strict=True):
        np.testing.assert_array_equal(one, other)
