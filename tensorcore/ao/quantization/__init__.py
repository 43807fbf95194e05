"""Trained models with weights of a quarter of the size: int8 weights, and inputs that are quantised at each call."""

from __future__ import annotations

from tensorcore.ao.quantization.convert import quantize_dynamic, quantize_weight_only
from tensorcore.ao.quantization.weights import (
    QConfig,
    default_dynamic_qconfig,
    float16_dynamic_qconfig,
    per_channel_dynamic_qconfig,
)

__all__ = [
    "QConfig", "default_dynamic_qconfig", "float16_dynamic_qconfig", "per_channel_dynamic_qconfig", "quantize_dynamic",
    "quantize_weight_only",
]  # fmt: skip
