"""Names of the first version of FSDP, which libraries import to ask for it by ``isinstance``: ``fully_shard`` takes its place."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

from tensorcore.errors import UsageError
from tensorcore.nn.module import Module

__all__ = ["CPUOffload", "FullyShardedDataParallel", "ShardingStrategy"]


class ShardingStrategy(enum.Enum):
    """What it shared out."""

    FULL_SHARD = enum.auto()
    SHARD_GRAD_OP = enum.auto()
    NO_SHARD = enum.auto()
    HYBRID_SHARD = enum.auto()
    _HYBRID_SHARD_ZERO2 = enum.auto()


@dataclass
class CPUOffload:
    """Whether it kept parameters in host memory."""

    offload_params: bool = False


class FullyShardedDataParallel(Module):
    """Refused when it is made."""

    def __init__(self, module: Module, *args: Any, **options: Any) -> None:
        raise UsageError(
            f"FullyShardedDataParallel: expected fully_shard(module), got {type(module).__name__}; it takes this one's place"
        )
