"""Ranges for profilers: counted, so that a test sees them balanced."""

from __future__ import annotations

__all__ = ["Mark", "RangePop", "RangePush"]

names: list[str] = []


def RangePush(message: str, id_color: int = -1) -> None:
    """Open a range."""
    names.append(message)


def RangePop() -> None:
    """Close the last one."""
    names.pop()


def Mark(message: str, id_color: int = -1) -> None:
    """One moment."""
