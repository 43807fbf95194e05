"""The messages of the tensorboard package, and the sentence for where it is not installed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tensorcore.errors import UsageError

__all__ = ["proto"]


def proto(module: str) -> Any:
    """A module of the tensorboard package. Raises UsageError where the package is missing."""
    try:
        return import_module(f"tensorboard.{module}")
    except ModuleNotFoundError as error:
        raise UsageError(
            f"SummaryWriter: expected the package tensorboard, which writes event files, got: {error}; "
            f"install tensorcore[tools] or tensorboard"
        ) from error
