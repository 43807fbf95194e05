"""Covariances and correlations of variables."""

from __future__ import annotations

import warnings
from typing import Any

from tensorcore import dtypes
from tensorcore.errors import DtypeError, ShapeError, UsageError
from tensorcore.ops.kinds import operation
from tensorcore.ops.operands import check_tensors
from tensorcore.ops.pointwise.complex import complex, conjugate
from tensorcore.ops.samples import numeric as samples
from tensorcore.tensor import Tensor

__all__ = ["corrcoef", "cov"]


@operation(samples=samples.cov)
def cov(
    input: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
) -> Tensor:
    """The covariance matrix of variables, a row each of (variables, observations); a number for a single variable.

    Args:
        correction: taken from the number of observations that the sums are divided by.
        fweights: how often each observation was made, integers.
        aweights: how much each observation counts, floating.
    """
    if type(input) is not Tensor:
        check_tensors("cov", input=input)
    if fweights is not None and type(fweights) is not Tensor:
        check_tensors("cov", fweights=fweights)
    if aweights is not None and type(aweights) is not Tensor:
        check_tensors("cov", aweights=aweights)
    if input.ndim > 2:
        raise ShapeError(
            f"cov: cov(): expected input to have two or fewer dimensions but got an input with {input.ndim} dimensions"
        )
    if input.dtype is dtypes.bool_:
        raise DtypeError("cov: cov(): bool dtype is not supported for input, got one; convert it with .int()")
    x: Any = input if input.ndim == 2 else input.reshape(1, -1)  # type: ignore[attr-defined]
    count = x.native.shape[1]
    weights: Any = None
    for name, one, kind in (("fweights", fweights, "integer"), ("aweights", aweights, "floating")):
        if one is not None:
            _check_weights(name, one, kind, count)
            weights = one if weights is None else weights * one
    total: Any = float(count) if weights is None else weights.sum()
    if weights is not None and _true(total == 0):
        raise UsageError("cov: cov(): weights sum to zero, can't be normalized, got weights of 0 alone; give others")
    mean = (x if weights is None else x * weights).sum(1) / total
    if aweights is not None and correction != 0:
        norm = total - correction * (weights * aweights).sum() / total
    else:
        norm = total - correction
    if _true(norm <= 0):
        warnings.warn(
            "cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of observations.",
            stacklevel=2,
        )
        norm = norm * 0
    away = x - mean.unsqueeze(1)
    made = away @ conjugate((away if weights is None else away * weights).t())
    return (made / norm).squeeze()  # type: ignore[no-any-return]


def _check_weights(name: str, weights: Tensor, kind: str, count: int) -> None:
    if weights.ndim > 1:
        raise ShapeError(
            f"cov: cov(): expected {name} to have one or fewer dimensions but got {name} with {weights.ndim} dimensions"
        )
    if weights.dtype.kind != kind:
        wanted = "integral" if kind == "integer" else "floating point"
        raise DtypeError(
            f"cov: cov(): expected {name} to have {wanted} dtype but got {name} with {weights.dtype} dtype; convert them"
        )
    if weights.numel() != count:
        raise ShapeError(
            f"cov: cov(): expected {name} to have the same numel as there are observations in the input but got "
            f"{weights.numel()} != {count}"
        )
    if count and _true((weights < 0).any()):  # type: ignore[attr-defined]
        raise UsageError(f"cov: cov(): {name} cannot be negative, got a negative one; clamp them")


def _true(value: Any) -> bool:
    """Whether a test came out true; not where there are no values to test."""
    return bool(value) if not isinstance(value, Tensor) or value.device.capabilities.values else False


@operation(samples=samples.corrcoef)
def corrcoef(input: Tensor) -> Tensor:
    """Pearson's correlation coefficients of variables, a row each of (variables, observations)."""
    if type(input) is not Tensor:
        check_tensors("corrcoef", input=input)
    if input.ndim > 2:
        raise ShapeError(
            f"corrcoef: corrcoef(): expected input to have two or fewer dimensions but got an input with {input.ndim}"
        )
    c: Any = cov(input)
    if not c.ndim:
        return c / c  # type: ignore[no-any-return]
    diagonal = c.diag()
    size = (diagonal.real if c.dtype.is_complex else diagonal).sqrt()
    c = c / size.view(-1, 1) / size.view(1, -1)
    # Rounding may leave [-1, 1].
    return complex(c.real.clip(-1, 1), c.imag.clip(-1, 1)) if c.dtype.is_complex else c.clip(-1, 1)  # type: ignore[no-any-return]
