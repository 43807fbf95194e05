"""Uneven inputs: ranks that have no batches left take part in the others' steps with zeros."""

from __future__ import annotations

from typing import Any

import tensorcore.distributed as dist
from tensorcore.errors import UsageError
from tensorcore.ops.create import tensor as make_tensor

__all__ = ["Joining"]


class Joining:
    """One ``join`` of a DistributedDataParallel.

    Attributes:
        source: the rank whose buffers, and at the end whose model, are those of all.
        divisor: by how many ranks gradients are averaged.
    """

    def __init__(self, model: Any, initial: bool, throw: bool) -> None:
        self.model, self.initial, self.throw = model, initial, throw
        self.source = 0
        self.divisor = dist.get_world_size(model.process_group)

    def announce(self, syncing: bool) -> None:
        """Tell the others, at a forward, what this rank is about to do."""
        self._meet([1, int(syncing), int(self.model.sharing_buffers()), int(syncing and self.model.counting())])

    def shadow(self) -> None:
        """Do what the others do, without data, until all are done."""
        model = self.model
        while True:
            doing = self._meet([0, 0, 0, 0])
            if doing is None:
                break
            if doing[2]:
                model.share_buffers(self.source)
            if doing[1]:
                model.send_zeros()
        model.share_all(self.source)

    def _meet(self, mine: list[int]) -> list[int] | None:
        """What those who still have data do, None if nobody has."""
        group = self.model.process_group
        rows: Any = make_tensor([[0] * 4] * dist.get_world_size(group))
        dist.all_gather_into_tensor(rows, make_tensor(mine), group)
        all_of_them = rows.tolist()
        active = [rank for rank, row in enumerate(all_of_them) if row[0]]
        if self.throw and active and len(active) < len(all_of_them):
            raise UsageError("Detected at least one rank that exhausted inputs. Throwing across all ranks.")
        if not active:
            return None
        self.source = active[-1]
        self.divisor = len(all_of_them) if self.initial else len(active)
        found: list[int] = all_of_them[active[0]]
        return found
