"""Pools that always give their indices, and the normalisation of each element by its neighbour channels."""

from __future__ import annotations

from math import prod
from typing import Any

from tensorcore.errors import ArgumentError, ArgumentTypeError
from tensorcore.ops.kinds import operation
from tensorcore.ops.layers.adaptive_pool import adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d
from tensorcore.ops.layers.pool import avg_pool2d, max_pool1d, max_pool2d, max_pool3d
from tensorcore.ops.samples import nn as samples
from tensorcore.ops.shapes.pad import pad
from tensorcore.tensor import Tensor

__all__ = [
    "adaptive_max_pool1d_with_indices", "adaptive_max_pool2d_with_indices", "adaptive_max_pool3d_with_indices",
    "local_response_norm", "max_pool1d_with_indices", "max_pool2d_with_indices", "max_pool3d_with_indices",
]  # fmt: skip

Pair = tuple[Tensor, Tensor]


def max_pool1d_with_indices(input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
                            ceil_mode: bool = False, return_indices: bool = False) -> Pair:  # fmt: skip
    """:func:`max_pool1d` with the indices, whatever ``return_indices`` says."""
    return max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode, True)


def max_pool2d_with_indices(input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
                            ceil_mode: bool = False, return_indices: bool = False) -> Pair:  # fmt: skip
    """:func:`max_pool2d` with the indices, whatever ``return_indices`` says."""
    return max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode, True)


def max_pool3d_with_indices(input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
                            ceil_mode: bool = False, return_indices: bool = False) -> Pair:  # fmt: skip
    """:func:`max_pool3d` with the indices, whatever ``return_indices`` says."""
    return max_pool3d(input, kernel_size, stride, padding, dilation, ceil_mode, True)


def adaptive_max_pool1d_with_indices(input: Tensor, output_size: Any, return_indices: bool = False) -> Pair:
    """:func:`adaptive_max_pool1d` with the indices, whatever ``return_indices`` says."""
    return adaptive_max_pool1d(input, output_size, True)


def adaptive_max_pool2d_with_indices(input: Tensor, output_size: Any, return_indices: bool = False) -> Pair:
    """:func:`adaptive_max_pool2d` with the indices, whatever ``return_indices`` says."""
    return adaptive_max_pool2d(input, output_size, True)


def adaptive_max_pool3d_with_indices(input: Tensor, output_size: Any, return_indices: bool = False) -> Pair:
    """:func:`adaptive_max_pool3d` with the indices, whatever ``return_indices`` says."""
    return adaptive_max_pool3d(input, output_size, True)


@operation(samples=samples.local_response_norm, method=False)
def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """Each element over ``(k + alpha * mean) ** beta``: the mean of the squares of ``size`` neighbour channels (dim 1).

    Channels beyond the first and the last count as 0. From "ImageNet Classification with Deep Convolutional Neural
    Networks", Krizhevsky, Sutskever, Hinton 2012.
    """
    if not isinstance(input, Tensor):
        raise ArgumentTypeError(
            f"local_response_norm: expected argument 'input' to be a Tensor, got {type(input).__name__}; use torch.tensor(...)"
        )
    shape = tuple(input.native.shape)
    if len(shape) < 3:
        raise ArgumentError(
            f"local_response_norm: Expected 3D or higher dimensionality input, got {len(shape)} dimensions; unsqueeze it"
        )
    if not input.numel():
        return input
    squares = (input * input).reshape(shape[0], 1, shape[1], prod(shape[2:]))
    around = pad(squares, (0, 0, size // 2, (size - 1) // 2))
    means = avg_pool2d(around, (size, 1), stride=1).reshape(shape)
    return input / (means * alpha + k) ** beta
