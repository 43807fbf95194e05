"""Where a program's time and memory go: by op, by kernel, by module, as a table, a trace and a flame chart."""

from __future__ import annotations

from tensorcore.profiler import profiler
from tensorcore.profiler.events import EventList, FunctionEvent, FunctionEventAvg
from tensorcore.profiler.profile import (
    ProfilerAction,
    ProfilerActivity,
    profile,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)
from tensorcore.profiler.spans import record_function

__all__ = [
    "EventList", "FunctionEvent", "FunctionEventAvg", "ProfilerAction", "ProfilerActivity", "profile", "profiler",
    "record_function", "schedule", "supported_activities", "tensorboard_trace_handler",
]  # fmt: skip


def kineto_available() -> bool:
    """Whether ``profile`` can be used rather than the older ``autograd.profiler``: yes."""
    return True
