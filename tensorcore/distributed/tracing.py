"""Collectives as a profiler shows them: each on a track of its group, and the time that a thread waits for it."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from time import perf_counter_ns
from typing import Any

__all__ = ["begun", "ended", "waiting"]

_TRACKS = 1 << 30  # added to a group's number, it is a thread that no system has


def begun() -> int:
    """When a collective was called, in nanoseconds; 0 while no profiler is on."""
    return 0 if _recorder() is None else perf_counter_ns()


def waiting(start: int) -> AbstractContextManager[Any]:
    """Around the wait for a collective that began then."""
    if not start:
        return nullcontext()
    from tensorcore.profiler.spans import record_function

    return record_function("wait for a collective")  # type: ignore[return-value]


def ended(text: str, start: int, group: int) -> None:
    """Note a collective that began then and that somebody has waited for now."""
    recorder = _recorder()
    if start and recorder is not None:
        recorder.span(text, "collective", start, _TRACKS + group)


def _recorder() -> Any:
    found: Any = sys.modules.get("tensorcore.profiler.recorder")
    return None if found is None else found.current()
