"""Judges a change beside the branch it goes to: ``python -m asv_benchmarks.continuous --base main [--allow NAME] [--no-time]``.

Counts that no noise touches are the gate: none may be larger than the base's ``counters.json`` says. Times are asv's
(``asv continuous``), and only warn: the machines that judge changes are shared.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from pathlib import Path

from . import counters
from .dashboard import asv

__all__ = ["committed", "judge", "main"]

FACTOR = 1.3  # how much slower a row must be for a warning
TIMED = ("overhead.*tensorcore:", "autograd.*tensorcore:", "model.*step.*tensorcore:")
ROOT = Path(__file__).parents[1]


def main(arguments: list[str] | None = None) -> int:
    """0 where no count has grown, 1 where one has, 2 where the base has no counts; a slower row is said and changes nothing."""
    options = _parser().parse_args(arguments)
    try:
        before = committed(options.base)
    except LookupError as missing:
        print(missing)
        return 2
    grown = judge(before, counters.counted(), options.allow)
    if options.time:
        bench = [part for one in TIMED for part in ("--bench", one)]
        asv("machine", "--yes")
        if asv("continuous", options.base, "HEAD", "--factor", str(FACTOR), *bench):
            print(
                f"warning: rows above are slower than {FACTOR} times {options.base}, or did not run; times do not fail a change"
            )
    return int(grown)


def committed(base: str) -> counters.Counts:
    """The counts that a commit holds.

    Raises:
        LookupError: where git knows no such commit, or the commit has none.
    """
    name = f"{base}:{counters.COMMITTED.relative_to(ROOT).as_posix()}"
    done = subprocess.run(["git", "show", name], capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode:
        raise LookupError(
            f"continuous: expected counts at {name}, got none: {done.stderr.strip()}; fetch it, or name another BASE"
        )
    return dict(json.loads(done.stdout))


def judge(before: counters.Counts, found: counters.Counts, allowed: list[str]) -> bool:
    """Say which counts have changed; whether one has grown that is not among the allowed."""
    grown = False
    for name, count in found.items():
        old = before.get(name)
        if old == count:
            continue
        if old is None or count < old or name in allowed:
            said = "new" if old is None else "smaller" if count < old else "larger, allowed"
        else:
            said, grown = "LARGER", True
        print(f"{name:<45} {'-' if old is None else old:>9} {count:>9}  {said}")
    gone = before.keys() - found.keys()
    for name in sorted(gone):
        print(f"{name:<45} {before[name]:>9}         -  GONE")
    if grown or gone:
        print(
            "continuous: expected no count to grow, got those above; mend it, or say why and pass --allow with the name"
        )
    return grown or not gone <= set(allowed)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m asv_benchmarks.continuous", description="A change beside its base."
    )
    parser.add_argument("--base", default="main", help="the branch or commit that the change goes to")
    parser.add_argument("--allow", action="append", default=[], help="a count that may grow; may stand more than once")
    parser.add_argument("--no-time", dest="time", action="store_false", help="the counts alone, in seconds")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
