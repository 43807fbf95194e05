"""Programs that the launcher starts on ranks of their own, for the tests."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import tensorcore.distributed as dist

ROOT = Path(__file__).parents[2]
# Seconds after which a program hangs: far from what it takes where all processors are busy, and from a group's timeout.
HANGS = 150.0


@pytest.fixture(autouse=True)
def offered() -> None:
    """The plugin is installed; TENSORCORE_PLUGINS may leave it out."""
    if not dist.is_backend_available("threads"):
        pytest.skip("TENSORCORE_PLUGINS leaves out tensorcore_distributed, which offers the transports")


class Ended(NamedTuple):
    """How a launched program ended."""

    code: int
    out: str
    err: str


@pytest.fixture
def launched(started):
    """Runs the text of a program on ranks that are processes, started over MPI, to its end."""

    def run(text: str, n: int = 2, *arguments: str, deadline: float = HANGS, **how: Any) -> Ended:
        process = started(text, n, *arguments, **how)
        out, err = process.communicate(timeout=deadline)
        return Ended(process.returncode, out, err)

    return run


@pytest.fixture
def started(tmp_path):
    """Starts the text of a program on ranks that are processes, or on its own where a ``line`` is given."""
    if importlib.util.find_spec("mpi4py") is None:
        pytest.skip("mpi4py is not installed: pip install 'tensorcore[mpi]'")
    processes: list[subprocess.Popen[str]] = []

    def start(
        text: str, n: int = 2, *arguments: str, module: Sequence[str] = ("tensorcore.distributed.launch",),
        options: Sequence[str] = (), line: Sequence[str] | None = None, program: bool = True, **environment: str,
    ) -> subprocess.Popen[str]:  # fmt: skip
        script = tmp_path / "program.py"
        script.write_text(textwrap.dedent(text), "utf-8")
        paths = [str(ROOT), str(ROOT / "plugins"), *filter(None, [os.environ.get("PYTHONPATH")])]
        # Unbuffered, a print is several writes, and the lines of two ranks run into one another.
        known = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
        before = line or [sys.executable, "-m", *module, "-n", str(n), *options]
        process = subprocess.Popen(
            [*before, *([str(script)] if program else []), *arguments], cwd=tmp_path, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # A shell starts what runs in its background with interrupts ignored, and the tests within it.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            env={**known, "PYTHONPATH": os.pathsep.join(paths), "PYTHONWARNINGS": "error", **environment},
        )  # fmt: skip
        processes.append(process)
        return process

    yield start
    for one in processes:
        if one.poll() is None:
            one.kill()
        one.communicate()
