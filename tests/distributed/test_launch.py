"""The launcher: what ranks find around them, what one sees of them, and that nothing of them stays."""

from __future__ import annotations

import importlib.util
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from tensorcore.distributed import dashboard
from tensorcore.distributed.launch import find_mpiexec
from tensorcore.distributed.meeting import first_host, read_slurm

from .conftest import HANGS, ROOT

HELLO = """
    import os, sys
    import tensorcore as torch, tensorcore.distributed as dist

    dist.init_process_group()
    x = torch.ones(1)
    dist.all_reduce(x)
    print("rank", dist.get_rank(), "of", dist.get_world_size(), "sum", int(x.item()), *sys.argv[1:])
    """


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def maps_of(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/maps").read_text("utf-8").splitlines()


def end_of(pids: list[int], seconds: float) -> list[int]:
    """The processes that are still there after so many seconds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and any(map(alive, pids)):
        time.sleep(0.05)
    return [one for one in pids if alive(one)]


def test_each_line_names_its_rank(launched) -> None:
    """Ranks get the program's arguments, and their lines come out whole, after their number."""
    ended = launched(HELLO, 3, "--lr", "0.1")
    assert ended.code == 0, ended.err
    assert sorted(ended.out.splitlines()) == [f"[{r}] rank {r} of 3 sum 3 --lr 0.1" for r in range(3)]


def test_threads_are_shared_out(launched, monkeypatch) -> None:
    """Each rank's libraries get its share of the processors, unless the caller has said how many."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setenv("MKL_NUM_THREADS", "7")
    ended = launched("import os; print(os.environ['OMP_NUM_THREADS'], os.environ['MKL_NUM_THREADS'])")
    share = max(1, (os.cpu_count() or 1) // 2)
    assert sorted(ended.out.splitlines()) == [f"[0] {share} 7", f"[1] {share} 7"]


def test_a_module_may_be_the_program(launched) -> None:
    """``-m`` runs a module, with arguments of its own."""
    ended = launched("", 2, "-m", "tests.distributed.answering", "-n", "x", program=False)
    assert sorted(ended.out.splitlines()) == ["[0] ['-n', 'x']", "[1] ['-n', 'x']"], ended.err


def test_the_command_line_launches(launched) -> None:
    """``tensorcore launch`` is the same launcher."""
    ended = launched(HELLO, 2, "-n", "5", module=["tensorcore", "launch"])
    assert sorted(ended.out.splitlines()) == [f"[{r}] rank {r} of 2 sum 2 -n 5" for r in range(2)], ended.err


def test_ranks_may_be_threads(launched) -> None:
    """``--threads`` needs no MPI."""
    ended = launched(HELLO, 2, options=["--threads"])
    assert sorted(ended.out.splitlines()) == [f"rank {r} of 2 sum 2" for r in range(2)], ended.err


def test_restarts(launched) -> None:
    """A failed program starts again, knows that it does, and its success is that of the launcher."""
    program = """
        import os, sys
        import tensorcore.distributed as dist

        dist.init_process_group()
        attempt = int(os.environ["TENSORCORE_RESTART"])
        print("attempt", attempt)
        dist.barrier()
        if attempt < 2 and dist.get_rank() == 1:
            sys.exit(5)
        """
    ended = launched(program, 2, options=["--restarts", "3"])
    assert ended.code == 0, ended.err
    assert ended.out.count("attempt 2") == 2
    assert "attempt 3" not in ended.out
    assert "launch: exit code 5; restart 2 of 3" in ended.err
    assert launched(program, 2, options=["--restarts", "1"]).code == 5


def test_the_failing_ranks_traceback_is_last(launched) -> None:
    """Whatever the others print as they end, the last lines are the first failure's traceback."""
    ended = launched(
        """
        import tensorcore as torch, tensorcore.distributed as dist

        def wrong():
            raise KeyError("the cause")

        dist.init_process_group()
        dist.barrier()
        if dist.get_rank() == 1:
            wrong()
        dist.all_reduce(torch.ones(1))
        """,
        3,
    )
    assert ended.code == 1
    assert ended.err.rstrip().endswith("KeyError: 'the cause'")
    assert "in wrong" in ended.err.split("rank 1 of 3 failed first, exit code 1:")[1]


WAITING = """
    import os, sys, time
    import tensorcore.distributed as dist

    dist.init_process_group()
    dist.barrier()
    print("pid", os.getpid(), os.getppid(), flush=True)
    time.sleep(600)
    """


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_ranks_end_with_the_launcher(started, number) -> None:
    """A launcher that is killed, ended or interrupted leaves no process and no shared memory."""
    process = started(WAITING, 2)
    pids: list[int] = []
    while len(pids) < 4:
        line = process.stdout.readline()
        assert line, process.stderr.read()
        pids += [int(one) for one in line.split()[2:]]
    # Other tests beside this one have shared memory too: theirs is what these processes map.
    files = {line.split()[5] for pid in pids for line in maps_of(pid) if "/dev/shm/" in line}
    process.send_signal(number)
    assert process.wait(HANGS) != 0
    assert end_of(pids, HANGS) == []
    assert not [one for one in files if Path(one).exists()]


def test_an_existing_mpiexec(started) -> None:
    """Under mpiexec the launcher is one rank, and so is a program without it."""
    for line in (["-m", "tensorcore.distributed.launch"], []):
        process = started(HELLO, line=[find_mpiexec(), "-n", "2", sys.executable, *line])
        out, err = process.communicate(timeout=HANGS)
        assert sorted(out.splitlines()) == [f"rank {r} of 2 sum 2" for r in range(2)], err


@contextmanager
def reserved_port() -> Iterator[int]:
    """A port that nobody else is given meanwhile, and that a server may listen at who reuses addresses, as ours does."""
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        one.bind(("", 0))
        yield one.getsockname()[1]


@pytest.mark.parametrize("kind", ["torchrun", "srun"])
def test_processes_that_something_else_started(started, kind) -> None:
    """torchrun's variables, or srun's, are enough for MPI to find the others."""
    if importlib.util.find_spec("mpich") is None and not Path(sys.prefix, "bin", "mpiexec").exists():
        pytest.skip("an MPI other than MPICH has another way of finding its processes")
    with reserved_port() as port:
        ended = meeting_at(port, started, kind)
    assert [out for _, out, _ in ended] == ["rank 1 of 2 sum 2\n", "rank 0 of 2 sum 2\n"], ended
    assert [code for code, _, _ in ended] == [0, 0], ended


def meeting_at(port, started, kind):
    """The exit codes of two processes that find one another at a port, what they print, and what they say of errors."""
    processes = []
    for rank in (1, 0):
        known = {
            "torchrun": {"RANK": rank, "WORLD_SIZE": 2, "LOCAL_RANK": rank, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port - 1},
            "srun": {"SLURM_STEP_ID": 0, "SLURM_JOB_ID": 7, "SLURM_PROCID": rank, "SLURM_NTASKS": 2, "SLURM_LOCALID": rank,
                     "SLURM_JOB_NODELIST": "localhost", "MASTER_PORT": port - 1},
        }[kind]  # fmt: skip
        processes.append(started(HELLO, line=[sys.executable], **{name: str(one) for name, one in known.items()}))
    said = [one.communicate(timeout=HANGS) for one in processes]
    return [(one.returncode, *texts) for one, texts in zip(processes, said, strict=True)]


def test_what_slurm_says() -> None:
    """srun's variables become torchrun's; outside of a step, and where RANK is set, nothing changes."""
    asked = {"SLURM_STEP_ID": "1", "SLURM_JOB_ID": "4", "SLURM_PROCID": "3", "SLURM_NTASKS": "8", "SLURM_LOCALID": "1",
             "SLURM_JOB_NODELIST": "gpu[007-009,12],other"}  # fmt: skip
    read_slurm(asked)
    found = {name: asked[name] for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")}
    assert found == {"RANK": "3", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "MASTER_ADDR": "gpu007", "MASTER_PORT": "15041"}
    for known in ({"SLURM_PROCID": "0"}, {"SLURM_STEP_ID": "0", "SLURM_PROCID": "1", "RANK": "5"}):
        before = dict(known)
        read_slurm(known)
        assert known == before
    assert [first_host(one) for one in ("a", "a,b", "n[3,5]", "n[1-2]-x,y")] == ["a", "a", "n3", "n1-x"]


def test_the_dashboard(launched) -> None:
    """One table shows each rank's steps, their time, and how much of its time a rank waits for the others."""
    ended = launched(
        """
        import time
        import tensorcore as torch, tensorcore.distributed as dist

        dist.init_process_group()
        w = torch.ones(1, requires_grad=True)
        optimizer = torch.optim.SGD([w])
        for _ in range(3 + dist.get_rank()):
            (w * 2).sum().backward()
            optimizer.step()
        time.sleep(1.5 * dist.get_rank())
        dist.barrier()
        print("done")
        """,
        2,
        options=["--dashboard"],
        COLUMNS="100",
    )
    assert ended.code == 0, ended.err
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in ended.err.splitlines() if "ms" in line]
    assert [row[:2] for row in cells] == [["0", "3"], ["1", "4"]], ended.err
    waits = [int(row[4].split()[0]) for row in cells]
    assert waits[0] > waits[1]
    assert ended.out.count("done") == 2


def test_a_row_of_the_dashboard() -> None:
    """What is waited for is named while it lasts; a rank that has not come says so."""
    memory = bytearray(2 * 128)
    meter = dashboard.Meter(memory, 1)
    found = np.frombuffer(memory, meter.row.dtype, 2)
    with meter.waiting("all_reduce(SUM, float32 [3])"):
        made = dashboard.table(found, time.time())
    assert list(made.columns[5].cells) == ["not in a group on this host", "all_reduce(SUM, float32 [3])"]
    assert list(dashboard.table(found, time.time()).columns[5].cells)[1] == ""


def test_without_a_program() -> None:
    """The launcher says what is missing, and how it is called."""
    done = subprocess.run(
        [sys.executable, "-m", "tensorcore.distributed.launch", "-n", "2"], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'plugins'}"},
    )  # fmt: skip
    assert done.returncode == 2
    assert "expected a script, or -m and a module, got none" in done.stderr
