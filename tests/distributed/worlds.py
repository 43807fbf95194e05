"""Ranks that are threads of the test's process."""

from __future__ import annotations

from datetime import timedelta

import tensorcore.distributed as dist


def world(size: int, act, *arguments, timeout: float = 120.0):
    """What ``act`` returns on each of ``size`` ranks that are threads, in an initialised group."""

    def run():
        dist.init_process_group(timeout=timedelta(seconds=timeout))
        return act(*arguments)

    return dist.run_threads(run, size)
