"""The launcher: ``python -m tensorcore.distributed.launch -n 4 train.py ...`` runs a program on several ranks.

It needs no flags for where it runs: as root, in a container, with more ranks than processors. It prefixes each rank's
output, sets the threads of each to its share of the processors, and where one rank fails it ends all, prints that
rank's traceback last, and exits with its code.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TextIO

from tensorcore.backend.communicator import CommunicatorError
from tensorcore.distributed.board import KILLED
from tensorcore.distributed.dashboard import DASHBOARD, shown
from tensorcore.distributed.meeting import MPI_VARIABLES
from tensorcore.distributed.rank import JOB, die_with_parent, run_program
from tensorcore.distributed.rank import main as run_rank

__all__ = ["add_arguments", "launch", "main"]

_GRACE = 1.0  # seconds that the other ranks have, once one has failed, before they are killed
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")


def main(argv: list[str] | None = None, prog: str = "python -m tensorcore.distributed.launch") -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog=prog, description=__doc__, epilog="Example: tensorcore launch -n 4 train.py --epochs 3"
    )
    add_arguments(parser)
    given = parser.parse_args(argv)
    command = ["-m", *given.module] if given.module else given.command
    if len(command) < 1 + bool(given.module):
        parser.error("expected a script, or -m and a module, got none")
    if given.n < 1:
        parser.error(f"expected at least one rank, got -n {given.n}")
    if not given.module and not given.hosts and not Path(command[0]).exists():
        parser.error(f"expected a script, got {command[0]}, which is not there")
    if any(name in os.environ for name in MPI_VARIABLES["rank"]) or "SLURM_STEP_ID" in os.environ:
        run_rank(command)  # mpiexec or srun has started the ranks already, and this is one of them
        return 0
    return launch(
        command, given.n, hosts=given.hosts.split(",") if given.hosts else None, agent=given.agent,
        threads=given.threads, restarts=given.restarts, dashboard=given.dashboard,
    )  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The launcher's options, for a command of another parser too."""
    ranks = int(os.environ.get("SLURM_NTASKS", "2"))
    parser.add_argument("-n", type=int, default=ranks, help=f"how many ranks ({ranks}; SLURM_NTASKS in an allocation)")
    parser.add_argument("--hosts", help="names of hosts, with commas between them, reached by ssh (this one)")
    parser.add_argument("--agent", help="a program to reach hosts by, called as ssh is")
    parser.add_argument("--threads", action="store_true", help="ranks are threads of one process; needs no MPI")
    parser.add_argument("--restarts", type=int, default=0, help="start again so many times after a failure (0)")
    parser.add_argument("--dashboard", action="store_true", help="show one live table of all ranks on this host")
    parser.add_argument("-m", dest="module", nargs=argparse.REMAINDER, help="run a module, with its arguments")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="train.py ...")


def launch(
    command: list[str],
    n: int,
    *,
    hosts: list[str] | None = None,
    agent: str | None = None,
    threads: bool = False,
    restarts: int = 0,
    dashboard: bool = False,
) -> int:
    """Run ``command`` (a script or ``-m module``, and its arguments) on ``n`` ranks; returns the exit code.

    A program that is started again finds TENSORCORE_RESTART, the number of the attempt (0 at first).

    Raises CommunicatorError where there is no MPI launcher.
    """
    if threads:
        return _run_threads(command, n)
    for attempt in range(restarts + 1):
        code = _Job(command, n, hosts, agent, attempt, dashboard).run()
        if code in (0, 130):
            break
        if attempt < restarts:
            sys.stderr.write(f"launch: exit code {code}; restart {attempt + 1} of {restarts}\n")
    return code


