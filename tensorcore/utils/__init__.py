"""What training needs beside layers and optimizers: data sets, and tensors in files."""

from __future__ import annotations

from tensorcore.utils import data

__all__ = ["data"]
