"""Writes measured rows into a page of the documentation, between marks that name what stands there.

``python -m asv_benchmarks.page FILE`` writes only why rows miss, anew from ``causes.toml``.
"""

from __future__ import annotations

import re
import statistics
import sys
import tomllib
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

from .benchmarks.ops import FORMS, SIZES
from .units import share, shown

__all__ = ["CAUSES", "UNKNOWN", "Cause", "explained", "known_causes", "missed", "unexplained", "write"]

SLOW = 3.0  # the ratio from which an op is listed
UNKNOWN = "not looked into yet"
CAUSES = Path(__file__).with_name("causes.toml")
Result = dict[str, Any]


class Cause(NamedTuple):
    """Why some rows miss, by their names or patterns with ``*``, on a kind of processor, and what to try next."""

    rows: tuple[str, ...]
    why: str
    next: str = ""
    processor: str = "*"


def known_causes(file: Path = CAUSES) -> list[Cause]:
    """Those of the file, in its order."""
    return [Cause(tuple(one.pop("rows")), **one) for one in tomllib.loads(file.read_text("utf-8"))["cause"]]


def write(
    page: Path, results: list[Result], versions: dict[str, str], *, ops: bool, known: list[Cause] | None = None
) -> None:
    """Put the rows where ``page`` has ``<!-- rows -->`` or ``<!-- ops -->``, up to the next ``<!-- end -->``.

    Why rows miss is written anew from ``known``, by default from ``causes.toml``, where the page has ``<!-- causes -->``.

    Raises:
        LookupError: where the page has no such marks.
    """
    known = known_causes() if known is None else known
    mark = "ops" if ops else "rows"
    dates = sorted({one["date"] for one in results})
    said = f"Measured {_between(dates)}: {', '.join(f'{name} {value}' for name, value in versions.items())}.\n\n"
    body = _ops(results, known, versions.get("processor", "")) if ops else _summary(results) + _rows(results)
    text = _replaced(page.read_text(encoding="utf-8"), mark, said + body, str(page))
    page.write_text(explained(text, known), encoding="utf-8")


def explained(text: str, known: list[Cause]) -> str:
    """The page with a line for each cause that fits a row that misses or an op that is slow, and for each of them without."""
    if "<!-- causes -->" not in text:
        return text
    fitting: dict[Cause, set[str]] = {}
    unknown = []
    for row, processor in _to_explain(text):
        cause, pattern = _cause_of(row, known, processor)
        if cause:
            fitting.setdefault(cause, set()).add(pattern)
        else:
            unknown.append(_line(row, UNKNOWN, ""))
    lines = [
        _line("; ".join(pattern for pattern in one.rows if pattern in fitting[one]), one.why, one.next)
        for one in known
        if one in fitting
    ]
    head = ["| row | cause | next thing to try |", "| --- " * 3 + "|"]
    return _replaced(text, "causes", "\n".join([*head, *lines, *unknown]) + "\n")


def missed(text: str) -> list[str]:
    """The rows of a page that miss their target at some count of threads, each once."""
    rows = [_cells(line) for line in _part(text, "rows").splitlines() if line.rstrip().endswith("| MISS |")]
    return list(dict.fromkeys(cells[0] for cells in rows))


def unexplained(text: str, known: list[Cause]) -> list[str]:
    """The rows that miss and of which nobody wrote why."""
    processor = _processor(text, "rows")
    return [row for row in missed(text) if _cause_of(row, known, processor)[0] is None]


def _to_explain(text: str) -> Iterable[tuple[str, str]]:
    """Rows that miss, and ops that are slow and have a cause, with the processor they were measured on."""
    processor = _processor(text, "rows")
    yield from ((row, processor) for row in missed(text))
    processor = _processor(text, "ops")
    listed = [_cells(line) for line in _part(text, "ops").splitlines() if line.startswith("| ")][2:]
    named = [
        (f"everyday {name}" if where == "everyday" else f"op {name} {where}", why) for name, where, _, why in listed
    ]
    yield from ((row, processor) for row, why in named if why != UNKNOWN)


def _cause_of(row: str, known: list[Cause], processor: str) -> tuple[Cause | None, str]:
    """The first that fits, of one kind of processor before those of all, and its pattern that does."""
    for cause in sorted(known, key=lambda one: one.processor == "*"):
        for pattern in cause.rows:
            if fnmatchcase(row, pattern) and fnmatchcase(processor, cause.processor):
                return cause, pattern
    return None, ""


