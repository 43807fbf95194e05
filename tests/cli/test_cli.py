"""The command line: what each command prints, writes and answers with."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tensorcore as tc
from tensorcore import shortcuts
from tensorcore.backend.base import INTERFACE_VERSION
from tensorcore.cli import interface, scaffold
from tensorcore.errors import ArgumentError
from tests.test_writing_a_backend import install

ROOT = Path(__file__).parent.parent.parent


def run(*arguments: str, **environment: str) -> Any:
    """Run the command line in a process of its own."""
    path = os.pathsep.join([str(ROOT), str(ROOT / "plugins"), environment.pop("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-m", "tensorcore", *arguments], capture_output=True, text=True, check=False,
        env={**os.environ, "COLUMNS": "200", "NO_COLOR": "1", "PYTHONPATH": path, **environment},
    )  # fmt: skip


class TestDoctor:
    """What there is, and what to type."""

    def test_json_names_what_there_is(self) -> None:
        """Plugins, devices with their reports, libraries and switches, and exit status 0."""
        done = run("doctor", "--json", TENSORCORE_PLUGINS="tensorcore_cpu")
        found = json.loads(done.stdout)
        assert done.returncode == 0
        assert found["interface"] == list(INTERFACE_VERSION)
        cpu = next(one for one in found["devices"] if one["name"] == "cpu")
        assert cpu["usable"]
        assert cpu["report"]["library"].startswith("numpy ")
        assert "host" in cpu["capabilities"]
        assert found["libraries"]["numpy"]
        assert found["environment"]["TENSORCORE_PLUGINS"] == "tensorcore_cpu"
        assert found["shortcuts"] == {"usable": not shortcuts.reason, "reason": shortcuts.reason or None}

    def test_it_says_where_c_is_left_out(self) -> None:
        """Of both extensions: the CPU's kernels, and the short ways through the frontend."""
        said = " ".join(run("doctor", TENSORCORE_PLUGINS="tensorcore_cpu", TENSORCORE_NATIVE="0").stdout.split())
        assert "Short ways in C through the frontend: no: TENSORCORE_NATIVE=0 turns them off" in said
        assert "no: TENSORCORE_NATIVE=0 turns it off" in said

    def test_it_names_the_tools(self, tmp_path: Path) -> None:
        """The compiler as it calls itself, and null for one that is not there; MPI, NCCL and cuDNN beside it."""
        compiler = tmp_path / "cc-of-the-test"
        compiler.write_text("#!/bin/sh\necho a compiler, version 8\n", "utf-8")
        compiler.chmod(0o755)
        cpu = {"TENSORCORE_PLUGINS": "tensorcore_cpu"}
        found = json.loads(run("doctor", "--json", CC=str(compiler), **cpu).stdout)["tools"]
        assert list(found) == ["compiler", "mpi", "nccl", "cudnn"]
        assert found["compiler"] == "a compiler, version 8"
        assert json.loads(run("doctor", "--json", CC="no-compiler", **cpu).stdout)["tools"]["compiler"] is None
        assert "Tools: compiler: none found, mpi: " in run("doctor", CC="no-compiler", **cpu).stdout

    def test_a_broken_plugin_is_named_with_its_remedy(self, tmp_path: Path) -> None:
        """Its reason and what to do stand in the table, other devices go on, and the exit status is 1."""
        (tmp_path / "shattered.py").write_text("raise SystemExit('no driver')", "utf-8")
        done = run("doctor", TENSORCORE_PLUGINS="tensorcore_cpu,shattered", PYTHONPATH=str(tmp_path))
        assert done.returncode == 1
        assert "broken" in done.stdout
        assert "SystemExit: no driver" in done.stdout
        assert "see that 'import shattered' works" in done.stdout
        assert "compiled" in done.stdout

    def test_a_device_that_was_asked_for(self) -> None:
        """Exit status 0 where it can be used, 1 where not; the last line says which, and why not."""
        done = run("doctor", "--device", "sim:1", TENSORCORE_PLUGINS="tensorcore_cpu")
        assert done.returncode == 0
        assert done.stdout.splitlines()[-1] == "sim:1 can be used"
        done = run("doctor", "--device", "nowhere", TENSORCORE_PLUGINS="tensorcore_cpu")
        assert done.returncode == 1
        assert done.stdout.splitlines()[-1].startswith("nowhere cannot be used: expected one of 'cpu', ")

    def test_remedies_stand_there_as_they_are_typed(self, tmp_path: Path) -> None:
        """Brackets, which mean colours elsewhere, are printed; a narrow terminal loses no word of a broken plugin."""
        (tmp_path / "extra.py").write_text(
            "from tensorcore.plugin import hookimpl\n"
            "@hookimpl\n"
            "def register_backends(register):\n"
            "    register('extra', print, probe=lambda: 'no [red] box', remedy=\"pip install 'extra[box]'\")\n",
            "utf-8",
        )
        (tmp_path / "shattered.py").write_text("raise SystemExit('no driver, [and] no disk')", "utf-8")
        plugins = {"TENSORCORE_PLUGINS": "tensorcore_cpu,extra,shattered", "PYTHONPATH": str(tmp_path)}
        done = run("doctor", **plugins)
        assert "got: no [red] box; type: pip install 'extra[box]'" in done.stdout
        done = run("doctor", COLUMNS="40", **plugins)
        assert "SystemExit: no driver, [and] no disk; see that 'import shattered' works" in done.stdout

    @pytest.mark.parametrize(
        "line, words",
        [
            ("os.kill(os.getpid(), 9)", "got the process ended by signal 9 (Killed)"),
            ("print('half a report'); os._exit(0)", "got the process ended with status 0"),
            ("import time; time.sleep(60)", "got no answer for 2 seconds"),
        ],
    )
    def test_a_plugin_that_crashes_or_hangs_is_named(self, tmp_path: Path, line: str, words: str) -> None:
        """The report has it as broken with what it did, the other devices stand there, and what it printed does not."""
        (tmp_path / "deadly.py").write_text(f"import os\n{line}", "utf-8")
        done = run("doctor", "--json", "--patience", "2", TENSORCORE_PLUGINS="tensorcore_cpu,deadly",
                   PYTHONPATH=str(tmp_path), TENSORCORE_STRICT="1")  # fmt: skip
        found = json.loads(done.stdout)
        deadly = next(one for one in found["plugins"] if one["name"] == "deadly")
        assert (done.returncode, deadly["state"]) == (1, "broken")
        assert words in deadly["reason"]
        assert deadly["remedy"] == "uninstall it, or set TENSORCORE_BLOCK=deadly"
        assert next(one for one in found["devices"] if one["name"] == "cpu")["usable"]
        assert "TENSORCORE_BLOCK" not in found["environment"]

    def test_no_device_at_all(self) -> None:
        """Exit status 2."""
        assert run("doctor", TENSORCORE_PLUGINS="tensorcore_cpu", TENSORCORE_BLOCK="tensorcore_cpu").returncode == 2


