"""Batch normalisation made part of the layer before it, for inference."""

from __future__ import annotations

import copy
from typing import Any

from tensorcore.nn.parameter import Parameter
from tensorcore.ops.creation.create import ones_like, zeros_like

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """A convolution that does what ``conv`` and then ``bn`` do, both in evaluation mode.

    Args:
        transpose: whether it is a transposed convolution.
    """
    made = _copied(conv, bn)
    made.weight, made.bias = fuse_conv_bn_weights(
        made.weight, made.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, transpose
    )
    return made


def fuse_conv_bn_weights(
    conv_w: Any, conv_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float, bn_w: Any, bn_b: Any, transpose: bool = False
) -> tuple[Parameter, Parameter]:
    """Weight and bias of the fused convolution."""
    shape = (1, -1) if transpose else (-1, 1)
    return _fused(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, shape + (1,) * (conv_w.dim() - 2))


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """A linear layer that does what ``linear`` and then ``bn`` do, both in evaluation mode."""
    if bn.num_features not in (linear.out_features, 1):
        raise AssertionError(
            f"To fuse, linear.out_features == bn.num_features or bn.num_features == 1, got {linear.out_features} and "
            f"{bn.num_features}"
        )
    made = _copied(linear, bn)
    made.weight, made.bias = fuse_linear_bn_weights(
        made.weight, made.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    return made


def fuse_linear_bn_weights(
    linear_w: Any, linear_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float, bn_w: Any, bn_b: Any
) -> tuple[Parameter, Parameter]:
    """Weight and bias of the fused linear layer."""
    return _fused(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, (-1, 1))


def _copied(layer: Any, bn: Any) -> Any:
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!, got a layer in training mode")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None, got a norm that does not track them")
    return copy.deepcopy(layer)


def _fused(w: Any, b: Any, mean: Any, var: Any, eps: float, scale: Any, shift: Any, shape: tuple[int, ...]) -> Any:
    bias = zeros_like(mean) if b is None else b
    scale = ones_like(mean) if scale is None else scale
    shift = zeros_like(mean) if shift is None else shift
    factor = scale * (var + eps).rsqrt()
    made = (w * factor.reshape(shape)).to(w.dtype).detach()
    moved = ((bias - mean) * factor + shift).to(w.dtype if b is None else b.dtype).detach()
    return Parameter(made, w.requires_grad), Parameter(moved, bias.requires_grad)
