"""Convolutions and their transposes, in one, two and three dims."""

from __future__ import annotations

import math
from typing import Any

from tensorcore.errors import ArgumentError, ShapeError
from tensorcore.nn import functional as F
from tensorcore.nn import init
from tensorcore.nn.lazy import LazyModuleMixin
from tensorcore.nn.module import Module
from tensorcore.nn.parameter import Parameter
from tensorcore.ops.creation.create import empty
from tensorcore.tensor import Tensor

__all__ = [
    "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "LazyConv1d", "LazyConv2d",
    "LazyConv3d", "LazyConvTranspose1d", "LazyConvTranspose2d", "LazyConvTranspose3d", "per_dim",
]  # fmt: skip

_MODES = ("zeros", "reflect", "replicate", "circular")


def per_dim(value: Any, dims: int) -> tuple[int, ...]:
    """An int for all dims, or one for each, as a tuple of one for each."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * dims


class _Conv(Module):
    """What all convolutions share.

    Args:
        kernel_size, stride, dilation: an int for all dims, or one for each.
        padding: likewise, or "valid" (none) or "same" (the output has the input's size).
        groups: parts that the channels are split into, each with filters of its own.
        padding_mode: what stands in the padding.
    """

    dims: int
    function: Any
    transposed = False
    weight: Tensor
    bias: Tensor | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
        output_padding: Any = 0,
    ) -> None:
        super().__init__()
        dims = self.dims
        _check_groups(in_channels, out_channels, groups)
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ArgumentError(f"Invalid padding string {padding!r}, should be one of 'same', 'valid'")
            if padding == "same" and any(step != 1 for step in per_dim(stride, dims)):
                raise ArgumentError(f"padding='same' is not supported for strided convolutions, got stride={stride}")
        if padding_mode not in _MODES:
            raise ArgumentError(f"padding_mode must be one of {set(_MODES)}, but got padding_mode='{padding_mode}'")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = per_dim(kernel_size, dims)
        self.stride = per_dim(stride, dims)
        self.padding = padding if isinstance(padding, str) else per_dim(padding, dims)
        self.dilation = per_dim(dilation, dims)
        self.output_padding = per_dim(output_padding, dims)
        self.groups = groups
        self.padding_mode = padding_mode
        self.weight = Parameter(empty(*self._weight_shape(), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def _weight_shape(self) -> tuple[int, ...]:
        into, out = self.in_channels, self.out_channels
        channels = (into, out // self.groups) if self.transposed else (out, into // self.groups)
        return *channels, *self.kernel_size

    def reset_parameters(self) -> None:
        """Draw weight and bias anew, uniformly within 1 / sqrt(inputs of one output)."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in = math.prod(self.weight.shape[1:])
            if fan_in:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        dims = self.dims
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        if self.padding != (0,) * dims:
            text += f", padding={self.padding}"
        if self.dilation != (1,) * dims:
            text += f", dilation={self.dilation}"
        if self.output_padding != (0,) * dims:
            text += f", output_padding={self.output_padding}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text

    def _padded(self, input: Tensor) -> tuple[Tensor, Any]:
        """The input with the padding that the op itself cannot make, and the padding that is left for it."""
        if self.padding_mode == "zeros":
            return input, self.padding
        around: list[int] = []
        # Pairs from the last dim to the first; "same" puts the odd one behind.
        for i in reversed(range(self.dims)):
            if self.padding == "same":
                total = self.dilation[i] * (self.kernel_size[i] - 1)
                around += [total // 2, total - total // 2]
            elif self.padding == "valid":
                around += [0, 0]
            else:
                around += [self.padding[i]] * 2
        return F.pad(input, around, mode=self.padding_mode), 0

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        # Programs that change the weights before each call (standardised, equalised) call this with their own.
        input, padding = self._padded(input)
        return self.function(input, weight, bias, self.stride, padding, self.dilation, self.groups)

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)


class Conv1d(_Conv):
    """Filters slid over (N, C, L) or (C, L)."""

    dims, function = 1, staticmethod(F.conv1d)


class Conv2d(_Conv):
    """Filters slid over (N, C, H, W) or (C, H, W)."""

    dims, function = 2, staticmethod(F.conv2d)


class Conv3d(_Conv):
    """Filters slid over (N, C, D, H, W) or (C, D, H, W)."""

    dims, function = 3, staticmethod(F.conv3d)


class _ConvTranspose(_Conv):
    """What all transposed convolutions share.

    Args:
        output_padding: added to the output's size on one side, which tells apart inputs of which a
            convolution makes one size.
    """

    transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ArgumentError(
                f'Only "zeros" padding mode is supported for {type(self).__name__}, got {padding_mode!r}'
            )
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, device,
            dtype, output_padding,
        )  # fmt: skip

    def _output_padding(self, input: Tensor, output_size: Any) -> tuple[int, ...]:
        """The padding that gives the output the size that is asked for."""
        if output_size is None:
            return self.output_padding
        wanted = tuple(output_size)[-self.dims :]
        found = []
        for i, size in enumerate(wanted):
            least = (
                (input.shape[i - self.dims] - 1) * self.stride[i]
                - 2 * self.padding[i]
                + self.dilation[i] * (self.kernel_size[i] - 1)
                + 1
            )
            if not least <= size < least + max(self.stride[i], self.dilation[i]):
                raise ArgumentError(
                    f"requested an output size of {list(wanted)}, but valid sizes start from {least} in dim {i} of them"
                )
            found.append(size - least)
        return tuple(found)

    def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
        extra = self._output_padding(input, output_size)
        return self.function(
            input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation
        )


