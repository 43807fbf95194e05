"""The arguments that all collectives have: the group, and the rank in the middle."""

from __future__ import annotations

import warnings
from typing import Any

from tensorcore.distributed.group import ProcessGroup, resolve
from tensorcore.errors import ArgumentError

__all__ = ["member", "root_of"]


def member(op: str, group: Any) -> ProcessGroup | None:
    """The group to call on; None, with a warning, where this rank is not in it."""
    pg = resolve(op, group)
    if pg is None:
        warnings.warn(
            f"Running {op} on global rank which does not belong to the given group.", UserWarning, stacklevel=3
        )
    return pg


def root_of(
    op: str, pg: ProcessGroup, name: str, world: int | None, inside: int | None, default: int | None = None
) -> int:
    """The rank in the group that the arguments mean."""
    if world is not None and inside is not None:
        raise ArgumentError(f"{op}: Can't specify both group_{name} and {name}, got {inside} and {world}")
    if inside is not None:
        if not 0 <= inside < pg._size:
            raise ArgumentError(f"{op}: expected group_{name} from 0 to {pg._size - 1}, got {inside}")
        return inside
    world = pg.members[default] if world is None and default is not None else world
    if world is None:
        raise ArgumentError(f"{op}: Must specify {name} or group_{name}, got neither")
    if world not in pg.members:
        raise ArgumentError(f"{op}: Global rank {world} is not part of group {pg}")
    return pg.members.index(world)
