"""Names that PyTorch keeps one module deeper, where programs import them from."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

__all__ = ["module"]


def module(name: str, **held: Any) -> ModuleType:
    """A module of that full name that has no file, only what it holds; ``import`` and ``importlib.util.find_spec`` find it."""
    made = ModuleType(name)
    made.__spec__ = ModuleSpec(name, None, is_package=True)
    made.__dict__.update(held, __path__=[])
    sys.modules[name] = made
    return made
