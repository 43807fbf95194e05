"""Learning rate schedulers: after each step or epoch they set the ``lr`` of an optimizer's groups."""

from __future__ import annotations

from tensorcore.optim.schedule import LambdaLR, LRScheduler, MultiplicativeLR
from tensorcore.optim.schedule_chained import (
    ConstantLR,
    CosineAnnealingLR,
    ExponentialLR,
    LinearLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)  # fmt: skip
from tensorcore.optim.schedule_combined import ChainedScheduler, ReduceLROnPlateau, SequentialLR
from tensorcore.optim.schedule_cycles import CosineAnnealingWarmRestarts, CyclicLR, OneCycleLR

__all__ = [
    "ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "CyclicLR", "ExponentialLR",
    "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR", "MultiplicativeLR", "OneCycleLR", "PolynomialLR",
    "ReduceLROnPlateau", "SequentialLR", "StepLR",
]  # fmt: skip


class _LRScheduler(LRScheduler):
    """The base's older name, from which programs still derive theirs."""
