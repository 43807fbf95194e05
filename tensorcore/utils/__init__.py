"""What training needs beside layers and optimizers: data sets, tensors in files, and checkpointed activations."""

from __future__ import annotations

from tensorcore.utils import checkpoint, data

__all__ = ["checkpoint", "data"]
