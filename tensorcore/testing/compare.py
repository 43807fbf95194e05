"""How a sampled call is run on a device, and its result held against the reference's."""

from __future__ import annotations

import contextlib
import copy
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import tensorcore as tc
from tensorcore.backend.base import Backend
from tensorcore.errors import DivisionError
from tensorcore.testing.calls import Call, tensors_of

__all__ = ["TOLERANCE", "agree", "built", "outcome", "same_error", "values"]

# Relative to the largest value of a result: sums are taken in another order.
TOLERANCE = {
    "float16": 4e-3, "bfloat16": 3e-2, "float32": 2e-5, "complex64": 2e-5, "float64": 1e-9, "complex128": 1e-9,
}  # fmt: skip


def built(value: Any, device: Backend, dtype: str, layout: str = "contiguous", grad: bool = False) -> Any:
    """A sampled argument on a device: arrays of float64 become tensors of the dtype, others keep theirs."""
    if isinstance(value, Call):
        return Call(built(value.args, device, dtype, layout, grad), built(value.kwargs, device, dtype, layout, grad))
    if isinstance(value, dict):
        return {key: built(one, device, dtype, layout, grad) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)([built(one, device, dtype, layout, grad) for one in value])
    if not isinstance(value, np.ndarray):
        return device if isinstance(value, Backend) else copy.copy(value)
    sampled = value.dtype == np.float64
    kind = getattr(tc, dtype if sampled else str(value.dtype))
    tensor = tc.tensor(value).to(kind)  # cast on the host, so that both devices start from the same numbers
    dims = tuple(reversed(range(value.ndim)))
    if layout == "transposed" and value.ndim > 1:
        tensor = tensor.permute(*dims).contiguous().to(device).permute(*dims)
    elif layout == "expanded" and value.ndim and value.shape[0]:
        tensor = tensor[:1].clone().to(device).expand(value.shape)
    else:
        tensor = tensor.to(device)
    differentiable = sampled and (kind.is_floating_point or kind.is_complex)
    return tensor.detach().requires_grad_() if grad and differentiable else tensor


def outcome(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What a call gives, or the exception that it raises; the same random numbers each time."""
    tc.manual_seed(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = function(*args, **kwargs)
            for one in tensors_of(result):  # what a device finds out later belongs to this call
                one.device.synchronize()
            return result
        except Exception as error:
            _forget(tensors_of([args, kwargs]))
            return error


def _forget(tensors: list[Any]) -> None:
    """Run what a failed call left in a queue, whose errors belong to nobody else."""
    for one in tensors:
        with contextlib.suppress(Exception):
            one.device.synchronize()


def values(tensor: Any) -> np.ndarray:
    """A tensor's values on the host, in a dtype that NumPy can compare."""
    tensor = tensor.detach()
    if str(tensor.dtype) in ("torch.bfloat16", "torch.float16"):
        tensor = tensor.cpu().float()
    return np.array(tensor.cpu().numpy())


def agree(found: Any, expected: Any, context: str, loose: float = 1.0, dtype: str = "float64") -> None:
    """AssertionError unless a result is the reference's in structure, dtype, shape and values.

    A refusal of what the reference computes is raised as it is. The tolerance is that of the result's dtype, or of
    ``dtype``, which the arguments have, where that is coarser; ``loose`` multiplies it.
    """
    if isinstance(expected, DivisionError) and any([undivided(one.device) for one in tensors_of(found)]):
        return
    if isinstance(expected, Exception):
        assert isinstance(found, Exception), f"{context}: the reference raises {expected!r}, got {found}"
        assert isinstance(found, _kinds(expected)), f"{context}: {found!r} for {expected!r}"
        return
    if isinstance(found, Exception):
        raise found
    mine, other = tensors_of(found), tensors_of(expected)
    assert len(mine) == len(other), f"{context}: expected {len(other)} results, got {len(mine)}"
    if not other:
        assert found == expected or found != found, f"{context}: expected {expected}, got {found}"
    for a, b in zip(mine, other, strict=True):
        assert a.dtype is b.dtype, f"{context}: expected {b.dtype}, got {a.dtype}"
        assert tuple(a.shape) == tuple(b.shape), f"{context}: expected {tuple(b.shape)}, got {tuple(a.shape)}"
        if type(a) is tc.Tensor and a.native is not None and a.device.wraps is None:
            stored = a.device.dtype_of(a.native)
            assert stored is a.dtype, f"{context}: expected the kernel's array to hold {a.dtype}, got {stored}"
        x, y = values(a), values(b)
        name = str(b.dtype).rpartition(".")[2]
        if y.dtype.kind not in "fc":
            np.testing.assert_array_equal(x, y, err_msg=context)
            continue
        finite = np.abs(y[np.isfinite(y)])
        tolerance = loose * max(TOLERANCE[name], TOLERANCE.get(dtype, 0.0))
        atol = tolerance * max(1.0, float(finite.max()) if finite.size else 1.0)
        np.testing.assert_allclose(x, y, rtol=tolerance, atol=atol, err_msg=context)


def undivided(device: Backend) -> bool:
    """Whether integers divided by 0 are undefined there, as in PyTorch: a look for zeros would make the device wait."""
    return not device.capabilities.host


def same_error(
    found: Any, expected: Exception, device: Backend, reference: Backend, context: str, text: bool = True
) -> None:
    """AssertionError unless an exception has the reference's type and, with ``text``, words but for the device's name."""
    if isinstance(expected, DivisionError) and not isinstance(found, Exception) and undivided(device):
        return
    assert isinstance(found, Exception), f"{context}: the reference raises {expected!r}, got {found}"
    assert type(found) is type(expected), f"{context}: {found!r} for {expected!r}"
    if not text:
        return
    texts = (str(found), str(found).replace(str(device), str(reference)))
    assert str(expected) in texts, f"{context}: {found!r} for {expected!r}"


def _kinds(error: Exception) -> tuple[type, ...]:
    """The builtin exceptions by which a program would catch it."""
    kinds = (IndexError, ValueError, TypeError, NotImplementedError, RuntimeError, ArithmeticError)
    return tuple([kind for kind in kinds if isinstance(error, kind)]) or (Exception,)