class TestNewBackend:
    """A distribution that works at once."""

    def test_the_template_is_its_output(self) -> None:
        """plugins/template has the files that ``new-backend mine`` writes, byte for byte, and no others."""
        folder = ROOT / "plugins" / "template"
        found = {
            str(path.relative_to(folder)): path.read_text("utf-8")
            for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts
        }  # fmt: skip
        assert found == scaffold.contents("mine"), (
            "type: python -m tensorcore new-backend mine --directory plugins/template"
        )

    def test_names_and_folders_are_checked(self, tmp_path: Path) -> None:
        """A name that no device can have, and a folder in use, are refused, and nothing is written."""
        for wrong in ("My", "a-b", "", "1x"):
            with pytest.raises(ArgumentError, match="lower-case letters"):
                scaffold.write(wrong, tmp_path / "new")
        (tmp_path / "used").mkdir()
        (tmp_path / "used" / "file").touch()
        done = run("new-backend", "mine", "--directory", str(tmp_path / "used"))
        assert (done.returncode, "got one in use" in done.stderr) == (1, True)
        assert [path.name for path in tmp_path.rglob("*")] == ["used", "file"]

    @pytest.mark.slow
    def test_it_installs_and_passes_its_own_tests(self, tmp_path: Path) -> None:
        """Built and installed beside tensorcore, found by its metadata, it passes the tests that came with it."""
        environment = install(tmp_path)
        project = tmp_path / "tensorcore-other"
        scaffold.write("other", project)
        subprocess.run(["pip", "install", str(project)], env=environment, check=True)
        assert list((tmp_path / "site").glob("tensorcore_other-0.1.0.dist-info/entry_points.txt"))
        command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "tests"]
        done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout
        doctor = [sys.executable, "-m", "tensorcore", "doctor", "--json"]
        found = json.loads(
            subprocess.run(doctor, cwd=tmp_path, env=environment, capture_output=True, check=True).stdout
        )
        plugin = next(one for one in found["plugins"] if one["name"] == "other")
        assert (plugin["distribution"], plugin["version"], plugin["state"]) == ("tensorcore-other", "0.1.0", "loaded")


