"""One page with a graph of every row over the commits, from asv's results: plain SVG, with no script and nothing from the net.

asv's own pages fetch their scripts from elsewhere and want a server; this one opens as a file.
"""

from __future__ import annotations

import html
import itertools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from .units import shown

__all__ = ["ALONE", "Point", "Suite", "labels", "read", "write"]

WIDTH, HEIGHT, EDGE = 260, 90, 6
ALONE = "no peer"
COLOURS = {
    "tensorcore": "#3f51b5",
    "tensorcore:cpu": "#3f51b5",
    "torch": "#e57300",
    "numpy": "#2e7d32",
    "jax": "#9c27b0",
}
OTHERS = ("#00838f", "#ad1457", "#6d4c41", "#9aa0a6")
STYLE = """
:root { color-scheme: light dark; font: 14px system-ui, sans-serif; }
body { margin: 1rem; }
section { display: flex; flex-wrap: wrap; gap: 1rem; }
figure { margin: 0; width: 260px; content-visibility: auto; contain-intrinsic-size: 260px 130px; }
h1, h2, figcaption { overflow-wrap: anywhere; }
figcaption { font-size: 12px; }
svg { width: 260px; height: 90px; background: #8881; }
polyline { fill: none; stroke-width: 1.5; }
.key { margin-right: 1rem; }
"""


class Point(NamedTuple):
    """What one commit took: its place in the order of commits, and the value."""

    place: int
    value: float


class Suite(NamedTuple):
    """The rows of a suite, each with the points of every peer, and what the values are."""

    unit: str
    rows: dict[str, dict[str, list[Point]]]


def read(config: Path) -> tuple[list[str], dict[str, Suite]]:
    """The commits from the oldest to the newest, and the suites, of the results that an asv configuration names.

    Values that asv shows as n/a or failed are left out, and so are rows that have no other.
    """
    from asv.benchmarks import Benchmarks
    from asv.config import Config
    from asv.results import iter_results

    settings = Config.load(str(config))
    settings.results_dir = str((config.parent / settings.results_dir).resolve())
    results = sorted(iter_results(settings.results_dir), key=lambda one: one.date)
    commits = list(dict.fromkeys(one.commit_hash[:8] for one in results))
    suites: dict[str, Suite] = {}
    for name, benchmark in sorted(Benchmarks.load(settings).items()):
        suite = Suite(benchmark["unit"], {})
        for result in results:
            if name not in result.get_all_result_keys():
                continue
            place, values = commits.index(result.commit_hash[:8]), result.get_result_value(name, benchmark["params"])
            for (row, peer), value in zip(labels(benchmark["params"]), values, strict=True):
                if value is not None and not math.isnan(value):
                    suite.rows.setdefault(row, {}).setdefault(peer, []).append(Point(place, value))
        if suite.rows:
            suites[name] = suite
    return commits, suites


def write(config: Path, page: Path) -> None:
    """Draw the results that an asv configuration names into one file."""
    commits, suites = read(config)
    peers = sorted({peer for suite in suites.values() for series in suite.rows.values() for peer in series})
    others = iter(OTHERS * len(peers))
    colours = {peer: COLOURS.get(peer) or next(others) for peer in peers}
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text("".join(_page(commits, suites, colours)), "utf-8")


def labels(params: list[list[str]]) -> Iterator[tuple[str, str]]:
    """The row and the peer of each combination, in asv's order; asv keeps texts with their quotes."""
    for one in itertools.product(*params):
        words = [word.strip("'\"") for word in one]
        yield (words[0], words[1]) if len(words) == 2 else (", ".join(words) or "all", ALONE)


def _page(commits: list[str], suites: dict[str, Suite], colours: dict[str, str]) -> Iterator[str]:
    yield "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
    yield f"<title>tensorcore over {len(commits)} commits</title><style>{STYLE}</style><h1>Commits {commits[0]} to {commits[-1]}</h1>"
    yield "<p>" + "".join(
        f"<span class=key style='color:{c}'>&#9632; {html.escape(p)}</span>" for p, c in colours.items()
    )
    yield "<p>Each graph starts at zero; its number is the highest value. Point at a mark to see the commit and the value."
    for name, suite in suites.items():
        yield f"<h2>{html.escape(name)}</h2><section id='{html.escape(name)}'>"
        for row, series in suite.rows.items():
            yield from _graph(row, series, commits, suite.unit, colours)
        yield "</section>"


def _graph(
    row: str, series: dict[str, list[Point]], commits: list[str], unit: str, colours: dict[str, str]
) -> Iterator[str]:
    highest = max(point.value for points in series.values() for point in points) or 1.0
    step = (WIDTH - 2 * EDGE) / max(1, len(commits) - 1)
    yield f"<figure><figcaption>{html.escape(row)}: {_said(highest, unit)}</figcaption>"
    yield f"<svg viewBox='0 0 {WIDTH} {HEIGHT}' role=img aria-label='{html.escape(row, quote=True)}'>"
    for peer, points in series.items():
        colour = colours[peer]
        places = [
            (EDGE + step * point.place, HEIGHT - EDGE - (HEIGHT - 2 * EDGE) * point.value / highest) for point in points
        ]
        if len(places) > 1:
            yield f"<polyline stroke='{colour}' points='{' '.join(f'{x:.1f},{y:.1f}' for x, y in places)}'/>"
        for point, (x, y) in zip(points, places, strict=True):
            said = f"{peer}, {commits[point.place]}: {_said(point.value, unit)}"
            yield f"<circle cx='{x:.1f}' cy='{y:.1f}' r=2.5 fill='{colour}'><title>{html.escape(said)}</title></circle>"
    yield "</svg></figure>"


def _said(value: float, unit: str) -> str:
    return shown(value, {"seconds": "s", "bytes": "bytes"}.get(unit, "count"))
