"""``autocast`` and its decorators where PyTorch keeps them."""

from tensorcore.cuda.amp import autocast, custom_bwd, custom_fwd

__all__ = ["autocast", "custom_bwd", "custom_fwd"]
