"""The handle of a hook, where PyTorch keeps it."""

from tensorcore.nn.hooks import RemovableHandle

__all__ = ["RemovableHandle"]
