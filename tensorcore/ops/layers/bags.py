"""Rows of a table by number, added up, averaged, or the largest taken, bag by bag."""

from __future__ import annotations

from typing import Any

from tensorcore import dtypes
from tensorcore.errors import ArgumentError, ArgumentTypeError, DtypeError, KernelMissing, ShapeError, UsageError
from tensorcore.ops.calls import apply
from tensorcore.ops.creation.create import arange
from tensorcore.ops.define import Op
from tensorcore.ops.indexing.buckets import searchsorted
from tensorcore.ops.indexing.masked import bincount, masked_fill
from tensorcore.ops.indexing.scatter import gather
from tensorcore.ops.indexing.slices import index_add
from tensorcore.ops.kinds import operation
from tensorcore.ops.layers.embedding import embedding
from tensorcore.ops.operands import check_optional
from tensorcore.ops.pointwise.choice import where
from tensorcore.ops.reductions.reduce import sum as total
from tensorcore.ops.reductions.segments import segment_reduce
from tensorcore.ops.samples import nn as samples
from tensorcore.tape.mode import mode as grad_mode
from tensorcore.tensor import Tensor

__all__ = ["embedding_bag"]


@operation(samples=samples.embedding_bag, method=False)
def embedding_bag(input: Tensor, weight: Tensor, offsets: Tensor | None = None, max_norm: float | None = None,
                  norm_type: float = 2, scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False,
                  per_sample_weights: Tensor | None = None, include_last_offset: bool = False,
                  padding_idx: int | None = None) -> Tensor:  # fmt: skip
    """The rows of ``weight`` (rows, features) that ``input`` numbers, as one row for each bag: (bags, features).

    Args:
        input: (bags, length), or in a row, with ``offsets``.
        offsets: where each bag starts.
        max_norm, norm_type, scale_grad_by_freq, sparse: as in :func:`embedding`; no scaling with ``max``.
        mode: ``sum``, ``mean`` or ``max``; of nothing all are 0.
        per_sample_weights: in the shape of ``input``: what each row is times, with ``sum``.
        include_last_offset: the last of ``offsets`` is the end of the last bag.
        padding_idx: a row that counts for nothing.
    """
    op = "embedding_bag"
    input, bags, per_sample_weights = _check(op, input, weight, offsets, per_sample_weights, include_last_offset)
    if mode not in ("sum", "mean", "max"):
        raise ArgumentError(f"{op}: mode has to be one of sum, mean or max, got {mode!r}; pass one of them")
    if mode == "max" and (scale_grad_by_freq or sparse):
        raise ArgumentError(
            f"{op}: max mode does not support scaling the gradient by the frequency, or sparse, got it; leave out"
        )
    if per_sample_weights is not None and mode != "sum":
        raise KernelMissing(
            f"{op}: expected per_sample_weights to be None where mode is not 'sum', got mode={mode!r}; leave one out"
        )
    scaled = per_sample_weights is not None and per_sample_weights.node is not None
    recorded = grad_mode.enabled and (scaled or weight.node is not None)
    # The gradient of the largest asks which they are, and bags of one length have shorter ways back.
    usual = not recorded or (offsets is not None and mode != "max")
    plain = max_norm is None and not (recorded and (sparse or scale_grad_by_freq or padding_idx is not None))
    taken = [weight, input] if per_sample_weights is None else [weight, input, per_sample_weights]
    if usual and plain and bags[0] and all(one.device.kernels["bag"] for one in taken):
        starts = arange(bags[0], device=weight.device) * bags[1] if offsets is None else _long(offsets)
        given = (weight, _long(input), starts, *taken[2:])
        options = {"mode": mode, "last": bool(include_last_offset)}
        if padding_idx is not None:
            options["padding"] = _row(op, weight, padding_idx)
        return apply(_bag if per_sample_weights is None else _scaled_bag, given, options)  # type: ignore[no-any-return]
    rows = embedding(input, weight, padding_idx if sparse else None, max_norm, norm_type, scale_grad_by_freq, sparse)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(1)
    counted = None
    if padding_idx is not None:
        counted = input != _row(op, weight, padding_idx)
    if offsets is None:
        count, length = bags
        if length and mode == "max" and counted is None:
            return rows.reshape(count, length, weight.native.shape[1]).max(1)[0]  # type: ignore[no-any-return, attr-defined]
        if length and mode != "max":
            # Bags of one length: a sum along a dim.
            seen = rows if counted is None else where(counted.unsqueeze(1), rows, 0.0)
            made = total(seen.reshape(count, length, weight.native.shape[1]), 1)
            if mode == "sum":
                return made
            many = length if counted is None else counted.reshape(count, length).sum(1, True).clamp(1)
            return made / many
        owner = arange(count, device=weight.device).repeat_interleave(length)
    else:
        count = bags[0]
        offsets, at = offsets.to(dtypes.int64), arange(input.native.shape[0], device=weight.device)
        owner = searchsorted(offsets[:count], at, right=True) - 1
        if include_last_offset:
            # What is behind the end of the last bag counts for nothing.
            inside = at < offsets[count]
            counted = inside if counted is None else counted & inside
    return _pooled(rows, owner, counted, count, mode)


