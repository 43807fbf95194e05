"""The documentation tells the truth: every Python block of a page runs, in order, and every command does what it says."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.test_readme import differences, python_blocks
from tests.test_writing_a_backend import install

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
# Pages that have a runner of their own.
ELSEWHERE = {"writing-a-backend.md", "lazy.md", "compile.md", "distributed.md"}
PAGES = sorted(
    path.name for path in DOCS.glob("*.md")
    if path.name not in ELSEWHERE and python_blocks(path.read_text("utf-8"))
)  # fmt: skip


@pytest.mark.parametrize("page", PAGES)
def test_the_blocks_of_a_page_run_in_order(page: str) -> None:
    """One block uses what the ones before it made; a session gives the output that stands there."""
    names: dict[str, object] = {}
    for line, code in python_blocks((DOCS / page).read_text("utf-8")):
        assert differences(code, page, line, names) == ""


def test_pages_with_blocks_are_found() -> None:
    """Without any, the test above would pass on nothing."""
    assert {"tutorial.md", "concepts.md", "index.md"} <= set(PAGES)


@pytest.mark.slow
def test_the_tutorial_goes_distributed(tmp_path: Path) -> None:
    """The program of the last section, started by the command below it, trains on two ranks."""
    text = (DOCS / "tutorial.md").read_text("utf-8")
    program = re.search(r'```python title="train.py"\n(.*?)```', text, re.DOTALL)
    command = re.search(r"```bash\n(tensorcore launch.*?)```", text, re.DOTALL)
    assert program
    assert command
    environment = install(tmp_path)
    (tmp_path / "train.py").write_text(program[1], "utf-8")
    entries = next((tmp_path / "site").glob("tensorcore-*.dist-info")) / "entry_points.txt"
    with entries.open("a", encoding="utf-8") as file:
        file.write("threads = tensorcore_distributed\n")
    done = subprocess.run(
        ["sh", "-ec", command[1]], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 ranks, loss 0.0" in done.stdout


@pytest.mark.parametrize("page", sorted(path.name for path in DOCS.glob("*.md")))
def test_no_page_sends_a_reader_to_a_file_that_is_not_there(page: str) -> None:
    """Links to other pages and pictures have a file; ``make docs`` checks the places within them too."""
    text = re.sub(r"```.*?```|`[^`\n]*`", "", (DOCS / page).read_text("utf-8"), flags=re.DOTALL)
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", text)
    assert [link for link in links if "://" not in link and not (DOCS / link).exists()] == []


def test_every_file_that_a_page_names_is_there() -> None:
    """A path in backticks, from the root or from a room within it, is one of the repository's or of those it writes."""
    pages = [*ROOT.glob("*.md"), *DOCS.glob("*.md"), *ROOT.glob("asv_benchmarks/*.md"), *ROOT.glob("plugins/**/*.md")]
    rooms = [ROOT / name for name in ("tensorcore", "plugins", "tests", "asv_benchmarks", "examples", "docs", ".ci")]
    there = {path.as_posix() for room in rooms for path in room.rglob("*.*")} | {
        one.as_posix() for one in ROOT.glob("*.*")
    }
    named = {
        f"{page.name}: {name}"
        for page in pages
        if page.name != "CHANGELOG.md"  # which tells of files that were
        for name in re.findall(r"`([\w./-]+\.(?:py|c|h|cu|cuh|md|json|toml|txt))`", page.read_text("utf-8"))
        if not any(path.endswith(f"/{name}") for path in there)
    }
    assert named == set()
