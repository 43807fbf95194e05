"""Indices drawn by weight, as PyTorch's CPU generator draws them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tensorcore.backend import distributions as dist
from tensorcore.backend.twister import RandomError
from tensorcore.dtypes import dtype, from_numpy_dtype, int64
from tensorcore.errors import DtypeError

if TYPE_CHECKING:
    from tensorcore.backend.random import Generator

__all__ = ["multinomial"]

Array = npt.NDArray[Any]

_FEW = 32  # up to so many categories all of them are compared, in one call for all rows


def multinomial(
    generator: Generator, weights: Array, shape: tuple[int], replacement: bool = False, dtype: dtype = int64
) -> Array:
    """int64 indices drawn by weight: of that shape, (num_samples,), for weights (categories,), a row each for
    (rows, categories).

    Weights are floating, at least 0 and finite, not all 0 in a row, and need not sum to 1.
    Without replacement, the order among categories of equal weight-to-draw ratio (those of
    weight 0, once the others are used up; chance ties of 16-bit weights) is by index here and
    unspecified in PyTorch.
    """
    (num_samples,) = shape
    if weights.ndim not in (1, 2):
        raise RandomError(f"multinomial: expected weights of 1 or 2 dims, got {weights.ndim}; reshape them")
    given, categories = from_numpy_dtype(weights.dtype), weights.shape[-1]
    if not given.is_floating_point:
        raise DtypeError(f"multinomial: expected a floating dtype, got {given}; pass e.g. torch.float32")
    if num_samples <= 0:
        raise RandomError(f"multinomial: expected num_samples > 0, got {num_samples}; draw at least one")
    if not replacement and num_samples > categories:
        raise RandomError(
            f"multinomial: expected num_samples up to the {categories} categories, got {num_samples}; "
            f"draw with replacement=True"
        )
    if categories > 1 << 24:
        raise RandomError(f"multinomial: expected at most 2**24 categories, got {categories}; draw in two steps")
    rows = weights.reshape(-1, categories) if categories else np.zeros((weights.size or 1, 0))
    if not np.all((rows >= 0) & np.isfinite(rows)):
        raise RandomError("multinomial: expected weights >= 0 and finite, got others; clamp them")
    if not np.all(rows.sum(axis=1, dtype=np.float64) > 0):
        raise RandomError("multinomial: expected a sum of weights > 0, got 0; give some category a weight")
    if replacement and num_samples > 1:
        result = _with_replacement(generator, rows, num_samples)
    else:
        with np.errstate(divide="ignore", over="ignore"):
            # PyTorch lays the draws as the weights lie, and fills memory in its order.
            turned = 0 < rows.strides[0] < rows.strides[1] and min(rows.shape) > 1
            drawn = generator.exponential(rows.shape[::-1] if turned else rows.shape, given)
            ratio = rows / (drawn.T if turned else drawn)
        result = _largest_first(ratio, num_samples)
    return result.reshape(*weights.shape[:-1], num_samples)


def _with_replacement(generator: Generator, rows: Array, num_samples: int) -> Array:
    rows = rows if rows.dtype.itemsize >= 4 else rows.astype(np.float32)
    uniforms = dist.uniform_float64(generator.draw64(len(rows) * num_samples)).reshape(len(rows), num_samples)
    cumulative = np.cumsum(rows, axis=1, dtype=rows.dtype)
    cumulative /= cumulative[:, -1:]
    cumulative[:, -1] = 1.0
    if rows.shape[1] <= _FEW:
        return (cumulative[:, None, :] < uniforms[:, :, None]).sum(2)  # type: ignore[no-any-return]
    result = np.empty(uniforms.shape, np.int64)
    for found, row, uniform in zip(result, cumulative, uniforms, strict=True):
        found[...] = np.searchsorted(row.astype(np.float64), uniform, side="left")
    return result


def _largest_first(ratio: Array, count: int) -> Array:
    """The column indices of each row's ``count`` largest values, largest first, the lower index of equals."""
    if count == 1:
        return np.argmax(ratio, axis=1)[:, None]  # type: ignore[no-any-return]
    if 8 * count > ratio.shape[1] or np.isnan(ratio).any():
        return np.ascontiguousarray(np.argsort(-ratio, axis=1, kind="stable")[:, :count])
    made = np.empty((len(ratio), count), np.int64)
    for found, row in zip(
        made, ratio, strict=True
    ):  # a few of many: whatever is below the last of them need not be sorted
        (at,) = np.nonzero(row >= np.partition(row, -count)[-count])
        found[:] = at[np.argsort(-row[at], kind="stable")[:count]]
    return made
