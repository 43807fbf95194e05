"""Sets of tensors that go together, by the name that optimizers outside PyTorch import the function by."""

from __future__ import annotations

from tensorcore.optim.optimizer import Optimizer

__all__ = ["_group_tensors_by_device_and_dtype"]

_group_tensors_by_device_and_dtype = Optimizer._group_tensors_by_device_and_dtype
