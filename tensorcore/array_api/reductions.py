"""Sums, extremes and the like, of all elements or along axes."""

from __future__ import annotations

import builtins
from typing import Any

import tensorcore
from tensorcore import dtypes
from tensorcore.array_api.promotion import array, promoted, sum_dtype
from tensorcore.errors import ArgumentError
from tensorcore.tensor import Tensor

__all__ = [
    "all", "any", "count_nonzero", "cumulative_prod", "cumulative_sum", "diff", "max", "mean", "min", "prod", "std", "sum", "var",
]  # fmt: skip

Axis = int | tuple[int, ...] | None


def sum(x: Tensor, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The sum; integers add up in 64 bits of their own sign."""
    x = array("sum", x).to(sum_dtype(x, dtype))  # type: ignore[attr-defined]
    return x.clone() if axis == () else tensorcore.sum(x, axis, keepdims, dtype=x.dtype)  # type: ignore[attr-defined, no-any-return]


def prod(x: Tensor, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The product; integers multiply in 64 bits of their own sign."""
    made: Any = array("prod", x).to(sum_dtype(x, dtype), copy=axis == ())  # type: ignore[attr-defined]
    for i in _axes(x, axis):
        made = tensorcore.prod(made, i, True, dtype=made.dtype)
    return _kept(made, x, axis, keepdims)


def max(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The largest element; NaN counts as such."""
    return x.clone() if axis == () else tensorcore.amax(array("max", x), () if axis is None else axis, keepdims)  # type: ignore[attr-defined, no-any-return]


def min(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The smallest element; NaN counts as such."""
    return x.clone() if axis == () else tensorcore.amin(array("min", x), () if axis is None else axis, keepdims)  # type: ignore[attr-defined, no-any-return]


def mean(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The mean."""
    return x.clone() if axis == () else tensorcore.mean(array("mean", x), axis, keepdims)  # type: ignore[attr-defined, no-any-return]


def var(x: Tensor, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The mean squared distance to the mean, over the number of elements less ``correction``."""
    if axis == ():
        return tensorcore.zeros_like(array("var", x)) / (1.0 - correction)
    return tensorcore.var(array("var", x), axis, correction=correction, keepdim=keepdims)


def std(x: Tensor, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The root of :func:`var`."""
    if axis == ():
        return var(x, axis=(), correction=correction).sqrt()  # type: ignore[attr-defined, no-any-return]
    return tensorcore.std(array("std", x), axis, correction=correction, keepdim=keepdims)


def all(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Whether no element is zero."""
    found = array("all", x).to(dtypes.bool_, copy=axis == ())  # type: ignore[attr-defined]
    return found if axis == () else tensorcore.all(found, axis, keepdims)  # type: ignore[no-any-return]


def any(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Whether some element is not zero."""
    found = array("any", x).to(dtypes.bool_, copy=axis == ())  # type: ignore[attr-defined]
    return found if axis == () else tensorcore.any(found, axis, keepdims)  # type: ignore[no-any-return]


def count_nonzero(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """How many elements are not zero."""
    return sum(array("count_nonzero", x) != 0, axis=axis, dtype=dtypes.int64, keepdims=keepdims)  # type: ignore[arg-type]


def cumulative_sum(
    x: Tensor, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Tensor:
    """The sums of the elements up to each one; with ``include_initial`` a zero before the first."""
    return _cumulative("cumulative_sum", tensorcore.cumsum, 0, x, axis, dtype, include_initial)


def cumulative_prod(
    x: Tensor, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Tensor:
    """The products of the elements up to each one; with ``include_initial`` a one before the first."""
    return _cumulative("cumulative_prod", tensorcore.cumprod, 1, x, axis, dtype, include_initial)


def diff(
    x: Tensor, /, *, axis: int = -1, n: int = 1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    """The ``n``-th differences of neighbours along an axis, with ``prepend`` before and ``append`` after the elements."""
    parts = promoted(*[one for one in (prepend, array("diff", x), append) if one is not None])
    joined = tensorcore.concat(parts, axis) if len(parts) > 1 else parts[0]
    return tensorcore.diff(joined, n, axis)


def _cumulative(op: str, function: Any, first: int, x: Tensor, axis: int | None, dtype: Any, initial: bool) -> Tensor:
    if axis is None:
        if array(op, x).ndim != 1:
            raise ArgumentError(f"{op}: expected axis for an array of {x.ndim} dims, got None; name one")
        axis = 0
    made = function(x, axis, dtype=sum_dtype(x, dtype))
    if not initial:
        return made  # type: ignore[no-any-return]
    shape = list(made.shape)
    shape[axis] = 1
    return tensorcore.concat([made.new_full(shape, first), made], axis)


def _axes(x: Tensor, axis: Axis) -> list[int]:
    if axis is None:
        return list(range(x.ndim))
    return [
        one % builtins.max(x.ndim, 1) if -x.ndim <= one < x.ndim else one
        for one in (axis if isinstance(axis, tuple) else (axis,))
    ]


def _kept(made: Any, x: Tensor, axis: Axis, keepdims: bool) -> Tensor:
    """The result without the axes that were kept on the way."""
    if keepdims:
        return made  # type: ignore[no-any-return]
    gone = _axes(x, axis)
    return made.reshape([size for i, size in enumerate(made.shape) if i not in gone])  # type: ignore[no-any-return]
