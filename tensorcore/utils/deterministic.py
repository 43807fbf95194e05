"""``fill_uninitialized_memory``: an attribute of this module that programs set."""

from __future__ import annotations

import sys
from types import ModuleType

from tensorcore.determinism import fills_memory, set_fills_memory

__all__ = ["fill_uninitialized_memory"]

fill_uninitialized_memory: bool


class _Deterministic(ModuleType):
    @property
    def fill_uninitialized_memory(self) -> bool:
        """Whether ``empty`` and its like fill what they make while deterministic algorithms are asked for."""
        return fills_memory()

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, fill: bool) -> None:
        set_fills_memory(fill)


sys.modules[__name__].__class__ = _Deterministic