class TestInterface:
    """The interface of plugins, written down."""

    def test_the_current_version_is_written_down(self) -> None:
        """A change of the interface is entered in its record: an addition with a new minor version, else a major one."""
        version = ".".join(map(str, INTERFACE_VERSION))
        assert interface.recorded(version) == interface.current(), (
            "the interface changed; after a look at `tensorcore sdk-diff "
            f"{version}`, type: python -c 'from tensorcore.cli.interface import record; record()'"
        )

    def test_a_minor_version_only_adds(self) -> None:
        """Between two minor versions nothing is removed or changed."""
        assert interface.difference("1.0", "1.1")[-1].startswith("A plugin need not change.")

    def test_differences_are_told_apart(self, monkeypatch) -> None:
        """What was removed, changed and added has a line each, inherited once, and the last line says what follows."""
        same = {"pin": "(self)", "gone": "(self)"}
        before = {
            "Backend": same,
            "XPBackend": same,
            "kernels": {"add": "", "old": "", "neg": "", "odd": " (optional)"},
        }
        same = {"pin": "(self, x)", "fresh": "(self)"}
        after = {
            "Backend": same, "XPBackend": same | {"over": "(self)"},
            "kernels": {"add": " (optional)", "new": "", "neg": " (optional)", "odd": ""},
        }  # fmt: skip
        monkeypatch.setattr(interface, "recorded", {"1.0": before, "2.0": after}.get)
        assert interface.difference("1.0", "2.0") == [
            "removed  Backend.gone(self)", "removed  kernels: old",
            "changed  Backend.pin(self) -> (self, x)", "now      required kernels: odd",
            "added    Backend.fresh(self)", "added    XPBackend.over(self)", "added    kernels: new",
            "now      (optional) kernels: add, neg", "", "A plugin that uses what was removed or changed must change.",
        ]  # fmt: skip
        assert interface.difference("1.0", "1.0") == ["1.0 and 1.0 are the same"]

    def test_an_unknown_version_is_one_line(self) -> None:
        """The versions that there are, without a traceback, and exit status 1."""
        done = run("sdk-diff", "0.3")
        assert (done.returncode, "Traceback" in done.stderr) == (1, False)
        assert "expected one of the versions 1.0, 1.1" in done.stderr


@pytest.mark.parametrize("command", ["doctor", "check", "new-backend", "bench", "launch", "sdk-diff"])
def test_help_shows_an_example(command: str) -> None:
    """Each command's help ends with a line to copy."""
    done = run(command, "--help")
    assert done.returncode == 0
    assert f"Example: tensorcore {command}" in done.stdout


def test_the_version() -> None:
    """One line, for bug reports."""
    assert run("--version").stdout == f"tensorcore {tc.__version__}\n"


def test_launch_runs_a_program_on_ranks(tmp_path: Path) -> None:
    """Each rank gets its number and the program's own arguments, and no rank prints into another's line."""
    program = tmp_path / "program.py"
    program.write_text(
        "import sys, tensorcore.distributed as dist\n"
        "dist.init_process_group()\n"
        "for _ in range(200):\n"
        "    print(dist.get_rank(), dist.get_world_size(), sys.argv[1:])\n"
        "print('end', end='')\n",
        "utf-8",
    )
    environment = {"TENSORCORE_PLUGINS": "tensorcore_cpu,threads=tensorcore_distributed"}
    done = run("launch", "-n", "2", "--threads", str(program), "-n", "7", **environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("end")
    lines = done.stdout.replace("end", "").splitlines()
    assert sorted(lines) == ["0 2 ['-n', '7']"] * 200 + ["1 2 ['-n', '7']"] * 200
    assert (run("launch").returncode, "expected a script" in run("launch").stderr) == (2, True)


def test_the_shell_completes_commands() -> None:
    """The completion that the shells load offers the commands."""
    asked = {"COMP_WORDS": "tensorcore ", "COMP_CWORD": "1", "_TENSORCORE_COMPLETE": "complete_bash"}
    code = "import sys; sys.argv = ['tensorcore']; from tensorcore.cli import main; main()"
    path = os.pathsep.join([str(ROOT), str(ROOT / "plugins")])
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path, **asked},
                          capture_output=True, text=True, check=False)  # fmt: skip
    assert {"doctor", "check", "new-backend", "bench", "launch"} <= set(done.stdout.split())


def test_bench_says_where_it_lives(tmp_path: Path) -> None:
    """Without the repository's benchmarks, one line says so; with them, the table's own options are passed on."""
    path = os.pathsep.join([str(ROOT / "plugins"), str(tmp_path)])
    (tmp_path / "tensorcore").symlink_to(ROOT / "tensorcore")
    done = subprocess.run(
        [sys.executable, "-m", "tensorcore", "bench"], cwd=tmp_path, env={**os.environ, "PYTHONPATH": path},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "expected the package asv_benchmarks" in done.stderr


def test_wrong_arguments_are_one_line(tmp_path: Path) -> None:
    """A level, a row, a device, a script or a number of ranks that is none is named, before anything runs."""
    for arguments, status, words in (
        (("check", "cpu", "--level", "platinum"), 2, "'bronze', 'silver', 'gold'"),
        (("bench", "--only", "nothing like it"), 2, "expected a row with 'nothing like it' in its name"),
        (("bench", "tensorcore:nowhere"), 2, "got 'nowhere'; install a plugin that offers 'nowhere'"),
        (("bench", "nonsense"), 2, "got 'nonsense'; write library:device"),
        (("launch", str(tmp_path / "none.py")), 2, "none.py, which is not there"),
        (("launch", "-n", "0", __file__), 2, "expected at least one rank, got -n 0"),
        (("new-backend", "sim", "--directory", str(tmp_path / "new")), 1, "got 'sim', which tensorcore has"),
    ):
        done = run(*arguments, TENSORCORE_PLUGINS="tensorcore_cpu")
        assert (done.returncode, "Traceback" in done.stderr) == (status, False), done.stderr
        assert words in done.stderr
    assert list(tmp_path.iterdir()) == []
