"""Smaller and faster models after training, under PyTorch's names: quantisation."""

from __future__ import annotations

from tensorcore.ao import nn, quantization

__all__ = ["nn", "quantization"]
