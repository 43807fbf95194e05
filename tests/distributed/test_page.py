"""The page about several processes tells the truth: its sessions give what they show."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from asv_benchmarks.benchmarks.collective import write
from tests.test_readme import differences, python_blocks

PAGE = Path(__file__).parents[2] / "docs" / "distributed.md"
BLOCKS = python_blocks(PAGE.read_text("utf-8"))


@pytest.mark.parametrize("line, code", BLOCKS, ids=[str(line) for line, _ in BLOCKS])
def test_a_block_gives_what_it_shows(line, code) -> None:
    """Every block runs, and gives the output that is printed in it."""
    assert ">>>" in code
    assert differences(code, "distributed.md", line) == ""


def test_the_launchers_options_exist() -> None:
    """What the page says of the launcher's options the launcher knows."""
    import argparse

    from tensorcore.distributed.launch import add_arguments

    parser = argparse.ArgumentParser()
    add_arguments(parser)
    named = set(re.findall(r"`(--\w+)", PAGE.read_text("utf-8")))
    assert named >= {"--hosts", "--restarts", "--dashboard", "--threads"}
    assert named <= set(re.findall(r"--\w+", parser.format_help()))


def test_what_is_measured_has_its_place(tmp_path) -> None:
    """New tables replace the old ones, and nothing else changes."""
    copy = tmp_path / "page.md"
    copy.write_text(PAGE.read_text("utf-8"), "utf-8")
    for lines in (["| a |"], ["| b |", "| c |"]):
        write(copy, lines)
    before, after = re.split(
        "<!-- measured -->.*<!-- end of what is measured -->", copy.read_text("utf-8"), flags=re.DOTALL
    )
    assert PAGE.read_text("utf-8").startswith(before)
    assert PAGE.read_text("utf-8").endswith(after)
    assert "| b |\n| c |\n<!-- end" in copy.read_text("utf-8")
    assert "| a |" not in copy.read_text("utf-8")