def _row(op: str, weight: Tensor, padding_idx: int) -> int:
    """The row of the table that counts for nothing."""
    table = weight.native.shape[0]
    if not -table <= padding_idx < table:
        raise UsageError(f"{op}: padding_idx must be within the number of embeddings, got {padding_idx} for {table}")
    return padding_idx % table


def _sent(g: Tensor, input: Tensor, offsets: Tensor, mode: str, last: bool) -> Tensor:
    """The gradient that each of the indices gets, from its bag."""
    count = g.native.shape[0]
    at = arange(input.native.shape[0], device=g.device)
    owner = searchsorted(offsets[:count], at, right=True) - 1
    inside = at < offsets[count] if last else None
    if mode == "mean":
        ones = owner.new_ones(owner.native.shape) if inside is None else inside.to(dtypes.int64)
        many = index_add(owner.new_zeros((count,)), 0, owner, ones)
        g = g / many.clamp(1).unsqueeze(1)
    sent = g.index_select(0, owner)  # type: ignore[attr-defined]
    return sent if inside is None else where(inside.unsqueeze(1), sent, 0.0)


def _to_table(sent: Tensor, input: Tensor, shape: tuple[int, ...]) -> Tensor:
    return index_add(sent.new_zeros(tuple(shape)), 0, input, sent)


_bag = Op("bag", "weight input offsets", "Rows of a table, bag by bag.", register=False, backward_name="EmbeddingBagBackward0", grads=dict(
    weight=lambda g, input, offsets, weight_shape, mode, last: _to_table(_sent(g, input, offsets, mode, last), input, weight_shape),
))  # fmt: skip
_scaled_bag = Op(
    "scaled_bag", "weight input offsets scales", "Rows of a table, each times a number, bag by bag.", kernel="bag", register=False,
    backward_name="EmbeddingBagBackward0", grads=dict(
        weight=lambda g, input, offsets, scales, weight_shape, mode, last: _to_table(
            _sent(g, input, offsets, mode, last) * scales.unsqueeze(1), input, weight_shape),
        scales=lambda g, weight, input, offsets, mode, last: total(
            _sent(g, input, offsets, mode, last) * weight.index_select(0, input), 1),
    ),
)  # fmt: skip


def _pooled(rows: Tensor, owner: Tensor, counted: Tensor | None, count: int, mode: str) -> Tensor:
    """The rows of each bag as one; ``owner`` numbers the bag of each."""
    features = rows.native.shape[1]
    none = rows.new_zeros((count, features))
    if mode == "max":
        return _largest(rows, owner, counted, none)
    if counted is not None:
        rows = where(counted.unsqueeze(1), rows, 0.0)
    made = index_add(none, 0, owner, rows)
    if mode == "sum":
        return made
    ones = owner.new_ones(owner.native.shape) if counted is None else counted.to(dtypes.int64)
    many = index_add(owner.new_zeros((count,)), 0, owner, ones)
    return made / many.clamp(1).unsqueeze(1)


def _largest(rows: Tensor, owner: Tensor, counted: Tensor | None, none: Tensor) -> Tensor:
    """The largest of each feature in each bag, the first of equal ones, 0 where there is none."""
    length = rows.native.shape[0]
    if not length:
        return none + total(rows) * 0
    values = rows.detach()
    if counted is not None:
        values = masked_fill(values, ~counted.unsqueeze(1), float("-inf"))
    lengths = bincount(owner, minlength=none.native.shape[0])  # bags are in order, so each is a segment
    top = segment_reduce(values, "max", lengths=lengths)
    seen = (top[owner] == values) | values.isnan()
    if counted is not None:
        seen = seen & counted.unsqueeze(1)
    at = arange(length, dtype=dtypes.float64, device=rows.device).unsqueeze(1)
    first = segment_reduce(where(seen, at, float(length)), "min", lengths=lengths)
    found = first < length
    return where(found, gather(rows, 0, where(found, first, 0.0).to(dtypes.int64)), 0.0)


