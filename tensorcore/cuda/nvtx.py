"""Ranges in the timeline of a profiler, which nothing here records: balanced, and without effect."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]

_open: list[str] = []


def range_push(msg: str) -> int:
    """Open a range; how many were open before."""
    _open.append(msg)
    return len(_open) - 1


def range_pop() -> int:
    """Close the range that was opened last; how many are open then, -1 where there was none."""
    if not _open:
        return -1
    _open.pop()
    return len(_open)


def range_start(msg: str) -> int:
    """Open a range that may end on another thread; its handle."""
    return 0


def range_end(range_id: int) -> None:
    """Close the range of that handle."""


def mark(msg: str) -> None:
    """One moment."""


@contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """A range for the length of a ``with`` block or of a function."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
