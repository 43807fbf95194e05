"""The launcher's table: what each rank on this host does, in memory that the ranks write and the launcher reads."""

from __future__ import annotations

import mmap
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["DASHBOARD", "Meter", "meter", "rows", "shown", "table"]

DASHBOARD = "TENSORCORE_DASHBOARD"  # the file of the table
_ROW = np.dtype([
    ("steps", "u8"), ("begun", "f8"), ("last", "f8"), ("step", "f8"), ("waited", "f8"), ("waiting", "f8"), ("call", "S80"),
])  # fmt: skip
_NEW = 0.2  # of a step's time in what is shown: the last five count most


class Meter:
    """One rank's row.

    Args:
        memory: of all rows.
    """

    def __init__(self, memory: Any, rank: int) -> None:
        self.row = np.frombuffer(memory, _ROW)[rank]
        self.row["begun"] = time.time()

    def stepped(self) -> None:
        """Count a step of an optimizer."""
        now, row = time.time(), self.row
        if row["steps"]:
            seconds = now - row["last"]
            row["step"] = seconds if row["steps"] == 1 else (1 - _NEW) * row["step"] + _NEW * seconds
        row["steps"] += 1
        row["last"] = now

    @contextmanager
    def waiting(self, call: str) -> Iterator[None]:
        """Count the time until a collective is done."""
        row, start = self.row, time.time()
        row["call"], row["waiting"] = call.encode("ascii", "replace")[:80], start
        try:
            yield
        finally:
            row["waited"] += time.time() - start
            row["waiting"] = 0


def meter(rank: int) -> Meter | None:
    """This rank's row, where the launcher shows a table, and has optimizers count their steps there."""
    path = os.environ.get(DASHBOARD)
    if not path or not Path(path).exists():
        return None
    from tensorcore.optim.optimizer import register_optimizer_step_post_hook

    with open(path, "r+b") as file:
        found = Meter(mmap.mmap(file.fileno(), 0), rank)
    register_optimizer_step_post_hook(lambda optimizer, args, kwargs: found.stepped())
    return found


def rows(path: Path) -> np.ndarray:
    """What all ranks have written."""
    return np.frombuffer(path.read_bytes(), _ROW)


def table(found: np.ndarray, now: float) -> Any:
    """The rows for a terminal: steps, their time and rate, the share of the time spent waiting, and for what."""
    from rich.table import Table

    made = Table("rank", "steps", "step", "steps/s", "waiting", "in", title="tensorcore launch")
    for rank, row in enumerate(found):
        if not row["begun"]:
            made.add_row(str(rank), "", "", "", "", "not in a group on this host")
            continue
        waited = row["waited"] + (now - row["waiting"] if row["waiting"] else 0.0)
        share = waited / max(now - row["begun"], 1e-9)
        step = row["step"]
        made.add_row(
            str(rank), str(row["steps"]), f"{1e3 * step:.1f} ms" if step else "", f"{1 / step:.1f}" if step else "",
            f"{100 * min(share, 1):.0f} %", row["call"].decode() if row["waiting"] else "",
        )  # fmt: skip
    return made


@contextmanager
def shown(path: Path, ranks: int, every: float = 0.25) -> Iterator[None]:
    """Make the file, and show the table until the end of the block; where there is no terminal, once at its end."""
    from rich.console import Console
    from rich.live import Live

    path.write_bytes(bytes(_ROW.itemsize * ranks))
    done = threading.Event()
    console = Console(stderr=True)
    with Live(table(rows(path), time.time()), console=console, auto_refresh=False) as live:

        def act() -> None:
            while not done.wait(every):
                live.update(table(rows(path), time.time()), refresh=console.is_terminal)

        thread = threading.Thread(target=act, name="tensorcore dashboard", daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()
            live.update(table(rows(path), time.time()))
