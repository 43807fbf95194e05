"""Windows of images as columns and back, and convolution over time first."""

from __future__ import annotations

from math import prod
from typing import Any

from tensorcore.errors import ShapeError, UsageError
from tensorcore.ops.calls import apply
from tensorcore.ops.define import Op
from tensorcore.ops.kinds import operation
from tensorcore.ops.layers.conv import conv1d, spread, window_counts
from tensorcore.ops.linalg.affine import addmm
from tensorcore.ops.operands import PLAIN_FLOATS, check_tensors
from tensorcore.ops.samples import nn as samples
from tensorcore.ops.shapes.pad import pad as padded
from tensorcore.ops.shapes.shape import in_shape
from tensorcore.tensor import Tensor, new_tensor

__all__ = ["conv_tbc", "fold", "unfold"]

Ints = tuple[int, ...]

_unfold = Op("unfold", "input", "Windows as columns.", backward_name="Im2ColBackward0", register=False, grads=dict(
    input=lambda g, input_shape, counts, kernel, stride, padding, dilation: apply(_fold, (g,), {
        "shape": tuple(input_shape), "counts": counts, "kernel": kernel, "stride": stride, "padding": padding,
        "dilation": dilation})))  # fmt: skip
_fold = Op("fold", "input", "Columns added up as windows.", backward_name="Col2ImBackward0", register=False, grads=dict(
    input=lambda g, counts, kernel, stride, padding, dilation: apply(_unfold, (g,), {
        "counts": counts, "kernel": kernel, "stride": stride, "padding": padding, "dilation": dilation})))  # fmt: skip


