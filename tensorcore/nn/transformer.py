"""Transformers: layers of attention and of linear maps, stacked to an encoder and a decoder."""

from __future__ import annotations

import copy
from collections.abc import Callable
from math import inf
from typing import Any

from tensorcore import dtypes
from tensorcore.errors import ShapeError, UsageError
from tensorcore.nn import functional as F
from tensorcore.nn import init
from tensorcore.nn.attention import MultiheadAttention
from tensorcore.nn.containers import ModuleList
from tensorcore.nn.dropout import Dropout
from tensorcore.nn.linear import Linear
from tensorcore.nn.module import Module
from tensorcore.nn.norm import LayerNorm
from tensorcore.ops.creation.create import full
from tensorcore.tape.mode import mode
from tensorcore.tensor import Tensor

__all__ = [
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
]

Activation = str | Callable[[Tensor], Tensor]


class _Layer(Module):
    """What the layers of encoder and decoder share.

    Args:
        d_model: features of the input and of the result.
        nhead: heads of the attention.
        dim_feedforward: features between the two linear maps.
        activation: "relu", "gelu" or a function, between them.
        batch_first: tensors are (batch, steps, features), instead of (steps, batch, features).
        norm_first: normalise before attention and linear maps, instead of after adding their results.
        bias: whether linear maps and norms have biases.
    """

    attentions: tuple[str, ...]

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        where: dict[str, Any] = {"device": device, "dtype": dtype}
        for name in self.attentions:
            made = MultiheadAttention(d_model, nhead, dropout=dropout, batch_first=batch_first, bias=bias, **where)
            self.add_module(name, made)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **where)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **where)
        self.norm_first = norm_first
        for i in range(len(self.attentions) + 1):
            self.add_module(f"norm{i + 1}", LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **where))
        for i in range(len(self.attentions) + 1):
            self.add_module(f"dropout{i + 1}", Dropout(dropout))
        if isinstance(activation, str):
            activation = _get_activation_fn(activation)
        self.activation = activation

    def _sa_block(self, x: Any, attn_mask: Any, key_padding_mask: Any, is_causal: bool = False) -> Any:
        made = self.self_attn(
            x, x, x, attn_mask=attn_mask, key_padding_mask=key_padding_mask, need_weights=False, is_causal=is_causal
        )
        return self.dropout1(made[0])

    def _feed(self, x: Any) -> Any:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


class TransformerEncoderLayer(_Layer):
    """Attention of a sequence to itself, then two linear maps, each added to its input; arguments as ``_Layer``."""

    attentions = ("self_attn",)

    def forward(
        self,
        src: Any,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Any:
        """The sequence, of the input's shape.

        Args:
            src_mask: (steps, steps), True for what is left out, or numbers to add.
            src_key_padding_mask: (batch, steps), True for padding.
            is_causal: a hint that ``src_mask`` is the causal one.
        """
        x = src
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), src_mask, src_key_padding_mask, is_causal)
            return x + self._ff_block(self.norm2(x))
        x = self.norm1(x + self._sa_block(x, src_mask, src_key_padding_mask, is_causal))
        return self.norm2(x + self._ff_block(x))

    def _ff_block(self, x: Any) -> Any:
        return self.dropout2(self._feed(x))


class TransformerDecoderLayer(_Layer):
    """Attention of a sequence to itself, then to the encoder's, then two linear maps; arguments as ``_Layer``."""

    attentions = ("self_attn", "multihead_attn")

    def forward(
        self,
        tgt: Any,
        memory: Any,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Any:
        """The sequence, of the shape of ``tgt``; masks as in TransformerEncoderLayer, of ``tgt`` and of ``memory``."""
        x = tgt
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), tgt_mask, tgt_key_padding_mask, tgt_is_causal)
            x = x + self._mha_block(self.norm2(x), memory, memory_mask, memory_key_padding_mask, memory_is_causal)
            return x + self._ff_block(self.norm3(x))
        x = self.norm1(x + self._sa_block(x, tgt_mask, tgt_key_padding_mask, tgt_is_causal))
        x = self.norm2(x + self._mha_block(x, memory, memory_mask, memory_key_padding_mask, memory_is_causal))
        return self.norm3(x + self._ff_block(x))

    def _mha_block(self, x: Any, mem: Any, attn_mask: Any, key_padding_mask: Any, is_causal: bool = False) -> Any:
        made = self.multihead_attn(
            x, mem, mem, attn_mask=attn_mask, key_padding_mask=key_padding_mask, is_causal=is_causal, need_weights=False
        )
        return self.dropout2(made[0])

    def _ff_block(self, x: Any) -> Any:
        return self.dropout3(self._feed(x))


