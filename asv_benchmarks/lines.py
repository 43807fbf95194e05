"""What a table measures, line by line: the rows of the suites at their counts of threads, imports, compiled functions, memory."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import NamedTuple

from .benchmarks import (
    autograd,
    dataloader,
    dtypes,
    factors,
    fused,
    import_time,
    layers,
    lazy,
    memory,
    model,
    overhead,
    products,
    programs,
    short,
    sizes,
    sparse,
    transfer,
)
from .harness import Comparison, Peer, Row, Setups, compare, threads

__all__ = ["Line", "all_lines", "rows"]

# Texts of --only that ask for rows of compiled functions: without one, they are left out, for compilers take minutes.
COMPILED = ("lazy", "compiled")


class Line(NamedTuple):
    """One line of a table: its heading, name, threads, target, and what measures it. Its unit is s, bytes or faults.

    ``measure`` is given the number of the visit, from 0. A line that only one library has raises NotImplementedError there.
    """

    group: str
    name: str
    threads: int
    target: float | None
    measure: Callable[[int], Comparison]
    unit: str = "s"
    large: bool = False


def rows() -> list[Row]:
    """The rows of every suite in the table's order."""
    suites = (
        overhead,
        autograd,
        sizes,
        short,
        products,
        layers,
        factors,
        dtypes,
        fused,
        model,
        programs,
        sparse,
        dataloader,
        transfer,
    )
    return [row for suite in suites for row in suite.ROWS]


def all_lines(ours: Peer, peer: Peer, options: argparse.Namespace) -> list[Line]:
    """The lines that the options choose; targets are promised beside PyTorch alone."""
    promised = peer.module.__name__ == "torch" and ours.module.__name__ == "tensorcore"
    found = _of_ops(ours, peer, options) if options.ops else _of_suites(ours, peer, options)
    return [
        line if promised else line._replace(target=None)
        for line in found
        if options.only in line.name and (not options.large or (line.large and line.threads == 1))
    ]


def _of_suites(ours: Peer, peer: Peer, options: argparse.Namespace) -> Iterator[Line]:
    names = ours.module.__name__, peer.module.__name__
    imports = lambda _: import_time.compare_imports(*names, options.imports)  # noqa: E731
    yield Line("import", "import", 1, import_time.TARGET, imports)
    yield from _of_rows(rows(), ours, peer, options)
    if names == ("tensorcore", "torch") and (options.compilers or any(word in options.only for word in COMPILED)):
        for name, count, target, measure in lazy.comparisons(options.only, options.rounds, options.seconds):
            yield Line("compiled functions", name, count, target, measure, "bytes" if name.startswith("peak") else "s")
    if {*names} <= {"tensorcore", "torch"}:
        for label, setup in memory.MODELS.items():
            for group, name, measure, unit in _MEMORY:
                again = lambda _, measure=measure, setup=setup: measure(*names, setup)  # noqa: E731
                yield Line(group, f"{name} {label}", 1, memory.TARGET, again, unit)


_MEMORY = (
    ("peak memory", "peak memory of", memory.compare_peaks, "bytes"),
    ("page faults", "page faults of a step,", memory.compare_faults, "faults"),
)


def _of_ops(ours: Peer, peer: Peer, options: argparse.Namespace) -> Iterator[Line]:
    from .benchmarks import everyday, ops

    return _of_rows([*ops.ROWS, *everyday.ROWS], ours, peer, options)


def _of_rows(chosen: list[Row], ours: Peer, peer: Peer, options: argparse.Namespace) -> Iterator[Line]:
    setups = Setups()

    def measured(row: Row, count: int) -> Comparison:
        # One thread needs no pause between turns, so they are shorter and more: a neighbour's burst meets both sides.
        # With more threads the pauses are what takes the time.
        rounds, seconds = options.rounds * 3, options.seconds / 3
        if count > 1:
            rounds, seconds = max(3, options.rounds * 2 // 3), options.seconds
        settings = {"rounds": rounds, "seconds": seconds, "setups": setups}
        with threads(count) as pause:
            return compare(row, ours, peer, pause=pause, count=count, **settings)

    for row in chosen:
        for count in row.threads:
            measure = lambda _, row=row, count=count: measured(row, count)  # noqa: E731
            yield Line(row.group, row.name, count, row.target, measure, large=row.large)
