"""Counts that no noise touches, over commits: modules, frames of a call, kernels and bytes of a step."""

from __future__ import annotations

import json

from .. import counters

__all__ = ["Counts"]


class Counts:
    """One of the counts that ``counters.json`` names."""

    params = tuple(json.loads(counters.COMMITTED.read_text("utf-8")))
    param_names = ("count",)
    unit = "times, or bytes"

    def setup_cache(self) -> dict[str, int]:
        return counters.counted()

    def track_count(self, found: dict[str, int], name: str) -> int:
        return found[name]
