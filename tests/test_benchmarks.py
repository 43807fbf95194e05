"""The benchmarks measure what they say: every row runs, and the arithmetic of the table is right."""

from __future__ import annotations

import importlib
import inspect
import itertools
import json
import os
import shutil
import subprocess
import sys
import types
from pathlib import Path

import pytest

import tensorcore
from asv_benchmarks import gpu, gpu_rows, gpu_table, harness, lines, table
from asv_benchmarks.benchmarks import everyday, import_time, memory
from asv_benchmarks.harness import (
    Comparison,
    Peer,
    Row,
    Setups,
    Suite,
    Timed,
    calibrate,
    compare,
    open_peer,
    prepare,
    threads,
)
from asv_benchmarks.units import duration

# The largest size of an op is the same text as the others, and seconds to set up.
ROWS = [row for row in lines.rows() if not row.name.endswith(" 1e7")]
MODULES = [
    importlib.import_module(f"asv_benchmarks.benchmarks.{path.stem}")
    for path in sorted((Path(harness.__file__).parent / "benchmarks").glob("[a-z]*.py"))
]
# What asv takes for a benchmark: a class that can be made, with methods of such names.
SUITES = [
    one
    for module in MODULES
    for one in vars(module).values()
    if inspect.isclass(one) and one.__module__ == module.__name__ and not inspect.isabstract(one)
    if any(name.startswith(("time_", "track_")) for name in dir(one))
]
NOTHING = Peer("nothing", types.ModuleType("nothing"), "cpu")


def runs(row: Row, peer: str) -> bool:
    """Run a row once, and drop what its setup made.

    Its functions are in a circle with their globals. Where the collector ends PyTorch's loaders, their queues end first, and nobody
    tells the workers, which find out five seconds later, one after the other.
    """
    timed = prepare(row, open_peer(peer))
    seconds = timed.seconds(1)
    timed.names.clear()
    return seconds > 0


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_every_row_runs_on_tensorcore(row) -> None:
    """The text of a row is a program that tensorcore runs."""
    assert runs(row, "tensorcore:cpu")


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore:Sparse:UserWarning")  # PyTorch's, once in a process
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_every_row_runs_on_pytorch(row) -> None:
    """The text of a row is a program that PyTorch runs."""
    assert runs(row, "torch")


@pytest.mark.parametrize("row", [row for row in ROWS if row.numpy_setup], ids=lambda row: row.name)
def test_every_row_with_a_numpy_form_runs_on_numpy(row) -> None:
    """The body of a row means the same to NumPy where the row says so."""
    assert runs(row, "numpy")


def test_every_suite_is_there() -> None:
    """The suites that the issue of the dashboards names have benchmarks, with their rows and every peer."""
    asked = {"overhead", "ops", "autograd", "memory", "transfer", "model", "import_time", "dataloader"}
    assert asked <= {suite.__module__.rpartition(".")[2] for suite in SUITES}
    for suite in SUITES:
        assert all(suite.params)
        if issubclass(suite, Suite):
            assert suite.params == ([row.name for row in suite.rows], harness.PEERS)


def test_asv_accepts_the_suites() -> None:
    """asv imports every suite in a process of its own, and finds nothing wrong with any benchmark's signature."""
    pytest.importorskip("asv", reason="no asv: the extra 'bench' has it")
    folder = Path(harness.__file__).parent
    if not (folder.parent / ".git").exists() or shutil.which("git") is None:
        pytest.skip("no checkout: asv wants the repository")
    command = [sys.executable, "-m", "asv", "check", "--python=same", "--config", str(folder / "asv.conf.json")]
    path = os.pathsep.join([str(folder.parent), str(folder.parent / "plugins")])
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, env={**os.environ, "ASV_PYTHONPATH": path}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "No problems found" in done.stdout


