"""Quantiles: the elements that stand at given parts of the sorted order."""

from __future__ import annotations

from math import prod
from typing import Any

from tensorcore import dtypes
from tensorcore.errors import ArgumentTypeError, DtypeError, ShapeError, UsageError
from tensorcore.ops import rules
from tensorcore.ops.operands import check_tensors
from tensorcore.ops.pointwise.choice import where
from tensorcore.ops.reductions.reduce import over_dims, stored
from tensorcore.ops.samples import numeric as samples
from tensorcore.tensor import Tensor

__all__ = ["nanquantile", "quantile"]

_MODES = ("linear", "lower", "higher", "midpoint", "nearest")


@over_dims(samples=samples.quantile)
def quantile(input: Tensor, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear",
             out: Tensor | None = None) -> Tensor:  # fmt: skip
    """The ``q``-th quantiles, of all elements or along ``dim``; NaN where there is one.

    Args:
        q: a number from 0 to 1, or a tensor of the input's dtype with at most one dim, which comes first in the result.
        interpolation: between the two nearest elements: ``linear``, ``lower``, ``higher``, ``midpoint`` or ``nearest``.
    """
    return stored("quantile", _quantile("quantile", input, q, dim, keepdim, interpolation), out)


@over_dims(samples=samples.quantile)
def nanquantile(input: Tensor, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear",
                out: Tensor | None = None) -> Tensor:  # fmt: skip
    """As :func:`quantile`, of the elements that are not NaN."""
    return stored("nanquantile", _quantile("nanquantile", input, q, dim, keepdim, interpolation), out)


def _quantile(op: str, input: Tensor, q: Any, dim: int | None, keepdim: bool, interpolation: str) -> Tensor:
    if type(input) is not Tensor:
        check_tensors(op, input=input)
    shape = tuple(input.native.shape)
    q = _checked(op, input, q, interpolation)
    if not input.numel():
        raise ShapeError(f"{op}: {op}() input tensor must be non-empty, got shape {list(shape)}; skip empty inputs")
    if dim is None:
        rows, rest = input.reshape(-1), (1,) * len(shape) if keepdim else ()  # type: ignore[attr-defined]
    else:
        at = rules.wrap_dim(op, dim, len(shape))
        rows = input.movedim(at, -1) if shape else input.reshape(1)  # type: ignore[attr-defined]
        rest = rules.reduced(shape, (at,) if shape else (), keepdim)
    ordered = rows.sort(-1).values
    last = ordered.native.shape[-1] - 1
    missing = ordered.detach().isnan()
    ranks = q.reshape(-1)  # type: ignore[attr-defined]
    if op == "nanquantile":
        count = (~missing).sum(-1, True)
        ranks = (ranks * (count - 1).to(q.dtype)).clamp_min(0)
    else:
        # NaN is sorted to the end: the last rank picks it up.
        ranks = where(missing.any(-1, True), float(last), ranks * last)
    if interpolation in ("lower", "higher", "nearest"):
        ranks = {"lower": ranks.floor, "higher": ranks.ceil, "nearest": ranks.round}[interpolation]()
    below = ranks.detach().long()
    made = ordered.gather(-1, below)
    if interpolation in ("linear", "midpoint"):
        weight = ranks * 0 + 0.5 if interpolation == "midpoint" else ranks - below.to(q.dtype)
        made = made.lerp(ordered.gather(-1, ranks.detach().ceil().long()), weight)
    if not q.native.shape:
        return made.reshape(rest)  # type: ignore[no-any-return]
    return made.movedim(-1, 0).reshape((prod(q.native.shape), *rest))  # type: ignore[no-any-return]


def _checked(op: str, input: Tensor, q: Any, interpolation: str) -> Tensor:
    if input.dtype not in (dtypes.float32, dtypes.float64):
        raise DtypeError(
            f"{op}: {op}() input tensor must be either float or double dtype, got {input.dtype}; use .float()"
        )
    if interpolation not in _MODES:
        raise UsageError(
            f"{op}: {op}() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {interpolation}; "
            f"pass one of these"
        )
    if not isinstance(q, Tensor):
        if dtypes.kind_of(q) not in ("integer", "floating"):
            raise ArgumentTypeError(f"{op}: expected q to be a number or a Tensor, got {q!r}; pass a float")
        q = input.new_full((), float(q))  # type: ignore[attr-defined]
    if q.ndim > 1:
        raise ShapeError(f"{op}: {op}() q must be a scalar or 1D tensor, got {q.ndim} dims; flatten it")
    if q.dtype is not input.dtype:
        raise DtypeError(
            f"{op}: {op}() q tensor must be same dtype as the input tensor, got {q.dtype} for {input.dtype}; convert it"
        )
    inside = ((q.detach() >= 0) & (q.detach() <= 1)).all()
    if q.device.capabilities.values and not q.device.all_values(inside.native).all():
        raise UsageError(f"{op}: {op}() q values must be in the range [0, 1], got others; clamp them")
    return q
