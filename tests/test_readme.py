"""The README tells the truth: its sessions give what they show, and the commands it names exist."""

from __future__ import annotations

import doctest
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
PAGES = ["README.md"]

# A session shows the type of an exception; its text is pinned by the tests of the op that raises it.
OPTIONS = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL


def python_blocks(text: str) -> list[tuple[int, str]]:
    """The Python blocks of a Markdown text, each with the line that it starts on."""
    return [
        (text.count("\n", 0, block.start(1)), block[1])
        for block in re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    ]


def differences(code: str, name: str, line: int, names: dict[str, Any] | None = None) -> str:
    """Run a block and answer with what differs from its output; a block without ``>>>`` only has to run.

    ``names`` are what blocks before it left, and get what this one leaves.
    """
    names = {} if names is None else names
    names.setdefault("__name__", name)
    if ">>>" not in code:
        exec(compile("\n" * line + code, name, "exec"), names)
        return ""
    session = doctest.DocTestParser().get_doctest(code, names, name, name, line)
    report: list[str] = []
    doctest.DocTestRunner(optionflags=OPTIONS, verbose=False).run(session, out=report.append, clear_globs=False)
    names.update(session.globs)
    return "".join(report)


BLOCKS = [(page, *block) for page in PAGES for block in python_blocks((ROOT / page).read_text("utf-8"))]


@pytest.mark.parametrize("page, line, code", BLOCKS, ids=[f"{page}:{line}" for page, line, _ in BLOCKS])
def test_a_block_gives_what_it_shows(page, line, code) -> None:
    """Every Python block of a page runs, and a session gives the output that is printed in it."""
    assert differences(code, page, line) == ""


def test_the_readme_has_a_session() -> None:
    """The blocks are found: without one, the test above would pass on nothing."""
    assert any(">>>" in code for _, _, code in BLOCKS)


def test_every_make_command_exists() -> None:
    """A `make` command that the README names is a target of the Makefile."""
    named = set(re.findall(r"(?:^    |`|\w=\S+ )make ([a-z]+)", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE))
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    assert named >= {"demo", "test", "bench"}
    assert named - targets == set()


def test_the_readme_is_short() -> None:
    """It is read in one sitting."""
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) < 150


@pytest.mark.parametrize(
    "code, expected",
    [
        (">>> 1 + 1\n2\n", ""),
        (">>> 1 + 1\n3\n", "Expected:\n    3\nGot:\n    2"),
        (">>> [][0]\nTraceback (most recent call last):\n    ...\nIndexError: ...\n", ""),
        (">>> [][0]\nTraceback (most recent call last):\n    ...\nKeyError: ...\n", "IndexError"),
        ("x = 1\n", ""),
    ],
)
def test_a_wrong_output_is_found(code, expected) -> None:
    """The runner reports a session that does not give what it shows."""
    assert expected in differences(code, "page", 0)
    assert bool(differences(code, "page", 0)) == bool(expected)


def test_a_block_that_fails_is_found() -> None:
    """A block without a session fails with its own exception."""
    with pytest.raises(ZeroDivisionError):
        differences("1 / 0\n", "page", 0)


def test_blocks_are_found_with_their_lines() -> None:
    """Only blocks marked as Python count."""
    assert python_blocks("a\n```python\nx\n```\n```sh\ny\n```\n") == [(2, "x\n")]
