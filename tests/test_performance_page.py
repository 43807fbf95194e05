"""The page of measured rows is written between its marks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("threadpoolctl")

from asv_benchmarks import page


def row(name: str, ratio: float) -> dict[str, Any]:
    return {
        "row": name,
        "threads": 1,
        "ours": ratio * 1e-6,
        "peer": 1e-6,
        "ratio": ratio,
        "target": 0.8,
        "verdict": "ok",
    }


def test_rows_replace_what_was_between_the_marks(tmp_path: Path) -> None:
    """Everything around the marks stays, and the versions are named."""
    path = tmp_path / "page.md"
    path.write_text("# Title\n\n<!-- rows -->\nold\n<!-- end -->\n\nafter\n")
    page.write(path, [row("tiny add", 0.5)], {"numpy": "2.4"}, ops=False)
    text = path.read_text()
    assert text.startswith("# Title\n\n<!-- rows -->\nMeasured on 2")
    assert text.endswith("<!-- end -->\n\nafter\n")
    assert "old" not in text
    assert "numpy 2.4" in text
    assert "| tiny add | 1 | 500 ns | 1.00 us | 0.500 | 0.80 | ok |" in text


def test_slow_ops_are_listed_slowest_first(tmp_path: Path) -> None:
    """How many are ahead, and a line for each that is slower than three times."""
    path = tmp_path / "page.md"
    path.write_text("<!-- ops -->\n<!-- end -->\n")
    rows = [row("op add small", 0.5), row("op far small", 9.0), row("op slow large", 4.0), row("op near large", 2.0)]
    page.write(path, rows, {}, ops=True)
    text = path.read_text()
    assert "Small: 2 ops, 1 at or ahead of PyTorch, 1 slower than 3x" in text
    listed = [line.split(" | ")[:3] for line in text.splitlines() if line.startswith("| ")][2:]
    assert listed == [["| far", "small", "9.0"], ["| slow", "large", "4.0"]]


def test_a_page_without_marks_is_refused(tmp_path: Path) -> None:
    """Nothing is written where no place is marked."""
    path = tmp_path / "page.md"
    path.write_text("text\n")
    with pytest.raises(LookupError, match="<!-- rows -->"):
        page.write(path, [], {}, ops=False)
    assert path.read_text() == "text\n"
