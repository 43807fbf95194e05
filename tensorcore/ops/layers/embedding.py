"""Rows of a table by number."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from tensorcore import dtypes
from tensorcore.errors import ArgumentTypeError, DimensionError, DtypeError, ShapeError, UsageError
from tensorcore.ops.calls import apply
from tensorcore.ops.define import Op
from tensorcore.ops.kinds import operation
from tensorcore.ops.output import written
from tensorcore.ops.samples import nn as samples
from tensorcore.tape.mode import makers
from tensorcore.tape.node import add_into
from tensorcore.tensor import Tensor

__all__ = ["embedding"]

new = object.__new__
makers.append(globals())

_embedding = Op(
    "embedding", "weight indices", "Rows of a table.", backward_name="EmbeddingBackward0", register=False,
    grads=dict(weight=lambda g, indices, weight_shape, padding, by_count, arrived: _sent_back(
        g, indices, weight_shape, padding, by_count, arrived)),
)  # fmt: skip
_gradient = Op(
    "embedding_gradient", "sent indices", "Rows added up by number.", backward_name="EmbeddingDenseBackward0", register=False,
    grads=dict(sent=lambda g, indices, padding, by_count: apply(_pick, (g, indices), {"padding": padding, "by_count": by_count})),
)  # fmt: skip
_pick = Op(
    "embedding_pick", "weight indices", "Rows of a table, but for the padding's, over their count.", register=False,
    grads=dict(weight=lambda g, indices, weight_shape, padding, by_count: apply(_gradient, (g, indices), {
        "rows": weight_shape[0], "padding": padding, "by_count": by_count})),
)  # fmt: skip


def _sent_back(g: Any, indices: Any, weight_shape: Any, padding: Any, by_count: bool, arrived: Any) -> Any:
    """The gradient of the table: added to what has arrived, as of a table that is the last layer's weight too, or to zeros."""
    if arrived is None or padding is not None or by_count:
        return apply(_gradient, (g, indices), {"rows": weight_shape[0], "padding": padding, "by_count": by_count})
    return add_into(arrived, "index_add", indices.reshape(-1), g.reshape((-1, *weight_shape[1:])), dim=0)


def _rows_alone(g: Any, indices: Any, weight_shape: Any, padding: Any, by_count: bool) -> Any:
    """The gradient as a sparse tensor: a row for each that was asked for."""
    if by_count:
        raise UsageError(
            "embedding: scale_grad_by_freq not supported with sparse gradients, got both; leave out sparse"
        )
    at, sent = indices.reshape(-1).long(), g.reshape((-1, *weight_shape[1:]))
    if padding is not None:
        kept = (at != padding).nonzero().reshape(-1)
        at, sent = at[kept], sent[kept]
    return import_module("tensorcore.ops.sparse.layouts").Coo.of((at.unsqueeze(0), sent), weight_shape)


_embedding_sparse = Op(
    "embedding", "weight indices", "Rows of a table.", backward_name="EmbeddingBackward0", register=False,
    grads=dict(weight=_rows_alone),
)  # fmt: skip


@operation(samples=samples.embedding, method=False)
def embedding(input: Tensor, weight: Tensor, padding_idx: int | None = None, max_norm: float | None = None,
              norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False) -> Tensor:  # fmt: skip
    """The rows of ``weight`` (rows, features) that ``input`` (...) numbers: (..., features).

    Args:
        padding_idx: a row that gets no gradient.
        max_norm: rows that are asked for and longer than this are scaled to it, in place.
        norm_type: the p of that norm.
        scale_grad_by_freq: divide each row's gradient by how often it was asked for.
        sparse: let the gradient of ``weight`` be a sparse tensor of the rows that were asked for.
    """
    if (
        type(input) is not Tensor
        or type(weight) is not Tensor
        or input.dtype is not dtypes.int64
        or len(weight.native.shape) != 2
        or padding_idx is not None
    ):
        padding_idx = _checked(input, weight, padding_idx)
    device, rows = input.device, weight.native.shape[0]
    if device.capabilities.values and not device.checks_indices:
        lowest, highest = device.kernels["index_bounds"](input.native)
        if lowest < 0 or highest >= rows:
            raise DimensionError(
                f"embedding: index out of range in self, got {lowest if lowest < 0 else highest} for {rows} rows; "
                f"pass indices from 0 to {rows - 1}"
            )
    if max_norm is not None:
        _renorm(weight, input, float(max_norm), float(norm_type))
    if weight.node is None and type(weight) is Tensor and weight.device is device:
        try:
            native = device.kernels["embedding"](
                weight.native, input.native, padding=padding_idx, by_count=scale_grad_by_freq
            )
        except MemoryError:
            pass  # ``apply`` makes room
        else:
            made = new(Tensor)
            made.native = native
            made.dtype = weight.dtype
            made.device = device
            made.node = made.version = made.trail = None
            return made
    options = {"padding": padding_idx, "by_count": scale_grad_by_freq}
    return apply(_embedding_sparse if sparse else _embedding, (weight, input), options, dtype=weight.dtype)  # type: ignore[no-any-return]


def _checked(input: Any, weight: Any, padding_idx: int | None) -> int | None:
    """The padding's row, counted from the first one; refuses what cannot be looked up."""
    for name, one in (("input", input), ("weight", weight)):
        if not isinstance(one, Tensor):
            raise ArgumentTypeError(
                f"embedding: expected argument '{name}' to be a Tensor, got {type(one).__name__}; use torch.tensor(...)"
            )
    if input.dtype not in (dtypes.int64, dtypes.int32):
        raise DtypeError(
            f"embedding: Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; "
            f"but got {input.dtype.name} instead; convert it with .long()"
        )
    shape = weight.native.shape
    if len(shape) != 2:
        raise ShapeError(f"embedding: 'weight' must be 2-D, got {list(shape)}; reshape it")
    if padding_idx is None:
        return None
    if not -shape[0] <= padding_idx < shape[0]:
        raise _NoSuchRow(f"embedding: Padding_idx must be within num_embeddings, got {padding_idx} for {shape[0]} rows")
    return padding_idx % int(shape[0])


class _NoSuchRow(DimensionError, AssertionError):
    """A padding row that the table does not have; PyTorch asserts it."""


def _renorm(weight: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> None:
    """Scale the rows asked for whose norm is over ``max_norm`` down to it, off the tape."""
    device = weight.device
    rows = np.unique(device.to_host(indices.native))
    table = device.to_host(weight.native)
    found = table[rows].astype(np.float64)
    norms = np.linalg.norm(found, norm_type, axis=1)
    longer = norms > max_norm
    if longer.any():
        changed = table.copy()
        changed[rows[longer]] = (found[longer] * (max_norm / (norms[longer] + 1e-7))[:, None]).astype(table.dtype)
        device.kernels["copy"](weight.native, device.from_host(changed))
        written(weight)
