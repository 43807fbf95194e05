"""Random numbers that are not the library's: a replay would not draw them, so a call that does is none to replay."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from tensorcore.compiler.holders import drawn

__all__ = ["Draws"]

_SHARED = "Python's or NumPy's own"


class Draws:
    """How far generators have come: those that all share, and some more, as pairs of how to name one and the generator."""

    def __init__(self, more: list[tuple[str, Any]]) -> None:
        self._generators = [(_SHARED, random._inst), (_SHARED, np.random.mtrand._rand), *more]  # type: ignore[attr-defined]
        self._before = [drawn(one) for _, one in self._generators]

    def found(self) -> str:
        """The first that has moved since; empty where none has."""
        moved = (who for (who, one), before in zip(self._generators, self._before, strict=True) if drawn(one) != before)
        return next(moved, "")
