"""PyTorch's collectives that give new tensors wait where a value is first used; programs call the wait by its name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorcore.distributed.device_mesh import DeviceMesh
from tensorcore.distributed.nn import functional
from tensorcore.tensor import Tensor

__all__ = ["all_to_all_single", "all_to_all_single_autograd", "wait_tensor"]


def wait_tensor(tensor: Tensor) -> Tensor:
    """The tensor: collectives here give tensors that can be used at once."""
    return tensor


def all_to_all_single(
    self: Tensor,
    output_split_sizes: Sequence[int] | None,
    input_split_sizes: Sequence[int] | None,
    group: Any,
    tag: str = "",
) -> Tensor:
    """Part ``i``, along the first dim, of every rank's tensor on rank ``i``, with gradients.

    Args:
        output_split_sizes: how long the part of each rank is; parts of one size where None.
        input_split_sizes: how long the part for each rank is; parts of one size where None.
        group: a group, a mesh of one dim, or a mesh and one of its dims.
    """
    if isinstance(group, DeviceMesh):
        group = group.get_group()
    elif isinstance(group, tuple):
        group = group[0].get_group(group[1])
    rows = len(self) if output_split_sizes is None else sum(output_split_sizes)
    out = self.new_empty((rows, *self.shape[1:]))
    return functional.all_to_all_single(out, self, output_split_sizes, input_split_sizes, group)


all_to_all_single_autograd = all_to_all_single
