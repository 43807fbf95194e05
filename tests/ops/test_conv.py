"""Convolutions, their transposes, and windows as columns."""

from __future__ import annotations

import numpy as np
import pytest

import tensorcore as tc
from tests.ops.oracle_nn import compare

NAMES = ("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "unfold", "fold")


@pytest.mark.oracle
@pytest.mark.parametrize("name", NAMES)
def test_convolutions_are_pytorchs(torch, name):
    """Values, gradients and second gradients of every sample are PyTorch's."""
    compare(torch, name)


@pytest.mark.oracle
@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("conv")])
def test_convolutions_without_kernels(torch, name):
    """A backend that only multiplies matrices convolves all the same."""
    table = tc.ones(1).device.kernels
    kept = {one: table[one] for one in ("conv", "conv_input_gradient")}
    try:
        table.update(dict.fromkeys(kept))
        compare(torch, name)
    finally:
        table.update(kept)


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore:Using padding='same'")
@pytest.mark.parametrize("shape, weight, options", [
    ((0, 1, 3, 3), (2, 1, 2, 2), {}),
    ((2, 3, 20, 20), (4, 3, 3, 3), {"padding": 1}),
    ((70, 3, 12, 12), (4, 3, 5, 5), {"padding": 2}),
    ((2, 3, 9, 9), (4, 3, 2, 2), {"stride": 4}),
    ((2, 6, 9, 9), (6, 1, 3, 3), {"groups": 6, "dilation": 2}),
    ((2, 1, 9, 9), (3, 1, 3, 3), {"padding": 3}),
    ((2, 2, 5, 5), (3, 2, 2, 4), {"padding": "same"}),
])  # fmt: skip
def test_odd_shapes(torch, shape, weight, options):
    """Blocks of samples, empty batches, strides over the kernel and uneven paddings give PyTorch's results."""
    made = np.random.default_rng(8)
    values = [made.standard_normal(one) for one in (shape, weight, weight[:1])]
    ours = [tc.tensor(one, requires_grad=True) for one in values]
    theirs = [torch.tensor(one, requires_grad=True) for one in values]
    x, y = tc.conv2d(*ours, **options), torch.nn.functional.conv2d(*theirs, **options)
    np.testing.assert_allclose(x.detach().numpy(), y.detach().numpy(), rtol=1e-9, atol=1e-9)
    g = made.standard_normal(tuple(y.shape))
    x.backward(tc.tensor(g))
    y.backward(torch.tensor(g))
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one.grad.numpy(), other.grad.numpy(), rtol=1e-9, atol=1e-9)


def test_sums_of_windows():
    """A kernel of ones adds up each window."""
    assert tc.conv1d(tc.tensor([[[1.0, 2.0, 3.0]]]), tc.ones(1, 1, 2)).tolist() == [[[3.0, 5.0]]]


@pytest.mark.parametrize("dtype", [tc.float16, tc.bfloat16, tc.int64])
def test_dtype_is_kept(dtype):
    """Half floats and integers give their own dtype."""
    made = tc.conv2d(tc.ones(1, 1, 3, 3, dtype=dtype), tc.ones(1, 1, 2, 2, dtype=dtype))
    assert made.dtype is dtype
    assert made.tolist() == [[[[4, 4], [4, 4]]]]


@pytest.mark.parametrize("shape, weight, options, text", [
    ((1, 1, 3, 3), (1, 1, 4, 2), {}, "Kernel size can't be greater than actual input size"),
    ((1, 1, 3, 3), (1, 2, 2, 2), {}, "expected input"),
    ((3, 3), (1, 1, 2, 2), {}, "Expected 3D"),
    ((1, 1, 3, 3), (1, 1, 2, 2), {"stride": 0}, "non-positive stride"),
    ((1, 1, 3, 3), (1, 1, 2, 2), {"padding": -1}, "negative padding"),
    ((1, 1, 3, 3), (1, 1, 2, 2), {"padding": "same", "stride": 2}, "not supported for strided"),
    ((1, 4, 3, 3), (3, 2, 2, 2), {"groups": 2}, "divisible by 2"),
    ((1, 4, 3, 3), (0, 4, 2, 2), {}, "at least 1 channel out"),
])  # fmt: skip
def test_errors(shape, weight, options, text):
    """What does not fit is a RuntimeError that says so."""
    with pytest.raises(RuntimeError, match=text):
        tc.conv2d(tc.ones(shape), tc.ones(weight), **options)


def test_two_dtypes():
    """Input and weight share a dtype."""
    with pytest.raises(RuntimeError, match="expected scalar type"):
        tc.conv2d(tc.ones(1, 1, 3, 3), tc.ones(1, 1, 2, 2, dtype=tc.float64))


@pytest.mark.oracle
@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_convolutions_are_pytorchs(torch, dtype, groups):
    """Values and gradients, of several groups too; what has no bias is the same without it."""
    random = np.random.default_rng(8)
    shapes = (2, 4, 7, 6), (8, 4 // groups, 3, 2), (8,)
    given = [(random.standard_normal(shape) + 1j * random.standard_normal(shape)).astype(dtype) for shape in shapes]
    made = []
    for library in (torch, tc):
        x, weight, bias = tensors = [library.tensor(one).requires_grad_() for one in given]
        y = library.nn.functional.conv2d(x, weight, bias, stride=2, padding=1, groups=groups)
        y.backward(library.ones_like(y) * (1 + 2j))
        back = library.nn.functional.conv_transpose2d(y.detach(), weight.detach(), stride=2, padding=1, groups=groups)
        made.append([np.array(one.tolist()) for one in (y, back, *[one.grad for one in tensors])])
    for ours, theirs in zip(*reversed(made), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4 if dtype == "complex64" else 1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("sizes", [(5, 2, 3, 3, 4), (9, 3, 40, 4, 5), (200, 3, 5, 2, 4), (70, 2, 33, 9, 40)])
def test_time_convolution_is_that_of_its_taps(sizes, dtype):
    """Few numbers, long sums, narrow and many taps each go their way: values and gradients are conv1d's, in every layout."""
    random = np.random.default_rng(8)
    time, batch, channels, taps, outs = sizes
    close = dict(rtol=1e-4, atol=1e-4) if dtype == "float32" else dict(rtol=1e-11, atol=1e-11)
    x, weight, bias = [
        tc.tensor(
            random.standard_normal(shape) + (1j * random.standard_normal(shape) if dtype == "complex128" else 0)
        ).to(getattr(tc, dtype))
        for shape in ((time, batch, channels), (taps, channels, outs), (outs,))
    ]
    for pad in (0, 1, 2):

        def turned(x, weight, bias, pad=pad):
            return tc.nn.functional.conv1d(x.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad).permute(
                2, 0, 1
            )

        for one in (x, x.transpose(0, 2).contiguous().transpose(0, 2), tc.cat([x, x])[:time], x.flip(0)):
            np.testing.assert_allclose(
                tc.conv_tbc(one, weight, bias, pad).numpy(), turned(one, weight, bias).numpy(), **close
            )
        gradients = []
        for call in (lambda *given: tc.conv_tbc(*given, pad), turned):  # noqa: B023
            leaves = [one.clone().requires_grad_() for one in (x, weight, bias)]
            call(*leaves).abs().square().sum().backward()
            gradients.append([one.grad.numpy() for one in leaves])
        for ours, theirs in zip(*gradients, strict=True):
            np.testing.assert_allclose(
                ours, theirs, rtol=1e-3 if dtype == "float32" else 1e-10, atol=1e-2 if dtype == "float32" else 1e-9
            )
