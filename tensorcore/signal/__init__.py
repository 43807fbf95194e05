"""Signals: ``torch.signal``, which holds the windows."""

from __future__ import annotations

from tensorcore.signal import windows

__all__ = ["windows"]
