"""Attention: what queries find under keys, weighted by softmax."""

from __future__ import annotations

from math import inf, prod, sqrt
from typing import Any

from tensorcore import dtypes
from tensorcore.errors import ArgumentTypeError, DtypeError, ShapeError, UsageError
from tensorcore.ops import rules
from tensorcore.ops.fused import Fused
from tensorcore.ops.kinds import operation
from tensorcore.ops.layers.dropout import dropout
from tensorcore.ops.linalg.products import matmul
from tensorcore.ops.pointwise.choice import where
from tensorcore.ops.samples import sequence as samples
from tensorcore.tensor import Tensor

__all__ = ["scaled_dot_product_attention"]


def _weights(query: Tensor, key: Tensor, mask: Tensor | None, causal: bool, scale: float) -> Tensor:
    """Softmax of the scores along the last dim; 0 throughout a row where everything is masked."""
    scores = matmul(query * scale, key.transpose(-2, -1))
    if mask is not None:
        scores = where(mask, scores, -inf) if mask.dtype is dtypes.bool_ else scores + mask
    if causal:
        scores = where(scores.new_ones(scores.native.shape[-2:], dtype=dtypes.bool_).tril(), scores, -inf)
    top = scores.detach().amax(-1, True)
    powers = (scores - where(top == -inf, 0.0, top)).exp()
    sums = powers.sum(-1, True)
    return powers / where(sums == 0, 1.0, sums)


def _attend(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, *, causal: bool, scale: float, drop: float = 0.0
) -> Tensor:
    """Attention in other ops; with ``drop``, never by a kernel.

    A backend's kernel ``attention(query, key, value, mask, *, causal, scale)`` takes, of one floating dtype, on one
    device and in any memory layout:

        query   (batch, heads, rows, features)
        key     (batch, groups, columns, features)
        value   (batch, groups, columns, values); head i of the query meets group i // (heads // groups)
        mask    None, or four dims, each of size 1 or that of (batch, heads, rows, columns): bool (True takes part),
                or numbers of the query's dtype, minus infinity included, that are added to the scores
        causal  bool: row i meets columns 0 to i alone; never together with a mask
        scale   float: the factor of the scores

    where batch, heads, groups, rows and columns are at least 1. It answers (batch, heads, rows, values) in the query's
    dtype, contiguous, with zeros for a row that meets nothing, or a tuple of that and of the natives that
    ``attention_backward(g, query, key, value, mask, *those, needs, causal, scale)`` wants back. That one answers the
    gradients of query, key, value and mask, each in the shape and dtype of its array, or None where ``needs`` (four
    bools) is False; or None alone for a combination that it leaves to the decomposition.
    """
    dtype = query.dtype
    if dtype.itemsize < 4:
        query, key, value = query.float(), key.float(), value.float()
    repeat = query.native.shape[1] // max(key.native.shape[1], 1)
    if repeat > 1:
        key, value = key.repeat_interleave(repeat, 1), value.repeat_interleave(repeat, 1)
    weights = _weights(query, key, mask, causal, scale)
    if drop:
        weights = dropout(weights, drop)
    made = matmul(weights, value)
    return made if made.dtype is dtype else made.to(dtype)


_attention = Fused(
    "attention", "query key value mask", "Softmax of scaled products, times values.", _attend,
    backward_name="ScaledDotProductFlashAttentionForCpuBackward0",
)  # fmt: skip


