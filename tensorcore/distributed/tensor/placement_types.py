"""Placements: what part of a tensor each rank along one dim of a mesh has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorcore.errors import ArgumentError, ArgumentTypeError, UsageError

__all__ = ["Partial", "Placement", "Replicate", "Shard", "part_of", "placed", "shard_size"]


class Placement:
    """One of ``Shard``, ``Replicate`` and ``Partial``."""

    __slots__ = ()

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether each rank has its part along a dim, or along this dim."""
        return isinstance(self, Shard) and (dim is None or self.dim == dim)

    def is_replicate(self) -> bool:
        """Whether every rank has all."""
        return isinstance(self, Replicate)

    def is_partial(self) -> bool:
        """Whether every rank has a part of a sum, or of what else the values are combined by."""
        return isinstance(self, Partial)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._key() == other._key()  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((type(self), self._key()))

    def _key(self) -> Any:
        return None


class Replicate(Placement):
    """Every rank has all of the tensor."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "Replicate()"


class Shard(Placement):
    """Each rank has the part along ``dim`` that ``chunk`` would give it: the last ones may be smaller, or empty."""

    __slots__ = ("dim",)

    def __init__(self, dim: int) -> None:
        self.dim = dim

    @staticmethod
    def local_shard_size_and_offset(curr_local_size: int, num_chunks: int, rank: int) -> tuple[int, int]:
        """How long part ``rank`` of ``num_chunks`` of a dim of that size is, and where it begins."""
        start, size = shard_size(curr_local_size, num_chunks, rank)
        return size, start

    def _key(self) -> int:
        return self.dim

    def __repr__(self) -> str:
        return f"Shard(dim={self.dim})"


class _StridedShard(Shard):
    """Parts in the order of a later dim of the mesh, which libraries ask for by ``isinstance``: there are none here."""

    __slots__ = ()

    def __init__(self, dim: int, *, split_factor: int) -> None:
        raise UsageError(
            f"_StridedShard: expected Shard({dim}), got split_factor={split_factor}; dims are shared out in the mesh's order"
        )


class Partial(Placement):
    """The tensor is what the ranks' tensors give combined by ``reduce_op``: sum, avg, product, min or max."""

    __slots__ = ("reduce_op",)

    def __init__(self, reduce_op: str = "sum") -> None:
        if reduce_op not in ("sum", "avg", "product", "min", "max"):
            raise ArgumentError(f"Partial: expected sum, avg, product, min or max, got {reduce_op!r}; use one of them")
        self.reduce_op = reduce_op

    def _key(self) -> str:
        return self.reduce_op

    def __repr__(self) -> str:
        return f"Partial({self.reduce_op})"


def shard_size(size: int, parts: int, index: int) -> tuple[int, int]:
    """Where part ``index`` of a dim begins, and how long it is."""
    step = -(-size // parts)
    start = min(index * step, size)
    return start, min(step, size - start)


def part_of(
    shape: Sequence[int], mesh_shape: Sequence[int], coordinate: Sequence[int], placements: Sequence[Placement]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shape of one rank's part, and where it begins in the whole."""
    sizes, starts = list(shape), [0] * len(shape)
    for parts, index, one in zip(mesh_shape, coordinate, placements, strict=True):
        if isinstance(one, Shard):
            start, sizes[one.dim] = shard_size(sizes[one.dim], parts, index)
            starts[one.dim] += start
    return tuple(sizes), tuple(starts)


def placed(op: str, placements: Sequence[Any] | None, mesh: Any, ndim: int) -> tuple[Placement, ...]:
    """The placements, one for each dim of the mesh, with dims counted from the front; all Replicate for None."""
    if placements is None:
        return (Replicate(),) * mesh.ndim
    if len(placements) != mesh.ndim:
        raise ArgumentError(
            f"{op}: `placements` must have the same length as `device_mesh.ndim`! Found placements length: "
            f"{len(placements)}, and device_mesh.ndim: {mesh.ndim}."
        )
    made = []
    for one in placements:
        if not isinstance(one, Placement):
            raise ArgumentTypeError(f"{op}: expected Shard, Replicate or Partial, got {one!r}; pass a placement")
        if isinstance(one, Shard):
            dim = one.dim + ndim if one.dim < 0 else one.dim
            if not 0 <= dim < ndim:
                raise ArgumentError(
                    f"{op}: expected a shard dim of a tensor of {ndim} dims, got {one.dim}; name another"
                )
            one = Shard(dim)
        made.append(one)
    return tuple(made)
