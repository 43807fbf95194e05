"""Writes measured rows into a page of the documentation, between marks that name what stands there."""

from __future__ import annotations

import re
import statistics
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

__all__ = ["UNKNOWN", "causes", "missed", "stale", "unexplained", "write"]

SLOW = 3.0  # the ratio from which an op is listed
UNKNOWN = "not looked into yet"
Result = dict[str, Any]


def write(page: Path, results: list[Result], versions: dict[str, str], *, ops: bool) -> None:
    """Put the rows where ``page`` has ``<!-- rows -->`` or ``<!-- ops -->``, up to the next ``<!-- end -->``.

    A row that misses and has no cause on the page gets a line there that asks for one.

    Raises:
        LookupError: where the page has no such marks.
    """
    mark = "ops" if ops else "rows"
    text = page.read_text(encoding="utf-8")
    dates = sorted({one["date"] for one in results})
    said = f"Measured {_between(dates)}: {', '.join(f'{name} {value}' for name, value in versions.items())}.\n\n"
    body = _ops(results, causes(text)) if ops else _summary(results) + _rows(results)
    text = _replaced(page, text, mark, said + body)
    if not ops and "<!-- causes -->" in text:
        lines = [f"| {row} | {UNKNOWN} | |\n" for row in unexplained(text) if row not in causes(text)]
        found = re.search(r"<!-- causes -->\n(.*?)<!-- end -->", text, re.DOTALL)
        text = _replaced(page, text, "causes", (found[1] if found else "") + "".join(lines))
    page.write_text(text, encoding="utf-8")


def missed(text: str) -> list[str]:
    """The rows of a page that miss their target at some count of threads, each once."""
    rows = [_cells(line) for line in _part(text, "rows").splitlines() if line.rstrip().endswith("| MISS |")]
    return list(dict.fromkeys(cells[0] for cells in rows))


def causes(text: str) -> dict[str, str]:
    """What a page says of why rows miss: the cause by the row's name, or by a pattern with ``*`` for several rows.

    A line may name several, with ``;`` between them.
    """
    lines = [line for line in _part(text, "causes").splitlines() if line.startswith("| ")]
    found = [cells for line in lines[2:] if len(cells := _cells(line)) > 1]
    return {row: cells[1] for cells in found for row in cells[0].split("; ")}


def unexplained(text: str) -> list[str]:
    """The rows that miss and of which the page does not say why."""
    known = [pattern for pattern, cause in causes(text).items() if cause and cause != UNKNOWN]
    return [row for row in missed(text) if not any(fnmatchcase(row, pattern) for pattern in known)]


def stale(text: str) -> list[str]:
    """The causes of a page that fit no row that misses, and no op that is listed as slow."""
    slow = [_cells(line) for line in _part(text, "ops").splitlines() if line.startswith("| ")]
    rows = [*missed(text), *[f"op {name} {where}" for name, where, *_ in slow]]
    return [pattern for pattern in causes(text) if not any(fnmatchcase(row, pattern) for row in rows)]


def _replaced(page: Path, text: str, mark: str, body: str) -> str:
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
    lines = ["| group | rows | median ratio | slowest | its ratio | target | misses |", "| --- " * 7 + "|"]
    for group in dict.fromkeys(one["group"] for one in results):
        own = [one for one in results if one["group"] == group]
        worst = max(own, key=lambda one: one["ratio"])
        targets = sorted({f"{one['target']:.2f}" for one in own if one["target"] is not None})
        misses = sum(one["verdict"] == "MISS" for one in own)
        middle = statistics.median(one["ratio"] for one in own)
        name = f"{worst['row']}, {worst['threads']} thread{'s' * (worst['threads'] > 1)}"
        lines.append(
            _line(group, len(own), f"{middle:.2f}", name, f"{worst['ratio']:.2f}", " and ".join(targets), misses or "")
        )
    return "\n".join(lines) + "\n"


def _rows(results: list[Result]) -> str:
    from .table import shown

    lines: list[str] = []
    for group in dict.fromkeys(one["group"] for one in results):
        lines += [
            f"\n### {group.capitalize()}\n",
            "| row | threads | tensorcore | PyTorch | ratio | beside huge pages | target | |", "| --- " * 8 + "|",
        ]  # fmt: skip
        for one in results:
            if one["group"] != group:
                continue
            sides = [shown(one[side], one["unit"]) for side in ("ours", "peer")]
            huge = f"{one['huge']:.3f}" if "huge" in one else ""
            target = "" if one["target"] is None else f"{one['target']:.2f}"
            lines.append(_line(one["row"], one["threads"], *sides, f"{one['ratio']:.3f}", huge, target, one["verdict"]))
    return "\n".join(lines) + "\n"


def _ops(results: list[Result], known: dict[str, str]) -> str:
    lines = []
    for wanted in ("small", "large"):
        ratios = sorted(one["ratio"] for one in results if one["row"].endswith(wanted))
        if ratios:
            ahead, slow = sum(r <= 1.0 for r in ratios), sum(r > SLOW for r in ratios)
            lines.append(
                f"{wanted.capitalize()}: {len(ratios)} ops, {ahead} at or ahead of PyTorch, {slow} slower than {SLOW:.0f}x, "
                f"median ratio {ratios[len(ratios) // 2]:.2f}.\n"
            )
    lines += [f"Slower than {SLOW:.0f}x:\n", "| op | size | ratio | cause |", "| --- " * 4 + "|"]
    for one in sorted(results, key=lambda one: -one["ratio"]):
        if one["ratio"] > SLOW:
            _, name, where = one["row"].split()
            cause = next((why for pattern, why in known.items() if fnmatchcase(one["row"], pattern)), UNKNOWN)
            lines.append(_line(name, where, f"{one['ratio']:.1f}", cause))
    return "\n".join(lines) + "\n"
