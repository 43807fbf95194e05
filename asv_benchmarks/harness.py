"""Times one piece of user code on two libraries, turn by turn in one process.

The code of a row is text. It is compiled once for each peer with ``torch`` bound to that library and ``device`` to the
device, so both sides run the same program and no call stands between the loop and what is timed.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

__all__ = ["PEERS", "Comparison", "Peer", "Row", "Timed", "compare", "open_peer", "prepare", "threads", "versions"]

# What asv runs for every row; tensorcore:cuda:0 and torch:cuda:0 are peers too.
PEERS = os.environ.get("ASV_PEERS", "tensorcore:cpu numpy torch").split()

# OpenBLAS and OpenMP threads spin for a while after their work and would take a core from the other side's turn.
# A pause of this length outlasts them; one thread has nothing that spins.
SPIN_SECONDS = 0.05
LAYOUTS = 3


@dataclass(frozen=True)
class Row:
    """One line of the table.

    ``setup`` runs once, ``body`` is timed. ``target`` is the ratio promised beside PyTorch, None where none is.
    ``numpy_setup`` binds the same names to NumPy arrays, where the body means the same to NumPy.
    """

    name: str
    setup: str
    body: str
    target: float | None = None
    numpy_setup: str | None = None
    threads: tuple[int, ...] = (1,)


@dataclass(frozen=True)
class Peer:
    """A library, and the device it runs on."""

    name: str
    module: ModuleType
    device: str

    def settle(self) -> None:
        """Return when the device has finished what was started on it."""
        if self.device == "cpu":
            return
        if self.module.__name__ == "torch":
            self.module.cuda.synchronize(self.device)
        else:
            self.module.device(self.device).synchronize()


class Timed:
    """The body of a row, ready to run on one peer."""

    def __init__(self, setup: str, body: str, peer: Peer) -> None:
        self.names: dict[str, Any] = {"torch": peer.module, "numpy": peer.module, "device": peer.device}
        exec(setup, self.names)
        loop = f"def loop(turns):\n    for _ in turns:\n        {body}\n"
        exec(compile(loop, f"<{body}>", "exec"), self.names)
        self.loop: Callable[[range], None] = self.names["loop"]
        self.settle = peer.settle

    def seconds(self, loops: int, clock: Callable[[], float] = time.perf_counter) -> float:
        """Seconds that ``loops`` runs take; the cyclic collector stays on, as it is for users."""
        self.settle()
        start = clock()
        self.loop(range(loops))
        self.settle()
        return clock() - start


@dataclass(frozen=True)
class Comparison:
    """Medians over the rounds in seconds, their ratio, and the range of the ratios of single rounds."""

    ours: float
    peer: float
    ratio: float
    lowest: float
    highest: float

    @classmethod
    def of(cls, ours: list[float], peer: list[float]) -> Comparison:
        """From the seconds of each round on both sides."""
        ratios = [a / b for a, b in zip(ours, peer, strict=True)]
        a, b = statistics.median(ours), statistics.median(peer)
        return cls(a, b, a / b, min(ratios), max(ratios))


def open_peer(name: str) -> Peer:
    """The peer called ``library`` or ``library:device``, for example ``tensorcore:cuda:0``; imports it."""
    library, _, device = name.partition(":")
    if library not in ("tensorcore", "torch", "numpy"):
        raise ValueError(f"open_peer: expected tensorcore, torch or numpy, got {name!r}; write library:device")
    return Peer(name, importlib.import_module(library), device or "cpu")


def prepare(row: Row, peer: Peer) -> Timed:
    """The row's body on a peer; NotImplementedError, which asv shows as n/a, where the peer has no such row."""
    if peer.module.__name__ != "numpy":
        return Timed(row.setup, row.body, peer)
    if row.numpy_setup is None:
        raise NotImplementedError(f"{row.name}: has no NumPy form")
    return Timed(row.numpy_setup, row.body, peer)


def calibrate(timed: Timed, seconds: float) -> int:
    """How many runs take about ``seconds``; what is compiled, cached or grown on first use happens here."""
    loops = 1
    while (taken := timed.seconds(loops)) < seconds / 2:
        loops *= 2 if taken > seconds / 20 else 10
    return max(1, round(loops * seconds / taken))


def compare(
    row: Row, ours: Peer, peer: Peer, *, rounds: int = 15, seconds: float = 0.02, pause: float = 0.0
) -> Comparison:
    """Both sides in turns, ``rounds`` times: what slows the machine down for a while slows both.

    The arrays are made anew LAYOUTS times, elsewhere in memory each time: addresses that collide in the cache may have once
    made an 8x8 product 2.7 times slower than itself.
    """
    kept = []
    taken: list[list[float]] = [[], []]
    for _ in range(LAYOUTS):
        sides = [(timed := prepare(row, side), calibrate(timed, seconds)) for side in (ours, peer)]
        kept.append(sides)
        for _ in range(max(1, rounds // LAYOUTS)):
            for (timed, loops), results in zip(sides, taken, strict=True):
                if pause:
                    time.sleep(pause)
                    timed.seconds(1)
                results.append(timed.seconds(loops) / loops)
    return Comparison.of(*taken)


@contextlib.contextmanager
def threads(count: int) -> Iterator[float]:
    """Give every library ``count`` threads; the value is the pause that a turn needs before it."""
    from threadpoolctl import threadpool_limits

    setters = [
        (module.set_num_threads, module.get_num_threads())
        for name in ("torch", "tensorcore")
        if (module := sys.modules.get(name)) is not None and hasattr(module, "set_num_threads")
    ]
    with threadpool_limits(count):
        for set_num_threads, _ in setters:
            set_num_threads(count)
        try:
            yield SPIN_SECONDS if count > 1 else 0.0
        finally:
            for set_num_threads, before in setters:
                set_num_threads(before)


def versions() -> dict[str, str]:
    """What a number depends on: versions of the libraries that are loaded, the processor, its cores."""
    loaded = {
        name: str(getattr(sys.modules[name], "__version__", "of unknown version"))
        for name in ("tensorcore", "numpy", "torch")
        if name in sys.modules
    }
    return {
        "python": platform.python_version(),
        **loaded,
        "processor": _processor(),
        "cores": str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()),
    }


def _processor() -> str:
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
