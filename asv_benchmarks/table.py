"""Prints the table of ratios: ``python -m asv_benchmarks.table [--only tiny] [--peer torch] [--page FILE] [--json FILE]``.

A ratio below one means that tensorcore is faster. ``ok`` and ``MISS`` judge the median against the promised target.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from . import page
from .benchmarks import dataloader, fused, import_time, lazy, memory, model, overhead, products, sizes
from .harness import Comparison, Peer, compare, open_peer, threads, versions

__all__ = ["main"]

PEAK = "peak memory of "
LINE = "{:<55} {:>7} {:>11} {:>11} {:>7} {:>15} {:>7}  {}"


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and answer with the exit status.

    0 measured, 1 a row that does not run or, under ``--strict``, a target missed, 2 a library, a device
    or a row that is not there.
    """
    options = _parser().parse_args(arguments)
    try:
        ours, peer = open_peer(options.ours), open_peer(options.peer)
        for one in (ours, peer):
            if hasattr(one.module, "device"):
                one.module.ones(1, device=one.device)  # a device that is not there says so here, and not in each row
    except ImportError as missing:
        text = f"bench: expected {options.ours} and {options.peer}, got {missing}; `make bench` installs both"
        print(text, file=sys.stderr)
        return 2
    except (ValueError, RuntimeError) as unusable:  # another library's name, or a device that is not there
        print(f"bench: {unusable}", file=sys.stderr)
        return 2

    print("  ".join(f"{name} {value}" for name, value in versions().items()))
    print(LINE.format("row", "threads", "ours", options.peer, "ratio", "lowest-highest", "target", ""))
    results, broken = [], 0
    for name, count, target, comparison in _measure(ours, peer, options):
        if isinstance(comparison, Exception):
            broken += 1
            print(f"{name:<55} {count:>7}  broken: {type(comparison).__name__}: {comparison}", flush=True)
            continue
        verdict = "" if target is None else "ok" if comparison.ratio <= target else "MISS"
        results.append({"row": name, "threads": count, "target": target, "verdict": verdict, **asdict(comparison)})
        spread = f"{comparison.lowest:.2f}-{comparison.highest:.2f}"
        shown = "" if target is None else f"{target:.2f}"
        shows = size if name.startswith(PEAK) else duration
        times = shows(comparison.ours), shows(comparison.peer)
        print(LINE.format(name, count, *times, f"{comparison.ratio:.3f}", spread, shown, verdict).rstrip(), flush=True)

    if not results and not broken:
        print(f"bench: expected a row with {options.only!r} in its name, got none; try --only tiny", file=sys.stderr)
        return 2
    misses = sum(result["verdict"] == "MISS" for result in results)
    print(f"{len(results)} rows, {misses} over their target, {broken} broken")
    if options.page:
        page.write(options.page, results, versions(), ops=options.ops)
    if options.json:
        options.json.write_text(json.dumps({"versions": versions(), "peer": options.peer, "rows": results}, indent=1))
    return 1 if broken or (misses and options.strict) else 0


def duration(seconds: float) -> str:
    """Three digits and the unit that suits: 730 ns, 1.32 us, 2.40 ms, 1.05 s."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size * 0.9995:
            number = seconds / size
            return f"{number:.{0 if number >= 99.95 else 1 if number >= 9.995 else 2}f} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def size(count: float) -> str:
    """Bytes in the unit that suits: 312 kB, 96.1 MB."""
    return f"{count / 1e6:.1f} MB" if count >= 1e6 else f"{count / 1e3:.0f} kB"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m asv_benchmarks.table", description="The table of ratios.")
    parser.add_argument("--ours", default="tensorcore:cpu", help="library:device on the left, for example torch:cpu")
    parser.add_argument("--peer", default="torch", help="library:device on the right: torch, numpy, torch:cuda:0")
    parser.add_argument("--ops", action="store_true", help="every op of the registry instead, small and large")
    parser.add_argument("--only", default="", help="rows whose name contains this text")
    parser.add_argument("--rounds", type=int, default=15, help="turns of each side")
    parser.add_argument("--seconds", type=float, default=0.02, help="length of one turn")
    parser.add_argument("--strict", action="store_true", help="exit status 1 when a row misses its target")
    parser.add_argument("--page", type=Path, help="also write the rows into this page, between its marks")
    parser.add_argument("--json", type=Path, help="also write the numbers to this file")
    return parser


def _measure(
    ours: Peer, peer: Peer, options: argparse.Namespace
) -> Iterator[tuple[str, int, float | None, Comparison | Exception]]:
    # The targets are promised beside PyTorch alone.
    promised = peer.module.__name__ == "torch" and ours.module.__name__ == "tensorcore"
    if options.only in "import" and not options.ops:
        name = ours.module.__name__, peer.module.__name__
        yield "import", 1, import_time.TARGET if promised else None, import_time.compare_imports(*name)
    rows = [*overhead.ROWS, *sizes.ROWS, *products.ROWS, *fused.ROWS, *model.ROWS, *dataloader.ROWS]
    if options.ops:
        from .benchmarks import ops

        rows = ops.ROWS
    for row in rows:
        if options.only not in row.name:
            continue
        for count in row.threads:
            with threads(count) as pause:
                try:
                    comparison = compare(row, ours, peer, rounds=options.rounds, seconds=options.seconds, pause=pause)
                except NotImplementedError:
                    continue
                except Exception as error:  # one row that does not run must not hide the others
                    comparison = error
            yield row.name, count, row.target if promised else None, comparison
    if promised and not options.ops:
        for name, target, measure in lazy.comparisons(options.only, options.rounds, options.seconds):
            with threads(1):
                try:
                    comparison = measure()
                except NotImplementedError:
                    continue
                except Exception as error:
                    comparison = error
            yield name, 1, target, comparison
    for label, setup in memory.MODELS.items():
        name = f"{PEAK}{label}"
        if options.ops or options.only not in name or "numpy" in (ours.module.__name__, peer.module.__name__):
            continue
        try:
            comparison = memory.compare_peaks(ours.module.__name__, peer.module.__name__, setup)
        except NotImplementedError:
            continue
        yield name, 1, memory.TARGET if promised else None, comparison


if __name__ == "__main__":
    raise SystemExit(main())