def _long(one: Tensor) -> Tensor:
    return one if one.dtype is dtypes.int64 else one.to(dtypes.int64)  # type: ignore[attr-defined, no-any-return]


def _check(
    op: str, input: Any, weight: Any, offsets: Any, per_sample: Any, include_last: bool
) -> tuple[Tensor, tuple[int, ...], Any]:
    """The indices in a row, how many bags there are (and of how many, where that is one number), and the weights in a row."""
    check_optional(op, offsets=offsets, per_sample_weights=per_sample)
    for name, one in (("input", input), ("weight", weight)):
        if not isinstance(one, Tensor):
            raise ArgumentTypeError(
                f"{op}: expected argument '{name}' to be a Tensor, got {type(one).__name__}; use torch.tensor(...)"
            )
    shape = tuple(input.native.shape)
    if per_sample is not None and tuple(per_sample.native.shape) != shape:
        raise ArgumentError(
            f"{op}: If per_sample_weights is not None, then it must have the same shape as the input ({list(shape)}), got "
            f"{list(per_sample.shape)}; reshape it"
        )
    if not weight.dtype.is_floating_point:
        raise DtypeError(
            f"{op}: Expected weight to have a floating scalar type, got {weight.dtype}; convert it with .float()"
        )
    if len(weight.native.shape) != 2:
        raise ArgumentError(
            f"{op}: weight has to be a 2D Tensor, but got Tensor of dimension {len(weight.native.shape)}"
        )
    if per_sample is not None and per_sample.dtype is not weight.dtype:
        raise DtypeError(
            f"{op}: expected weight and per_sample_weights to have the same dtype, got {weight.dtype} and {per_sample.dtype}; convert"
        )
    for name, one in (("input", input), ("offsets", offsets)):
        if one is not None and one.dtype not in (dtypes.int64, dtypes.int32):
            raise DtypeError(
                f"{op}: Expected tensor for argument '{name}' to have scalar type Long or Int, got {one.dtype}; use .long()"
            )
    if input.device.capabilities.values:
        lowest, highest = input.device.kernels["index_bounds"](input.native)
        if lowest < 0 or highest >= weight.native.shape[0]:
            raise UsageError(
                f"{op}: Expected idx >= 0 && idx < num_embeddings, got {lowest if lowest < 0 else highest} for "
                f"{weight.native.shape[0]} rows; look at the indices"
            )
    if len(shape) == 2:
        if offsets is not None:
            raise ArgumentError(
                f"{op}: if input is 2D, then offsets has to be None, as input is treated as a mini-batch of fixed length "
                f"sequences, got offsets of {list(offsets.shape)}; leave them out"
            )
        return input.reshape(-1), shape, None if per_sample is None else per_sample.reshape(-1)
    if len(shape) != 1:
        raise ArgumentError(
            f"{op}: input has to be 1D or 2D Tensor, but got Tensor of dimension {len(shape)}; flatten it"
        )
    if offsets is None:
        raise ArgumentError(f"{op}: offsets has to be a 1D Tensor but got None; pass where each bag starts")
    if len(offsets.native.shape) != 1:
        raise ArgumentError(f"{op}: offsets has to be a 1D Tensor, got {list(offsets.shape)}; flatten it")
    count = offsets.native.shape[0] - bool(include_last)
    if count < 0:
        raise UsageError(f"{op}: include_last_offset: number of offsets should be at least 1, got 0; pass the end")
    if offsets.device.capabilities.values and offsets.native.shape[0]:
        host = offsets.device.to_host(offsets.native)
        if host.size <= 32 and (few := host.tolist()) == sorted(few) and few[0] == 0 and few[-1] <= shape[0]:
            return input, (count,), per_sample
        if host[0] != 0 or host[-1] > shape[0]:
            raise ShapeError(
                f"{op}: offsets must start with 0 and not exceed the length of input ({shape[0]}), got {host[0]} to {host[-1]}"
            )
        if (host[1:] < host[:-1]).any():
            raise ShapeError(
                f"{op}: offsets must not decrease, got {host.tolist()}; pass where each bag starts, in order"
            )
    return input, (count,), per_sample
