"""Layers that quantise their input at each call, under PyTorch's names."""

from __future__ import annotations

from tensorcore.ao.quantization.layers import GRU, LSTM, Linear

__all__ = ["GRU", "LSTM", "Linear"]
