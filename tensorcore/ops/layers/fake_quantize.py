"""Values rounded as quantising to integers and back would, in floating dtypes, with a gradient that passes straight through."""

from __future__ import annotations

from typing import Any

from tensorcore import dtypes
from tensorcore.errors import DtypeError, ShapeError, UnsupportedDtype, UsageError
from tensorcore.ops import rules
from tensorcore.ops.creation.create import tensor
from tensorcore.ops.operands import check_tensors
from tensorcore.ops.pointwise.choice import clamp, where
from tensorcore.tensor import Tensor

__all__ = ["fake_quantize_per_channel_affine", "fake_quantize_per_tensor_affine"]


def fake_quantize_per_tensor_affine(
    input: Tensor, scale: Any, zero_point: Any, quant_min: int, quant_max: int
) -> Tensor:
    """The multiple of ``scale`` next to each element, of those that integers from ``quant_min`` to ``quant_max`` stand for.

    Args:
        scale, zero_point: numbers or tensors of one element: an integer q stands for ``(q - zero_point) * scale``.

    The gradient of what lies in that range is the incoming one, that of the rest 0.
    """
    op = "fake_quantize_per_tensor_affine"
    check_tensors(op, input=input)
    scale, zero_point = [one.item() if isinstance(one, Tensor) else one for one in (scale, zero_point)]
    _check_range(op, zero_point, zero_point, quant_min, quant_max)
    steps = tensor(scale, dtype=dtypes.float32, device=input.device)
    return _rounded(op, input, steps, zero_point, quant_min, quant_max)


def fake_quantize_per_channel_affine(input: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int,
                                     quant_max: int) -> Tensor:  # fmt: skip
    """As ``fake_quantize_per_tensor_affine``, with a ``scale`` and a ``zero_point`` for each index of dim ``axis``."""
    op = "fake_quantize_per_channel_affine"
    check_tensors(op, input=input, scale=scale, zero_point=zero_point)
    if scale.dtype not in (dtypes.float32, dtypes.bfloat16):
        raise DtypeError(f"{op}: Scale must be Float or BFloat16, found {scale.dtype.name}, got it; use .float()")
    if zero_point.dtype not in (dtypes.int32, dtypes.float32, dtypes.float16, dtypes.bfloat16):
        raise DtypeError(
            f"{op}: Zero-point must be Int32, Float or Half, found {zero_point.dtype.name}, got it; use .int()"
        )
    if axis < 0:
        raise UsageError(
            f"{op}: `axis` must be between 0 and number of dimensions of input, got {axis}; count from the front"
        )
    axis = rules.wrap_dim(op, axis, len(input.native.shape))
    shapes = [tuple(one.native.shape) for one in (scale, zero_point)]
    if shapes != [(input.native.shape[axis],)] * 2:
        raise ShapeError(
            f"{op}: expected scale and zero-point as vectors of {input.native.shape[axis]}, one for each channel, got {shapes}: "
            "dimensions of scale and zero-point are not consistent with input tensor"
        )
    if zero_point.numel():
        _check_range(op, zero_point.min().item(), zero_point.max().item(), quant_min, quant_max)  # type: ignore[attr-defined]
    shape = [-1, *[1] * (len(input.native.shape) - axis - 1)]
    steps, zeros = [one.to(dtypes.float32).reshape(shape) for one in (scale, zero_point)]
    return _rounded(op, input, steps, zeros, quant_min, quant_max)


def _check_range(op: str, least: float, most: float, low: int, high: int) -> None:
    if low > high:
        raise UsageError(f"{op}: `quant_min` should be less than or equal to `quant_max`, got {low} and {high}; swap")
    if not low <= least <= most <= high:
        raise UsageError(
            f"{op}: `zero_point` must be between `quant_min` and `quant_max`, got {least} to {most} for {low} to {high}"
        )


def _rounded(op: str, input: Tensor, steps: Tensor, zeros: Any, low: int, high: int) -> Tensor:
    if not input.dtype.is_floating_point:
        raise UnsupportedDtype(
            f"{op}: not implemented for {input.dtype.name}, got a tensor of it; convert it with .float()"
        )
    # A product with the reciprocal, in float32 at least, as PyTorch's kernel; NaN goes to the lowest.
    wide = dtypes.promote_types(input.dtype, dtypes.float32)
    places = (input.detach().to(wide) * steps.reciprocal()).round() + zeros  # type: ignore[attr-defined]
    inside = (places >= low) & (places <= high)
    made = ((where(places.isnan(), low, clamp(places, low, high)) - zeros) * steps).to(input.dtype)
    if input.node is None:
        return made
    through = where(inside, input, 0.0)
    # Adds 0, and carries the gradient.
    return made + (through - through.detach())  # type: ignore[attr-defined]
