"""PyTorch's compiler by the name of its part: programs set ``torch._dynamo.config``, which changes nothing here."""

from __future__ import annotations

from types import SimpleNamespace

from tensorcore.compiler import allow_in_graph, disable, explain, is_compiling, list_backends, reset

__all__ = ["allow_in_graph", "config", "disable", "explain", "is_compiling", "list_backends", "reset"]

config = SimpleNamespace(cache_size_limit=8, recompile_limit=8, suppress_errors=False, verbose=False)
