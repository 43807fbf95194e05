"""A module called with other tensors in the places of its own: the older place of ``func.functional_call``."""

from __future__ import annotations

from tensorcore.func.functional_call import functional_call

__all__ = ["functional_call"]
