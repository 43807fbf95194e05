"""The page about lazy tensors tells the truth."""

from __future__ import annotations

import doctest
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "lazy.md"


def test_the_session_gives_what_it_shows() -> None:
    """All blocks of the page, as one session, print what stands there."""
    options = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
    failed, tried = doctest.testfile(str(PAGE), module_relative=False, optionflags=options)
    assert tried > 15
    assert failed == 0
