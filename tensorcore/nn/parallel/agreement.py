"""One model on all ranks: checked, and sent from one of them."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import tensorcore.distributed as dist
from tensorcore.errors import UsageError
from tensorcore.ops.creation.create import tensor as make_tensor
from tensorcore.ops.shapes.join import cat
from tensorcore.tape.mode import no_grad

__all__ = ["check_same_model", "check_same_values", "share"]

_TOGETHER = 64 << 20  # bytes that are sent at once


def check_same_model(named: Sequence[tuple[str, Any]], group: Any) -> None:
    """Raise UsageError, on all ranks, unless all have parameters of the same names, shapes and dtypes."""
    mine = [(name, tuple(one.shape), one.dtype.name) for name, one in named]
    all_of_them: list[Any] = [None] * dist.get_world_size(group)
    dist.all_gather_object(all_of_them, mine, group)
    first = all_of_them[0]
    for rank, theirs in enumerate(all_of_them):
        if len(theirs) != len(first):
            raise UsageError(
                f"DDP expects same model across all ranks, but Rank 0 has {len(first)} params, while rank {rank} has "
                f"inconsistent {len(theirs)} params."
            )
        for number, (one, other) in enumerate(zip(first, theirs, strict=True)):
            if one != other:
                raise UsageError(
                    f"DDP expects same model across all ranks: params[{number}] of rank {rank} is {other[0]} of {other[2]} "
                    f"with sizes {list(other[1])}, which appears not to match {one[0]} of {one[2]} with sizes "
                    f"{list(one[1])} in rank 0; make the model in one way on all ranks"
                )


def check_same_values(named: Sequence[tuple[str, Any]], group: Any, when: str = "") -> None:
    """Raise UsageError, on all ranks, unless all have the same bits in all parameters: what is sent are hashes of them."""
    mine = [zlib.crc32(one.detach().cpu().contiguous().numpy().tobytes()) for _, one in named]
    rows: Any = make_tensor([[0] * len(mine)] * dist.get_world_size(group))
    dist.all_gather_into_tensor(rows, make_tensor(mine), group)
    hashes = rows.tolist()
    for number, (name, _) in enumerate(named):
        column = [row[number] for row in hashes]
        usual = max(column, key=column.count)
        others = [rank for rank, one in enumerate(column) if one != usual]
        if others:
            ranks = "rank " + ", ".join(map(str, others))
            raise UsageError(
                f"DDP: expected the same parameters on all ranks, got another {name} on {ranks} than on the others{when}; see "
                f"that nothing but the optimizer writes to them, with the same gradients and options on all ranks"
            )


def share(tensors: Sequence[Any], source: int, group: Any) -> None:
    """Give all ranks the values of rank ``source`` of the group, in place, many tensors at a time."""
    batches: dict[Any, list[Any]] = {}
    with no_grad():
        for one in tensors:
            key = (one.dtype, one.device)
            batch = batches.setdefault(key, [])
            batch.append(one)
            if sum(each.nbytes for each in batch) >= _TOGETHER:
                _send(batches.pop(key), source, group)
        for batch in batches.values():
            _send(batch, source, group)


def _send(batch: list[Any], source: int, group: Any) -> None:
    flat = cat([one.detach().reshape(-1) for one in batch])
    dist.broadcast(flat, group=group, group_src=source)
    if dist.get_rank(group) == source:
        return
    start = 0
    for one in batch:
        one.copy_(flat[start : start + one.numel()].reshape(one.shape))  # type: ignore[index]
        start += one.numel()
