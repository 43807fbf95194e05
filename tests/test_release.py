"""Following the documentation in a fresh environment: tensorcore, and a backend made within the hour, are installed and used."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import tensorcore
from tests.release import ROOT, Environment
from tests.test_writing_a_backend import BLOCKS

NOT_SOURCE = (".*", "build", "dist", "site", "out", "*.egg-info", "*.so", "__pycache__", "tests", "docs", "examples")


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: Any) -> Environment:
    """An environment in which tensorcore was built and installed; skipped where no environment or index is to be had."""
    folder = tmp_path_factory.mktemp("fresh")
    try:
        found = Environment(folder)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no virtual environment: {error}")
    shutil.copytree(ROOT, folder / "source", ignore=shutil.ignore_patterns(*NOT_SOURCE))
    if (done := found.install("numpy")).returncode:
        pytest.skip(f"no package index: {done.stderr.strip().splitlines()[-1]}")
    # Without a compiler, which the build must survive; make wheel compiles.
    done = found.install(f"{folder / 'source'}[testing]", CC=shutil.which("false") or "false")
    assert done.returncode == 0, done.stderr
    return found


@pytest.mark.slow
def test_an_installed_tensorcore_trains(fresh: Environment) -> None:
    """What is installed is this version, and it works without compiled kernels."""
    done = fresh.smoke()
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"tensorcore {tensorcore.__version__} learned the exclusive or; NumPy kernels\n"


@pytest.mark.slow
def test_a_new_backend_passes_its_own_tests(fresh: Environment) -> None:
    """``tensorcore new-backend``, ``pip install``, ``pytest``: bronze."""
    assert fresh.run("tensorcore", "new-backend", "other").returncode == 0
    done = fresh.install("./tensorcore-other")
    assert done.returncode == 0, done.stderr
    done = fresh.run("python", "-m", "pytest", "-q", "tensorcore-other/tests")
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout


@pytest.mark.slow
def test_the_page_of_an_hour_leads_to_a_certificate(fresh: Environment) -> None:
    """The commands of the page's first two sections, as they stand there, end with a bronze certificate."""
    commands = [text for language, title, text in BLOCKS if language == "bash" and not title][:2]
    assert "new-backend" in commands[0]
    assert "check mine --level bronze" in commands[1]
    for text in commands:
        done = fresh.run("sh", "-ec", text)
        assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((fresh.work / "certificate.json").read_text("utf-8"))
    assert found["levels"]["bronze"]["verdict"] == "held"
    assert (found["backend"]["distribution"], found["backend"]["version"]) == ("tensorcore-mine", "0.1.0")


def test_the_version_stands_in_one_place() -> None:
    """Files that need it read it: only ``_version.py`` says it."""
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    assert 'dynamic = ["version"]' in project
    assert not re.search(r'^version = "', project, re.MULTILINE)
    written = Path(tensorcore.__file__).with_name("_version.py").read_text("utf-8")
    assert f'"{tensorcore.__version__}"' in written
    assert tensorcore.version.__version__ == tensorcore.__version__
