"""Checkpoints that all ranks write together, each its part, and that any other number of ranks can read."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_NAMES = {
    "saving": "CheckpointException async_save load save",
    "files": "FileSystemReader FileSystemWriter",
}
_FAMILY = {name: family for family, names in _NAMES.items() for name in names.split()}

__all__ = list(_FAMILY)


def __getattr__(name: str) -> Any:
    if name == "state_dict":
        return import_module("tensorcore.distributed.checkpoint.state_dict")
    if name not in _FAMILY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"tensorcore.distributed.checkpoint.{_FAMILY[name]}"), name)
    return found
