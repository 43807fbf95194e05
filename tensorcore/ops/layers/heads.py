"""Attention of several heads with its projections, as one function of all its weights."""

from __future__ import annotations

import warnings
from math import inf
from typing import Any

from tensorcore import dtypes
from tensorcore.errors import ArgumentTypeError, ShapeError
from tensorcore.ops import rules
from tensorcore.ops.kinds import operation
from tensorcore.ops.layers.attention import scaled_dot_product_attention
from tensorcore.ops.layers.dropout import dropout
from tensorcore.ops.layers.norm import softmax
from tensorcore.ops.linalg.affine import linear
from tensorcore.ops.linalg.products import matmul
from tensorcore.ops.operands import check_optional
from tensorcore.ops.pointwise.choice import where
from tensorcore.ops.samples import sequence as samples
from tensorcore.ops.shapes.join import cat
from tensorcore.tensor import Tensor

__all__ = ["multi_head_attention_forward"]

_NAME = "multi_head_attention_forward"


class _Mismatch(ShapeError, AssertionError):
    """Sizes that do not fit together; PyTorch asserts them."""


def _fits(condition: bool, expected: str, got: Any, advice: str) -> None:
    if not condition:
        raise _Mismatch(f"{_NAME}: {expected}, got {got}; {advice}")


