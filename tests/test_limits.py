"""The machine's limit for a row: what is measured of it, what the table says of it, and which work rows say they have."""

from __future__ import annotations

import shutil

import pytest

pytest.importorskip("threadpoolctl")

import tensorcore
from asv_benchmarks import limits, lines, table
from asv_benchmarks.harness import Comparison, Peer, Row, limit_of, open_peer
from asv_benchmarks.limits import Work


@pytest.mark.parametrize(
    "target, ratio, limit, said",
    [
        (None, 2.0, 2.0, ""),
        (0.8, 0.8, 0.9, "ok"),
        (0.8, 0.9, 0.85, "limit"),
        (0.8, 0.9, 0.8, "MISS"),
        (0.8, 0.9, None, "MISS"),
        (1.0, 1.2, 1.1, "MISS"),
    ],
)
def test_a_row_is_excused_where_the_machine_itself_is_over_the_target(target, ratio, limit, said) -> None:
    """The limit over the peer's time is held against the target, and what the peer shows to be possible is no limit."""
    assert (
        table.verdict(target, Comparison(2 * ratio, 2.0, ratio, ratio, ratio, None if limit is None else 2 * limit))
        == said
    )


def test_a_comparison_has_the_lower_quartile_of_the_limits() -> None:
    """The table prints the limit's share of our time, and nothing where it is not known."""
    found = Comparison.of([4.0, 4.0, 9.0], [2.0, 1.0, 3.0], [7.0, 1.0, 3.0, 9.0])
    assert found.limit == 3.0
    assert table.share(vars(found)) == "75 %"
    assert Comparison.of([4.0], [2.0]).limit is None
    assert table.share({"ours": 4.0}) == ""  # as files of earlier tables have it


def test_work_is_measured_on_the_processor_alone(monkeypatch) -> None:
    """A row without work, a device that is not the processor and a machine without a compiler have no limit."""
    row, ours = Row("r", "", "pass", work=Work(4, 4)), open_peer("numpy")
    assert limit_of(Row("r", "", "pass"), ours, 1) is None
    assert limit_of(row, Peer("tensorcore:cuda:0", tensorcore, "cuda:0"), 1) is None
    monkeypatch.setattr(limits.sysconfig, "get_config_var", lambda name: "no-such-compiler")
    limits.loops.cache_clear()
    try:
        assert limit_of(row, ours, 1) is None
    finally:
        limits.loops.cache_clear()


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.parametrize("count", [1, 2])
def test_the_machine_does_a_rows_work(count) -> None:
    """Each thread's part is passed through whatever the sizes are: copied, looked at, filled, multiplied."""
    for work in (
        Work(101, 37),
        Work(37, 101),
        Work(0, 8),
        Work(products=5, dtype="float64"),
        Work(1 << 20, 1 << 20, 9, 1000),
    ):
        assert 0 < limits.Limit(work, count).seconds() < 1


def test_work_grows_with_the_shapes() -> None:
    """Bytes and multiply-adds of some rows, by hand."""
    work = {row.name: row.work for row in lines.rows()}
    assert work["elementwise add 1e5"] == Work(800_000, 400_000)
    assert work["product float64 8"] == Work(2 * 8 * 64, 8 * 64, 0, 512, "float64")
    assert work["linear 8x256 to 256"] == Work(4 * (8 * 256 + 256 * 256), 4 * 8 * 256, products=8 * 256 * 256)
    assert work["convolution 6 to 16, 5x5 on 14x14, forward"] == Work(
        4 * (64 * 6 * 14 * 14 + 16 * 6 * 25), 4 * 64 * 16 * 10 * 10, products=64 * 10 * 10 * 16 * 6 * 25
    )
    assert work["Adam step, 1e6 parameters in 100 tensors"] == Work(4_000_000, 0, 12_000_000)
    assert work["convolution 64 to 128, 3x3 on 16x16, forward"] is None
    assert work["GPT of 4 layers, 128 wide, 64 long, batch 16, step"] == Work(products=2_543_714_304)
    assert work["LSTM of 200 units, 35 long, batch 20, inference"] == Work(products=360_800_000)
    assert work["LeNet, batch 64, step"] is None
