"""The older place of ``distributed.tensor``, which programs import from."""

from __future__ import annotations

from typing import Any

from tensorcore.distributed import tensor


def __getattr__(name: str) -> Any:
    return getattr(tensor, name)
