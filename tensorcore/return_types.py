"""The named tuples that ops of several results return, by PyTorch's names: ``torch.return_types.max``."""

from __future__ import annotations

from typing import Any

from tensorcore.ops import late
from tensorcore.ops.reductions.reduce import RETURN_TYPES

__all__: list[str] = []


def __getattr__(name: str) -> Any:
    if name not in RETURN_TYPES and not name.startswith("_"):
        late.import_all()
    if name not in RETURN_TYPES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return RETURN_TYPES[name]
