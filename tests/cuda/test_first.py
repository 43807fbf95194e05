"""The check before all others on a GPU: one kernel of each kind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import tensorcore as tc
from asv_benchmarks import gpu_first

ROOT = Path(__file__).parents[2]


def test_all_kinds_are_right(capsys) -> None:
    """Each kind says so on a line of its own, and none is counted as wrong."""
    assert gpu_first.main("cuda") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "copies: right"
    assert all(one.endswith(": right") for one in lines)


def test_a_kind_that_is_wrong_or_raises_is_counted(capsys, monkeypatch) -> None:
    """The line says what was expected and what came, or what was raised, and the others go on."""
    kernels = tc.device("cuda").kernels

    def broken(*arrays, **options):
        raise RuntimeError("no such function")

    monkeypatch.setitem(kernels, "softmax", lambda x, **options: x)
    monkeypatch.setitem(kernels, "cumsum", broken)
    assert gpu_first.main("cuda") == 2
    out = capsys.readouterr().out
    assert "softmax: expected [[1, 1, 1], [1, 1, 1]], got [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]" in out
    assert "scans: RuntimeError: no such function" in out
    assert "an optimizer: right" in out


@pytest.mark.standin
def test_make_gpu_says_what_the_first_kernels_gave(capsys, monkeypatch) -> None:
    """Minutes are not spent on a device on which the simplest calls do not work."""
    from asv_benchmarks import gpu

    monkeypatch.setattr(gpu, "gpus", lambda: ["a card"])
    monkeypatch.setattr(gpu.sys, "executable", "false")
    monkeypatch.setattr(gpu, "_run", None)
    assert gpu.main([]) == gpu.NO_PLUGIN
    assert "got another; its first kernels" in capsys.readouterr().out


@pytest.mark.standin
def test_the_command_needs_what_a_machine_with_a_gpu_has() -> None:
    """It, its table and tensorcore itself load without the packages of the command line, which that machine may lack."""
    lacking = "import sys; sys.modules.update(dict.fromkeys(('rich', 'typer', 'click', 'pytest')))"
    program = f"{lacking}; from asv_benchmarks import gpu, gpu_first, gpu_rows, gpu_table"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.standin
@pytest.mark.parametrize("codes, said, status", [((0, 5), "passed, 1 found no test", 0), ((5, 5), "2 of 2 failed", 1)])
def test_a_step_that_ran_no_test_did_not_pass(codes, said, status, tmp_path) -> None:
    """A part of a suite may be for a dtype that the device has not; a step whose parts are all idle failed."""
    from asv_benchmarks import gpu

    commands = [[sys.executable, "-c", f"raise SystemExit({code})"] for code in codes]
    text, worth = gpu._outcome(gpu.Step("suite", commands, 60), {}, tmp_path, 60)
    assert (text.startswith(said), worth) == (True, status)