@pytest.mark.parametrize("suite", [one for one in SUITES if issubclass(one, Suite)], ids=lambda suite: suite.__name__)
def test_a_suite_runs_as_asv_runs_it(suite) -> None:
    """Set up with a row and our device, the body that asv times runs to its end."""
    made = suite()
    row = suite.rows[0].name
    made.setup(row, "tensorcore:cpu")
    made.time_rows(row, "tensorcore:cpu")


@pytest.mark.slow
def test_what_asv_tracks_is_counted() -> None:
    """Imports, peaks and faults are numbers of the library that is asked for."""
    imports, memories = import_time.ImportTime(), memory.PeakMemory()
    assert 0 < imports.track_seconds("tensorcore") < 60
    assert imports.track_modules("tensorcore") > 50
    smallest = next(iter(memory.MODELS))
    assert memories.track_peak(smallest, "tensorcore") > 1e6
    assert memories.track_faults(smallest, "tensorcore") < 1000


def test_no_suite_has_a_name_that_asv_calls() -> None:
    """asv takes a module's ``SETUP`` for a function that it has to call, in capitals too."""
    for module in MODULES:
        assert not {name.lower() for name in vars(module)} & {"setup", "teardown", "setup_cache"}, module.__name__


EVERYDAY = Setups()


@pytest.mark.parametrize("row", everyday.ROWS, ids=lambda row: row.name)
def test_everyday_calls_run(row) -> None:
    """Each call runs twice, after those before it."""
    prepare(row, open_peer("tensorcore:cpu"), EVERYDAY).run(2)


def test_peers_are_the_devices_that_compute_and_what_is_installed(monkeypatch) -> None:
    """Each device of the registry is a peer unless it has shapes alone; a variable names others."""
    monkeypatch.delenv("ASV_PEERS", raising=False)
    monkeypatch.setattr(tensorcore, "backends", lambda: ["cpu", "meta", "pyref"])
    found = harness.find_peers()
    assert found[:2] == ["tensorcore:cpu", "tensorcore:pyref"]
    assert "numpy" in found
    assert "tensorcore:meta" not in found
    monkeypatch.setenv("ASV_PEERS", "tensorcore:pyref numpy")
    assert harness.find_peers() == ["tensorcore:pyref", "numpy"]


def test_a_run_ends_when_the_device_has_finished(monkeypatch) -> None:
    """asv's body and the table's both wait for the device, once after all runs."""
    device, said = tensorcore.device("pyref"), []
    monkeypatch.setattr(type(device), "synchronize", lambda self: said.append("waited"), raising=False)
    timed = Timed("said = []", "said.append('ran')", open_peer("tensorcore:pyref"))
    timed.names["said"] = said
    timed.run(2)
    assert said == ["ran", "ran", "waited"]


def test_jax_is_waited_for_with_its_last_result() -> None:
    """JAX computes later, so the last value is kept and waited for; a body that is no expression has none."""
    waited: list[object] = []
    jax = types.ModuleType("jax")
    jax.numpy = types.SimpleNamespace(asarray=lambda array: array)  # type: ignore[attr-defined]
    jax.block_until_ready = waited.append  # type: ignore[attr-defined]
    Timed("x = 3", "x + 1", Peer("jax", jax, "cpu")).run(2)
    Timed("x = 3", "y = x", Peer("jax", jax, "cpu")).run(2)
    assert waited == [4, None]


def test_rows_of_one_setup_share_what_it_made() -> None:
    """The setup runs once for each layout until another one is asked for."""
    made: list[str] = []
    library = types.ModuleType("nothing")
    library.made = made  # type: ignore[attr-defined]
    peer, setups = Peer("nothing", library, "cpu"), Setups()
    for body in ("1", "2"):
        for layout in (0, 1):
            prepare(Row("r", "torch.made.append('a')", body), peer, setups, layout)
    prepare(Row("r", "torch.made.append('b')", "3"), peer, setups)
    assert made == ["a", "a", "b"]


def test_a_row_without_numpy_form_is_not_available() -> None:
    """asv shows a pair as n/a when its setup raises NotImplementedError."""
    with pytest.raises(NotImplementedError, match="no NumPy form"):
        prepare(Row("r", "", "pass"), open_peer("numpy"))


