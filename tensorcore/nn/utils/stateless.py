"""A module called with other tensors in the places of its own: the older place of ``func.functional_call``."""

from __future__ import annotations

from tensorcore.func.functional_call import functional_call
from tensorcore.func.functional_call import reparametrized as _reparametrize_module

__all__ = ["_reparametrize_module", "functional_call"]
