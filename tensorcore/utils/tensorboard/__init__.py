"""What a training run shows in TensorBoard: ``SummaryWriter``, which writes event files through the tensorboard package."""

from __future__ import annotations

from tensorcore.utils.tensorboard.writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "SummaryWriter"]
