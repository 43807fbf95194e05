"""Counts that no noise touches: they may fall, and they do not grow unnoticed."""

from __future__ import annotations

import json

import pytest

from asv_benchmarks import counters
from asv_benchmarks.harness import in_fresh_process
from tensorcore import shortcuts


@pytest.mark.slow
def test_nothing_has_grown() -> None:
    """Modules, kernels and bytes are at most the committed ones, and so are frames where the short ways in C are built."""
    before = json.loads(counters.COMMITTED.read_text("utf-8"))
    # Alone: what the tests before left behind, such as a class with __torch_function__, makes calls longer.
    found = json.loads(
        in_fresh_process("import json; from asv_benchmarks import counters; print(json.dumps(counters.counted()))")
    )
    if not shortcuts.properties:
        before, found = ({name: one[name] for name in one if "frames" not in name} for one in (before, found))
    assert found.keys() == before.keys()
    assert counters.grown(found, before) == {}, "if it has to be: python -m asv_benchmarks.counters --write"


def test_growth_is_found() -> None:
    """A larger count is named beside what it was, and a smaller one is not."""
    assert counters.grown({"a": 3, "b": 1}, {"a": 2, "b": 2}) == {"a": (2, 3)}
