"""PyTorch's compiler by the name of its part: programs set ``torch._dynamo.config``, which changes nothing here."""

from __future__ import annotations

import sys
from types import ModuleType

from tensorcore.compiler import (
    allow_in_graph,
    assume_constant_result,
    disable,
    explain,
    is_compiling,
    list_backends,
    reset,
)
from tensorcore.compiler.wrap import OptimizedModule
from tensorcore.settings import Settings

__all__ = [
    "OptimizedModule",
    "allow_in_graph",
    "assume_constant_result",
    "config",
    "disable",
    "explain",
    "is_compiling",
    "list_backends",
    "reset",
]

config = Settings(
    accumulated_cache_size_limit=256, accumulated_recompile_limit=256, assume_static_by_default=True,
    automatic_dynamic_shapes=True, cache_size_limit=8, capture_scalar_outputs=False, optimize_ddp=True, recompile_limit=8,
    suppress_errors=False, verbose=False,
)  # fmt: skip

# PyTorch keeps the class of a compiled module here, where programs that unwrap one import it from.
eval_frame = ModuleType(f"{__name__}.eval_frame")
eval_frame.__dict__["OptimizedModule"] = OptimizedModule
sys.modules[eval_frame.__name__] = eval_frame
__path__: list[str] = []
