"""Layers with quantised weights, under PyTorch's names."""

from __future__ import annotations

from tensorcore.ao.nn import quantized

__all__ = ["quantized"]
