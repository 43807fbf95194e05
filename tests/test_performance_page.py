"""The page of measured rows is written between its marks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("threadpoolctl")

from asv_benchmarks import page

PAGE = Path(__file__).parents[1] / "docs" / "performance.md"


def row(name: str, ratio: float, threads: int = 1, **more: Any) -> dict[str, Any]:
    return {
        "group": "tiny ops", "row": name, "threads": threads, "unit": "s", "ours": ratio * 1e-6, "peer": 1e-6, "ratio": ratio,
        "target": 0.8, "verdict": "ok" if ratio <= 0.8 else "MISS", "date": "2026-01-02", **more,
    }  # fmt: skip


def test_rows_replace_what_was_between_the_marks(tmp_path: Path) -> None:
    """Everything around the marks stays, and the versions are named."""
    path = tmp_path / "page.md"
    path.write_text("# Title\n\n<!-- rows -->\nold\n<!-- end -->\n\nafter\n")
    page.write(path, [row("tiny add", 0.5, huge=0.7), row("tiny mul", 0.9, 2)], {"numpy": "2.4"}, ops=False)
    text = path.read_text()
    assert text.startswith("# Title\n\n<!-- rows -->\nMeasured on 2026-01-02: numpy 2.4.")
    assert text.endswith("<!-- end -->\n\nafter\n")
    assert "old" not in text
    assert "| tiny ops | 2 | 0.70 | tiny mul, 2 threads | 0.90 | 0.80 | 1 |" in text
    assert "| tiny add | 1 | 500 ns | 1.00 us | 0.500 | 0.700 | 0.80 | ok |" in text
    assert "| tiny mul | 2 | 900 ns | 1.00 us | 0.900 | | 0.80 | MISS |" in text


def test_slow_ops_are_listed_slowest_first(tmp_path: Path) -> None:
    """How many are ahead, and a line for each that is slower than three times."""
    path = tmp_path / "page.md"
    path.write_text("<!-- ops -->\n<!-- end -->\n")
    rows = [row("op add small", 0.5), row("op far small", 9.0), row("op slow large", 4.0), row("op near large", 2.0)]
    page.write(path, rows, {}, ops=True)
    text = path.read_text()
    assert "Small: 2 ops, 1 at or ahead of PyTorch, 1 slower than 3x" in text
    listed = [line for line in text.splitlines() if line.startswith("| ")][2:]
    assert listed == ["| far | small | 9.0 | not looked into yet |", "| slow | large | 4.0 | not looked into yet |"]


def test_a_page_without_marks_is_refused(tmp_path: Path) -> None:
    """Nothing is written where no place is marked."""
    path = tmp_path / "page.md"
    path.write_text("text\n")
    with pytest.raises(LookupError, match="<!-- rows -->"):
        page.write(path, [], {}, ops=False)
    assert path.read_text() == "text\n"


def test_the_page_says_why_rows_miss() -> None:
    """Each row of the page that misses has a cause, and no cause stays for a row that does not miss any more."""
    text = PAGE.read_text("utf-8")
    assert page.unexplained(text) == [], "write the cause under 'What misses, and why'"
    assert page.stale(text) == [], "these do not miss: take their causes out"


CAUSES = """<!-- rows -->
<!-- end -->

<!-- causes -->
| row | cause | next thing to try |
| --- | --- | --- |
| tiny relu | a Python frame | a kernel |
| reduction * 1e7 | one core cannot read faster | |
<!-- end -->
"""


def test_a_miss_without_a_cause_is_found(tmp_path: Path) -> None:
    """A row that misses at any count of threads wants a cause; the writer adds a line for it, which does not count."""
    path = tmp_path / "page.md"
    path.write_text(CAUSES)
    rows = [row("tiny relu", 0.9), row("tiny mul", 0.5), row("tiny mul", 0.9, 2), row("reduction sum 1e7", 0.9)]
    for _ in range(2):
        page.write(path, rows, {}, ops=False)
        text = path.read_text()
        assert page.missed(text) == ["tiny relu", "tiny mul", "reduction sum 1e7"]
        assert text.count("| tiny mul | not looked into yet | |") == 1
        assert page.unexplained(text) == ["tiny mul"]
        assert page.stale(text) == []


def test_a_cause_without_a_miss_is_found(tmp_path: Path) -> None:
    """Prose about a row that is fast now is flagged, a pattern as well; it is left for a person to take out."""
    path = tmp_path / "page.md"
    path.write_text(CAUSES)
    page.write(path, [row("tiny relu", 0.5), row("reduction sum 1e7", 0.5)], {}, ops=False)
    assert page.stale(path.read_text()) == ["tiny relu", "reduction * 1e7"]
    assert page.unexplained(path.read_text()) == []


def test_a_line_names_several_rows() -> None:
    """Names in one line are held apart by semicolons: a comma may stand in the name of a row."""
    text = CAUSES.replace("| tiny relu |", "| tiny relu; softmax 9, forward |")
    assert page.causes(text) == {
        "tiny relu": "a Python frame",
        "softmax 9, forward": "a Python frame",
        "reduction * 1e7": "one core cannot read faster",
    }
