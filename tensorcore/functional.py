"""``torch.functional``: the functions of ``torch`` under the name that some programs import them by."""

from __future__ import annotations

from typing import Any

__all__: list[str] = []


def __getattr__(name: str) -> Any:
    import tensorcore

    return getattr(tensorcore, name)
