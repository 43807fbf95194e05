"""The dashboard: asv's results of several commits become pages, and the graphs on them are drawn."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("asv", reason="no asv: the extra 'bench' has it")

from asv.results import Results
from asv.runner import BenchmarkResult

from asv_benchmarks import dashboard, graphs
from asv_benchmarks.benchmarks.ops import Ops
from asv_benchmarks.benchmarks.overhead import Overhead
from tests.browser import looked_at, opened

PEERS = ["tensorcore:cpu", "torch"]
ROWS = {
    "benchmarks.overhead.Overhead.time_rows": [row.name for row in Overhead.rows[:6]],
    "benchmarks.ops.Ops.time_rows": [row.name for row in Ops.rows[:8]],
}


@pytest.fixture(scope="module")
def config(tmp_path_factory) -> Path:
    """A repository of three commits and what asv would have written of them; of the oldest, one suite has no results."""
    if shutil.which("git") is None:
        pytest.skip("no git")
    folder = tmp_path_factory.mktemp("dashboard")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(folder)]
    subprocess.run([*git, "init", "--quiet", "--initial-branch=main"], check=True)
    commits = []
    for number in range(3):
        date = f"2026-01-0{number + 1}T00:00:00+00:00"
        subprocess.run(
            [*git, "commit", "--quiet", "--allow-empty", "--message", f"{number}"], check=True,
            env={"GIT_COMMITTER_DATE": date, "GIT_AUTHOR_DATE": date, "HOME": str(folder), "PATH": "/usr/bin:/bin"},
        )  # fmt: skip
        commits.append(
            subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
        )
    path = folder / "asv.conf.json"
    path.write_text(
        json.dumps({
            "version": 1, "project": "tensorcore", "repo": ".", "branches": ["main"], "benchmark_dir": ".",
            "results_dir": "results", "html_dir": "html", "env_dir": "env",
        })
    )  # fmt: skip
    results = folder / "results"
    (results / "box").mkdir(parents=True)
    (results / "box" / "machine.json").write_text(json.dumps({"machine": "box", "version": 1}))
    benchmarks = {
        name: {
            "name": name, "code": "", "version": "1", "type": "time", "unit": "seconds", "param_names": ["row", "peer"],
            "params": [[repr(row) for row in rows], [repr(peer) for peer in PEERS]], "timeout": 60,
        }
        for name, rows in ROWS.items()
    }  # fmt: skip
    (results / "benchmarks.json").write_text(json.dumps({**benchmarks, "version": 2}))
    for number, commit in enumerate(commits):
        found = Results(
            {"machine": "box", "python": "3.11"}, {}, commit, 1767225600000 + number * 86400000, "3.11", "env", {}
        )
        for name, benchmark in benchmarks.items():
            if number == 0 and "ops" in name:
                continue
            count = len(ROWS[name]) * len(PEERS)
            values = [1e-6 * (1 + one + number) for one in range(count)]
            values[-1] = float("nan")
            result = BenchmarkResult(values, [None] * count, [None] * count, 0, "", None)
            found.add_result(benchmark, result)
        found.save(str(results))
    return path


def test_the_graphs_are_drawn(config, tmp_path) -> None:
    """In a browser each row of both suites has a line of some size for each peer, and nothing comes from elsewhere."""
    page = dashboard.publish(config, config.parent / "html")
    with opened("desktop") as browser:
        seen = looked_at(browser, page)
        assert (seen["errors"], seen["broken"]) == ([], [])
        assert seen["wider"] <= 0
        for name, rows in ROWS.items():
            figures = browser.locator(f"[id='{name}'] figure")
            assert figures.count() == len(rows)
            for figure in figures.all():
                figure.scroll_into_view_if_needed()
                lines = figure.locator("polyline").all()
                assert 1 <= len(lines) <= len(PEERS)
                for line in lines:
                    box = line.bounding_box()
                    assert box["width"] > 100
                    assert box["height"] > 5
    with opened("phone") as browser:
        assert looked_at(browser, page)["wider"] <= 0


def test_a_row_has_the_points_of_its_commits(config) -> None:
    """The oldest commit comes first, a commit without results has no point, and n/a is no point."""
    commits, suites = graphs.read(config)
    assert len(commits) == 3
    first = suites["benchmarks.overhead.Overhead.time_rows"].rows[ROWS["benchmarks.overhead.Overhead.time_rows"][0]]
    assert [(place, round(value * 1e6)) for place, value in first["tensorcore:cpu"]] == [(0, 1), (1, 2), (2, 3)]
    ops = suites["benchmarks.ops.Ops.time_rows"].rows
    assert [place for place, _ in ops[ROWS["benchmarks.ops.Ops.time_rows"][0]]["torch"]] == [1, 2]
    assert list(ops[ROWS["benchmarks.ops.Ops.time_rows"][-1]]) == ["tensorcore:cpu"]


def test_what_has_no_peer_is_a_row_too() -> None:
    """A benchmark of one parameter has a row for each value, and one of none has a single row."""
    assert list(graphs.labels([["'a'", "'b'"]])) == [("a", graphs.ALONE), ("b", graphs.ALONE)]
    assert list(graphs.labels([])) == [("all", graphs.ALONE)]
    assert list(graphs.labels([["'a'"], ["'torch'", "'numpy'"]])) == [("a", "torch"), ("a", "numpy")]


def test_asv_draws_the_same_results(config) -> None:
    """asv publishes its own pages of the suites beside ours."""
    html = dashboard.publish(config, config.parent / "html").parent
    index = json.loads((html / "index.json").read_text("utf-8"))
    assert set(ROWS) <= set(index["benchmarks"])
    assert list(html.glob("graphs/**/benchmarks.overhead.Overhead.time_rows.json"))
