"""Reductions: sums, means, extremes over dims."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorcore import dtypes
from tensorcore.ops import rules, samples
from tensorcore.ops.calls import apply, store
from tensorcore.ops.define import Op
from tensorcore.ops.kinds import operation
from tensorcore.tensor import Tensor

__all__ = ["sum", "sum_to_size"]


def _spread(g: Tensor, shape: tuple[int, ...], dim: tuple[int, ...] | None, keepdim: bool) -> Tensor:
    """A reduced gradient over the shape from before the reduction."""
    if not keepdim and dim is not None:
        g = g.reshape(rules.reduced(shape, dim, True))
    return g.expand(shape)


_sum = Op(
    "sum", "input", "Sum over dims.",
    grads=dict(input=lambda g, input_shape, dim, keepdim: _spread(g, input_shape, dim, keepdim)),
    register=False,
)  # fmt: skip


@operation(samples=samples.reduction, kind="reduction")
def sum(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: dtypes.dtype | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Sum of all elements, or of those along ``dim``; integers and bools are summed as int64."""
    if dtype is None and input.dtype.kind in ("bool", "integer"):
        dtype = dtypes.int64
    if dtype is not None and dtype is not input.dtype:
        input = input.to(dtype)
    if dim is not None:
        # An empty tuple of dims means all of them, as in PyTorch.
        dim = rules.wrap_dims("sum", dim, len(input.native.shape)) or None
    made = apply(_sum, (input,), {"dim": dim, "keepdim": keepdim})
    return made if out is None else store("sum", made, out)


def sum_to_size(input: Tensor, *size: Any) -> Tensor:
    """Sum over what broadcasting stretched, so that the result has the shape ``size``."""
    size = rules.as_shape("sum_to_size", size)
    shape = tuple(input.native.shape)
    extra = len(shape) - len(size)
    dims = tuple(range(extra)) + tuple(i + extra for i, n in enumerate(size) if n == 1 and shape[i + extra] != 1)
    summed = apply(_sum, (input,), {"dim": dims, "keepdim": True}) if dims else input
    return summed.reshape(size) if extra else summed


Tensor.sum_to_size = sum_to_size  # type: ignore[attr-defined]
