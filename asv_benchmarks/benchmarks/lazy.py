"""Compiled functions beside what others make of the same text: PyTorch eager, torch.compile, jax.jit, and ours uncompiled.

A row runs in a process of its own, which may use as many processors as the row has threads: XLA takes what it finds, and
nothing is compiled there before the first call is timed. In it all sides take turns. On one processor their turns are counted in
its time, to which neighbours on the machine add nothing. Peaks of memory have a process for each side.

    python -m asv_benchmarks.table --only lazy
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from .. import jax_twins
from ..harness import Comparison, Timed, calibrate, open_peer, threads
from .memory import compare_peaks, peak_once
from .model import GPT, LENET, PERCEPTRON

__all__ = ["ROWS", "Latency", "LazyRow", "Peak", "Replays", "comparisons"]

ROOT = Path(__file__).parents[2]

CHAIN = """
x, y = torch.rand({count}), torch.rand({count})

def step():
    return work(x, y)

def work(x, y):
    return ((((x * y + 1.0).exp() - y) * 0.5).tanh() + x).sigmoid() * y - x
"""
CHEAP = """
x, y = torch.rand({count}), torch.rand({count})

def step():
    return work(x, y)

def work(x, y):
    t = (x * y + x).clamp_min(0.0) * 1.5 - y
    return (t * t + 0.1).sqrt() * x + y
"""
BRANCHES = """
x, y, z = torch.rand({count}), torch.rand({count}), torch.rand({count}) + 0.1

def step():
    return work(x, y, z)

def work(x, y, z):
    share = x.sigmoid()
    slope = share * (1 + x * (1 - share))
    near = (((y - z) / z).square() * -0.5).exp()
    return torch.where(near > 0.9, slope * y, share * z) + near
"""
TINY = """
x = torch.rand(8)

def step():
    return work(x)

def work(x):
    for _ in range(50):
        x = x * 1.01 + 0.5
    return x
"""


class LazyRow(NamedTuple):
    """A function: ``setup`` defines ``step``, and ``work`` where that is the part to compile; ``jax`` is its twin there.

    ``targets`` are promised beside one other by its name; None compares and promises nothing. With ``codegen`` ours is C,
    generated and compiled.
    """

    name: str
    setup: str
    compiled: str
    targets: dict[str, float | None]
    jax: str
    codegen: bool = False

    def text(self, compiled: bool, ours: bool = False) -> str:
        """The program of all sides but jax's."""
        head = "torch.backends.cpu.codegen = True\n" if self.codegen and ours else ""
        return head + self.setup + (f"\n{self.compiled} = torch.compile({self.compiled})\n" if compiled else "")


BEST = {"torch.compile": 0.8, "jax.jit": 0.8}
OURS = "tensorcore.compile"
REST = 0.02  # seconds between turns: XLA gives memory back in a thread of its own, after the results are there
OTHERS = ("tensorcore", "torch", "torch.compile", "jax.jit")
PASS = "one add with out="  # what reads two arrays and writes a third one, and can be no faster than memory
# The chain for which "within 1.5 of a pass through memory" was set is of ten cheap ops. The one with exp, tanh and sigmoid has 23.5
# cycles of arithmetic for 16 results, on a Zen 4 nearly the time of 1.5 passes, so that it is shown beside one without a promise.
ROWS = [
    LazyRow("lazy ten cheap ops, 1e7", CHEAP.format(count=10**7), "work", {"torch": 0.03, PASS: 1.5},
            jax_twins.CHEAP.format(count=10**7)),
    LazyRow("lazy chain of ten, 1e7", CHAIN.format(count=10**7), "work", {"torch": 0.03, PASS: None},
            jax_twins.CHAIN.format(count=10**7)),
    LazyRow("lazy chain of ten, 1e4", CHAIN.format(count=10**4), "work", {}, jax_twins.CHAIN.format(count=10**4)),
    LazyRow("lazy branches, 1e5", BRANCHES.format(count=10**5), "work", {}, jax_twins.BRANCHES.format(count=10**5)),
    LazyRow("lazy branches, 1e5, in generated C", BRANCHES.format(count=10**5), "work", BEST,
            jax_twins.BRANCHES.format(count=10**5), True),
    LazyRow("lazy hundred tiny ops", TINY, "work", {"torch": 0.1}, jax_twins.TINY),
    LazyRow("lazy perceptron step", PERCEPTRON, "step", BEST, jax_twins.PERCEPTRON),
    LazyRow("lazy LeNet step", LENET, "step", BEST, jax_twins.LENET),
    LazyRow("lazy GPT step", GPT, "step", BEST, jax_twins.GPT),
]  # fmt: skip
STEPS = ROWS[-3:]
# Compiles something small, so that a peak does not count the compiler itself, which is loaded at its first use.
WARM = """
torch.compile(lambda x: ((x * 2).relu() + 1).sum(-1))(torch.ones(64, 64))
"""


def side(row: LazyRow, name: str) -> Timed:
    """One side of a row, ready to run; NotImplementedError where it has none, or what it needs is not installed."""
    if name == PASS:
        if PASS not in row.targets:
            raise NotImplementedError(f"{row.name}: is not compared with {PASS}")
        return Timed(row.setup + "\nz = torch.empty_like(x)\n", "torch.add(x, y, out=z)", open_peer("tensorcore"))
    library = name.partition(".")[0]
    if importlib.util.find_spec(library) is None:
        raise NotImplementedError(f"{row.name}: {library} is not installed")
    if library == "jax":
        return Timed(row.jax, "step()", open_peer("tensorcore"))
    return Timed(row.text(name.endswith(".compile"), name == OURS), "step()", open_peer(library))


