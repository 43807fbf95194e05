"""Tensors in safetensors files: all at once, or lazily, one tensor or one slice at a time."""

from __future__ import annotations

from tensorcore.serialization.safetensors import load, load_file, read_metadata, safe_open, save, save_file

__all__ = ["load", "load_file", "read_metadata", "safe_open", "save", "save_file"]
