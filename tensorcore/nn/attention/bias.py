"""Causal masks that ``scaled_dot_product_attention`` takes without their elements: ``torch.nn.attention.bias``."""

from __future__ import annotations

import warnings
from enum import IntEnum
from typing import Any

from tensorcore.errors import ArgumentError
from tensorcore.ops.creation.create import ones
from tensorcore.tensor import Tensor

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(IntEnum):
    """Where the diagonal of a causal mask starts, or ends: the same where it is square."""

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


class CausalBias:
    """A causal mask of (queries, keys), to be given as ``attn_mask``; ``_materialize()`` makes its elements.

    Args:
        variant: row 0 looks at key 0 alone (``UPPER_LEFT``), or the last row at all keys (``LOWER_RIGHT``).
    """

    def __init__(self, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> None:
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"variant must be a CausalVariant, got {type(variant).__name__}")
        self.variant, self.seq_len_q, self.seq_len_kv = variant, seq_len_q, seq_len_kv
        if seq_len_q > seq_len_kv and variant is CausalVariant.LOWER_RIGHT:
            warnings.warn(
                "Lower right causal bias has rows that look nowhere when seq_len_q > seq_len_kv!", stacklevel=3
            )

    def as_mask(self, is_causal: bool, device: Any) -> tuple[Tensor | None, bool]:
        """What ``scaled_dot_product_attention`` takes instead: ``attn_mask`` and ``is_causal``."""
        if is_causal:
            raise ArgumentError(
                "scaled_dot_product_attention: CausalBias should not be used with causal=True, got both; pass one of them"
            )
        if self.variant is CausalVariant.UPPER_LEFT or self.seq_len_q == self.seq_len_kv:
            return None, True
        return self._materialize(device), False

    def _materialize(self, device: Any = None) -> Tensor:
        offset = self.seq_len_kv - self.seq_len_q if self.variant is CausalVariant.LOWER_RIGHT else 0
        return ones(self.seq_len_q, self.seq_len_kv, device=device).tril(offset).bool()  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return repr(self._materialize())


def causal_upper_left(*size: int) -> CausalBias:
    """The mask of ``is_causal=True``: row i looks at keys 0 to i."""
    return CausalBias(CausalVariant.UPPER_LEFT, *_two(size))


def causal_lower_right(*size: int) -> CausalBias:
    """The mask by which the last row looks at all keys, as when queries continue a text whose keys are kept."""
    return CausalBias(CausalVariant.LOWER_RIGHT, *_two(size))


def _two(size: tuple[int, ...]) -> tuple[int, int]:
    if len(size) != 2:
        raise AssertionError(f"causal bias only supports 2D tensors, got size {size}")
    return size[0], size[1]