@operation(samples=samples.attention, method=False)
def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None,
                                 dropout_p: float = 0.0, is_causal: bool = False, scale: float | None = None,
                                 enable_gqa: bool = False) -> Tensor:  # fmt: skip
    """``softmax(query @ key.T * scale + mask) @ value`` for each batch and head.

    Args:
        query: (..., heads, rows, features).
        key: (..., heads, columns, features).
        value: (..., heads, columns, values). The result is (..., heads, rows, values).
        attn_mask: broadcast to (..., rows, columns): bool, True where a row may look, or numbers added to the scores.
        dropout_p: the probability of each weight to be zeroed, with the numbers of :func:`dropout`; always applied.
        is_causal: row i looks at columns 0 to i alone; not together with ``attn_mask``.
        scale: 1 / sqrt(features) if None.
        enable_gqa: key and value may have fewer heads, each for as many heads of the query in a row.

    A row that may look nowhere gives zeros. A backend may run it as one kernel, ``attention``; with dropout it does not.
    From "Attention Is All You Need", Vaswani et al. 2017.
    """
    op = "scaled_dot_product_attention"
    if hasattr(attn_mask, "as_mask"):  # a mask without elements, of nn.attention.bias
        attn_mask, is_causal = attn_mask.as_mask(is_causal, query.device)
    _check(op, query, key, value, attn_mask, is_causal)
    if not 0.0 <= dropout_p <= 1.0:
        raise UsageError(
            f"{op}: dropout probability has to be between 0 and 1, but got {dropout_p}; pass one in between"
        )
    front = _front(op, query, key, value, enable_gqa)
    rows, features = query.native.shape[-2:]
    columns, width = key.native.shape[-2], value.native.shape[-1]
    if scale is None:
        scale = 1.0 / sqrt(features) if features else inf
    heads = front[-1] if front else 1
    batch = prod(front[:-1])
    groups = key.native.shape[-3] if enable_gqa else heads
    four = _four(query, (*front, rows, features), batch, heads)
    mine = (*front[:-1], groups) if front else ()
    others = [_four(one, (*mine, *one.native.shape[-2:]), batch, groups) for one in (key, value)]
    if attn_mask is not None:
        attn_mask = _masking(op, attn_mask, query, (*front, rows, columns), batch, heads)
    if not (batch and heads and rows and columns):
        # No weights, whose softmax would be one of nothing: the products are empty or zero, and so are their gradients.
        keys, values = (one if groups == heads else one.repeat_interleave(heads // groups, 1) for one in others)
        made = matmul(matmul(four, keys.mT), values)
    elif dropout_p:
        made = _attend(four, *others, attn_mask, causal=bool(is_causal), scale=float(scale), drop=float(dropout_p))
    else:
        made = _attention((four, *others, attn_mask), {"causal": bool(is_causal), "scale": float(scale)})
    return made if len(front) == 2 else made.reshape(*front, rows, width)


def _check(op: str, query: Any, key: Any, value: Any, mask: Any, is_causal: bool) -> None:
    for name, one in (("query", query), ("key", key), ("value", value)):
        if not isinstance(one, Tensor):
            raise ArgumentTypeError(
                f"{op}: expected argument '{name}' to be a Tensor, got {type(one).__name__}; use torch.tensor(...)"
            )
    shapes = [list(one.native.shape) for one in (query, key, value)]
    if not query.dtype is key.dtype is value.dtype:
        raise DtypeError(
            f"{op}: Expected query, key, and value to have the same dtype, but got query.dtype: {query.dtype}, key.dtype: "
            f"{key.dtype} and value.dtype: {value.dtype} instead; convert them"
        )
    if not query.dtype.is_floating_point:
        raise DtypeError(f"{op}: expected floating tensors, got {query.dtype}: not implemented for it; use .float()")
    if min(map(len, shapes)) < 2:
        raise ShapeError(
            f"{op}: Expected query, key, and value to all be at least 2 dimensional, got {shapes}; unsqueeze them"
        )
    if shapes[0][-1] != shapes[1][-1] or shapes[1][-2] != shapes[2][-2]:
        raise ShapeError(
            f"{op}: expected query and key of one last size, key and value of one size before it, got {shapes}; transpose them"
        )
    if mask is None:
        return
    if is_causal:
        raise UsageError(f"{op}: Explicit attn_mask should not be set when is_causal=True, got both; pass one of them")
    if not isinstance(mask, Tensor):
        raise ArgumentTypeError(
            f"{op}: expected attn_mask to be a Tensor, got {type(mask).__name__}; use torch.tensor(...)"
        )
    if mask.dtype not in (dtypes.bool_, query.dtype, dtypes.float32):
        raise DtypeError(
            f"{op}: Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: "
            f"{mask.dtype} and query.dtype: {query.dtype} instead; convert it"
        )


def _front(op: str, query: Tensor, key: Tensor, value: Tensor, grouped: bool) -> tuple[int, ...]:
    """The sizes before the last two, of all three together."""
    fronts = [tuple(one.native.shape[:-2]) for one in (query, key, value)]
    if not grouped:
        return rules.broadcast(op, *fronts)
    heads = [front[-1] if front else 0 for front in fronts]
    if not heads[1] or heads[1] != heads[2] or heads[0] % heads[1]:
        raise UsageError(
            f"{op}: Number of heads in key and value must divide the number of heads in query, got {heads[0]}, {heads[1]} and "
            f"{heads[2]}; pass one to each group"
        )
    return (*rules.broadcast(op, *[front[:-1] for front in fronts]), heads[0])


def _four(one: Tensor, shape: tuple[int, ...], batch: int, heads: int) -> Tensor:
    """As (batch, heads, rows, features), stretched to ``shape`` first where it is not of that."""
    if tuple(one.native.shape) != shape:
        one = one.expand(shape)
    return one if len(shape) == 4 else one.reshape(batch, heads, *shape[-2:])


def _masking(op: str, mask: Tensor, query: Tensor, shape: tuple[int, ...], batch: int, heads: int) -> Tensor:
    """The mask with four dims, each of size 1 or full, and of the query's dtype if it is not bool."""
    if mask.dtype is not dtypes.bool_ and mask.dtype is not query.dtype:
        mask = mask.to(query.dtype)
    have = tuple(mask.native.shape)
    if len(have) > len(shape) or rules.broadcast(op, have, shape) != shape:
        raise ShapeError(f"{op}: expected attn_mask to broadcast to {list(shape)}, got {list(have)}; make it fit")
    mask = mask.reshape(*[1] * (len(shape) - len(have)), *have)
    if len(shape) == 4:
        return mask
    front = tuple(mask.native.shape[:-2])
    if prod(front[:-1]) != 1:
        mask = mask.expand(*shape[:-3], *mask.native.shape[-3:])
        return mask.reshape(batch, *mask.native.shape[-3:])
    return mask.reshape(1, front[-1] if front else 1, *mask.native.shape[-2:])
