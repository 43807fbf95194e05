"""The gate of a change: counts may not grow beside the base, and times only warn."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from asv_benchmarks import continuous, counters

ROOT = Path(__file__).parents[1]
COUNTS = {"kernels of a step": 10, "bytes of a step": 100}

# One kernel and 512 bytes more in every ReLU layer: what a careless change would cost.
REGRESSION = """
import sys
import tensorcore as tc
from asv_benchmarks import continuous, counters

forward = tc.nn.ReLU.forward
if "--seeded" in sys.argv:
    tc.nn.ReLU.forward = lambda self, input: forward(self, input) * 1.0
kernels, nbytes = counters.ran("a perceptron's step")
found = {"kernels of a perceptron's step": kernels, "bytes of a perceptron's step": nbytes}
counters.counted = lambda: found
continuous.committed = lambda base: {name: count for name, count in BEFORE.items() if name in found}
raise SystemExit(continuous.main(["--base", "main", "--no-time"]))
"""


@pytest.mark.parametrize("seeded, status", [((), 0), (("--seeded",), 1)])
def test_a_seeded_regression_fails_the_gate(seeded, status) -> None:
    """A layer that runs one kernel more makes the command fail and name the counts; without it the command succeeds."""
    before = json.loads(counters.COMMITTED.read_text("utf-8"))
    done = subprocess.run(
        [sys.executable, "-c", f"BEFORE = {before}\n{REGRESSION}", *seeded], capture_output=True, text=True, check=False,
        cwd=ROOT, env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )  # fmt: skip
    assert done.returncode == status, done.stderr
    larger = [line.split("  ")[0] for line in done.stdout.splitlines() if line.endswith("LARGER")]
    names = ["kernels of a perceptron's step", "bytes of a perceptron's step"]
    assert larger == (names if seeded else [])


def test_counts_are_judged(capsys) -> None:
    """Smaller and new counts pass, a larger one fails unless it is allowed, and so does one that is not counted any more."""
    assert not continuous.judge(COUNTS, {"kernels of a step": 9, "bytes of a step": 100, "frames": 3}, [])
    larger = {**COUNTS, "bytes of a step": 101}
    assert continuous.judge(COUNTS, larger, [])
    assert not continuous.judge(COUNTS, larger, ["bytes of a step"])
    assert continuous.judge(COUNTS, {"kernels of a step": 10}, [])
    assert "bytes of a step                                     100       101  LARGER" in capsys.readouterr().out


def test_slower_rows_warn(monkeypatch, capsys) -> None:
    """What asv says of times changes nothing in the status."""
    asked: list[str] = []
    monkeypatch.setattr(continuous, "committed", lambda base: COUNTS)
    monkeypatch.setattr(counters, "counted", lambda: COUNTS)
    monkeypatch.setattr(
        continuous, "asv", lambda *arguments: asked.append(arguments[0]) or int(arguments[0] == "continuous")
    )
    assert continuous.main(["--base", "other"]) == 0
    assert asked == ["machine", "continuous"]
    assert "warning: rows above are slower" in capsys.readouterr().out


@pytest.mark.skipif(shutil.which("git") is None, reason="no git")
def test_a_base_without_counts_is_refused(capsys) -> None:
    """A branch that git does not know gives one sentence and a status of its own."""
    assert continuous.main(["--base", "no-such-branch", "--no-time"]) == 2
    assert "expected counts at no-such-branch:asv_benchmarks/counters.json, got none" in capsys.readouterr().out
