"""torch.utils.benchmark: statements measured, and tables of them."""

from __future__ import annotations

import pytest

import tensorcore as tc
from tensorcore.utils import benchmark


class Clock:
    """A clock on which every look is a second later."""

    now = 0.0

    def __call__(self):
        self.now += 1
        return self.now


def timed(stmt="x + 1", **options):
    """A timer by that clock."""
    return benchmark.Timer(stmt, "x = torch.ones(2)", timer=Clock(), **options)


def test_a_measurement():
    """A run takes what the clock says, divided by its calls; the text names the task, the time and the runs."""
    found = timed(label="sum", sub_label="small", description="this", num_threads=1).timeit(4)
    assert (found.times, found.median, found.mean, found.iqr) == ([0.25], 0.25, 0.25, 0)
    assert not found.has_warnings
    assert (found.title, found.as_row_name, found.num_threads) == ("sum: small", "small", 1)
    text = repr(found)
    assert "sum: small\nthis\n  250.00 ms\n  1 measurement, 4 runs , 1 thread" in text


def test_runs_go_on_until_the_time_is_over():
    """blocked_autorange measures for at least the time it is given, and tells a callback of each run."""
    seen = []
    found = timed(globals={"y": 3}).blocked_autorange(lambda number, time: seen.append((number, time)), min_run_time=3)
    assert found.raw_times == [1, 1, 1]
    assert seen == [(1, 1)] * 3
    assert len(timed().adaptive_autorange(min_run_time=2).times) == 4
    with pytest.raises(NotImplementedError):
        timed().repeat()


def test_the_threads_are_put_back():
    """A statement runs on the threads that its timer names, and the program goes on with its own."""
    before, seen = tc.get_num_threads(), []
    benchmark.Timer("seen.append(torch.get_num_threads())", globals={"seen": seen}, num_threads=1).timeit(2)
    assert set(seen) == {1}
    assert tc.get_num_threads() == before


def test_a_table():
    """Compare merges the runs of a task, and sets rows by sub-label and columns by description."""
    both = [timed(label="sum", sub_label=row, description=column).timeit(count)
            for row, column, count in (("a", "one", 2), ("a", "two", 4), ("b", "one", 1), ("a", "one", 2))]  # fmt: skip
    lines = [line.split() for line in str(benchmark.Compare(both)).splitlines()]
    assert lines[1][-3:] == ["ms", "one", "two"]
    assert lines[3:5] == [["a", "500", "250"], ["b", "1e+03"]]
    with pytest.raises(ValueError, match="Measurement"):
        benchmark.Compare([3])


def test_wrong_arguments():
    """Only Python is measured, and only statements as text."""
    for bad in ({"stmt": len}, {"language": "c++"}, {"global_setup": "int i;"}):
        with pytest.raises(ValueError, match="Timer"):
            benchmark.Timer(**bad)


@pytest.mark.oracle
def test_units_are_pytorchs(torch):
    """Every time is told in PyTorch's unit."""
    from torch.utils.benchmark import select_unit

    for time in (2e-9, 5e-7, 1e-6, 0.02, 1.0, 70.0):
        assert benchmark.select_unit(time) == select_unit(time)
