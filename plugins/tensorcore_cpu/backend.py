"""The CPU as a backend: NumPy's functions, and memory from our own allocator."""

from __future__ import annotations

import numpy as np

from tensorcore.plugin import XPBackend

__all__ = ["CPUBackend"]


class CPUBackend(XPBackend):
    """NumPy on this machine's processor."""

    def __init__(self, index: int = 0) -> None:
        super().__init__(np, "cpu", index)
