"""An older place of ``torch.hub``'s weights."""

from __future__ import annotations

from tensorcore.hub import load_state_dict_from_url as load_url

__all__ = ["load_url"]