def comparisons(
    only: str, rounds: int, seconds: float
) -> Iterator[tuple[str, int, float | None, Callable[[int], Comparison]]]:
    """The rows whose name contains ``only`` beside each other side: name, threads, target, and what measures it at a visit."""
    for row in ROWS:
        names = {other: f"{row.name}, beside {other}" for other in dict.fromkeys((*OTHERS, *row.targets))}
        first = {
            other: f"{row.name}, first call, beside {other}" for other in OTHERS if other.endswith((".compile", ".jit"))
        }
        for count in (1, 2):
            measured = functools.cache(lambda visit, row=row, count=count: in_turns(row.name, count, rounds, seconds))
            for other, name in names.items():
                if only in name:
                    measure = lambda visit, other=other, of=measured: of(visit).beside(other)  # noqa: E731
                    yield name, count, row.targets.get(other), measure
            for other, name in first.items():
                if row in STEPS and only in name:
                    target = 0.1 if other == "torch.compile" else None
                    measure = lambda visit, other=other, of=measured: of(visit).first_beside(other)  # noqa: E731
                    yield name, count, target, measure
    for row in STEPS:
        name = f"peak memory of {row.name}, beside torch.compile"
        if only in name:
            yield name, 1, 1.0, lambda _, row=row: compare_peaks("tensorcore", "torch", row.text(True), 1, WARM)


class Turns(NamedTuple):
    """Seconds of each side: of its first call, and of a call in each round; what is not installed is missing."""

    first: dict[str, float]
    rounds: dict[str, list[float]]

    def beside(self, other: str) -> Comparison:
        """Replays of ours and another side."""
        return Comparison.of(self.rounds[OURS], self.rounds[self._there(other)])

    def first_beside(self, other: str) -> Comparison:
        """First calls: ours, traced while it runs, and another's."""
        return Comparison.of([self.first[OURS]], [self.first[self._there(other)]])

    def _there(self, other: str) -> str:
        if other not in self.rounds:
            raise NotImplementedError(f"{other} is not installed")
        return other


def in_turns(name: str, count: int, rounds: int, seconds: float) -> Turns:
    """All sides of a row, in a process that has ``count`` processors."""
    command = [sys.executable, "-m", "asv_benchmarks.benchmarks.lazy", name, str(count), str(rounds), str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    if done.returncode:
        raise RuntimeError(f"{name}: {done.stderr.strip().splitlines()[-1]}")
    return Turns(**json.loads(done.stdout.splitlines()[-1]))


def measure(name: str, count: int, rounds: int, seconds: float) -> Turns:
    """What ``in_turns`` runs in its process."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])
    row = next(one for one in ROWS if one.name == name)
    sides: dict[str, Timed] = {}
    for other in (OURS, *OTHERS, PASS):
        with contextlib.suppress(NotImplementedError):
            sides[other] = side(row, other)
    if "torch.compile" in sides:
        import torch._inductor.config as config

        config.force_disable_caches = True
    with threads(count) as pause:
        first = {}
        for other, timed in sides.items():
            start = time.perf_counter()
            timed.loop(range(1))
            first[other] = time.perf_counter() - start
        clock = time.process_time if count == 1 else time.perf_counter
        loops = {other: calibrate(timed, seconds) for other, timed in sides.items()}
        taken: dict[str, list[float]] = {other: [] for other in sides}
        for _ in range(rounds):
            for other, timed in sides.items():
                time.sleep(max(pause, REST))
                timed.seconds(1)
                taken[other].append(timed.seconds(loops[other], clock) / loops[other])
    return Turns(first, taken)


class Replays:
    """Seconds of one call that is replayed."""

    params = ([row.name for row in ROWS], [OURS, *OTHERS])
    param_names = ("row", "side")
    timed: Any

    def setup(self, row: str, name: str) -> None:
        self.timed = side(next(one for one in ROWS if one.name == row), name)
        self.timed.loop(range(2))

    def time_once(self, row: str, name: str) -> None:
        self.timed.loop(range(1))


class Latency:
    """Seconds of a first call, tracing included."""

    params = tuple(row.name for row in ROWS)
    param_names = ("row",)
    number, repeat = 1, 5
    timed: Any

    def setup(self, row: str) -> None:
        self.timed = side(next(one for one in ROWS if one.name == row), OURS)

    def time_first(self, row: str) -> None:
        self.timed.loop(range(1))


class Peak:
    """The growth of a process that compiles and runs each training step."""

    params = ([row.name for row in STEPS], ["tensorcore", "torch"])
    param_names = ("row", "library")
    timeout = 600
    unit = "bytes"

    def track_peak(self, row: str, library: str) -> int:
        return peak_once(library, next(one for one in STEPS if one.name == row).text(True), WARM)


if __name__ == "__main__":
    _, row_name, *numbers = sys.argv
    print(json.dumps(measure(row_name, int(numbers[0]), int(numbers[1]), float(numbers[2]))._asdict()))
