"""Convolutions of integers in C and their adjoints against NumPy's, to the bit: sums wrap around as the dtype does."""

import numpy as np
import pytest

import tensorcore

from .native import assert_same, kernel, needs_native
from .test_native_conv import CALLS
from .test_native_gemm_integers import DTYPES, integers

pytestmark = [needs_native, pytest.mark.usefixtures("isa")]


def arguments(dtype, call):
    """An input, a weight and a bias, the options, and the shape of what comes out."""
    batch, groups, channels, outs, sizes, window, stride, padding, dilation = call
    counts = tuple(
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, s, p, d in zip(sizes, window, stride, padding, dilation, strict=True)
    )
    x = integers(dtype, batch, groups * channels, *sizes)
    weight = integers(dtype, groups * outs, channels, *window)
    options = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    return x, weight, integers(dtype, groups * outs), counts, options


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CALLS)
def test_convolutions(name, dtype):
    """With and without a bias, and the adjoint in the input, of rows and of arrays that lie otherwise."""
    x, weight, bias, counts, options = arguments(dtype, CALLS[name])
    native, fallback = kernel("conv")
    assert_same(native(x, weight, bias, counts=counts, **options), fallback(x, weight, bias, counts=counts, **options))
    turned = np.ascontiguousarray(x.swapaxes(0, 1)).swapaxes(0, 1)[..., ::-1]
    found = native(turned, weight, None, counts=counts, **options)
    np.testing.assert_array_equal(found, fallback(x[..., ::-1].copy(), weight, None, counts=counts, **options))
    sent = integers(dtype, len(x), len(weight), *counts)
    native, fallback = kernel("conv_input_gradient")
    expected = fallback(sent, weight, shape=x.shape, **options)
    for threads in (1, 3):
        tensorcore.set_num_threads(threads)
        assert_same(native(sent, weight, shape=x.shape, **options), expected)


def test_a_gradient_by_weight_is_left_to_numpy():
    """Nothing asks for it but a direct call."""
    x, weight, _, counts, options = arguments(np.int64, CALLS["steps"])
    sent = integers(np.int64, len(x), len(weight), *counts)
    native, fallback = kernel("conv_weight_gradient")
    assert_same(
        native(sent, x, shape=weight.shape, **options),
        fallback(sent, x, shape=weight.shape, **options),
    )
