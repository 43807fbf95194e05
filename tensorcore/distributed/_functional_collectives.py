"""PyTorch's collectives that give new tensors wait where a value is first used; programs call the wait by its name."""

from __future__ import annotations

from tensorcore.tensor import Tensor

__all__ = ["wait_tensor"]


def wait_tensor(tensor: Tensor) -> Tensor:
    """The tensor: collectives here give tensors that can be used at once."""
    return tensor