def _window(op: str, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> tuple[Ints, Ints, Ints, Ints]:
    kernel, dilation = spread(op, "kernel_size", kernel_size, 2), spread(op, "dilation", dilation, 2)
    padding, stride = spread(op, "padding", padding, 2), spread(op, "stride", stride, 2)
    for name, values, least in (
        ("kernel size", kernel, 1),
        ("dilation", dilation, 1),
        ("stride", stride, 1),
        ("padding", padding, 0),
    ):
        if min(values) < least:
            raise UsageError(
                f"{op}: {name} should be {'greater than zero' if least else 'non-negative'}, got {list(values)}"
            )
    return kernel, dilation, padding, stride


@operation(samples=samples.unfold, method=False)
def unfold(input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """Each window of (batch, channels, height, width) as a column of (batch, channels * taps, windows)."""
    if type(input) is not Tensor:
        check_tensors("unfold", input=input)
    kernel, dilation, padding, stride = _window("unfold", kernel_size, dilation, padding, stride)
    shape = tuple(input.native.shape)
    if len(shape) not in (3, 4):
        raise ShapeError(f"unfold: Expected 3D or 4D (batch mode) tensor with possibly 0 batch size, got {list(shape)}")
    if 0 in shape[-3:]:
        raise ShapeError(f"unfold: Expected non-zero dimensions behind the batch, got {list(shape)}; leave none empty")
    counts = window_counts(shape[-2:], kernel, stride, padding, dilation)
    if min(counts) < 1:
        raise ShapeError(
            f"unfold: its components must be at least one: expected windows that fit, got {list(counts)} of them"
        )
    made = apply(_unfold, (input if len(shape) == 4 else input.unsqueeze(0),), {
        "counts": counts, "kernel": kernel, "stride": stride, "padding": padding, "dilation": dilation})  # fmt: skip
    return made if len(shape) == 4 else made.squeeze(0)  # type: ignore[no-any-return]


@operation(samples=samples.fold, method=False)
def fold(
    input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """The adjoint of ``unfold``: columns (batch, channels * taps, windows) added up where their windows lie."""
    if type(input) is not Tensor:
        check_tensors("fold", input=input)
    size = spread("fold", "output_size", output_size, 2)
    kernel, dilation, padding, stride = _window("fold", kernel_size, dilation, padding, stride)
    shape = tuple(input.native.shape)
    if len(shape) not in (2, 3) or 0 in shape[-2:]:
        raise ShapeError(f"fold: Expected 2D or 3D (batch mode) tensor with possibly 0 batch size, got {list(shape)}")
    counts = window_counts(size, kernel, stride, padding, dilation)
    if shape[-2] % prod(kernel) or min(counts) < 1 or shape[-1] != prod(counts):
        raise ShapeError(
            f"fold: Given output_size={size}, kernel_size={kernel}, dilation={dilation}, padding={padding}, stride={stride}, "
            f"expected the size of input to be (batch, channels * {prod(kernel)}, {prod(counts)}), got {list(shape)}"
        )
    columns = input if len(shape) == 3 else input.unsqueeze(0)
    whole = (columns.native.shape[0], shape[-2] // prod(kernel), *size)
    made = apply(_fold, (columns,), {
        "shape": whole, "counts": counts, "kernel": kernel, "stride": stride, "padding": padding, "dilation": dilation})  # fmt: skip
    return made if len(shape) == 3 else made.squeeze(0)  # type: ignore[no-any-return]


@operation(samples=samples.conv_tbc, method=False)
def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """``conv1d`` of (time, batch, channels) with a weight (kernel, channels, out) and a bias (out): (time, batch, out)."""
    check_tensors("conv_tbc", input=input, weight=weight, bias=bias)
    if not len(input.native.shape) == len(weight.native.shape) == 3 == len(bias.native.shape) + 2:
        for name, one, dims in (("input", input, 3), ("weight", weight, 3), ("bias", bias, 1)):
            if len(one.native.shape) != dims:
                raise ShapeError(f"conv_tbc: {name} must have {dims} dims, got {list(one.native.shape)}; reshape it")
    if _is_usual(input, weight, bias, pad):
        (time, batch, channels), (taps, _, outs) = input.native.shape, weight.native.shape
        recorded = not input.node is weight.node is bias.node is None
        small = time * batch * outs * taps <= _FEW and input.dtype.is_floating_point
        if (
            (small or input.dtype.is_complex)
            and not recorded
            and (made := _of_taps(input, weight, bias, pad)) is not None
        ):
            return made
        if channels >= _WIDE and taps <= _SHORT and input.dtype in PLAIN_FLOATS:
            return _by_products(input, weight, bias, pad)
    # Copies, since a kernel would lay its result out as what it gets, and that takes longer.
    return _turned(conv1d(_turned(input, 1, 2, 0), _turned(weight, 2, 1, 0), bias, padding=pad), 2, 0, 1)


_FEW = 1 << 12  # products, one for each tap and element of the result
_WIDE, _SHORT = 32, 8  # channels and taps: sums are long beside what lies between them, the partial result of each tap


def _is_usual(input: Tensor, weight: Tensor, bias: Tensor, pad: int) -> bool:
    """Whether shapes, dtypes and devices fit, and there is something to compute; whatever does not is for ``conv1d`` to judge."""
    (time, batch, channels), (taps, depth, outs) = input.native.shape, weight.native.shape
    return (
        type(input) is type(weight) is type(bias) is Tensor
        and input.dtype is weight.dtype is bias.dtype
        and input.device is weight.device is bias.device
        and channels == depth
        and bias.native.shape == (outs,)
        and type(pad) is int
        and pad >= 0
        and time + 2 * pad >= taps
        and batch * channels * outs * taps > 0
    )


def _by_products(input: Tensor, weight: Tensor, bias: Tensor, pad: int) -> Tensor:
    """A product for each tap, added to those before: rows of the sequence lie as it wants them, with nothing to turn."""
    (time, batch, channels), (taps, _, outs) = input.native.shape, weight.native.shape
    many = time + 2 * pad - taps + 1
    rows = (padded(input, (0, 0, 0, 0, pad, pad)) if pad else input).reshape(-1, channels)
    made = addmm(bias, rows[: many * batch], weight[0])
    for tap in range(1, taps):
        made.addmm_(rows[tap * batch : (tap + many) * batch], weight[tap])  # type: ignore[attr-defined]
    return made.view(many, batch, outs)  # type: ignore[attr-defined, no-any-return]


def _of_taps(input: Tensor, weight: Tensor, bias: Tensor, pad: int) -> Tensor | None:
    """The products of all taps in one batch, of few numbers or such that no kernel has convolutions of; None without memory."""
    (time, batch, channels), (taps, _, outs) = input.native.shape, weight.native.shape
    many = time + 2 * pad - taps + 1
    kernels, whole = input.device.kernels, (time + 2 * pad, batch, channels)
    try:
        if pad:
            edge = kernels["full"]((pad, batch, channels), 0, dtype=input.dtype)
            x = kernels["cat"]([edge, input.native, edge], dim=0, shape=whole)
        else:
            x = kernels["contiguous"](input.native)  # which begins where its memory does
        windows = input.device.as_strided(x, (taps, many * batch, channels), (batch * channels, channels, 1), 0)
        sums = kernels["sum"](kernels["matmul"](windows, weight.native), dim=(0,), keepdim=False)
        native = in_shape(input.device, kernels["add"](sums, bias.native), (many, batch, outs))
    except MemoryError:
        return None  # the complete call makes room
    return new_tensor(native, input.dtype, input.device)  # type: ignore[no-any-return]


def _turned(one: Tensor, *dims: int) -> Tensor:
    """A tensor in row-major order with the dims of another; by two kernels where nobody has to know of a view."""
    if type(one) is Tensor and one.node is None:
        kernels = one.device.kernels
        try:
            return new_tensor(kernels["contiguous"](kernels["permute"](one.native, dims=dims)), one.dtype, one.device)
        except MemoryError:
            pass  # the complete call makes room
    return one.permute(*dims).contiguous()  # type: ignore[attr-defined, no-any-return]
