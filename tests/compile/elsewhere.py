"""A module of a program's own, from which compiled functions read."""

from __future__ import annotations

from typing import Any

SCALE = 1.0
TABLE = {"a": 1.0}


class Settings:
    """What a program keeps in one place."""

    by = 1.0


settings = Settings()


def scale() -> float:
    """What the module has now."""
    return SCALE


def scaled(x: Any) -> Any:
    """``x`` as the module has it."""
    return x * SCALE
