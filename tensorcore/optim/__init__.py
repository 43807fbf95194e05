"""Optimizers: they change parameters along their gradients."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tensorcore.optim.optimizer import Optimizer, required

__all__ = [
    "ASGD", "LBFGS", "SGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "Muon", "NAdam", "Optimizer",
    "RAdam", "RMSprop", "Rprop", "SparseAdam", "lr_scheduler", "required", "swa_utils", "swap_in_optimizer_params_and_state",
]  # fmt: skip

# Where each is.
_ROOMS = {
    "ASGD": "asgd", "LBFGS": "lbfgs", "SGD": "sgd", "Adadelta": "adadelta", "Adafactor": "adafactor",
    "Adagrad": "adagrad", "Adam": "adam", "AdamW": "adamw", "Adamax": "adamax", "Muon": "muon", "NAdam": "nadam",
    "RAdam": "radam", "RMSprop": "rmsprop", "Rprop": "rprop", "SparseAdam": "sparse_adam", "swap_in_optimizer_params_and_state": "swap",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in ("lr_scheduler", "swa_utils"):
        return import_module(f"tensorcore.optim.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


# All of them, as PyTorch has them: programs and libraries walk through this module's names.
for _name, _place in _ROOMS.items():
    globals()[_name] = getattr(import_module(f"tensorcore.optim.{_place}"), _name)
