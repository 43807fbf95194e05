"""Pooling: the largest, the mean or the norm of each window."""

from __future__ import annotations

from typing import Any

from tensorcore.errors import ArgumentError
from tensorcore.nn import functional as F
from tensorcore.nn.conv import per_dim
from tensorcore.nn.module import Module
from tensorcore.tensor import Tensor

__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "FractionalMaxPool2d", "FractionalMaxPool3d",
    "LPPool1d", "LPPool2d", "LPPool3d", "MaxPool1d", "MaxPool2d", "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d",
    "MaxUnpool3d",
]  # fmt: skip


class _MaxPool(Module):
    """The largest element of each window.

    Args:
        stride: from window to window; the window's size where None.
        return_indices: give their places too.
        ceil_mode: let the last window reach over the edge.
    """

    function: Any

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, dilation={self.dilation}, "
            f"ceil_mode={self.ceil_mode}"
        )

    def forward(self, input: Tensor) -> Any:
        return self.function(
            input, self.kernel_size, self.stride, self.padding, self.dilation, ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
        )  # fmt: skip


class MaxPool1d(_MaxPool):
    """The largest element of each window of (N, C, L)."""

    function = staticmethod(F.max_pool1d)


class MaxPool2d(_MaxPool):
    """The largest element of each window of (N, C, H, W)."""

    function = staticmethod(F.max_pool2d)


class MaxPool3d(_MaxPool):
    """The largest element of each window of (N, C, D, H, W)."""

    function = staticmethod(F.max_pool3d)


class _MaxUnpool(Module):
    """Max pooling turned round: each element back in the place it came from, zeros in all others.

    Args:
        stride: from window to window; the window's size where None.
    """

    dims: int
    function: Any

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        self.kernel_size = per_dim(kernel_size, self.dims)
        self.stride = per_dim(stride if stride is not None else kernel_size, self.dims)
        self.padding = per_dim(padding, self.dims)

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        """From what ``return_indices=True`` gave; ``output_size`` tells apart inputs that pool to one size."""
        return self.function(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpool):
    """MaxPool1d turned round."""

    dims, function = 1, staticmethod(F.max_unpool1d)


class MaxUnpool2d(_MaxUnpool):
    """MaxPool2d turned round."""

    dims, function = 2, staticmethod(F.max_unpool2d)


class MaxUnpool3d(_MaxUnpool):
    """MaxPool3d turned round."""

    dims, function = 3, staticmethod(F.max_unpool3d)


class _AvgPool(Module):
    """The mean of each window.

    Args:
        count_include_pad: count the zeros of the padding as elements.
        divisor_override: divide by this instead of the number of elements.
    """

    function: Any

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        return self.function(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad,
            self.divisor_override,
        )  # fmt: skip

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1d(_AvgPool):
    """The mean of each window of (N, C, L); it has no ``divisor_override``."""

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        stride = stride if stride is not None else kernel_size
        sizes = (per_dim(one, 1) for one in (kernel_size, stride, padding))
        super().__init__(*sizes, ceil_mode, count_include_pad)
        del self.divisor_override

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)


class AvgPool2d(_AvgPool):
    """The mean of each window of (N, C, H, W)."""

    function = staticmethod(F.avg_pool2d)


class AvgPool3d(_AvgPool):
    """The mean of each window of (N, C, D, H, W)."""

    function = staticmethod(F.avg_pool3d)


class _LPPool(Module):
    """The ``norm_type`` norm of each window; the sum where that is 1.

    Args:
        stride: from window to window; the window's size where None.
        ceil_mode: let the last window reach over the edge.
    """

    function: Any

    def __init__(self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        return self.function(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)

    def extra_repr(self) -> str:
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class LPPool1d(_LPPool):
    """The norm of each window of (N, C, L)."""

    function = staticmethod(F.lp_pool1d)


class LPPool2d(_LPPool):
    """The norm of each window of (N, C, H, W)."""

    function = staticmethod(F.lp_pool2d)


class LPPool3d(_LPPool):
    """The norm of each window of (N, C, D, H, W)."""

    function = staticmethod(F.lp_pool3d)


class _FractionalMaxPool(Module):
    """Max pooling over windows whose places are random (Graham, arXiv:1412.6071).

    Args:
        output_size: how many windows along each dim; or
        output_ratio: how many of them for each element of the input, between 0 and 1.
        return_indices: give the places of the largest elements too.
    """

    dims: int

    def __init__(
        self,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        self.kernel_size = per_dim(kernel_size, self.dims)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else per_dim(output_size, self.dims)
        self.output_ratio = None if output_ratio is None else per_dim(output_ratio, self.dims)
        if output_size is None and output_ratio is None:
            raise ArgumentError(f"{name} requires specifying either an output size, or a pooling ratio, got neither")
        if output_size is not None and output_ratio is not None:
            raise ArgumentError(f"only one of output_size and output_ratio may be specified, got both in {name}")
        if self.output_ratio is not None and not all(0 < one < 1 for one in self.output_ratio):
            raise ArgumentError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input: Tensor) -> Any:
        function = F.fractional_max_pool2d if self.dims == 2 else F.fractional_max_pool3d
        return function(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices,
            _random_samples=self._random_samples,
        )  # fmt: skip


class FractionalMaxPool2d(_FractionalMaxPool):
    """The largest elements of random windows of (N, C, H, W)."""

    dims = 2


class FractionalMaxPool3d(_FractionalMaxPool):
    """The largest elements of random windows of (N, C, D, H, W)."""

    dims = 3


class _AdaptiveAvg(Module):
    """The means of windows as large as it takes to get ``output_size`` of them; None keeps a size."""

    function: Any

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        return self.function(input, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvg):
    """The means of as many windows of (N, C, L) as asked for."""

    function = staticmethod(F.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(_AdaptiveAvg):
    """The means of as many windows of (N, C, H, W) as asked for."""

    function = staticmethod(F.adaptive_avg_pool2d)


class AdaptiveAvgPool3d(_AdaptiveAvg):
    """The means of as many windows of (N, C, D, H, W) as asked for."""

    function = staticmethod(F.adaptive_avg_pool3d)


class _AdaptiveMax(_AdaptiveAvg):
    """The largest elements of such windows; ``return_indices`` gives their places too."""

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__(output_size)
        self.return_indices = return_indices

    def forward(self, input: Tensor) -> Any:
        return self.function(input, self.output_size, self.return_indices)


class AdaptiveMaxPool1d(_AdaptiveMax):
    """The largest elements of as many windows of (N, C, L) as asked for."""

    function = staticmethod(F.adaptive_max_pool1d)


class AdaptiveMaxPool2d(_AdaptiveMax):
    """The largest elements of as many windows of (N, C, H, W) as asked for."""

    function = staticmethod(F.adaptive_max_pool2d)


class AdaptiveMaxPool3d(_AdaptiveMax):
    """The largest elements of as many windows of (N, C, D, H, W) as asked for."""

    function = staticmethod(F.adaptive_max_pool3d)