class TransformerEncoder(Module):
    """Copies of an encoder layer, one after the other.

    Args:
        norm: after the last of them.
        enable_nested_tensor: as PyTorch does, give zeros at padded steps where nothing is trained.
        mask_check: only where the padding is at the end.
    """

    def __init__(
        self,
        encoder_layer: Any,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = _get_clones(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.use_nested_tensor = enable_nested_tensor and _skips_padding(encoder_layer)
        self.mask_check = mask_check

    def forward(
        self,
        src: Any,
        mask: Tensor | None = None,
        src_key_padding_mask: Any = None,
        is_causal: bool | None = None,
    ) -> Any:
        """The sequence, of the input's shape; masks as in TransformerEncoderLayer.

        Args:
            is_causal: a hint that ``mask`` is the causal one; found out where None.
        """
        first: Any = self.layers[0]
        causal = _is_causal(mask, is_causal, _steps(src, first.self_attn.batch_first))
        made = src
        for layer in self.layers:
            made = layer(made, src_mask=mask, is_causal=causal, src_key_padding_mask=src_key_padding_mask)
        if mask is None and src_key_padding_mask is not None and self._skips(src, src_key_padding_mask):
            made = made.masked_fill(_padded(src_key_padding_mask).unsqueeze(-1), 0.0)
        return made if self.norm is None else self.norm(made)

    def _skips(self, src: Any, padding: Any) -> bool:
        """Whether PyTorch leaves padded steps out, so that their results are zeros."""
        first: Any = self.layers[0]
        if not self.use_nested_tensor or first.training or src.dim() != 3:
            return False
        if mode.enabled and (src.requires_grad or any(one.requires_grad for one in first.parameters())):
            return False
        padded = _padded(padding)
        return not self.mask_check or not bool((padded[:, :-1] & ~padded[:, 1:]).any())


class TransformerDecoder(Module):
    """Copies of a decoder layer, one after the other.

    Args:
        norm: after the last of them.
    """

    def __init__(self, decoder_layer: Any, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _get_clones(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Any,
        memory: Any,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Any:
        """The sequence, of the shape of ``tgt``; masks as in TransformerDecoderLayer.

        Args:
            tgt_is_causal: a hint that ``tgt_mask`` is the causal one; found out where None.
        """
        first: Any = self.layers[0]
        causal = _is_causal(tgt_mask, tgt_is_causal, _steps(tgt, first.self_attn.batch_first))
        made = tgt
        for layer in self.layers:
            made = layer(
                made, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=causal,
                memory_is_causal=memory_is_causal,
            )  # fmt: skip
        return made if self.norm is None else self.norm(made)


class Transformer(Module):
    """Encoder and decoder (Vaswani et al., arXiv:1706.03762).

    Args:
        custom_encoder, custom_decoder: modules in the places of encoder and decoder.
        others: as the layers'.
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        sizes = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias)
        stacks = (
            ("encoder", custom_encoder, TransformerEncoderLayer, TransformerEncoder, num_encoder_layers),
            ("decoder", custom_decoder, TransformerDecoderLayer, TransformerDecoder, num_decoder_layers),
        )
        for name, custom, layer, stack, count in stacks:
            if custom is None:
                one = layer(*sizes, device, dtype)
                norm = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, device=device, dtype=dtype)
                custom = stack(one, count, norm)  # type: ignore[operator]
            setattr(self, name, custom)
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def _reset_parameters(self) -> None:
        for one in self.parameters():
            if one.dim() > 1:
                init.xavier_uniform_(one)

    def forward(
        self,
        src: Any,
        tgt: Any,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Any:
        """The decoder's sequence, of the shape of ``tgt``, having seen the encoder's of ``src``."""
        at = 0 if self.batch_first else 1
        if src.dim() == 3 and src.shape[at] != tgt.shape[at]:
            raise ShapeError(f"the batch number of src and tgt must be equal, got {src.shape[at]} and {tgt.shape[at]}")
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise ShapeError(
                f"the feature number of src and tgt must be equal to d_model, got {src.shape[-1]} and {tgt.shape[-1]} for "
                f"{self.d_model}"
            )
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(
            tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )  # fmt: skip

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """The causal mask (sz, sz): minus infinity above the diagonal, 0 elsewhere."""
        return full((sz, sz), -inf, dtype=dtype, device=device).triu(1)  # type: ignore[no-any-return]


def _steps(sequence: Any, batch_first: bool) -> int:
    return int(sequence.shape[1 if batch_first and sequence.dim() == 3 else 0])


def _is_causal(mask: Any, is_causal: bool | None, steps: int) -> bool:
    """Whether a mask is the causal one, which the fused attention needs no mask for."""
    if is_causal is not None or mask is None:
        return is_causal is True
    if tuple(mask.shape) != (steps, steps):
        return False
    if mask.dtype is dtypes.bool_:
        causal = full((steps, steps), True, dtype=dtypes.bool_, device=mask.device).triu(1)
    else:
        causal = Transformer.generate_square_subsequent_mask(steps, mask.device, mask.dtype)
    return bool(mask.device.all_values((mask == causal).all().native).all())


def _padded(padding: Any) -> Any:
    """Which steps are padding, of a mask of either kind."""
    return padding if padding.dtype is dtypes.bool_ else padding == -inf


def _skips_padding(layer: Any) -> bool:
    """Whether PyTorch has a path for this layer that leaves padded steps out."""
    if not isinstance(layer, TransformerEncoderLayer):
        return False
    attention = layer.self_attn
    plain = layer.activation in (F.relu, F.gelu) or type(layer.activation).__name__ in ("ReLU", "GELU")
    return (
        not layer.norm_first
        and attention.batch_first
        and attention._qkv_same_embed_dim
        and attention.in_proj_bias is not None
        and attention.num_heads % 2 == 0
        and plain
        and layer.norm1.eps == layer.norm2.eps
    )


def _get_activation_fn(activation: str) -> Callable[[Tensor], Tensor]:
    """The function of that name, "relu" or "gelu"; by PyTorch's name, which programs import."""
    if activation not in ("relu", "gelu"):
        raise UsageError(f"activation should be relu/gelu, not {activation}")
    return F.relu if activation == "relu" else F.gelu


def _get_clones(module: Module, N: int) -> ModuleList:
    """That many copies of a layer; by PyTorch's name, which detection programs import."""
    return ModuleList([copy.deepcopy(module) for _ in range(N)])
