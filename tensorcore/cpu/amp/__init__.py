"""The older names of automatic mixed precision on CPUs."""

from tensorcore import dtypes
from tensorcore.amp.older import autocast_of, scaler_of

__all__ = ["GradScaler", "autocast"]

autocast = autocast_of("cpu", dtypes.bfloat16)
GradScaler = scaler_of("cpu")
