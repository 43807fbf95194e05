"""Convolutions in one to three dims and their transposes."""

from __future__ import annotations

from math import prod
from typing import Any

from tensorcore.backend.windows import taps
from tensorcore.errors import ArgumentTypeError, DtypeError, ShapeError, UsageError
from tensorcore.ops import rules
from tensorcore.ops.calls import apply
from tensorcore.ops.define import Op
from tensorcore.ops.kinds import operation
from tensorcore.ops.linalg.products import matmul
from tensorcore.ops.operands import check_optional, check_tensors
from tensorcore.ops.samples import nn as samples
from tensorcore.ops.shapes.views_part import slice_op, unindex
from tensorcore.shortcuts import before
from tensorcore.tensor import Tensor

__all__ = [
    "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
]  # fmt: skip

Ints = tuple[int, ...]

# The three are each other's derivatives: each is linear in both of its inputs, and all three are
# the same sum of products g[n,o,p] * weight[o,c,k] * input[n,c,p+k].

_conv = Op(
    "conv", "input weight bias", "Convolution.", backward_name="ConvolutionBackward0", register=False,
    grads=dict(
        input=lambda g, weight, input_shape, stride, padding, dilation, groups: apply(
            _input_gradient, (g, weight), _options(input_shape, stride, padding, dilation, groups)),
        weight=lambda g, input, weight_shape, stride, padding, dilation, groups: apply(
            _weight_gradient, (g, input), _options(weight_shape, stride, padding, dilation, groups)),
        bias=lambda g: g.sum((0, *range(2, len(g.native.shape)))),
    ),
)  # fmt: skip
_input_gradient = Op(
    "conv_input_gradient", "input weight", "The adjoint of a convolution in its input.",
    backward_name="ConvolutionBackward0", register=False,
    grads=dict(
        # As many windows as there were elements: output_padding may have made room for more.
        input=lambda g, weight, input_shape, stride, padding, dilation, groups: _run(
            g, weight, None, stride, padding, dilation, groups, tuple(input_shape[2:])),
        weight=lambda g, input, weight_shape, stride, padding, dilation, groups: apply(
            _weight_gradient, (input, g), _options(weight_shape, stride, padding, dilation, groups)),
    ),
)  # fmt: skip
_weight_gradient = Op(
    "conv_weight_gradient", "sent input", "The adjoint of a convolution in its weight.",
    backward_name="ConvolutionBackwardBackward0", register=False,
    grads=dict(
        sent=lambda g, input, sent_shape, stride, padding, dilation, groups: _run(
            input, g, None, stride, padding, dilation, groups, tuple(sent_shape[2:])),
        input=lambda g, sent, input_shape, stride, padding, dilation, groups: apply(
            _input_gradient, (sent, g), _options(input_shape, stride, padding, dilation, groups)),
    ),
)  # fmt: skip


def _options(shape: Any, stride: Ints, padding: Ints, dilation: Ints, groups: int) -> dict[str, Any]:
    return {"shape": tuple(shape), "stride": stride, "padding": padding, "dilation": dilation, "groups": groups}