class ConvTranspose1d(_ConvTranspose):
    """The transpose of Conv1d: from (N, C, L) to a longer one."""

    dims, function = 1, staticmethod(F.conv_transpose1d)


class ConvTranspose2d(_ConvTranspose):
    """The transpose of Conv2d: from (N, C, H, W) to a larger one."""

    dims, function = 2, staticmethod(F.conv_transpose2d)


class ConvTranspose3d(_ConvTranspose):
    """The transpose of Conv3d: from (N, C, D, H, W) to a larger one."""

    dims, function = 3, staticmethod(F.conv_transpose3d)


class _LazyConv(LazyModuleMixin):
    """A convolution whose ``in_channels`` is that of its first input; the other arguments are the convolution's."""

    def __init__(self, out_channels: int, kernel_size: Any, *args: Any, **kwargs: Any) -> None:
        given = _bound(self.cls_to_become, (0, out_channels, kernel_size, *args), kwargs)
        device, dtype, bias = given.get("device"), given.get("dtype"), given.get("bias", True)
        super().__init__(**{**given, "out_channels": 0, "bias": False})
        self.out_channels = out_channels
        self._lazily({"weight": True, "bias": bias}, device, dtype)

    def reset_parameters(self) -> None:
        if self.in_channels and not self.has_uninitialized_params():
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor, *args: Any, **kwargs: Any) -> None:
        if not self.has_uninitialized_params():
            return
        if input.dim() not in (self.dims + 1, self.dims + 2):
            raise ShapeError(
                f"Expected {self.dims + 1}D (unbatched) or {self.dims + 2}D (batched) input to {type(self).__name__}, "
                f"but got input of size: {input.shape}"
            )
        self.in_channels = input.shape[-self.dims - 1]
        _check_groups(self.in_channels, self.out_channels, self.groups)
        self.weight.materialize(self._weight_shape())
        if self.bias is not None:
            self.bias.materialize((self.out_channels,))
        self.reset_parameters()


class LazyConv1d(_LazyConv, Conv1d):
    """Conv1d that learns ``in_channels`` from its first input."""

    cls_to_become = Conv1d


class LazyConv2d(_LazyConv, Conv2d):
    """Conv2d that learns ``in_channels`` from its first input."""

    cls_to_become = Conv2d


class LazyConv3d(_LazyConv, Conv3d):
    """Conv3d that learns ``in_channels`` from its first input."""

    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyConv, ConvTranspose1d):
    """ConvTranspose1d that learns ``in_channels`` from its first input."""

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConv, ConvTranspose2d):
    """ConvTranspose2d that learns ``in_channels`` from its first input."""

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConv, ConvTranspose3d):
    """ConvTranspose3d that learns ``in_channels`` from its first input."""

    cls_to_become = ConvTranspose3d


def _check_groups(in_channels: int, out_channels: int, groups: int) -> None:
    if groups <= 0:
        raise ArgumentError(f"groups must be a positive integer, got {groups}")
    if in_channels % groups:
        raise ArgumentError(f"in_channels must be divisible by groups, got {in_channels} and {groups}")
    if out_channels % groups:
        raise ArgumentError(f"out_channels must be divisible by groups, got {out_channels} and {groups}")


def _bound(cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a class's constructor by name."""
    code = cls.__init__.__code__
    return dict(zip(code.co_varnames[1 : code.co_argcount], args, strict=False)) | kwargs
