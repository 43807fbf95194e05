"""Modules that train on several processes, or on several devices of one."""

from __future__ import annotations

from typing import Any

import tensorcore.nn.parallel.data_parallel  # before the function of that name, which a later import of it would hide
from tensorcore.nn.parallel.replicas import DataParallel, data_parallel, gather, parallel_apply, replicate, scatter

__all__ = [
    "DataParallel", "DistributedDataParallel", "data_parallel", "gather", "parallel_apply", "replicate", "scatter",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name != "DistributedDataParallel":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from tensorcore.nn.parallel.distributed import DistributedDataParallel

    globals()[name] = DistributedDataParallel
    return DistributedDataParallel
