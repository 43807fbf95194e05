"""Quantisation under its older name: ``torch.quantization``."""

from __future__ import annotations

from tensorcore.ao.quantization import (
    QConfig,
    default_dynamic_qconfig,
    float16_dynamic_qconfig,
    per_channel_dynamic_qconfig,
    quantize_dynamic,
    quantize_weight_only,
)

__all__ = [
    "QConfig", "default_dynamic_qconfig", "float16_dynamic_qconfig", "per_channel_dynamic_qconfig", "quantize_dynamic",
    "quantize_weight_only",
]  # fmt: skip
