"""An older place of ``torch.hub``'s weights."""

from __future__ import annotations

from typing import Any

from tensorcore import hub
from tensorcore.hub import load_state_dict_from_url as load_url

__all__ = ["load_url"]


def __getattr__(name: str) -> Any:
    """What else libraries import from here, such as the progress bar, is the hub's."""
    return getattr(hub, name)
