"""Prints the table of ratios: ``python -m asv_benchmarks.table [--only tiny] [--peer torch] [--page FILE] [--json FILE]``.

A ratio below one means that tensorcore is faster. ``ok`` and ``MISS`` judge the median against the promised target; ``limit``
stands where a row is over it and the machine's own time for the row's bytes and multiply-adds (``limits.py``) is too: no library
reaches the target there. ``of limit`` is that time over ours.

A row over nine tenths of its target, above or below the line, is measured VISITS times: again after all others, when whatever
else keeps the machine busy has changed; so is one that has no target, as those of ``--ops``, and takes longer than the peer. Its
medians are over the rounds of all visits.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from . import page
from .harness import Comparison, open_peer, versions
from .lines import COMPILED, Line, all_lines
from .units import share, shown

__all__ = ["HUGE_PAGES", "KEPT", "main", "printed", "verdict"]

LINE = "{:<60} {:>7} {:>11} {:>11} {:>7} {:>15} {:>8} {:>7}  {}"
KEPT = Path(__file__).parents[1] / ".asv" / "tables"
VISITS, NEAR = 3, 0.9
HUGE_PAGES = {"THP_MEM_ALLOC_ENABLE": "1"}  # PyTorch asks for huge pages then; it reads this at its first allocation

Result = dict[str, Any]
Key = tuple[str, int]  # name and threads


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and answer with the exit status.

    0 measured, 1 a row that does not run, a page that lacks rows or, under ``--strict``, a target missed, 2 a library, a
    device or a row that is not there.
    """
    options = _parser().parse_args(arguments)
    options.rounds = options.rounds or 9
    options.seconds = options.seconds or (0.01 if options.ops else 0.015)
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

    lines = all_lines(ours, peer, options)
    file = options.json or (
        KEPT / f"{'ops' if options.ops else 'rows'}.json" if options.page or options.resume else None
    )
    found = _kept(file, options) if options.resume or options.only else {}
    done = {key for key in found if options.resume}
    print("  ".join(f"{name} {value}" for name, value in versions().items()))
    print(f"{len(lines)} rows, {sum(_key(line) in done for line in lines)} of them measured before")
    print(
        "of limit: what the machine needs at best for the row's bytes and multiply-adds, over ours; limit: over the target by itself"
    )
    print(LINE.format("row", "threads", "ours", options.peer, "ratio", "lowest-highest", "of limit", "target", ""))
    broken, skipped = _measure(lines, found, done, file, options)
    if not lines:
        print(f"bench: expected a row with {options.only!r} in its name, got none; try --only tiny", file=sys.stderr)
        return 2
    if peer.module.__name__ == "torch" and not options.large and any(line.large for line in lines):
        broken += _with_huge_pages(options, found, file)
    results = list(found.values())
    misses, limited = (sum(result["verdict"] == verdict for result in results) for verdict in ("MISS", "limit"))
    print(f"{len(results)} rows, {misses} over their target, {limited} at the machine's limit, {broken} broken")
    lacking = 0
    if options.page:
        options.only = next((word for word in COMPILED if word in options.only), "")  # these have a page of their own
        order = [_key(line) for line in all_lines(ours, peer, options)]
        lacking = 0 if options.ops else len(set(order) - found.keys() - skipped)
        if lacking:
            print(f"bench: {options.page} stays as it is: {lacking} rows are not measured; go on with --resume")
        else:
            page.write(options.page, [found[key] for key in order if key in found], versions(), ops=options.ops)
            for row in page.unexplained(options.page.read_text("utf-8"), page.known_causes()):
                print(f"bench: {row} misses and has no cause; give it one in {page.CAUSES.name}")
    return 1 if broken or lacking or (misses and options.strict) else 0


def _measure(
    lines: list[Line], found: dict[Key, Result], done: set[Key], file: Path | None, options: argparse.Namespace
) -> tuple[int, set[Key]]:
    """Visit the lines that are not ``done``: print them, put them into ``found`` and ``file``.

    Returns how many are broken, and those that one of the two does not have.
    """
    broken, skipped = 0, set()
    for visit in range(VISITS):
        due = [line for line in lines if _is_due(found.get(_key(line)), visit)] if visit else lines
        if visit and due:
            print(f"visit {visit + 1}, of {len(due)} rows near their targets:", flush=True)
        for line in _progress([line for line in due if visit or _key(line) not in done]):
            key = _key(line)
            try:
                comparison = line.measure(visit)
            except NotImplementedError as reason:  # one of the two has no such row
                print(f"{line.name:<60} {line.threads:>7}  skipped: {reason}", flush=True)
                skipped.add(key)
                continue
            except Exception as error:  # one row that does not run must not hide the others
                broken += 1
                print(f"{line.name:<60} {line.threads:>7}  broken: {type(error).__name__}: {error}", flush=True)
                continue
            found[key] = _result(line, comparison.after(found[key]["rounds"]) if visit else comparison, visit)
            print(printed(found[key]), flush=True)
            if file:
                _keep(file, options, found)
    return broken, skipped


