"""The cost model finds the costs that made the times, and extrapolates as rings and trees do."""

from __future__ import annotations

import numpy as np
import pytest

from asv_benchmarks import scaling
from asv_benchmarks.benchmarks import collective


def test_the_costs_are_found() -> None:
    """Times made of 20 us a message and 5 GB/s give these back, one disturbed time or not."""
    cost = scaling.Cost(2e-5, 2e-10, 0.0)
    times = [(size, scaling.ring(cost, size, 4)) for size in (4 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20)]
    found = scaling.fit(times, 4)
    np.testing.assert_allclose([found.alpha, found.beta], [2e-5, 2e-10], rtol=1e-6)
    assert found.error < 1e-6
    times[1] = times[1][0], 50 * times[1][1]
    disturbed = scaling.fit(times, 4)
    np.testing.assert_allclose([disturbed.alpha, disturbed.beta], [2e-5, 2e-10], rtol=0.2)


def test_what_is_predicted() -> None:
    """Small messages go up a tree, large ones round a ring, whose time hardly grows with the ranks."""
    cost = scaling.Cost(1e-5, 1e-9, 0.0)
    assert scaling.predicted(cost, 8, 1) == 0
    assert scaling.predicted(cost, 0, 1024) == pytest.approx(20 * 1e-5)
    large = [scaling.predicted(cost, 1 << 30, ranks) for ranks in (8, 1024)]
    assert large[1] / large[0] < 1.2
    assert scaling.step(cost, 0.1, 1 << 30, 8, 0.05) == pytest.approx(0.05 + large[0])
    assert scaling.step(cost, 0.1, 8, 8, 0.05) == 0.1


def test_the_benchmark_runs() -> None:
    """Each collective has a time on two ranks, and the table a row for each."""
    pytest.importorskip("mpi4py")
    found = collective.measure([4096], step=False, gloo=False)
    assert [row["collective"] for row in found["rows"]] == list(collective.COLLECTIVES)
    assert all(row["ours"] > 0 for row in found["rows"])
    assert len(collective.table(found)) == 2 + 4
    assert found["rows"][0]["memcpy"] > 0
