"""Clipping of gradients."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

from tensorcore import dtypes
from tensorcore.errors import ArgumentTypeError, GradientError
from tensorcore.ops.creation.create import tensor
from tensorcore.ops.output import written
from tensorcore.ops.shapes.join import stack
from tensorcore.tape.mode import no_grad
from tensorcore.tensor import Tensor, new_tensor

__all__ = ["clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"]

_SHARED = frozenset([dtypes.float16, dtypes.bfloat16, dtypes.float32])  # which a factor of float32 multiplies


def get_total_norm(
    tensors: Any, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> Tensor:
    """The norm of all tensors as if they were one vector.

    Args:
        error_if_nonfinite: raise where it is NaN or infinite.
    """
    with no_grad():
        tensors = _listed(tensors)
        if not tensors:
            return tensor(0.0)
        kind = float(norm_type)
        norms = _norms(tensors, kind)
        total = norms.max() if kind == float("inf") else norms.norm(kind)
        if error_if_nonfinite and not total.device.all_values(total.isfinite().native).all():
            raise GradientError(
                f"The total norm of order {kind} for gradients from `parameters` is non-finite, so it cannot "
                "be clipped, got "
                f"{total.item()}; set error_if_nonfinite=False to scale by it anyway"
            )
        return total


def clip_grad_norm_(
    parameters: Any,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale all gradients down so that their norm together is at most ``max_norm``; gives the norm from before."""
    parameters = _listed(parameters)
    total = get_total_norm(_grads(parameters), norm_type, error_if_nonfinite)
    clip_grads_with_norm_(parameters, max_norm, total)
    return total


def clip_grads_with_norm_(parameters: Any, max_norm: float, total_norm: Tensor, foreach: bool | None = None) -> None:
    """Scale all gradients by ``max_norm / total_norm`` where that is below 1."""
    with no_grad():
        grads = _grads(parameters)
        factor = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)  # type: ignore[operator]
        kernel = _shared_kernel("unscale", grads)
        if kernel and grads[0].device is factor.device:
            kernel([one.native for one in grads], factor=factor.float().native)
            for grad in grads:
                written(grad)
            return
        for grad in grads:
            # On the factor's own device: reading it would wait for the device.
            grad.mul_(factor.to(grad.device))  # type: ignore[attr-defined]


def clip_grad_norm(
    parameters: Any,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The older name of ``clip_grad_norm_``; a warning says so."""
    warnings.warn("clip_grad_norm is deprecated in favor of clip_grad_norm_.", FutureWarning, stacklevel=2)
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(parameters: Any, clip_value: float, foreach: bool | None = None) -> None:
    """Clamp each element of the gradients to within ``clip_value`` of 0."""
    with no_grad():
        for grad in _grads(parameters):
            grad.clamp_(-float(clip_value), float(clip_value))  # type: ignore[attr-defined]


def _norms(tensors: list[Tensor], kind: float) -> Tensor:
    """The norm of each, on the first one's device."""
    kernel = _shared_kernel("norms", tensors)
    made = kernel([one.native for one in tensors], p=kind) if kernel else None
    if made is not None:
        return new_tensor(made, tensors[0].dtype, tensors[0].device)
    device = tensors[0].device
    return stack([one.norm(kind).to(device) for one in tensors])


def _shared_kernel(name: str, tensors: list[Tensor]) -> Any:
    """A kernel for plain float arrays of one device other than the host, where one launch for all is worth it."""
    if not tensors:
        return None
    device = tensors[0].device
    if device.capabilities.host or any(
        one.device is not device or type(one.native) is not device.array or one.dtype not in _SHARED for one in tensors
    ):
        return None
    return device.kernels[name]


def _grads(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    return [one.grad for one in _listed(parameters) if one.grad is not None]


def _listed(tensors: Tensor | Iterable[Tensor]) -> list[Tensor]:
    if isinstance(tensors, Tensor):
        return [tensors]
    if not isinstance(tensors, Iterable):
        raise ArgumentTypeError(f"clipping: expected tensors, got {type(tensors).__name__}; pass model.parameters()")
    return list(tensors)
