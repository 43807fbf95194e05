"""The benchmarks measure what they say: every row runs, and the arithmetic of the table is right."""

from __future__ import annotations

import json
import sys
import types

import pytest

import tensorcore
from asv_benchmarks import gpu, table
from asv_benchmarks.benchmarks import dataloader, fused, import_time, memory, model, ops, overhead, products, sizes
from asv_benchmarks.harness import Comparison, Peer, Row, Timed, calibrate, compare, open_peer, prepare, threads

# The largest size of an op is the same text as the others, and seconds to set up.
small = [row for row in sizes.ROWS if not row.name.endswith(" 1e7")]
ROWS = [*overhead.ROWS, *small, *products.ROWS, *fused.ROWS, *model.ROWS, *dataloader.ROWS]
NOTHING = Peer("nothing", types.ModuleType("nothing"), "cpu")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_every_row_runs_on_tensorcore(row) -> None:
    """The text of a row is a program that tensorcore runs."""
    assert prepare(row, open_peer("tensorcore:cpu")).seconds(1) > 0


@pytest.mark.oracle
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_every_row_runs_on_pytorch(row) -> None:
    """The text of a row is a program that PyTorch runs."""
    assert prepare(row, open_peer("torch")).seconds(1) > 0


@pytest.mark.parametrize("row", [row for row in ROWS if row.numpy_setup], ids=lambda row: row.name)
def test_every_row_with_a_numpy_form_runs_on_numpy(row) -> None:
    """The body of a row means the same to NumPy where the row says so."""
    assert prepare(row, open_peer("numpy")).seconds(1) > 0


@pytest.mark.parametrize("name", ops.PUBLIC)
def test_every_op_has_a_benchmark(name) -> None:
    """No op that programs call can be entered into the registry without a call that times it."""
    assert ops.ready(tensorcore, "cpu", name, "small")() is not NotImplemented


def test_a_larger_sample_keeps_what_fits() -> None:
    """Sizes that were equal grow alike, sizes of one stay, and the largest argument gets the size that was asked for."""
    (a, b), _ = ops.sampled("mm", 10.0)
    assert a.shape[1] == b.shape[0] >= 20
    (x, _), _ = ops.sampled("add", 50.0)
    assert x.shape == (150, 200)


def test_a_row_without_numpy_form_is_not_available() -> None:
    """asv shows a pair as n/a when its setup raises NotImplementedError."""
    with pytest.raises(NotImplementedError, match="no NumPy form"):
        prepare(Row("r", "", "pass"), open_peer("numpy"))


def test_row_names_differ() -> None:
    """A name finds one row."""
    names = [row.name for row in [*ROWS, *sizes.ROWS[2::3]]]
    assert sorted(set(names)) == sorted(names)


def test_setup_runs_once_and_the_body_each_time() -> None:
    """The timed loop repeats the body alone."""
    timed = Timed("calls = ['setup']", "calls.append('body')", NOTHING)
    timed.seconds(3)
    assert timed.names["calls"] == ["setup", "body", "body", "body"]


def test_calibration_fills_the_turn() -> None:
    """A body of a millisecond runs about ten times in ten milliseconds."""
    timed = Timed("import time", "time.sleep(0.001)", NOTHING)
    assert 2 <= calibrate(timed, 0.01) <= 10


def test_comparison_is_the_quotient_of_medians() -> None:
    """Medians 4 and 2 make a ratio of 2, whatever one odd round says."""
    assert Comparison.of([4.0, 4.0, 9.0], [2.0, 1.0, 3.0]) == Comparison(4.0, 2.0, 2.0, 2.0, 4.0)


