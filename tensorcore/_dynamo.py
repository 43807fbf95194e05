"""PyTorch's compiler by the name of its part: programs set ``torch._dynamo.config``, which changes nothing here."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from tensorcore import deeper
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
    "mark_dynamic",
    "mark_static",
    "mark_static_address",
    "maybe_mark_dynamic",
    "reset",
]

config = Settings(
    accumulated_cache_size_limit=256, accumulated_recompile_limit=256, assume_static_by_default=True,
    automatic_dynamic_shapes=True, cache_size_limit=8, capture_scalar_outputs=False, optimize_ddp=True, recompile_limit=8,
    suppress_errors=False, verbose=False,
)  # fmt: skip


def mark_dynamic(t: Any, index: Any, **hints: Any) -> None:
    """Says that sizes of a tensor change; each shape is traced by itself here, so that nothing follows."""


def mark_static(t: Any, index: Any = None) -> None:
    """Says that sizes of a tensor stay; nothing follows, as for :func:`mark_dynamic`."""


def mark_static_address(t: Any, guard: bool = True) -> None:
    """Says that a tensor keeps its memory; plans take the memory that they meet."""


maybe_mark_dynamic = mark_dynamic


class TransformGetItemToIndex(nullcontext[None]):
    """Where tensors of one element are indices under vmap; they are everywhere here."""


# Programs that unwrap a compiled module import its class from the first.
eval_frame = deeper.module(f"{__name__}.eval_frame", OptimizedModule=OptimizedModule)
_trace_wrapped_higher_order_op = deeper.module(
    f"{__name__}._trace_wrapped_higher_order_op", TransformGetItemToIndex=TransformGetItemToIndex
)
__path__: list[str] = []
