"""What programs need beside layers and optimizers: data sets, checkpointed activations, files, and looks at a model."""

from __future__ import annotations

from importlib import import_module

from tensorcore.utils import checkpoint, data

__all__ = [
    "benchmark", "checkpoint", "data", "deterministic", "drawing", "flop_counter", "model_zoo", "module_tracker", "tensorboard",
]  # fmt: skip


def __getattr__(name: str) -> object:
    # Imported when a program first names them.
    if name in __all__:
        return import_module(f"tensorcore.utils.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
