"""The rows of the lazy benchmarks measure what they say: each is replayed, and computes what eager computes."""

from __future__ import annotations

import pytest

import tensorcore as tc
from asv_benchmarks.benchmarks import lazy

ROWS = [row for row in lazy.ROWS if not row.name.endswith("1e7")]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_is_replayed(row) -> None:
    """Both of our sides run, and the compiled one traces once."""
    compiled, plain = lazy.side(row, "tensorcore.compile"), lazy.side(row, "tensorcore")
    for side in (compiled, plain):
        tc.manual_seed(0)
        side.loop(range(3))
    found = compiled.names[row.compiled].explain()
    assert (found.traces, found.replays, found.eager) == (1, 2, 0)


def test_sides_that_are_not_there_are_left_out() -> None:
    """A row without a form in jax has no such side."""
    row = next(row for row in lazy.ROWS if row.jax is None)
    with pytest.raises(NotImplementedError, match="jax"):
        lazy.side(row, "jax.jit")
