"""``torch.testing.make_tensor``: tensors of random values for tests, in PyTorch's numbers for a seed."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from math import prod
from typing import Any

from tensorcore import dtypes
from tensorcore.errors import ArgumentError
from tensorcore.ops.creation.create import empty
from tensorcore.ops.creation.random import randint
from tensorcore.ops.pointwise.complex import view_as_real
from tensorcore.tensor import Tensor

__all__ = ["make_tensor"]


def make_tensor(*shape: Any, dtype: dtypes.dtype, device: Any, low: float | None = None, high: float | None = None,
                requires_grad: bool = False, noncontiguous: bool = False, exclude_zero: bool = False,
                memory_format: Any = None) -> Tensor:  # fmt: skip
    """A tensor of values drawn evenly from ``[low, high)``.

    Args:
        low, high: -9 and 9 (10 for integers) where None, 0 and 2 for bools; cut to what the dtype holds.
        noncontiguous: every second element of a larger one.
        exclude_zero: zeros become the smallest positive normal number, or 1.
    """
    sizes = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], Sequence) else shape
    whole = dtype.kind in ("bool", "integer")
    if noncontiguous and memory_format is not None:
        raise ArgumentError(
            f"make_tensor: The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got "
            f"{noncontiguous=} and {memory_format=}"
        )
    if requires_grad and whole:
        raise ArgumentError(
            f"make_tensor: `requires_grad=True` is not supported for boolean and integral dtypes, but got {dtype=}"
        )
    apart = noncontiguous and prod(sizes) > 1
    if apart:
        sizes = (*sizes[:-1], 2 * sizes[-1])
    least, most = _bounds(dtype, low, high)
    if whole:
        made = randint(math.ceil(least), math.ceil(most), sizes, device=device, dtype=dtype)
    else:
        made = empty(sizes, device=device, dtype=dtype)
        _fill(view_as_real(made) if dtype.is_complex else made, least, most)
    if apart:
        made = made[..., 1::2]
    elif memory_format is not None:
        made = made.clone(memory_format=memory_format)
    if exclude_zero:
        made[made == 0] = 1 if whole else dtypes.finfo(dtype).tiny
    return made.requires_grad_(requires_grad)  # type: ignore[no-any-return]


def _bounds(dtype: dtypes.dtype, low: float | None, high: float | None) -> tuple[float, float]:
    """The bounds within what the dtype holds."""
    whole = dtype.kind == "integer"
    if dtype is dtypes.bool_:
        least, most, usual = 0.0, 2.0, (0, 2)
    elif whole:
        # The end is not drawn, and fits 64 bits.
        info = dtypes.iinfo(dtype)
        least, most, usual = info.min, info.max + (dtype is not dtypes.int64), (-9, 10)
    else:
        info = dtypes.finfo(dtype)
        least, most, usual = info.min, info.max, (-9, 9)
    low, high = usual[0] if low is None else low, usual[1] if high is None else high
    if math.isnan(low) or math.isnan(high):
        raise ArgumentError(f"make_tensor: `low` and `high` cannot be NaN, but got {low=} and {high=}")
    if low == high and not whole and dtype is not dtypes.bool_:
        warnings.warn(
            "Passing `low==high` to `torch.testing.make_tensor` for floating or complex types is deprecated; use "
            "`torch.full(...)` instead.", FutureWarning, stacklevel=4,
        )  # fmt: skip
    elif low >= high:
        raise ArgumentError(f"make_tensor: `low` must be less than `high`, but got {low} >= {high}")
    elif high < least or low >= most:
        raise ArgumentError(
            f"make_tensor: The value interval specified by `low` and `high` is [{low}, {high}), but {dtype} only supports "
            f"[{least}, {most})"
        )
    return min(max(low, least), most), min(max(high, least), most)


def _fill(made: Tensor, low: float, high: float) -> None:
    if high - low >= dtypes.finfo(made.dtype).max:  # more than uniform_ takes
        made.uniform_(low / 2, high / 2).mul_(2)  # type: ignore[attr-defined]
    else:
        made.uniform_(low, high)  # type: ignore[attr-defined]
