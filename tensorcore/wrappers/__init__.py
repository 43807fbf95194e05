"""Devices around devices, for finding faults: ``trace:cpu`` notes every kernel call, ``differential:cpu,cuda`` compares two."""

from __future__ import annotations

from tensorcore.wrappers.differential import DifferentialBackend, Divergence, differential, replay
from tensorcore.wrappers.trace import TraceBackend, TracedCall, trace

__all__ = ["DifferentialBackend", "Divergence", "TraceBackend", "TracedCall", "differential", "replay", "trace"]
