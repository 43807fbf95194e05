"""Attention of several heads as a layer."""

from __future__ import annotations

from typing import Any

from tensorcore.errors import ArgumentError
from tensorcore.nn import functional as F
from tensorcore.nn import init
from tensorcore.nn.linear import NonDynamicallyQuantizableLinear
from tensorcore.nn.module import Module
from tensorcore.nn.parameter import Parameter
from tensorcore.nn.ways import SDPBackend, sdpa_kernel
from tensorcore.ops.creation.create import empty
from tensorcore.tensor import Tensor

__all__ = ["MultiheadAttention", "SDPBackend", "sdpa_kernel"]


class MultiheadAttention(Module):
    """Attention (Vaswani et al., arXiv:1706.03762) in ``num_heads`` parts of the features, between linear maps.

    Args:
        embed_dim: features of the queries and of the result.
        dropout: of the attention weights, in training.
        bias: whether the linear maps have biases.
        add_bias_kv: one more trained key and value.
        add_zero_attn: one more key and value of zeros.
        kdim, vdim: features of the keys and of the values; ``embed_dim`` where None.
        batch_first: tensors are (batch, steps, features), instead of (steps, batch, features).
    """

    in_proj_weight: Tensor | None
    in_proj_bias: Tensor | None
    bias_k: Tensor | None
    bias_v: Tensor | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0:
            raise ArgumentError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and num_heads={num_heads} instead"
            )
        super().__init__()
        if embed_dim % num_heads:
            raise AssertionError(f"embed_dim must be divisible by num_heads, got {embed_dim} and {num_heads}")
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads

        def made(*shape: int) -> Parameter:
            return Parameter(empty(*shape, device=device, dtype=dtype))  # type: ignore[no-any-return]

        same = self._qkv_same_embed_dim
        sizes = {"q": embed_dim, "k": self.kdim, "v": self.vdim}
        parts = {f"{name}_proj_weight": None if same else made(embed_dim, size) for name, size in sizes.items()}
        whole = {"in_proj_weight": made(3 * embed_dim, embed_dim) if same else None}
        # In PyTorch's order, which state dicts and optimizers see.
        for name, one in ((whole | parts) if same else (parts | whole)).items():
            self.register_parameter(name, one)
        self.register_parameter("in_proj_bias", made(3 * embed_dim) if bias else None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, device=device, dtype=dtype)
        if add_bias_kv:
            self.bias_k = made(1, 1, embed_dim)
            self.bias_v = made(1, 1, embed_dim)
        else:
            self.bias_k = self.bias_v = None
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for name in ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight"):
            if getattr(self, name) is not None:
                init.xavier_uniform_(getattr(self, name))
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)  # type: ignore[arg-type]
        for one in (self.bias_k, self.bias_v):
            if one is not None:
                init.xavier_normal_(one)

    def __setstate__(self, state: dict[str, Any]) -> None:
        state.setdefault("_qkv_same_embed_dim", True)
        super().__setstate__(state)

    def forward(
        self,
        query: Any,
        key: Any,
        value: Any,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """The result and the weights.

        Args:
            query, key, value: (steps, batch, features), or as ``batch_first`` says, or (steps, features).
            key_padding_mask: (batch, steps), True (or minus infinity) for keys that are left out.
            need_weights: give the weights; without them the fused attention runs.
            attn_mask: (rows, columns), or (batch * heads, rows, columns): True for what is left out, or numbers to add.
            average_attn_weights: over the heads.
            is_causal: a hint that ``attn_mask`` is the causal one.
        """
        turned = self.batch_first and query.dim() == 3
        if turned:
            # One tensor stays one: then its three projections are a single product.
            found = {id(one): one.transpose(0, 1) for one in (query, key, value)}
            query, key, value = (found[id(one)] for one in (query, key, value))
        separate: dict[str, Any] = {}
        if not self._qkv_same_embed_dim:
            separate = {name: getattr(self, name) for name in ("q_proj_weight", "k_proj_weight", "v_proj_weight")}
        made, weights = F.multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias, self.bias_k,
            self.bias_v, self.add_zero_attn, self.dropout, self.out_proj.weight, self.out_proj.bias,
            training=self.training, key_padding_mask=key_padding_mask, need_weights=need_weights, attn_mask=attn_mask,
            use_separate_proj_weight=bool(separate), average_attn_weights=average_attn_weights, is_causal=is_causal,
            **separate,
        )  # fmt: skip
        return (made.transpose(0, 1) if turned else made), weights