def test_row_names_differ() -> None:
    """A name finds one row."""
    names = [row.name for row in lines.rows()]
    assert sorted(set(names)) == sorted(names)
    assert all(row.group for row in lines.rows())


def test_setup_runs_once_and_the_body_each_time() -> None:
    """The timed loop repeats the body alone."""
    timed = Timed("calls = ['setup']", "calls.append('body')", NOTHING)
    timed.seconds(3)
    assert timed.names["calls"] == ["setup", "body", "body", "body"]


def test_calibration_fills_the_turn() -> None:
    """A body of a millisecond runs ten times in ten milliseconds."""
    timed = types.SimpleNamespace(seconds=lambda loops: loops * 0.001)
    assert calibrate(timed, 0.01) == 10


def test_comparison_is_the_quotient_of_medians() -> None:
    """Medians 4 and 2 make a ratio of 2, whatever one odd round says."""
    assert Comparison.of([4.0, 4.0, 9.0], [2.0, 1.0, 3.0]) == Comparison(4.0, 2.0, 2.0, 2.0, 4.0)
    assert Comparison.of([0.0], [0.0]).ratio == 1
    assert Comparison.of([1.0], [0.0]).ratio == float("inf")


def test_turns_alternate() -> None:
    """Ours and the peer take turns, so that drift of the machine meets both."""
    turns: list[str] = []
    sides = [types.ModuleType(name) for name in ("ours", "peer")]
    for side in sides:
        side.turns = turns  # type: ignore[attr-defined]
    body = "torch.turns.append(torch.__name__); time.sleep(0.001)"
    ours, peer = (Peer(side.__name__, side, "cpu") for side in sides)
    compare(Row("r", "import time", body), ours, peer, rounds=3, seconds=0.0001)
    assert [side for side, _ in itertools.groupby(turns)][-4:] == ["ours", "peer"] * 2
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
    """A program that holds 30 MB while it steps peaks 30 MB above what it was when made, give or take 5; it counts its faults."""
    setup = (
        "import mmap\nmade = b'1' * 20_000_000\ndef step():\n    held = b'1' * 30_000_000\n"
        "    with mmap.mmap(-1, 1 << 19) as pages:\n        pages.write(b'1' * (1 << 19))\n"
    )
    peak, faults = memory.measured("tensorcore", setup)
    assert 30e6 <= peak <= 35e6
    assert 1 <= faults <= 200  # 128 pages of 4 KiB, fewer where pages are larger


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
    assert duration(seconds) == text


