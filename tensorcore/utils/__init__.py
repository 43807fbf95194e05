"""What programs need beside layers and optimizers: data sets, checkpointed activations, files, and looks at a model."""

from __future__ import annotations

from importlib import import_module

from tensorcore.utils import checkpoint, data

__all__ = [
    "benchmark", "checkpoint", "data", "deterministic", "drawing", "flop_counter", "model_zoo", "module_tracker", "swap_tensors",
    "tensorboard",
]  # fmt: skip


def __getattr__(name: str) -> object:
    # Imported when a program first names them.
    if name == "swap_tensors":
        return import_module("tensorcore.utils.swap").swap_tensors
    if name in __all__ or name in ("_pytree", "dlpack", "hooks", "safetensors", "summary"):
        return import_module(f"tensorcore.utils.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
