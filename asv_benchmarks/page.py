"""Writes measured rows into a page of the documentation, between marks that name what stands there."""

from __future__ import annotations

import datetime
import re
from pathlib import Path
from typing import Any

__all__ = ["write"]

SLOW = 3.0  # the ratio from which an op is listed with its cause

# Why an op is slow, by the end of its name or by its whole name; the first that fits.
CAUSES: dict[str, str] = {}


def write(page: Path, results: list[dict[str, Any]], versions: dict[str, str], *, ops: bool) -> None:
    """Put the rows where ``page`` has ``<!-- rows -->`` or ``<!-- ops -->``, up to the next ``<!-- end -->``.

    Raises:
        LookupError: where the page has no such marks.
    """
    mark = "ops" if ops else "rows"
    text = page.read_text(encoding="utf-8")
    place = re.search(rf"(<!-- {mark} -->\n).*?(<!-- end -->)", text, re.DOTALL)
    if place is None:
        raise LookupError(
            f"bench: expected '<!-- {mark} -->' and '<!-- end -->' in {page}, got neither; put them there"
        )
    said = (
        f"Measured on {datetime.date.today()}: {', '.join(f'{name} {value}' for name, value in versions.items())}.\n\n"
    )
    body = _ops(results) if ops else _rows(results)
    page.write_text(text[: place.end(1)] + said + body + text[place.start(2) :], encoding="utf-8")


def _rows(results: list[dict[str, Any]]) -> str:
    from .table import PEAK, duration, size

    lines = [
        "| row | threads | tensorcore | PyTorch | ratio | target | |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for one in results:
        shows = size if one["row"].startswith(PEAK) else duration
        target = "" if one["target"] is None else f"{one['target']:.2f}"
        cells = (
            one["row"],
            one["threads"],
            shows(one["ours"]),
            shows(one["peer"]),
            f"{one['ratio']:.3f}",
            target,
            one["verdict"],
        )
        lines.append(f"| {' | '.join(map(str, cells))} |".replace("|  |", "| |"))
    return "\n".join(lines) + "\n"


def _ops(results: list[dict[str, Any]]) -> str:
    lines = []
    for wanted in ("small", "large"):
        ratios = sorted(one["ratio"] for one in results if one["row"].endswith(wanted))
        if ratios:
            ahead, slow = sum(r <= 1.0 for r in ratios), sum(r > SLOW for r in ratios)
            lines.append(
                f"{wanted.capitalize()}: {len(ratios)} ops, {ahead} at or ahead of PyTorch, {slow} slower than {SLOW:.0f}x, "
                f"median ratio {ratios[len(ratios) // 2]:.2f}.\n"
            )
    lines += [f"Slower than {SLOW:.0f}x:\n", "| op | size | ratio | cause |", "| --- | --- | --- | --- |"]
    for one in sorted(results, key=lambda one: -one["ratio"]):
        if one["ratio"] > SLOW:
            _, name, where = one["row"].split()
            lines.append(f"| {name} | {where} | {one['ratio']:.1f} | {_cause(name)} |")
    return "\n".join(lines) + "\n"


def _cause(name: str) -> str:
    return CAUSES.get(name) or next((why for end, why in CAUSES.items() if name.endswith(end)), "not looked into yet")
