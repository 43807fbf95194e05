"""Proves and times NCCL among the GPUs of this machine: a rank for each, which are threads of one process.

``python -m asv_benchmarks.gpu_nccl --json FILE [--small]``
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import tensorcore
from tensorcore_distributed.communicators.nccl import NcclCommunicator

__all__ = ["main"]

COUNTS = (1 << 24, 1 << 10)  # elements of float32 that each rank has


class Control:
    """How ranks that are threads agree: what the communicator asks MPI for otherwise."""

    def __init__(self, size: int) -> None:
        self.size, self.turn, self.local = size, threading.Barrier(size, timeout=60), threading.local()
        self.parts: list[Any] = [None] * size

    def Get_rank(self) -> int:
        """This thread's rank."""
        return int(self.local.rank)

    def Get_size(self) -> int:
        """How many there are."""
        return self.size

    def bcast(self, one: Any, root: int) -> Any:
        """What the root has."""
        self.parts[self.local.rank] = one
        self.turn.wait()
        found = self.parts[root]
        self.turn.wait()
        return found


def main(arguments: list[str] | None = None) -> int:
    """Run it; 1 where a rank fails or a result is wrong."""
    parser = argparse.ArgumentParser(description="NCCL among the GPUs of this machine.")
    parser.add_argument("--json", type=Path, required=True, help="where the results go")
    parser.add_argument("--small", action="store_true", help="few elements, to see that it runs")
    options = parser.parse_args(arguments)
    size = tensorcore.cuda.device_count()
    control, rows, wrong = Control(size), list[dict[str, Any]](), list[str]()

    def rank(index: int) -> None:
        control.local.rank = index
        try:
            run(index, control, COUNTS[options.small :], rows)
        except BaseException:
            wrong.append(f"rank {index}: {traceback.format_exc()}")
            control.turn.abort()

    threads = [threading.Thread(target=rank, args=(index,)) for index in range(size)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    options.json.write_text(json.dumps({"ranks": size, "rows": rows}, indent=1) + "\n", "utf-8")
    print("\n".join(wrong) or f"{size} ranks, {len(rows)} rows")
    return 1 if wrong else 0


def run(index: int, control: Control, counts: tuple[int, ...], rows: list[dict[str, Any]]) -> None:
    """One rank's part: each collective is checked, and timed by the first rank."""
    device = tensorcore.device("cuda", index)
    device.place.use()  # NCCL's own calls go to the thread's current device
    communicator = NcclCommunicator(device, control=control)
    for count in counts:
        for name, (call, result, expected) in collectives(communicator, count).items():
            call().wait()
            found = result.cpu().numpy().reshape(len(expected), -1)
            if not (found == np.reshape(expected, (-1, 1))).all():
                raise AssertionError(f"{name}: expected {list(expected)}, got {found[:, :3].tolist()}")
            times = []
            for _ in range(7):
                started = time.perf_counter()
                call().wait()
                times.append(time.perf_counter() - started)
            if index == 0:
                seconds = statistics.median(times)
                row = f"NCCL {name}, {control.size} ranks, {count} float32"
                rows.append({"row": row, "ours": seconds, "GB/s": 4 * count / seconds / 1e9})
    communicator.close()


def collectives(communicator: Any, count: int) -> dict[str, tuple[Callable[[], Any], Any, Any]]:
    """Calls by name, each with the tensor that it writes and the numbers that this is full of then, by blocks."""
    size, rank, device = communicator.size, communicator.rank, communicator.backend
    mine = tensorcore.full((count,), rank + 1.0, device=device)
    many, out = tensorcore.zeros(size, count, device=device), tensorcore.empty(count, device=device)
    return {
        "all_reduce": (lambda: communicator.all_reduce(mine.native, out=out.native), out, [size * (size + 1) / 2]),
        "all_gather": (lambda: communicator.all_gather(mine.native, many.native), many, range(1, size + 1)),
        "reduce_scatter": (lambda: communicator.reduce_scatter(many.native, out.native), out, [size * (rank + 1.0)]),
        "broadcast": (lambda: communicator.broadcast(out.native, 0), out, [float(size)]),
    }  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