@operation(samples=samples.heads, method=False)
def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Projections of query, key and value, attention in ``num_heads`` parts of them, and a projection of the result.

    Args:
        query: (rows, batch, features) or (rows, features).
        key, value: (columns, batch, their features), or without the batch.
        embed_dim_to_check: the features of ``query``.
        in_proj_weight: (3 * features, features), of query, key and value one after another.
        in_proj_bias: (3 * features).
        bias_k, bias_v: (1, 1, features), one more column.
        add_zero_attn: one more column of zeros.
        dropout_p: the probability of a weight to be zeroed, if ``training``.
        key_padding_mask: (batch, columns), True, or minus infinity, for columns to leave out.
        need_weights: whether the weights are asked for; without them it is one fused attention.
        attn_mask: (rows, columns) or (batch * num_heads, rows, columns), True for what to leave out, or numbers to add.
        use_separate_proj_weight: take ``q_proj_weight``, ``k_proj_weight`` and ``v_proj_weight`` instead.
        static_k, static_v: (batch * num_heads, columns, features / num_heads), in place of the projected key and value.
        average_attn_weights: give the mean of the heads' weights, else those of each head.
        is_causal: a hint that ``attn_mask`` is the causal one.

    Returns: the result (rows, batch, features), and the weights (batch, rows, columns) or (batch, num_heads, rows, columns)
        if asked for, else None.
    """
    check_optional(
        _NAME, in_proj_weight=in_proj_weight, in_proj_bias=in_proj_bias, bias_k=bias_k, bias_v=bias_v, attn_mask=attn_mask,
        key_padding_mask=key_padding_mask, q_proj_weight=q_proj_weight, k_proj_weight=k_proj_weight,
        v_proj_weight=v_proj_weight, static_k=static_k, static_v=static_v,
    )  # fmt: skip
    num_heads = rules.whole(_NAME, "num_heads", num_heads)
    batched = _check(query, key, value, key_padding_mask, attn_mask, num_heads)
    mask, padding = _numbers("attn_mask", attn_mask, query.dtype), None
    if is_causal and attn_mask is None:
        raise ShapeError(f"{_NAME}: Need attn_mask if specifying the is_causal hint, got None; pass the causal mask")
    # The mask is only a hint's witness where the fused attention makes the same one itself.
    is_causal = is_causal and key_padding_mask is None and not need_weights
    if is_causal:
        mask = None
    padding = _numbers("key_padding_mask", key_padding_mask, query.dtype)
    if not batched:
        query, key, value = query.unsqueeze(1), key.unsqueeze(1), value.unsqueeze(1)
        padding = None if padding is None else padding.unsqueeze(0)
    rows, batch, features = query.native.shape
    _fits(
        features == embed_dim_to_check,
        f"was expecting embedding dimension of {embed_dim_to_check}",
        features,
        "pass its last size",
    )
    size = features // num_heads
    _fits(
        size * num_heads == features,
        f"expected embed_dim divisible by num_heads={num_heads}",
        features,
        "choose a divisor",
    )
    q, k, v = _projected(
        query,
        key,
        value,
        in_proj_weight,
        in_proj_bias,
        use_separate_proj_weight,
        q_proj_weight,
        k_proj_weight,
        v_proj_weight,
    )
    if mask is not None:
        columns = k.native.shape[0]
        shape = tuple(mask.native.shape)
        if shape not in ((rows, columns), (1, rows, columns), (batch * num_heads, rows, columns)):
            raise ShapeError(
                f"{_NAME}: expected the attn_mask's size to be {[rows, columns]} or {[batch * num_heads, rows, columns]}, got "
                f"{list(shape)}; make it so"
            )
        each = len(shape) == 3 and shape[0] == batch * num_heads
        mask = mask.reshape(*((batch, num_heads) if each else (1, 1)), rows, columns)
    if padding is not None:
        padding = padding.reshape(padding.native.shape[0], 1, 1, padding.native.shape[1])
    more = 0
    if bias_k is not None and bias_v is not None:
        _fits(
            static_k is None and static_v is None,
            "bias cannot be added to static key or value",
            "both",
            "leave out one",
        )
        k, v = cat([k, bias_k.repeat(1, batch, 1)]), cat([v, bias_v.repeat(1, batch, 1)])
        more += 1
    else:
        _fits(bias_k is None and bias_v is None, "expected bias_k and bias_v or neither", "one", "pass both")
    # All of (batch, heads, rows or columns, features of one head).
    q = _headed("query", q, None, batch, num_heads, size)
    k = _headed("static_k", k, static_k, batch, num_heads, size)
    v = _headed("static_v", v, static_v, batch, num_heads, size)
    if add_zero_attn:
        none = k.new_zeros((batch, num_heads, 1, size))
        k, v = cat([k, none], 2), cat([v, none], 2)
        more += 1
    if more:
        mask, padding = _longer(mask, more), _longer(padding, more)
    columns = k.native.shape[2]
    if padding is not None:
        have = (padding.native.shape[0], padding.native.shape[3])
        wanted = (batch, columns)
        _fits(have == wanted, f"expecting key_padding_mask shape of {wanted}", have, "one for each column")
        mask = padding if mask is None else mask + padding
    drop = dropout_p if training else 0.0
    if need_weights:
        scores = matmul(q * (1.0 / size) ** 0.5, k.transpose(2, 3))
        # Inside an autocast region the scores are narrower than the mask was made.
        weights = softmax(scores if mask is None else scores + mask.to(scores.dtype), -1)
        if drop > 0.0:
            weights = dropout(weights, drop)
        made = matmul(weights, v)
        shown = weights.mean(1) if average_attn_weights else weights
    else:
        made, shown = scaled_dot_product_attention(q, k, v, mask, drop, is_causal), None
    made = made.permute(2, 0, 1, 3).reshape(rows, batch, features)
    made = linear(made, out_proj_weight, out_proj_bias)
    if not batched:
        made, shown = made.squeeze(1), None if shown is None else shown.squeeze(0)
    return made, shown


def _check(query: Any, key: Any, value: Any, padding: Any, mask: Any, num_heads: int) -> bool:
    """Whether there is a batch dim; the dims of all inputs are checked."""
    for name, one in (("query", query), ("key", key), ("value", value)):
        if not isinstance(one, Tensor):
            raise ArgumentTypeError(
                f"{_NAME}: expected argument '{name}' to be a Tensor, got {type(one).__name__}; use torch.tensor(...)"
            )
    dims = len(query.native.shape)
    _fits(dims in (2, 3), "query should be unbatched 2D or batched 3D tensor", f"{dims}D", "reshape it")
    for name, one, wanted in (("key", key, dims), ("value", value, dims), ("key_padding_mask", padding, dims - 1)):
        if one is not None:
            have = len(one.native.shape)
            _fits(have == wanted, f"for {dims}-D query expected {name} to be {wanted}-D", f"{have}-D", "unsqueeze it")
    if mask is not None:
        have = len(mask.native.shape)
        _fits(
            have in (2, 3), f"for {dims}-D query expected attn_mask to be None, 2-D or 3-D", f"{have}-D", "reshape it"
        )
        if have == 3 and dims == 2:
            wanted = (num_heads, query.native.shape[0], key.native.shape[0])
            _fits(
                tuple(mask.native.shape) == wanted,
                f"expected attn_mask shape to be {wanted}",
                list(mask.shape),
                "make it so",
            )
    return dims == 3


def _numbers(name: str, mask: Tensor | None, dtype: dtypes.dtype) -> Tensor | None:
    """A mask as numbers to add: minus infinity where a bool one is True."""
    if mask is None:
        return None
    if mask.dtype is dtypes.bool_:
        return where(mask, -inf, mask.new_zeros((), dtype=dtype))
    _fits(
        mask.dtype.is_floating_point, f"only bool and floating types of {name} are supported", mask.dtype, "convert it"
    )
    if mask.dtype is not dtype:
        warnings.warn(
            f"Support for mismatched {name} and query dtypes is deprecated. Use same type for both instead.",
            stacklevel=3,
        )
    return mask


def _projected(
    query: Tensor, key: Tensor, value: Tensor, weight: Any, bias: Any, separate: bool, *weights: Any
) -> tuple[Tensor, Tensor, Tensor]:
    features = query.native.shape[-1]
    if bias is not None:
        have = tuple(bias.native.shape)
        _fits(
            have == (3 * features,), f"expecting in_proj_bias of {(3 * features,)}", have, "one for each of the three"
        )
    biases = (None, None, None) if bias is None else bias.chunk(3)
    if separate:
        _fits(
            key.native.shape[:2] == value.native.shape[:2],
            "expected key's sequence and batch dims to match value's",
            [list(key.shape), list(value.shape)],
            "pass one value per key",
        )
        for name, one in zip("qkv", weights, strict=True):
            _fits(one is not None, f"use_separate_proj_weight needs {name}_proj_weight", "None", "pass it")
        for name, one, source in zip("qkv", weights, (query, key, value), strict=True):
            wanted = (features, source.native.shape[-1])
            _fits(
                tuple(one.native.shape) == wanted,
                f"expecting {name}_proj_weight of {wanted}",
                list(one.shape),
                "make it so",
            )
    else:
        _fits(key.native.shape == value.native.shape, "expected key and value of one shape", [list(key.shape), list(value.shape)],
              "or pass use_separate_proj_weight")  # fmt: skip
        _fits(weight is not None, "use_separate_proj_weight is False and needs in_proj_weight", "None", "pass it")
        if query is key is value:
            # One product for all three.
            made = linear(query, weight, bias)
            return tuple(made.chunk(3, -1))
        weights = weight.chunk(3)
    q, k, v = (linear(one, by, shift) for one, by, shift in zip((query, key, value), weights, biases, strict=True))
    return q, k, v


def _headed(name: str, projected: Tensor, static: Tensor | None, batch: int, heads: int, size: int) -> Tensor:
    """(batch, heads, columns, features of one head)."""
    if static is None:
        return projected.reshape(projected.native.shape[0], batch, heads, size).permute(1, 2, 0, 3)
    have = static.native.shape
    _fits(have[0] == batch * heads, f"expecting {name}.size(0) of {batch * heads}", have[0], "batch times heads")
    _fits(have[2] == size, f"expecting {name}.size(2) of {size}", have[2], "features over heads")
    return static.reshape(batch, heads, have[1], size)


def _longer(mask: Tensor | None, more: int) -> Tensor | None:
    """A mask with columns that are all seen."""
    if mask is None:
        return None
    return cat([mask, mask.new_zeros((*mask.native.shape[:-1], more))], -1)
