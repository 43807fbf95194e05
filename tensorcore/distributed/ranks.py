"""Who and how many: what a process asks about its groups."""

from __future__ import annotations

import os
from typing import Any

from tensorcore.backend.communicator import CommunicatorError
from tensorcore.distributed.group import current, resolve
from tensorcore.distributed.meeting import MPI_VARIABLES
from tensorcore.errors import ArgumentError

__all__ = [
    "get_backend", "get_global_rank", "get_group_rank", "get_node_local_rank", "get_process_group_ranks", "get_rank",
    "get_world_size", "is_available", "is_initialized",
]  # fmt: skip


def is_available() -> bool:
    """Whether there is distributed computing at all: there is."""
    return True


def is_initialized() -> bool:
    """Whether ``init_process_group`` was called."""
    return current().world is not None


def get_rank(group: Any = None) -> int:
    """This process's number in a group, -1 if it is not in it."""
    found = resolve("get_rank", group)
    return -1 if found is None else found.rank


def get_world_size(group: Any = None) -> int:
    """How many processes a group has, -1 if this one is not in it."""
    found = resolve("get_world_size", group)
    return -1 if found is None else found._size


def get_backend(group: Any = None) -> str:
    """The name of the transport."""
    found = resolve("get_backend", group)
    if found is None:
        raise ArgumentError("get_backend: Invalid process group specified, got one that this rank is not in")
    return found.backend


def get_process_group_ranks(group: Any = None) -> list[int]:
    """The ranks in the world of a group's members."""
    found = resolve("get_process_group_ranks", group)
    return [] if found is None else list(found.members)


def get_group_rank(group: Any, global_rank: int) -> int:
    """The number in a group of a rank of the world."""
    found = resolve("get_group_rank", group)
    if found is None or global_rank not in found.members:
        raise ArgumentError(f"get_group_rank: Global rank {global_rank} is not part of group {group}")
    return found.members.index(global_rank)


def get_global_rank(group: Any, group_rank: int) -> int:
    """The rank in the world of a group's member."""
    found = resolve("get_global_rank", group)
    if found is None or not 0 <= group_rank < found._size:
        raise ArgumentError(f"get_global_rank: Group rank {group_rank} is not part of group {group}")
    return found.members[group_rank]


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """This process's number on its host: LOCAL_RANK, else ``fallback_rank``."""
    state = current()
    if state.launch is not None:
        return state.launch.rank
    for name in ("LOCAL_RANK", *MPI_VARIABLES["local"]):
        if name in os.environ:
            return int(os.environ[name])
    if fallback_rank is None:
        raise CommunicatorError(
            "get_node_local_rank: expected LOCAL_RANK to be in the environment, got none; pass fallback_rank"
        )
    return fallback_rank
