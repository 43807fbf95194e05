"""The older names of automatic mixed precision on CUDA devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorcore import amp, dtypes
from tensorcore.amp.older import autocast_of, instead, scaler_of

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]

autocast = autocast_of("cuda", dtypes.float16)
GradScaler = scaler_of("cuda")


def custom_fwd(fwd: Callable[..., Any] | None = None, *, cast_inputs: Any = None) -> Callable[..., Any]:
    """``torch.amp.custom_fwd(..., device_type="cuda")``."""
    instead("cuda", "custom_fwd", newer="args..., device_type='cuda'")
    return amp.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd: Callable[..., Any]) -> Callable[..., Any]:
    """``torch.amp.custom_bwd(..., device_type="cuda")``."""
    instead("cuda", "custom_bwd", newer="args..., device_type='cuda'")
    return amp.custom_bwd(bwd, device_type="cuda")
