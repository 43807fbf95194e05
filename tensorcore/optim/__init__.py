"""Optimizers: they change parameters along their gradients."""

from __future__ import annotations

from tensorcore.optim import lr_scheduler
from tensorcore.optim.adam import Adam, AdamW
from tensorcore.optim.optimizer import Optimizer, required
from tensorcore.optim.sgd import SGD

__all__ = ["SGD", "Adam", "AdamW", "Optimizer", "lr_scheduler", "required"]
