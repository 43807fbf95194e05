"""The page "a backend in an hour": each block is run, in order, in an empty folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tensorcore.cli import scaffold

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "writing-a-backend.md").read_text("utf-8")
BLOCKS = re.findall(r'```(\w+)(?: title="([^"]*)")?\n(.*?)```', PAGE, re.DOTALL)
PLUGIN = "tensorcore-mine/tensorcore_mine/__init__.py"


@pytest.fixture
def workshop(tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """A folder and an environment: tensorcore's entry points, and commands ``tensorcore`` and ``pip`` that need no network."""
    return tmp_path, install(tmp_path)


def install(folder: Path) -> dict[str, str]:
    """Metadata of tensorcore and shims of the commands in a folder; the environment that finds them."""
    site, commands = folder / "site", folder / "bin"
    metadata = site / "tensorcore-0.1.0.dist-info"
    metadata.mkdir(parents=True)
    commands.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: tensorcore\nVersion: 0.1.0\n", "utf-8")
    (metadata / "entry_points.txt").write_text("[tensorcore]\ncpu = tensorcore_cpu\n", "utf-8")
    pip = f"-m pip install --quiet --no-deps --no-build-isolation --no-index --upgrade --target {site}"
    for name, line in (
        ("tensorcore", f'exec {sys.executable} -m tensorcore "$@"'),
        ("pip", f'shift; [ "$1" = -e ] && shift; exec {sys.executable} {pip} "$@"'),
    ):
        (commands / name).write_text(f"#!/bin/sh\n{line}\n", "utf-8")
        (commands / name).chmod(0o755)
    # The package in its own folder first: what is edited there counts, as after an editable installation.
    path = os.pathsep.join(map(str, [folder / "tensorcore-mine", site, ROOT, ROOT / "plugins", folder]))
    environment = {key: value for key, value in os.environ.items() if not key.startswith("TENSORCORE_")}
    return {
        **environment, "PYTHONPATH": path, "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_ROOT_USER_ACTION": "ignore",
    }  # fmt: skip


@pytest.mark.slow
def test_the_page_leads_to_a_certified_backend(workshop) -> None:
    """Commands succeed, files are written, programs run, and the certificate says bronze."""
    folder, environment = workshop
    for language, title, text in BLOCKS:
        if title.endswith((".py", "conformance.toml")):
            (folder / title).write_text(text, "utf-8")
            continue
        if title:
            continue
        command = ["sh", "-ec", text] if language == "bash" else [sys.executable, "-c", text]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{text}\n{done.stdout}{done.stderr}"
    assert '"bronze": {\n   "verdict": "held"' in (folder / "certificate.json").read_text("utf-8")
    assert "Conformance of mine" in (folder / "coverage.html").read_text("utf-8")


@pytest.mark.slow
def test_the_backend_of_section_3_holds_bronze(workshop) -> None:
    """The class with kernels of its own passes too."""
    folder, environment = workshop
    (folder / PLUGIN).parent.mkdir(parents=True)
    (folder / PLUGIN).write_text([text for _, title, text in BLOCKS if title == PLUGIN][1], "utf-8")
    environment |= {"TENSORCORE_PLUGINS": "tensorcore_cpu,mine=tensorcore_mine"}
    command = [sys.executable, "-m", "tensorcore", "check", "mine", "--level", "bronze"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_first_plugin_is_what_the_command_writes() -> None:
    """The file that the page shows is the one that ``tensorcore new-backend mine`` leaves."""
    shown = next(text for _, title, text in BLOCKS if title == PLUGIN)
    assert shown == scaffold.contents("mine")["tensorcore_mine/__init__.py"]


def test_blocks_are_of_kinds_that_the_test_knows() -> None:
    """Nothing on the page stands there untested."""
    assert {language for language, _, _ in BLOCKS} == {"bash", "python", "toml"}
    assert len(re.findall(r"^```\w", PAGE, re.MULTILINE)) == len(BLOCKS) >= 12