def _run(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: Ints, padding: Ints, dilation: Ints, groups: int,
    counts: Ints | None = None,
) -> Tensor:  # fmt: skip
    """The convolution of checked arguments, by the device's kernel or in products; of ``counts`` windows if told."""
    if counts is None:
        counts = window_counts(input.native.shape[2:], weight.native.shape[2:], stride, padding, dilation)
    if not input.device.kernels["conv"]:
        return _in_products(input, weight, bias, counts, stride, padding, dilation, groups)
    options = {"counts": counts, "stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    return apply(_conv, (input, weight, bias), options)  # type: ignore[no-any-return]


@before("window_counts")
def window_counts(sizes: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints) -> Ints:
    """How many windows there are along each dim."""
    return tuple(
        [
            (n + 2 * p - d * (k - 1) - 1) // s + 1
            for n, k, s, p, d in zip(sizes, kernel, stride, padding, dilation, strict=True)
        ]
    )


# Without a kernel: one matrix product for each tap of the window


def _in_products(input: Tensor, weight: Tensor, bias: Tensor | None, counts: Ints, stride: Ints, padding: Ints,
                 dilation: Ints, groups: int) -> Tensor:  # fmt: skip
    batch, channels, *sizes = input.native.shape
    outs = weight.native.shape[0] // groups
    made = None
    for position, outputs, inputs in taps(
        tuple(sizes), counts, tuple(weight.native.shape[2:]), stride, padding, dilation
    ):
        part = slice_op.view(input, {"key": (slice(None), slice(None), *inputs)})
        inside = tuple(part.native.shape[2:])
        tap = slice_op.view(weight, {"key": (slice(None), slice(None), *position)}).reshape(
            groups, outs, channels // groups
        )
        found = matmul(tap, part.reshape(batch, groups, channels // groups, prod(inside)))
        found = found.reshape(batch, groups * outs, *inside)
        if inside != counts:
            found = apply(
                unindex,
                (found,),
                {"shape": (batch, groups * outs, *counts), "key": (slice(None), slice(None), *outputs)},
            )
        made = found if made is None else made + found
    if made is None:  # a window of no elements
        made = input.new_zeros((batch, groups * outs, *counts))
    return made if bias is None else made + bias.reshape(-1, *[1] * len(counts))


def _transposed_in_products(input: Tensor, weight: Tensor, shape: Ints, stride: Ints, padding: Ints, dilation: Ints,
                            groups: int) -> Tensor:  # fmt: skip
    batch, outs, *counts = input.native.shape
    each = weight.native.shape[1]
    made = None
    for position, outputs, inputs in taps(
        shape[2:], tuple(counts), tuple(weight.native.shape[2:]), stride, padding, dilation
    ):
        part = slice_op.view(input, {"key": (slice(None), slice(None), *outputs)})
        inside = tuple(part.native.shape[2:])
        tap = slice_op.view(weight, {"key": (slice(None), slice(None), *position)}).reshape(
            groups, outs // groups, each
        )
        found = matmul(tap.transpose(1, 2), part.reshape(batch, groups, outs // groups, prod(inside)))
        found = found.reshape(batch, groups * each, *inside)
        found = apply(unindex, (found,), {"shape": shape, "key": (slice(None), slice(None), *inputs)})
        made = found if made is None else made + found
    assert made is not None
    return made


# Arguments


@before("spread")
def spread(op: str, name: str, value: Any, ndim: int) -> Ints:
    """One int for all dims or one for each, as a tuple."""
    if type(value) is int:
        return (value,) * ndim
    try:
        if hasattr(value, "__index__") and not getattr(value, "ndim", 0):
            return (rules.counted(value),) * ndim
        found = tuple([one if type(one) is int else rules.counted(one) for one in value])
    except (TypeError, AttributeError):
        raise ArgumentTypeError(
            f"{op}: expected {name} to be an int or ints, got {value!r}; pass e.g. {(1,) * ndim}"
        ) from None
    if len(found) == 1:
        found *= ndim
    if len(found) != ndim:
        raise UsageError(
            f"{op}: expected {name} to be a single integer value or a list of {ndim} values, got {list(found)}"
        )
    return found


@before("convolution_checked")
def _checked(op: str, ndim: int, input: Any, weight: Any, bias: Any, transposed: bool, groups: int) -> None:
    check_tensors(op, input=input, weight=weight)
    check_optional(op, bias=bias)
    shape, window = list(input.native.shape), list(weight.native.shape)
    if len(window) != ndim + 2:
        raise ShapeError(
            f"{op}: expected weight of {ndim + 2} dims (out channels, channels, *kernel), got {window}; reshape it"
        )
    if len(shape) not in (ndim + 1, ndim + 2):
        raise ShapeError(
            f"{op}: Expected {ndim + 1}D (unbatched) or {ndim + 2}D (batched) input to {op}, but got input of size: {shape}"
        )
    for one in (weight, bias):
        if one is not None and one.dtype is not input.dtype:
            raise DtypeError(
                f"{op}: expected scalar type {input.dtype.name} but found {one.dtype.name}; convert one with .to(...)"
            )
    if input.dtype.kind == "bool":
        raise DtypeError(
            f'{op}: "slow_conv2d_cpu" not implemented for bool, got a tensor of it; convert it with .to(...)'
        )
    if min(window[2:]) < 1:
        raise UsageError(
            f"{op}: kernel size should be greater than zero, but got {window[2:]}; use windows of 1 or more"
        )
    if groups is True or groups is False:
        raise ArgumentTypeError(f"{op}: argument 'groups' must be int, not bool, got {groups}; pass a number")
    if groups < 1:
        raise UsageError(f"{op}: non-positive groups is not supported, got {groups}; pass at least 1")
    channels = shape[-ndim - 1]
    wanted = window[0] if transposed else window[1] * groups
    if window[0] % groups:
        raise ShapeError(
            f"{op}: Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got weight of size {window}"
        )
    if channels != wanted:
        raise ShapeError(
            f"{op}: Given {'transposed=1, ' if transposed else ''}groups={groups}, weight of size {window}, expected "
            f"input{shape} to have {wanted} channels, but got {channels} channels instead"
        )
    outs = window[1] * groups if transposed else window[0]
    if not outs:
        raise ShapeError(
            f"{op}: Given groups={groups}, expected weight to have at least 1 channel out, but got weight of size {window}; "
            "make it larger"
        )
    if bias is not None and tuple(bias.native.shape) != (outs,):
        raise ShapeError(
            f"{op}: Given weight of size {window}, expected bias to be 1-dimensional with {outs} elements, but got bias of size "
            f"{list(bias.native.shape)} instead"
        )


@before("positive")
def _positive(op: str, name: str, values: Ints, least: int = 1) -> None:
    if values and min(values) < least:
        raise UsageError(
            f"{op}: {'non-positive' if least else 'negative'} {name} is not supported, got {list(values)}; pass at least {least}"
        )


def _convolve(op: str, ndim: int, input: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any,
              dilation: Any, groups: int) -> Tensor:  # fmt: skip
    _checked(op, ndim, input, weight, bias, False, groups)
    stride, dilation = spread(op, "stride", stride, ndim), spread(op, "dilation", dilation, ndim)
    _positive(op, "stride", stride)
    _positive(op, "dilation", dilation)
    kernel = tuple(weight.native.shape[2:])
    batched = len(input.native.shape) == ndim + 2
    if not batched:
        input = input.unsqueeze(0)
    if isinstance(padding, str):
        input, padding = _named_padding(op, input, kernel, stride, dilation, padding)
    else:
        padding = spread(op, "padding", padding, ndim)
        _positive(op, "padding", padding, 0)
    sizes = tuple(input.native.shape[2:])
    for n, k, p, d in zip(sizes, kernel, padding, dilation, strict=True):
        if n + 2 * p < d * (k - 1) + 1:
            raise ShapeError(
                f"{op}: Calculated padded input size per channel: ({' x '.join(str(n + 2 * p) for n, p in zip(sizes, padding))}). "  # noqa: B905
                f"Kernel size: ({' x '.join(str(d * (k - 1) + 1) for k, d in zip(kernel, dilation))}). "  # noqa: B905
                f"Kernel size can't be greater than actual input size, got {list(sizes)}"
            )
    made = _run(input, weight, bias, stride, padding, dilation, groups)
    return made if batched else made.squeeze(0)


def _named_padding(
    op: str, input: Tensor, kernel: Ints, stride: Ints, dilation: Ints, padding: str
) -> tuple[Tensor, Ints]:
    if padding == "valid":
        return input, (0,) * len(kernel)
    if padding != "same":
        raise UsageError(f"{op}: Invalid padding string: '{padding}', got it; pass 'same', 'valid' or ints")
    if set(stride) != {1}:
        raise UsageError(
            f"{op}: padding='same' is not supported for strided convolutions, got stride {list(stride)}; pass ints"
        )
    total = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
    if any(one % 2 for one in total):
        # The odd one goes to the end.
        sizes = input.native.shape[2:]
        shape = (*input.native.shape[:2], *[n + one % 2 for n, one in zip(sizes, total, strict=True)])
        key = (slice(None), slice(None), *[slice(0, n) for n in sizes])
        input = apply(unindex, (input,), {"shape": shape, "key": key})
    return input, tuple([one // 2 for one in total])


@before("turned_windows")
def _turned_windows(op: str, sizes: Ints, window: Ints, stride: Any, padding: Any, output_padding: Any,
                    dilation: Any) -> tuple[Ints, Ints, Ints, Ints]:  # fmt: skip
    """The options of an adjoint as tuples, stride, padding and dilation, and the sizes of its result."""
    ndim = len(window)
    stride, dilation = spread(op, "stride", stride, ndim), spread(op, "dilation", dilation, ndim)
    padding, extra = spread(op, "padding", padding, ndim), spread(op, "output_padding", output_padding, ndim)
    _positive(op, "stride", stride)
    _positive(op, "dilation", dilation)
    _positive(op, "padding", padding, 0)
    _positive(op, "output_padding", extra, 0)
    for e, s, d in zip(extra, stride, dilation, strict=True):
        if e >= max(s, d):
            raise UsageError(
                f"{op}: output padding must be smaller than either stride or dilation, but got output_padding: {list(extra)}, "
                f"stride: {list(stride)}, dilation: {list(dilation)}"
            )
    made = tuple(
        [(n - 1) * s - 2 * p + d * (k - 1) + e + 1
         for n, k, s, p, d, e in zip(sizes, window, stride, padding, dilation, extra, strict=True)]
    )  # fmt: skip
    if made and min(made) < 1:
        raise ShapeError(
            f"{op}: expected a result of at least one element along each dim, got {list(made)}; Output size is too small"
        )
    return stride, padding, dilation, made


def _transpose(op: str, ndim: int, input: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any,
               output_padding: Any, groups: int, dilation: Any) -> Tensor:  # fmt: skip
    _checked(op, ndim, input, weight, bias, True, groups)
    batched = len(input.native.shape) == ndim + 2
    if not batched:
        input = input.unsqueeze(0)
    window = weight.native.shape
    stride, padding, dilation, sizes = _turned_windows(
        op, input.native.shape[2:], window[2:], stride, padding, output_padding, dilation
    )
    shape = (input.native.shape[0], window[1] * groups, *sizes)
    by = weight.conj() if weight.dtype.is_complex else weight  # type: ignore[attr-defined]
    if input.device.kernels["conv_input_gradient"]:
        made = apply(_input_gradient, (input, by), _options(shape, stride, padding, dilation, groups))
    else:
        made = _transposed_in_products(input, weight, shape, stride, padding, dilation, groups)
    if bias is not None:
        made = made + bias.reshape(-1, *[1] * ndim)
    return made if batched else made.squeeze(0)


@operation(samples=samples.conv1d, method=False)
def conv1d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
           groups: int = 1) -> Tensor:  # fmt: skip
    """Windows of (batch, channels, length) times a weight (out, channels / groups, kernel), summed. The batch may be missing.

    Args:
        padding: zeros at both ends; ``"valid"`` for none, ``"same"`` for a result as long as the input.
    """
    return _convolve("conv1d", 1, input, weight, bias, stride, padding, dilation, groups)


@operation(samples=samples.conv2d, method=False)
def conv2d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
           groups: int = 1) -> Tensor:  # fmt: skip
    """As ``conv1d``, over (batch, channels, height, width)."""
    return _convolve("conv2d", 2, input, weight, bias, stride, padding, dilation, groups)


@operation(samples=samples.conv3d, method=False)
def conv3d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
           groups: int = 1) -> Tensor:  # fmt: skip
    """As ``conv1d``, over (batch, channels, depth, height, width)."""
    return _convolve("conv3d", 3, input, weight, bias, stride, padding, dilation, groups)


@operation(samples=samples.conv_transpose1d, method=False)
def conv_transpose1d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0,
                     output_padding: Any = 0, groups: int = 1, dilation: Any = 1) -> Tensor:  # fmt: skip
    """The adjoint of ``conv1d`` with a weight (channels, out / groups, kernel); ``output_padding`` lengthens the result."""
    return _transpose("conv_transpose1d", 1, input, weight, bias, stride, padding, output_padding, groups, dilation)


@operation(samples=samples.conv_transpose2d, method=False)
def conv_transpose2d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0,
                     output_padding: Any = 0, groups: int = 1, dilation: Any = 1) -> Tensor:  # fmt: skip
    """The adjoint of ``conv2d``, see ``conv_transpose1d``."""
    return _transpose("conv_transpose2d", 2, input, weight, bias, stride, padding, output_padding, groups, dilation)


@operation(samples=samples.conv_transpose3d, method=False)
def conv_transpose3d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0,
                     output_padding: Any = 0, groups: int = 1, dilation: Any = 1) -> Tensor:  # fmt: skip
    """The adjoint of ``conv3d``, see ``conv_transpose1d``."""
    return _transpose("conv_transpose3d", 3, input, weight, bias, stride, padding, output_padding, groups, dilation)
