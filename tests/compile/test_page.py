"""The page about compile tells the truth: its sessions give what they show."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.test_readme import differences, python_blocks

PAGE = Path(__file__).parents[2] / "docs" / "compile.md"
BLOCKS = python_blocks(PAGE.read_text("utf-8"))


@pytest.mark.parametrize("line, code", BLOCKS, ids=[f"line {line}" for line, _ in BLOCKS])
def test_a_block_gives_what_it_shows(line, code) -> None:
    """Every block of the page runs, and gives the output that is printed in it."""
    assert differences(code, "docs/compile.md", line) == ""


def test_the_page_has_sessions() -> None:
    """The blocks are found."""
    assert sum(">>>" in code for _, code in BLOCKS) >= 4
