"""The older names of automatic mixed precision, which each kind of device has; a warning names the newer ones."""

from __future__ import annotations

import warnings
from typing import Any

from tensorcore.amp.autocast_mode import autocast
from tensorcore.amp.grad_scaler import GradScaler

__all__ = ["autocast_of", "instead", "scaler_of"]


def instead(device: str, name: str, newer: str | None = None) -> None:
    """Warn that ``torch.<device>.amp.<name>`` has another name now."""
    newer = newer or f"'{device}', args..."
    warnings.warn(
        f"`torch.{device}.amp.{name}(args...)` is deprecated. Please use `torch.amp.{name}({newer})` instead.",
        FutureWarning,
        stacklevel=3,
    )


def autocast_of(device: str, usual: Any) -> Any:
    """``torch.<device>.amp.autocast``, whose dtype is ``usual`` where none is named."""

    class older(autocast):
        def __init__(self, enabled: bool = True, dtype: Any = usual, cache_enabled: bool = True) -> None:
            instead(device, "autocast")
            super().__init__(device, dtype, enabled, cache_enabled)

    return _named(older, device, "autocast")


def scaler_of(device: str) -> Any:
    """``torch.<device>.amp.GradScaler``."""

    class older(GradScaler):
        def __init__(
            self,
            init_scale: float = 2.0**16,
            growth_factor: float = 2.0,
            backoff_factor: float = 0.5,
            growth_interval: int = 2000,
            enabled: bool = True,
        ) -> None:
            instead(device, "GradScaler")
            super().__init__(device, init_scale, growth_factor, backoff_factor, growth_interval, enabled)

    return _named(older, device, "GradScaler")


def _named(kind: type, device: str, name: str) -> type:
    kind.__name__ = kind.__qualname__ = name
    kind.__module__ = f"tensorcore.{device}.amp"
    kind.__doc__ = f'``torch.amp.{name}("{device}", ...)``.'
    return kind
