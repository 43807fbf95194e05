"""From one way of lying on a mesh to another: the collectives that turn each rank's part into the one that is wanted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorcore.distributed as dist
from tensorcore.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard, shard_size
from tensorcore.ops.shapes.join import cat
from tensorcore.tape.mode import no_grad

__all__ = ["cost_of", "moved"]

_OPS = {"sum": "SUM", "avg": "AVG", "product": "PRODUCT", "min": "MIN", "max": "MAX"}


def moved(local: Any, shape: Sequence[int], mesh: Any, have: Sequence[Placement], want: Sequence[Placement]) -> Any:
    """This rank's part as ``want`` has it, from its part as ``have`` has it; itself where these are the same."""
    if tuple(have) == tuple(want):
        return local
    with no_grad():
        now = list(have)
        changing = _changing(have, want)
        for dim in sorted(changing, reverse=True):
            local = _whole(local, shape, mesh, now, dim, want[dim])
        for dim in sorted(changing):
            if now[dim] != want[dim]:
                local = _part(local, mesh, dim, want[dim])
                now[dim] = want[dim]
    return local


def cost_of(nbytes: int, parts: int, have: Placement, want: Placement) -> float:
    """Bytes that each rank sends for one dim of a mesh, roughly."""
    if have == want or have.is_replicate():
        return 0.0
    share = nbytes * (parts - 1) / parts
    if have.is_partial():
        return share if want.is_shard() else 2 * share
    return share / parts if want.is_shard() else share


def _changing(have: Sequence[Placement], want: Sequence[Placement]) -> set[int]:
    """The dims of the mesh to go through: those that differ, and those that cut a part which these cut first."""
    found = {i for i, (a, b) in enumerate(zip(have, want, strict=True)) if a != b}
    while True:
        more = {
            later
            for i in found
            for later in range(i + 1, len(have))
            if later not in found and have[later].is_shard() and have[later] in (have[i], want[i])
        }
        if not more:
            return found
        found |= more


def _whole(local: Any, shape: Sequence[int], mesh: Any, now: list[Placement], dim: int, want: Placement) -> Any:
    """One dim of the mesh replicated, or scattered at once where a sum becomes shards; ``now`` says which."""
    one, group, parts = now[dim], mesh.get_group(dim), mesh.size(dim)
    now[dim] = Replicate()
    if isinstance(one, Partial):
        op = getattr(dist.ReduceOp, _OPS[one.reduce_op])
        if isinstance(want, Shard) and not any(each == want for each in now) and local.shape[want.dim] % parts == 0:
            now[dim] = want
            blocks = cat(list(local.chunk(parts, want.dim))) if want.dim else local.contiguous()
            size = [*local.shape]
            size[want.dim] //= parts
            out = local.new_empty(size)
            dist.reduce_scatter_tensor(out, blocks, op, group)
            return out
        total = local.clone().contiguous()
        dist.all_reduce(total, op, group)
        return total
    if not isinstance(one, Shard):
        return local
    before = shape[one.dim]
    for i in range(dim):
        if now[i] == one:
            before = shard_size(before, mesh.size(i), mesh.get_local_rank(i))[1]
    sizes = [shard_size(before, parts, i)[1] for i in range(parts)]
    if len(set(sizes)) == 1:
        out = local.new_empty((parts * local.shape[0], *local.shape[1:]))
        dist.all_gather_into_tensor(out, local.contiguous(), group)
        return out if one.dim == 0 else cat(list(out.chunk(parts)), one.dim)
    blocks = [local.new_empty([*local.shape[: one.dim], size, *local.shape[one.dim + 1 :]]) for size in sizes]
    dist.all_gather(blocks, local.contiguous(), group)
    return cat(blocks, one.dim)


def _part(local: Any, mesh: Any, dim: int, want: Placement) -> Any:
    """One dim of the mesh from replicated to what is wanted: nothing is sent."""
    index, parts = mesh.get_local_rank(dim), mesh.size(dim)
    if isinstance(want, Shard):
        start, length = shard_size(local.shape[want.dim], parts, index)
        return local.narrow(want.dim, start, length).clone()
    if isinstance(want, Partial) and want.reduce_op in ("sum", "product") and index:
        return local.new_zeros(local.shape) if want.reduce_op == "sum" else local.new_ones(local.shape)
    return local
