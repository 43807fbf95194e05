"""How a process of MPI ends: the others do not wait for one that failed, and nothing of it stays in the host's memory."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys

from mpi4py import MPI

__all__ = ["given_up", "leave_well", "unlink_shared_memory"]

given_up: list[str] = []  # why communicators of this process were aborted


def leave_well() -> None:
    """See to it, once, that a process that fails does not leave the others waiting in MPI_Finalize."""
    if not leave_well.__dict__.setdefault("registered", False):
        leave_well.__dict__["registered"] = True
        atexit.register(_abort_after_failure)


def unlink_shared_memory() -> None:
    """Take the names of MPICH's shared memory away, once all ranks have opened it: who is killed cannot leave it behind."""
    with contextlib.suppress(OSError), open("/proc/self/maps", encoding="utf-8") as maps:
        for path in {line.split()[-1] for line in maps if "/dev/shm/mpich_shm_" in line}:
            with contextlib.suppress(OSError):
                os.unlink(path)


def _abort_after_failure() -> None:
    if MPI.Is_finalized() or not (given_up or getattr(sys, "last_value", None) is not None):
        return
    sys.stdout.flush()
    sys.stderr.flush()
    MPI.COMM_WORLD.Abort(1)
