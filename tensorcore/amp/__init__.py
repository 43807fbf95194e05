"""Automatic mixed precision: regions that choose dtypes, and losses scaled so that narrow gradients do not vanish."""

from __future__ import annotations

from tensorcore.amp.autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available
from tensorcore.amp.grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
