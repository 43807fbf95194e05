"""``cupy.cuda.pinned_memory``."""

from __future__ import annotations

from .._memory import _pinned

__all__ = ["is_memory_pinned"]


def is_memory_pinned(data: int) -> bool:
    """Whether an address lies in page-locked memory."""
    return any([at <= data < at + max(size, 1) for at, (size, _) in list(_pinned.items())])