def test_turns_alternate() -> None:
    """Ours and the peer take turns, so that drift of the machine meets both."""
    turns: list[str] = []
    sides = [types.ModuleType(name) for name in ("ours", "peer")]
    for side in sides:
        side.turns = turns  # type: ignore[attr-defined]
    body = "torch.turns.append(torch.__name__); time.sleep(0.001)"
    ours, peer = (Peer(side.__name__, side, "cpu") for side in sides)
    compare(Row("r", "import time", body), ours, peer, rounds=3, seconds=0.0001)
    assert turns[-2:] == ["ours", "peer"]
    assert turns.count("ours") == turns.count("peer")


def test_threads_are_set_and_given_back() -> None:
    """Inside, the libraries have the threads asked for; afterwards those they had."""
    from threadpoolctl import threadpool_info

    def count() -> set[int]:
        return {pool["num_threads"] for pool in threadpool_info() if pool["internal_api"] == "openblas"}

    before = count()
    with threads(1) as pause:
        assert (count(), pause) == ({1}, 0.0)
    assert count() == before


def test_import_is_timed_in_a_process_of_its_own() -> None:
    """Importing a module of the standard library takes time and loads it."""
    seconds, modules = import_time.import_once("colorsys")
    assert 0 < seconds < 5
    assert modules == 1


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the system does not say how much memory was used")
def test_peak_memory_is_that_of_the_steps() -> None:
    """A program that holds 30 MB while it steps and gives them back peaks 30 MB above its import, give or take 5."""
    setup = "def step():\n    x = torch.zeros(30_000_000, dtype=torch.uint8)\n    x += 1\n"
    assert 30e6 <= memory.peak_once("tensorcore", setup) <= 35e6


@pytest.mark.parametrize(
    "seconds, text",
    [
        (7.3e-7, "730 ns"),
        (1.324e-6, "1.32 us"),
        (9.996e-4, "1.00 ms"),
        (0.0241, "24.1 ms"),
        (0.789, "789 ms"),
        (2, "2.00 s"),
    ],
)
def test_duration_has_three_digits(seconds, text) -> None:
    """A time is printed in the unit that suits it."""
    assert table.duration(seconds) == text


def test_table_prints_a_line_for_a_row(capsys, tmp_path) -> None:
    """NumPy beside itself gives a row, no target, and the same numbers as JSON."""
    path = tmp_path / "table.json"
    arguments = ["--ours", "numpy", "--peer", "numpy", "--only", "tiny add", "--rounds", "3", "--seconds", "0.001"]
    assert table.main([*arguments, "--json", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2].startswith("tiny add ")
    assert lines[-1] == "1 rows, 0 over their target, 0 broken"
    assert [row["row"] for row in json.loads(path.read_text())["rows"]] == ["tiny add"]


def test_table_goes_on_after_a_broken_row(capsys, monkeypatch) -> None:
    """A row that does not run is named with its error, the next one is measured, and the status is 1."""
    rows = [Row("bad", "", "1 / 0", numpy_setup="x = 1"), Row("good", "", "x + x", numpy_setup="x = 1")]
    monkeypatch.setattr(overhead, "ROWS", rows)
    for others in (model, sizes, products, fused, dataloader):
        monkeypatch.setattr(others, "ROWS", [])
    monkeypatch.setattr(import_time, "compare_imports", lambda ours, peer: Comparison.of([1.0], [1.0]))
    assert table.main(["--ours", "numpy", "--peer", "numpy", "--rounds", "3", "--seconds", "0.001"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "broken: ZeroDivisionError: division by zero" in lines[-3]
    assert lines[-1] == "2 rows, 0 over their target, 1 broken"


def test_an_unknown_peer_is_refused() -> None:
    """A peer is tensorcore, torch or numpy."""
    with pytest.raises(ValueError, match="expected tensorcore, torch or numpy, got 'jax'"):
        open_peer("jax")


def test_gpu_says_that_there_is_none(capsys, monkeypatch) -> None:
    """Without a GPU the command says so in one sentence and ends with a status of its own."""
    monkeypatch.setattr(gpu, "gpus", list)
    assert gpu.main() == 3
    assert capsys.readouterr().out.count("\n") == 1
