"""The page of measured rows is written between its marks."""

from __future__ import annotations

import fnmatch
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("threadpoolctl")

from asv_benchmarks import lines, page
from asv_benchmarks.benchmarks import everyday, lazy, memory, ops

PAGES = [Path(__file__).parents[1] / "docs" / name for name in ("performance.md", "compile.md")]


def row(name: str, ratio: float, threads: int = 1, **more: Any) -> dict[str, Any]:
    return {
        "group": "tiny ops", "row": name, "threads": threads, "unit": "s", "ours": ratio * 1e-6, "peer": 1e-6, "ratio": ratio,
        "target": 0.8, "verdict": "ok" if ratio <= 0.8 else "MISS", "date": "2026-01-02", **more,
    }  # fmt: skip


def test_rows_replace_what_was_between_the_marks(tmp_path: Path) -> None:
    """Everything around the marks stays, and the versions are named."""
    path = tmp_path / "page.md"
    path.write_text("# Title\n\n<!-- rows -->\nold\n<!-- end -->\n\nafter\n")
    page.write(
        path,
        [row("tiny add", 0.5, huge=0.7), row("tiny mul", 0.9, 2), row("tiny sum", 0.85, verdict="limit", limit=8.2e-7)],
        {"numpy": "2.4"},
        ops=False,
    )
    text = path.read_text()
    assert text.startswith("# Title\n\n<!-- rows -->\nMeasured on 2026-01-02: numpy 2.4.")
    assert text.endswith("<!-- end -->\n\nafter\n")
    assert "old" not in text
    assert "| tiny ops | 3 | 0.85 | tiny mul, 2 threads | 0.90 | 0.80 | 1 | 1 |" in text
    assert "| tiny add | 1 | 500 ns | 1.00 us | 0.500 | 0.700 | | 0.80 | ok |" in text
    assert "| tiny mul | 2 | 900 ns | 1.00 us | 0.900 | | | 0.80 | MISS |" in text
    assert "| tiny sum | 1 | 850 ns | 1.00 us | 0.850 | | 96 % | 0.80 | limit |" in text
    assert page.missed(text) == ["tiny mul"]


def test_slow_ops_are_listed_slowest_first(tmp_path: Path) -> None:
    """How many are ahead, and a line for each that is slower than three times."""
    path = tmp_path / "page.md"
    path.write_text("<!-- ops -->\n<!-- end -->\n")
    rows = [row("op add small", 0.5), row("op far small", 9.0), row("op slow large", 4.0), row("op near large", 2.0)]
    rows += [row("op add thin", 0.5), row("op add long", 5.0)]
    page.write(path, rows, {}, ops=True)
    text = path.read_text()
    assert "Small: 2 ops, 1 at or ahead of PyTorch, 1 slower than 3x" in text
    assert (
        text.index("Large: 2 ops") < text.index("Thin: 1 ops, 1 at or ahead") < text.index("Long: 1 ops, 0 at or ahead")
    )
    listed = [line for line in text.splitlines() if line.startswith("| ")][2:]
    slow = ["far | small | 9.0", "add | long | 5.0", "slow | large | 4.0"]
    assert listed == [f"| {one} | not looked into yet |" for one in slow]


def test_a_page_without_marks_is_refused(tmp_path: Path) -> None:
    """Nothing is written where no place is marked."""
    path = tmp_path / "page.md"
    path.write_text("text\n")
    with pytest.raises(LookupError, match="<!-- rows -->"):
        page.write(path, [], {}, ops=False)
    assert path.read_text() == "text\n"


@pytest.mark.parametrize("path", PAGES, ids=lambda one: one.name)
def test_the_page_says_why_rows_miss(path) -> None:
    """Each row of the page that misses has a cause, and the table of causes is what they say now."""
    text, known = path.read_text("utf-8"), page.known_causes()
    assert "<!-- causes -->" in text
    assert page.unexplained(text, known) == [], "give these a cause in asv_benchmarks/causes.toml"
    assert page.explained(text, known) == text, f"run python -m asv_benchmarks.page docs/{path.name}"


def test_causes_are_of_rows_that_there_are() -> None:
    """Each pattern fits a row of the suites or an op of the registry, whether it misses or not."""
    names = [row.name for row in [*lines.rows(), *ops.ROWS, *everyday.ROWS]] + [
        f"peak memory of {label}" for label in memory.MODELS
    ]
    names += [name for name, *_ in lazy.comparisons("", 1, 0.0)]
    patterns = [pattern for cause in page.known_causes() for pattern in cause.rows]
    assert [one for one in patterns if not fnmatch.filter(names, one)] == []
    assert len(patterns) == len(
        {*zip(patterns, (c.processor for c in page.known_causes() for _ in c.rows), strict=True)}
    )


MARKS = "<!-- rows -->\n<!-- end -->\n\n<!-- causes -->\n<!-- end -->\n"
KNOWN = [
    page.Cause(("tiny relu", "tiny mul"), "a Python frame", "a kernel"),
    page.Cause(("reduction * 1e7",), "one core cannot read faster"),
    page.Cause(("reduction sum *",), "its vectors are short", processor="Quick*"),
]


def causes_of(path: Path, rows: list[dict[str, Any]], processor: str = "Slow 1") -> list[str]:
    """The lines of the table of causes after these rows were written."""
    page.write(path, rows, {"processor": processor, "cores": "2"}, ops=False, known=KNOWN)
    return [line for line in path.read_text().partition("<!-- causes -->")[2].splitlines() if line.startswith("| ")][2:]


def test_causes_stand_where_their_rows_miss(tmp_path: Path) -> None:
    """A cause comes and goes with the misses that it fits, and names those of its patterns that do."""
    path = tmp_path / "page.md"
    path.write_text(MARKS)
    missing = [row("tiny relu", 0.9), row("tiny mul", 0.5, 2), row("reduction sum 1e7", 0.9)]
    for _ in range(2):
        assert causes_of(path, missing) == [
            "| tiny relu | a Python frame | a kernel |",
            "| reduction * 1e7 | one core cannot read faster | |",
        ]
    assert causes_of(path, [row("tiny relu", 0.9), row("tiny mul", 0.9, 2)]) == [
        "| tiny relu; tiny mul | a Python frame | a kernel |"
    ]
    assert causes_of(path, [row("tiny relu", 0.5)]) == []


def test_a_cause_may_be_of_one_kind_of_processor(tmp_path: Path) -> None:
    """It goes before those of all kinds where the rows were measured on that kind, and is not there elsewhere."""
    path = tmp_path / "page.md"
    path.write_text(MARKS)
    missing = [row("reduction sum 1e7", 0.9)]
    assert causes_of(path, missing, "Quick 7") == ["| reduction sum * | its vectors are short | |"]
    assert causes_of(path, missing, "Slow 1") == ["| reduction * 1e7 | one core cannot read faster | |"]


def test_a_miss_without_a_cause_is_found(tmp_path: Path) -> None:
    """The writer adds a line for it, which does not count as one."""
    path = tmp_path / "page.md"
    path.write_text(MARKS)
    assert causes_of(path, [row("tiny add", 0.9)]) == ["| tiny add | not looked into yet | |"]
    assert page.missed(path.read_text()) == page.unexplained(path.read_text(), KNOWN) == ["tiny add"]
