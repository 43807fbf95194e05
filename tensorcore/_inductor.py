"""The settings of PyTorch's code generator: programs set ``torch._inductor.config``, which changes nothing here."""

from __future__ import annotations

from types import SimpleNamespace

__all__ = ["config"]

config = SimpleNamespace(coordinate_descent_tuning=False, max_autotune=False, fx_graph_cache=True)
