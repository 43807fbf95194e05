"""Random numbers that are not the library's: a replay would not draw them, so a call that does is none to replay."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

__all__ = ["others_draws"]


def others_draws() -> tuple[Any, ...]:
    """How far the generators of Python and NumPy that all share have come."""
    _, key, position, *gauss = np.random.get_state()
    return random.getstate(), position, gauss, key.tobytes()
