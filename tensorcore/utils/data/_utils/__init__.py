"""PyTorch's own place of the functions that make batches, which programs import them from."""

from __future__ import annotations

import sys
from importlib import import_module

# Not an attribute of the package, whose ``collate`` is the function.
collate = sys.modules[f"{__name__}.collate"] = import_module("tensorcore.utils.data.collate")