class _Job:
    """One run of all ranks."""

    def __init__(
        self,
        command: list[str],
        n: int,
        hosts: list[str] | None,
        agent: str | None,
        attempt: int,
        dashboard: bool,
    ) -> None:
        self.command, self.n, self.hosts, self.agent = command, n, hosts, agent
        self.attempt, self.dashboard = attempt, dashboard
        self.start = time.time()
        self.own: list[str] = []  # what the MPI launcher itself says

    def run(self) -> int:
        with tempfile.TemporaryDirectory(prefix="tensorcore-job-") as folder:
            job = Path(folder)
            with shown(job / "dashboard", self.n) if self.dashboard else contextlib.nullcontext():
                code = self._start(job)
            return self._conclude(code, job)

    def _start(self, job: Path) -> int:
        process = subprocess.Popen(
            self._line(), env=self._environment(job), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            errors="replace", preexec_fn=die_with_parent,
        )  # fmt: skip
        readers = [
            threading.Thread(target=self._read, args=pair)
            for pair in ((process.stdout, sys.stdout), (process.stderr, sys.stderr))
        ]
        for one in readers:
            one.start()
        try:
            code = self._wait(process, job)
        except BaseException:
            self._end(process, signal.SIGTERM)
            raise
        finally:
            for one in readers:
                one.join(5)
        return code

    def _line(self) -> list[str]:
        mpiexec = find_mpiexec()
        version = subprocess.run([mpiexec, "--version"], capture_output=True, text=True, check=False).stdout
        line = [mpiexec]
        if "Open MPI" in version or "prte" in version.lower():
            line += ["--tag-output"]
            if self.hosts:
                share = -(-self.n // len(self.hosts))
                line += ["--host", ",".join(f"{one}:{share}" for one in self.hosts)]
                line += ["--prtemca", "plm_ssh_agent", self.agent] if self.agent else []
        else:
            line += ["-prepend-rank"]
            if self.hosts:
                line += ["-hosts", ",".join(self.hosts), "-ppn", str(-(-self.n // len(self.hosts)))]
                line += ["-launcher", "ssh", "-launcher-exec", self.agent] if self.agent else []
        return [*line, "-n", str(self.n), sys.executable, "-m", "tensorcore.distributed.rank", *self.command]

    def _environment(self, job: Path) -> dict[str, str]:
        share = str(max(1, (os.cpu_count() or 1) * len(self.hosts or "1") // self.n))
        made = {name: share for name in _THREADS if name not in os.environ}
        made |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        made["PRTE_MCA_rmaps_default_mapping_policy"] = ":oversubscribe"
        seen = {DASHBOARD: str(job / "dashboard")} if self.dashboard else {}
        return {**os.environ, **made, JOB: str(job), "TENSORCORE_RESTART": str(self.attempt), **seen}

    def _read(self, pipe: TextIO, out: TextIO) -> None:
        with pipe:
            self._pass_on(pipe, out)

    def _pass_on(self, pipe: TextIO, out: TextIO) -> None:
        for line in pipe:
            if re.match(r"\[[\d,]+\](?! Abort\(\d+\) on node)", line):
                out.write(line)
                out.flush()
            elif line.strip():
                self.own.append(line)

    def _wait(self, process: subprocess.Popen[str], job: Path) -> int:
        while True:
            try:
                return process.wait(0.05)
            except subprocess.TimeoutExpired:
                if any(job.glob("failed-*")) or any(job.glob("lost-*")):
                    break
        try:
            return process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            return self._end(process, signal.SIGTERM)

    def _end(self, process: subprocess.Popen[str], how: signal.Signals) -> int:
        process.send_signal(how)
        try:
            return process.wait(0.5)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()

    def _conclude(self, code: int, job: Path) -> int:
        """Say last what went wrong first, and the exit code."""
        reports = sorted(
            (json.loads(one.read_text()) for kind in ("failed", "lost") for one in job.glob(f"{kind}-*")),
            # Who failed before who noticed it.
            key=lambda one: (any(sign in one.get("text", "") for sign in (KILLED, "it gave up: ")), one["time"]),
        )
        if not reports:
            if code:
                sys.stderr.write("".join(self.own))
            return code if code >= 0 else 128 - code
        _sweep(self.start)
        first = reports[0]
        if "signal" in first:
            name = signal.Signals(first["signal"]).name
            sys.stderr.write(f"rank {first['rank']} of {self.n} was killed by signal {first['signal']} ({name})\n")
        else:
            sys.stderr.write(
                f"rank {first['rank']} of {self.n} failed first, exit code {first['code']}:\n{first['text']}"
            )
        return int(first["code"])


def _sweep(start: float) -> None:
    """Remove the shared memory that MPICH leaves behind when it is killed: files since then that no process maps.

    A file goes where two looks have found it so: another job beside this one may have made its file and not mapped it yet.
    """
    unused: set[Path] = set()
    for _ in range(10):
        left = []
        for one in Path("/dev/shm").glob("mpich_shm_*"):
            with contextlib.suppress(OSError):  # its job has removed it meanwhile
                left += [one] if one.stat().st_mtime >= start else []
        if not left:
            return
        used = ""
        for maps in Path("/proc").glob("[0-9]*/maps"):
            with contextlib.suppress(OSError):
                used += maps.read_text()
        now = {one for one in left if one.name not in used}
        for one in unused & now:
            one.unlink(missing_ok=True)
        unused = now
        time.sleep(0.05)  # for ranks that the kernel has not taken down yet


def _run_threads(command: list[str], n: int) -> int:
    from tensorcore.distributed.threads import run_threads

    try:
        with contextlib.redirect_stdout(_WholeLines(sys.stdout)):
            run_threads(_run_whole, n, command)
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    except Exception as error:
        import traceback

        sys.stderr.write("".join(traceback.format_exception(error)))
        return 1
    return 0


def _run_whole(command: list[str]) -> None:
    try:
        run_program(command)
    finally:
        sys.stdout.flush()  # a last line without an end


class _WholeLines(io.TextIOBase):
    """A stream that several threads print to: no line of one stands within a line of another.

    ``print`` writes each of its arguments by itself, so what a thread has begun is kept until its line ends.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._begun = threading.local()

    def write(self, text: str) -> int:
        whole, newline, rest = (getattr(self._begun, "text", "") + text).rpartition("\n")
        if newline:
            self._stream.write(whole + newline)
        self._begun.text = rest
        return len(text)

    def flush(self) -> None:
        self._stream.write(getattr(self._begun, "text", ""))
        self._begun.text = ""
        self._stream.flush()

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._stream.fileno()


def find_mpiexec() -> str:
    beside = [Path(sys.prefix, "bin", "mpiexec"), Path(sys.executable).with_name("mpiexec")]
    for one in beside:
        if one.exists():
            return str(one)
    found = shutil.which("mpiexec")
    if found is None:
        raise CommunicatorError(
            "launch: expected an MPI launcher, got no mpiexec; pip install 'tensorcore[mpi]', or run with --threads"
        )
    return found


if __name__ == "__main__":
    sys.exit(main())