def _is_due(result: Result | None, visit: int) -> bool:
    """Whether a row was near its target at the first visit, and has had all visits up to this one."""
    if result is None or result.get("visits") != visit:
        return False  # tables of earlier versions do not count visits
    near = 1.0 if result["target"] is None else NEAR * result["target"]
    return visit > 1 or result["ratio"] > near


def _key(line: Line) -> Key:
    return line.name, line.threads


def printed(result: Result) -> str:
    """A line of the table as text."""
    spread = f"{result['lowest']:.2f}-{result['highest']:.2f}"
    target = "" if result["target"] is None else f"{result['target']:.2f}"
    sides = [shown(result[name], result["unit"]) for name in ("ours", "peer")]
    return LINE.format(
        result["row"],
        result["threads"],
        *sides,
        f"{result['ratio']:.3f}",
        spread,
        share(result),
        target,
        result["verdict"],
    ).rstrip()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m asv_benchmarks.table", description="The table of ratios.")
    parser.add_argument("--ours", default="tensorcore:cpu", help="library:device on the left, for example torch:cpu")
    parser.add_argument("--peer", default="torch", help="library:device on the right: torch, numpy, jax, torch:cuda:0")
    parser.add_argument("--ops", action="store_true", help="every op of the registry instead, in four sizes")
    parser.add_argument("--only", default="", help="rows whose name contains this text")
    parser.add_argument(
        "--large", action="store_true", help="only the rows that are too large for the caches, on one thread"
    )
    parser.add_argument(
        "--compilers", action="store_true", help="also beside torch.compile and jax.jit, which takes minutes"
    )
    parser.add_argument(
        "--rounds",
        type=int,
        help="turns of each side, 9; three times as many shorter ones on one thread",
    )
    parser.add_argument("--seconds", type=float, help="length of one turn; 0.015, and 0.01 for ops")
    parser.add_argument("--imports", type=int, default=5, help="how often each library is imported")
    parser.add_argument("--strict", action="store_true", help="exit status 1 when a row misses its target")
    parser.add_argument("--page", type=Path, help="also write the rows into this page, between its marks")
    parser.add_argument("--json", type=Path, help=f"write the numbers to this file after each row; with --page {KEPT}")
    parser.add_argument("--resume", action="store_true", help="leave out what that file has of the same versions")
    return parser


def _progress(lines: list[Line]) -> Iterator[Line]:
    """The lines, with a bar on a terminal that says how long the rest may take."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=len(lines))
        for line in lines:
            progress.update(task, description=f"{line.name}, {line.threads}"[:40])
            yield line
            progress.advance(task)


def _result(line: Line, comparison: Comparison, visit: int) -> Result:
    said = {"group": line.group, "row": line.name, "threads": line.threads, "target": line.target, "unit": line.unit}
    return {
        **said,
        "verdict": verdict(line.target, comparison),
        "date": str(datetime.date.today()),
        "visits": visit + 1,
        **asdict(comparison),
    }


def verdict(target: float | None, found: Comparison) -> str:
    """``ok``, ``MISS``, or ``limit`` where the machine's own time is over the target: not what the peer shows to be possible."""
    if target is None or found.ratio <= target:
        return "" if target is None else "ok"
    return "limit" if found.limit is not None and min(found.limit, found.peer) > target * found.peer else "MISS"


def _with_huge_pages(options: argparse.Namespace, found: dict[Key, Result], file: Path | None) -> int:
    """Measure the large rows again in a process where PyTorch uses huge pages; 1 where that does not run."""
    print(f"the large rows beside PyTorch with {' '.join('='.join(one) for one in HUGE_PAGES.items())}:", flush=True)
    other = (file or KEPT / "table.json").with_suffix(".huge.json")
    command = [
        sys.executable, "-m", "asv_benchmarks.table", "--large", "--ours", options.ours, "--peer", options.peer, "--only",
        options.only, "--rounds", str(max(3, options.rounds // 2)), "--seconds", str(options.seconds), "--json", str(other),
    ]  # fmt: skip
    command += ["--resume"] * options.resume
    status = subprocess.run(command, env={**os.environ, **HUGE_PAGES}, check=False).returncode
    for key, result in _kept(other, options).items():
        if key in found:
            found[key]["huge"] = result["ratio"]
    if file:
        _keep(file, options, found)
    return int(status != 0)


def _kept(file: Path | None, options: argparse.Namespace) -> dict[Key, Result]:
    """The results in a file, where they are of the same libraries on the same machine."""
    if file is None or not file.exists():
        return {}
    before = json.loads(file.read_text("utf-8"))
    same = (before["versions"], before["ours"], before["peer"]) == (versions(), options.ours, options.peer)
    return {(one["row"], one["threads"]): one for one in before["rows"]} if same else {}


def _keep(file: Path, options: argparse.Namespace, found: dict[Key, Result]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    whole = {"versions": versions(), "ours": options.ours, "peer": options.peer, "rows": list(found.values())}
    file.write_text(json.dumps(whole, indent=1), "utf-8")


if __name__ == "__main__":
    raise SystemExit(main())
