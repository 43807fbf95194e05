"""DistributedSampler: the part of a data set that one of several processes trains on."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sized
from typing import Any

from tensorcore.errors import ArgumentError
from tensorcore.ops.creation.random import Generator
from tensorcore.utils.data.sampler import Sampler

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler[int]):
    """Every ``num_replicas``th sample from ``rank`` on, of all in order or shuffled; all replicas get equally many.

    Args:
        dataset: with a length.
        num_replicas, rank: how many processes, and which one this is; those of the process group where None.
        shuffle: draw another order in each epoch that ``set_epoch`` names, the same one in all processes.
        seed: of the order, the same in all processes.
        drop_last: leave samples out to make it even, instead of giving some twice.
    """

    def __init__(
        self,
        dataset: Sized,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        num_replicas = _group().get_world_size() if num_replicas is None else num_replicas
        rank = _group().get_rank() if rank is None else rank
        if rank >= num_replicas or rank < 0:
            raise ArgumentError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        self.shuffle = shuffle
        self.seed = seed
        length = len(dataset)
        self.num_samples = length // num_replicas if drop_last else -(-length // num_replicas)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self) -> Iterator[int]:
        length = len(self.dataset)
        if self.shuffle:
            order = Generator().manual_seed(self.seed + self.epoch).host.permutation(length).tolist()
        else:
            order = list(range(length))
        if len(order) < self.total_size and order:
            order *= -(-self.total_size // len(order))
        return iter(order[self.rank : self.total_size : self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Draw the order of this epoch from now on; called before each one."""
        self.epoch = epoch


def _group() -> Any:
    group = sys.modules.get("tensorcore.distributed")
    if group is None or not group.is_initialized():
        raise RuntimeError(
            "DistributedSampler: expected a process group, got none: Default process group has not been initialized, please "
            "make sure to call init_process_group, or pass num_replicas and rank (Requires distributed package to be "
            "available)"
        )
    return group
