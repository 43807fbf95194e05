"""Tensors of other libraries without a copy, where PyTorch keeps it."""

from tensorcore.interop import from_dlpack, to_dlpack

__all__ = ["from_dlpack", "to_dlpack"]
