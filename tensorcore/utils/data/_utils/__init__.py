"""PyTorch's own place of the functions that make batches and pin them, which programs import them from."""

from __future__ import annotations

import sys
from importlib import import_module

from tensorcore import deeper
from tensorcore.utils.data.pinning import pinned

# Not an attribute of the package, whose ``collate`` is the function.
collate = sys.modules[f"{__name__}.collate"] = import_module("tensorcore.utils.data.collate")

# The module has the function's name, as in PyTorch.
pin_memory = deeper.module(f"{__name__}.pin_memory", pin_memory=pinned)