def _processor(text: str, mark: str) -> str:
    """The kind of processor that a part of the page was measured on; nothing where it does not say."""
    found = re.search(r"^Measured .*\bprocessor (.*?), cores", _part(text, mark), re.MULTILINE)
    return found[1] if found else ""


def _replaced(text: str, mark: str, body: str, page: str = "the page") -> str:
    place = re.search(rf"(<!-- {mark} -->\n).*?(<!-- end -->)", text, re.DOTALL)
    if place is None:
        raise LookupError(
            f"bench: expected '<!-- {mark} -->' and '<!-- end -->' in {page}, got neither; put them there"
        )
    return text[: place.end(1)] + body + text[place.start(2) :]


def _part(text: str, mark: str) -> str:
    found = re.search(rf"<!-- {mark} -->\n(.*?)<!-- end -->", text, re.DOTALL)
    return found[1] if found else ""


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _between(dates: list[str]) -> str:
    return f"on {dates[0]}" if len(dates) == 1 else f"from {dates[0]} to {dates[-1]}" if dates else "nothing"


def _line(*cells: Any) -> str:
    return f"| {' | '.join(map(str, cells))} |".replace("|  |", "| |").replace("|  |", "| |")


def _summary(results: list[Result]) -> str:
    lines = [
        "| group | rows | median ratio | slowest | its ratio | target | misses | at the limit |",
        "| --- " * 8 + "|",
    ]
    for group in dict.fromkeys(one["group"] for one in results):
        own = [one for one in results if one["group"] == group]
        worst = max(own, key=lambda one: one["ratio"])
        targets = sorted({f"{one['target']:.2f}" for one in own if one["target"] is not None})
        misses, limited = (sum(one["verdict"] == verdict for one in own) or "" for verdict in ("MISS", "limit"))
        middle = statistics.median(one["ratio"] for one in own)
        name = f"{worst['row']}, {worst['threads']} thread{'s' * (worst['threads'] > 1)}"
        lines.append(
            _line(
                group, len(own), f"{middle:.2f}", name, f"{worst['ratio']:.2f}", " and ".join(targets), misses, limited
            )
        )
    return "\n".join(lines) + "\n"


def _rows(results: list[Result]) -> str:
    lines: list[str] = []
    for group in dict.fromkeys(one["group"] for one in results):
        lines += [
            f"\n### {group.capitalize()}\n",
            "| row | threads | tensorcore | PyTorch | ratio | beside huge pages | of the limit | target | |", "| --- " * 9 + "|",
        ]  # fmt: skip
        for one in results:
            if one["group"] != group:
                continue
            sides = [shown(one[side], one["unit"]) for side in ("ours", "peer")]
            huge = f"{one['huge']:.3f}" if "huge" in one else ""
            target = "" if one["target"] is None else f"{one['target']:.2f}"
            ratio, reached = f"{one['ratio']:.3f}", share(one)
            lines.append(_line(one["row"], one["threads"], *sides, ratio, huge, reached, target, one["verdict"]))
    return "\n".join(lines) + "\n"


def _ops(results: list[Result], known: list[Cause], processor: str) -> str:
    lines = []
    for wanted in (*SIZES, *FORMS, "everyday"):
        ratios = sorted(one["ratio"] for one in results if wanted == _parts(one["row"])[1])
        if ratios:
            ahead, slow = sum(r <= 1.0 for r in ratios), sum(r > SLOW for r in ratios)
            kind = "ops" if wanted in SIZES else "calls"
            lines.append(
                f"{wanted.capitalize()}: {len(ratios)} {kind}, {ahead} at or ahead of PyTorch, {slow} slower than {SLOW:.0f}x, "
                f"median ratio {ratios[len(ratios) // 2]:.2f}.\n"
            )
    lines += [f"Slower than {SLOW:.0f}x:\n", "| op | size | ratio | cause |", "| --- " * 4 + "|"]
    for one in sorted(results, key=lambda one: -one["ratio"]):
        if one["ratio"] > SLOW:
            name, where = _parts(one["row"])
            cause, _ = _cause_of(one["row"], known, processor)
            lines.append(_line(name, where, f"{one['ratio']:.1f}", cause.why if cause else UNKNOWN))
    return "\n".join(lines) + "\n"


def _parts(row: str) -> tuple[str, str]:
    """The op or the call of a row, and its size or form, or ``everyday``."""
    kind, _, rest = row.partition(" ")
    name, _, size = rest.rpartition(" ")
    return (rest, kind) if kind == "everyday" else (name, size)


if __name__ == "__main__":
    for given in map(Path, sys.argv[1:]):
        given.write_text(explained(given.read_text("utf-8"), known_causes()), "utf-8")
