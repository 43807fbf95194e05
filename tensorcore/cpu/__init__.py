"""The host's processors, as PyTorch names them."""

from __future__ import annotations

from tensorcore.cpu import amp

__all__ = ["amp", "device_count", "is_available"]


def is_available() -> bool:
    """Whether there is one: yes."""
    return True


def device_count() -> int:
    """All processors are one device."""
    return 1
