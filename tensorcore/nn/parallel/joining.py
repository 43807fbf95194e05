"""What a DistributedDataParallel that has no batches left does in the others' steps: it takes part with zeros."""

from __future__ import annotations

from typing import Any

import tensorcore.distributed as dist
from tensorcore.distributed.algorithms.join import JoinHook
from tensorcore.ops.creation.create import tensor as make_tensor

__all__ = ["Joining"]


class Joining(JoinHook):
    """The hook of one ``Join``.

    Attributes:
        source: the rank whose buffers, and at the end whose model, are those of all.
        divisor: by how many ranks gradients are averaged.
    """

    def __init__(self, model: Any, initial: bool) -> None:
        self.model, self.initial = model, initial
        self.source = 0
        self.divisor = dist.get_world_size(model.process_group)

    def announce(self, syncing: bool) -> None:
        """Tell the others, at a forward, what this rank is about to do."""
        self._meet([1, int(syncing), int(self.model.sharing_buffers()), int(syncing and self.model.counting())])

    def main_hook(self) -> None:
        model = self.model
        _, syncing, sharing, _ = self._meet([0, 0, 0, 0])
        if sharing:
            model.share_buffers(self.source)
        if syncing:
            model.send_zeros()

    def post_hook(self, is_last_joiner: bool) -> None:
        self.model.share_all(self.source)

    def _meet(self, mine: list[int]) -> list[int]:
        """What those who still have data do; there are some, or nobody meets."""
        group = self.model.process_group
        rows: Any = make_tensor([[0] * 4] * dist.get_world_size(group))
        dist.all_gather_into_tensor(rows, make_tensor(mine), group)
        all_of_them = rows.tolist()
        active = [rank for rank, row in enumerate(all_of_them) if row[0]]
        self.source = active[-1]
        self.divisor = len(all_of_them) if self.initial else len(active)
        found: list[int] = all_of_them[active[0]]
        return found
