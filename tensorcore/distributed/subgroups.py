"""The world cut into groups that have no rank in common."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from tensorcore.distributed.group import GroupMember, new_group, resolve
from tensorcore.errors import ArgumentError

__all__ = ["new_subgroups", "new_subgroups_by_enumeration"]


def new_subgroups(
    group_size: int | None = None,
    group: Any = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Groups of ``group_size`` ranks that follow one another: the one that this rank is in, and all of them.

    Args:
        group_size: divides the number of ranks; the number of GPUs of a host where None.
        group: the ranks to cut, all where None. Every rank of the world calls it, as with ``new_group``.
    """
    if group_size is None:
        import tensorcore.cuda as accelerators

        group_size = accelerators.device_count()
        if not group_size:
            raise ArgumentError(
                "new_subgroups: Default group size only takes effect when CUDA is available; pass group_size"
            )
    found = resolve("new_subgroups", group)
    ranks = [] if found is None else found.members
    size = len(ranks)
    if group_size <= 0:
        raise ArgumentError(f"new_subgroups: The arg 'group_size' ({group_size}) must be positive")
    if size < group_size:
        raise ArgumentError(
            f"new_subgroups: The arg 'group_size' ({group_size}) must not exceed the world size ({size})"
        )
    if size % group_size:
        raise ArgumentError(f"new_subgroups: The world size ({size}) must be divisible by 'group_size={group_size}'")
    parts = [ranks[start : start + group_size] for start in range(0, size, group_size)]
    return new_subgroups_by_enumeration(parts, timeout, backend, pg_options, group_desc)


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: Sequence[Sequence[int]],
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """A group for each list of ranks: the one that this rank is in, None if it is in none, and all of them.

    Every rank of the world passes the same lists, which have no rank in common.
    """
    if not ranks_per_subgroup_list:
        raise ArgumentError("new_subgroups_by_enumeration: The arg 'ranks_per_subgroup_list' cannot be empty")
    owner: dict[int, Sequence[int]] = {}
    for ranks in ranks_per_subgroup_list:
        for rank in ranks:
            if rank in owner:
                raise ArgumentError(
                    f"new_subgroups_by_enumeration: Rank {rank} has appeared in both subgroup {list(owner[rank])} and "
                    f"{list(ranks)}; give each rank one group"
                )
            owner[rank] = ranks
    groups = [
        new_group(list(ranks), timeout, backend, pg_options, group_desc=group_desc) for ranks in ranks_per_subgroup_list
    ]
    return next((one for one in groups if one is not GroupMember.NON_GROUP_MEMBER), None), groups