def test_table_prints_a_line_for_a_row(capsys, tmp_path) -> None:
    """NumPy beside itself gives a row, no target, and the same numbers as JSON."""
    path = tmp_path / "table.json"
    arguments = ["--ours", "numpy", "--peer", "numpy", "--only", "tiny add", "--rounds", "3", "--seconds", "0.001"]
    assert table.main([*arguments, "--json", str(path)]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[-2].startswith("tiny add ")
    assert out[-1] == "2 rows, 0 over their target, 0 at the machine's limit, 0 broken"
    rows = json.loads(path.read_text())["rows"]
    assert [(row["row"], row["threads"], row["group"]) for row in rows] == [("tiny add", n, "tiny ops") for n in (1, 2)]


@pytest.fixture
def two_rows(monkeypatch) -> list[Row]:
    """A table of two rows, which NumPy runs beside itself."""
    rows = [Row(name, "", "x + x", 1.0, "x = 1", group="all") for name in ("first", "second")]
    monkeypatch.setattr(lines, "rows", lambda: rows)
    monkeypatch.setattr(import_time, "compare_imports", lambda ours, peer, rounds: Comparison.of([1.0], [1.0]))
    return rows


BRIEF = ["--ours", "numpy", "--peer", "numpy", "--rounds", "1", "--seconds", "0.001"]


def test_table_goes_on_after_a_broken_row(capsys, two_rows) -> None:
    """A row that does not run is named with its error, the next one is measured, and the status is 1."""
    two_rows[0] = Row("bad", "", "1 / 0", numpy_setup="x = 1")
    assert table.main(BRIEF) == 1
    out = capsys.readouterr().out.splitlines()
    assert "broken: ZeroDivisionError: division by zero" in "".join(line for line in out if line.startswith("bad "))
    assert out[-1] == "2 rows, 0 over their target, 0 at the machine's limit, 1 broken"


@pytest.mark.oracle
def test_compiled_functions_have_a_page_of_their_own(monkeypatch, two_rows, tmp_path) -> None:
    """``--only lazy --page`` writes these rows and no others, and lacks none but of these."""
    page = tmp_path / "page.md"
    page.write_text("<!-- rows -->\n<!-- end -->\n")
    measured = [(name, 1, None, lambda _: Comparison.of([1.0], [1.0])) for name in ("lazy chain", "lazy step")]
    monkeypatch.setattr(lines.lazy, "comparisons", lambda *_: measured)
    keep = ["--rounds", "1", "--seconds", "0.001", "--json", str(tmp_path / "kept.json"), "--page", str(page)]
    assert table.main([*keep, "--only", "lazy chain"]) == 1
    assert table.main([*keep, "--only", "lazy"]) == 0
    assert [name for name in ("first", "lazy chain", "lazy step") if f"| {name} | 1 |" in page.read_text()] == [
        "lazy chain",
        "lazy step",
    ]


def test_rows_near_their_targets_are_visited_three_times(capsys, monkeypatch, tmp_path) -> None:
    """After all others, on either side of the line, and medians are over the rounds of all visits; a file resumes between visits.

    Of rows without a target those are near that take longer than the peer.
    """
    found = {"far": [0.5], "under": [0.95, 1.1, 1.2], "over": [1.3, 0.7, 0.8], "op": [0.95], "slow op": [1.1, 0.8, 0.9]}
    asked: list[str] = []

    def measured(name: str, visit: int) -> Comparison:
        asked.append(name)
        return Comparison.of([found[name][visit]] * 3, [1.0] * 3)

    every = [
        lines.Line("all", name, 1, None if "op" in name else 1.0, lambda visit, name=name: measured(name, visit))
        for name in found
    ]
    monkeypatch.setattr(table, "all_lines", lambda *_: every)
    file = tmp_path / "kept.json"
    assert table.main([*BRIEF, "--json", str(file)]) == 0
    assert asked == [*found, *["under", "over", "slow op"] * 2]
    rows = {row["row"]: row for row in json.loads(file.read_text())["rows"]}
    assert [(row["ratio"], row["verdict"], row["visits"]) for row in rows.values()] == [
        (0.5, "ok", 1), (1.1, "MISS", 3), (0.8, "ok", 3), (0.95, "", 1), (0.9, "", 3),
    ]  # fmt: skip
    assert (rows["over"]["lowest"], rows["over"]["highest"]) == (0.7, 1.3)
    assert "visit 2, of 3 rows near their targets:" in capsys.readouterr().out

    text = json.loads(file.read_text())
    text["rows"] = [row | {"visits": 2} if row["row"] == "over" else row for row in text["rows"]]
    file.write_text(json.dumps(text))
    asked.clear()
    assert table.main([*BRIEF, "--json", str(file), "--resume"]) == 0
    assert asked == ["over"]


def test_a_table_that_was_stopped_goes_on(capsys, two_rows, tmp_path) -> None:
    """What is in the file of the same versions is not measured again under --resume, and is all the same in the page."""
    file, page = tmp_path / "kept.json", tmp_path / "page.md"
    page.write_text("<!-- rows -->\n<!-- end -->\n")
    keep = [*BRIEF, "--json", str(file)]
    assert table.main([*keep, "--only", "first"]) == 0
    assert table.main([*keep, "--only", "first", "--page", str(page)]) == 1
    assert "2 rows are not measured; go on with --resume" in capsys.readouterr().out
    assert "first" not in page.read_text()

    before = json.loads(file.read_text())["rows"][0]
    assert table.main([*keep, "--resume", "--page", str(page)]) == 0
    assert "3 rows, 1 of them measured before" in capsys.readouterr().out
    after = {row["row"]: row for row in json.loads(file.read_text())["rows"]}
    assert after["first"] == before
    assert [name for name in ("import", "first", "second") if f"| {name} | 1 |" in page.read_text()] == [
        "import",
        "first",
        "second",
    ]


def test_numbers_of_other_versions_are_not_kept(two_rows, tmp_path, capsys) -> None:
    """A file that another version of a library made is not gone on with."""
    file = tmp_path / "kept.json"
    table.main([*BRIEF, "--json", str(file)])
    text = json.loads(file.read_text())
    file.write_text(json.dumps({**text, "versions": {"numpy": "1.0"}}))
    capsys.readouterr()
    table.main([*BRIEF, "--json", str(file), "--resume"])
    assert "3 rows, 0 of them measured before" in capsys.readouterr().out


def test_every_unit_is_read_easily() -> None:
    """Seconds, bytes and counts have forms of their own."""
    assert [table.shown(1.5e6, unit) for unit in ("bytes", "faults")] == ["1.5 MB", "1500000"]
    assert table.shown(0.5, "s") == "500 ms"


def test_an_unknown_peer_is_refused() -> None:
    """A peer is one of the libraries that the rows know."""
    with pytest.raises(ValueError, match="expected one of tensorcore, torch, numpy, jax, got 'cupy'"):
        open_peer("cupy")


def test_gpu_says_that_there_is_none(capsys, monkeypatch) -> None:
    """Without a GPU the command says so in one sentence and ends with a status of its own."""
    monkeypatch.setattr(gpu, "gpus", list)
    assert gpu.main() == 3
    assert capsys.readouterr().out.count("\n") == 1


def test_a_lost_device_costs_one_row(tmp_path, monkeypatch) -> None:
    """Where a fault leaves the device unusable, a new process measures what is left, in the time that is left."""
    file, started = tmp_path / "table.json", []

    def measured(row, *rest):
        return {"row": row.name, **({"error": "illegal address"} if row.name == "b" else {"ours": 1.0})}

    monkeypatch.setattr(gpu_table, "ROWS", [gpu_rows.Row(name, gpu_rows.tiny) for name in "abc"])
    monkeypatch.setattr(gpu_table, "measured", measured)
    monkeypatch.setattr(gpu_table, "_peer", lambda device: None)
    monkeypatch.setattr(gpu_table, "_device", lambda ours, device: "one")
    monkeypatch.setattr(gpu_table, "_usable", lambda ours, device: False)
    monkeypatch.setattr(gpu_table.os, "execv", lambda program, given: started.append(given) or sys.exit(0))
    given = ["--json", str(file), "--seconds", "100"]
    with pytest.raises(SystemExit):
        gpu_table.main(given)
    assert [one["row"] for one in json.loads(file.read_text())["rows"]] == ["a", "b"]
    (command,) = started
    assert command[3:6] == ["--json", str(file), "--resume"]
    assert command[6] == "--seconds"
    assert 0 < int(command[7]) <= 100
    assert gpu_table.main(command[3:]) == 1  # one row is broken
    assert [one["row"] for one in json.loads(file.read_text())["rows"]] == ["a", "b", "c"]


def test_what_was_cut_off_is_left_out(tmp_path) -> None:
    """A result that a step was killed over costs itself, not the others."""
    (tmp_path / "table.json").write_text('{"rows": [')
    (tmp_path / "certificate-0.json").write_text(json.dumps({"levels": {}, "failures": {"x": "why"}}))
    found = gpu._result(tmp_path, "a card", {"table": "cut"})
    assert "table" not in found
    assert found["conformance"]["failures"] == {"x": "why"}
