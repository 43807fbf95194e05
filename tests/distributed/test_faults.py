"""One rank fails: the others hear of it, within their deadline, in words that name it."""

from __future__ import annotations

import re
import threading
from datetime import timedelta
from pathlib import Path

import pytest

import tensorcore as torch
import tensorcore.distributed as dist
from tensorcore.distributed import checkpoint
from tensorcore.distributed.board import Board

from .worlds import world


def heard(size, act):
    """The errors of all ranks, as text. Nobody waits for a deadline: it is further away than a test may last."""
    texts = {}

    def run():
        rank = dist.get_rank()
        try:
            act(rank)
        except Exception as error:
            texts[rank] = f"{type(error).__name__}: {error}"
            raise

    with pytest.raises((RuntimeError, ValueError)):
        world(size, run, timeout=600)
    return texts


def test_an_exception_on_one_rank_ends_the_others() -> None:
    """The others' collectives raise at once with the reason, and the first error is the one that comes out."""

    def act(rank):
        if rank == 1:
            raise ValueError("boom")
        dist.all_reduce(torch.ones(1))

    with pytest.raises(ValueError, match="boom") as caught:
        world(3, lambda: act(dist.get_rank()))
    assert caught.value.__notes__ == ["on rank 1 of 3"]
    texts = heard(3, act)
    assert "rank 1 gave up: ValueError: boom" in texts[0]
    assert "rank 1 gave up: ValueError: boom" in texts[2]


def test_an_exception_before_init_ends_the_others() -> None:
    """Ranks that wait for one in init_process_group hear why it does not come."""

    def act():
        if threading.current_thread().name == "rank 1":
            raise ValueError("early")
        dist.init_process_group()

    with pytest.raises(ValueError, match="early"):
        dist.run_threads(act, 2)


def test_a_rank_that_has_left_is_named() -> None:
    """Waiting for a rank whose program has ended raises at once."""

    def act(rank):
        if rank == 0:
            dist.all_reduce(torch.ones(1))

    texts = heard(2, act)
    assert "all_reduce(SUM, float32 [1]): expected rank 1 to take part, got none: it has ended its program" in texts[0]


def test_a_late_rank_is_named_with_its_place() -> None:
    """After the timeout the error says who is missing, what it last did and where it is."""
    over = threading.Event()

    def act(rank):
        hasty = dist.new_group(timeout=timedelta(seconds=0.3))
        if rank == 1:
            busy_until(over)
        try:
            dist.all_reduce(torch.ones(3), group=hasty)
        finally:
            over.set()

    texts = heard(2, act)
    assert texts[0].startswith(
        "CommunicatorTimeout: all_reduce(SUM, float32 [3]) #1 of group 'group 1': expected all ranks within 0.3 s on rank 0, "
        "got: rank 1 never called it: its last call was #1 new_group([0, 1]); it is at test_faults.py:"
    )
    assert "busy_until: event.wait(600)" in texts[0], texts[0]
    assert "rank 0 gave up" in texts[1]


def busy_until(event):
    event.wait(600)


@pytest.mark.parametrize(
    ("other", "seen"),
    [
        (lambda: dist.all_reduce(torch.ones(4)), "all_reduce(SUM, float32 [4])"),
        (lambda: dist.all_reduce(torch.ones(3).double()), "all_reduce(SUM, float64 [3])"),
        (lambda: dist.all_reduce(torch.ones(3), dist.ReduceOp.MAX), "all_reduce(MAX, float32 [3])"),
        (lambda: dist.barrier(), "barrier()"),
        (lambda: dist.broadcast(torch.ones(3), 0), "broadcast(from 0, float32 [3])"),
    ],
)
def test_different_calls_are_found_out(other, seen) -> None:
    """Shapes, dtypes, ops and order that differ raise on all ranks, before anything is combined."""

    def act(rank):
        dist.barrier()
        other() if rank == 1 else dist.all_reduce(torch.ones(3))

    texts = heard(2, act)
    assert "expected the same call on all ranks as #2 of group 'world'" in "".join(texts.values())
    assert f"rank 0: all_reduce(SUM, float32 [3]); rank 1: {seen}" in "".join(texts.values())
    assert "Before that: rank 0: #1 barrier()" in "".join(texts.values())
    assert len(texts) == 2


def test_the_second_error_does_not_hide_the_first() -> None:
    """A group that failed refuses later calls with the reason."""

    def act(rank):
        if rank == 1:
            dist.barrier()
        with pytest.raises(RuntimeError, match="expected the same call"):
            dist.all_reduce(torch.ones(3))
        dist.all_reduce(torch.ones(3))

    texts = heard(2, act)
    assert re.search("expected a group that works, got one that is over: .*: expected the same call", texts[0])


def test_a_message_that_does_not_come_names_the_sender() -> None:
    """A receive times out with where the sender is."""
    over = threading.Event()

    def act(rank):
        hasty = dist.new_group(timeout=timedelta(seconds=0.3))
        if rank == 1:
            busy_until(over)
            return
        try:
            dist.recv(torch.ones(1), 1, group=hasty)
        finally:
            over.set()

    texts = heard(2, act)
    assert "recv(from rank 1, float32 [1], tag 0): expected all ranks within 0.3 s on rank 0, got: rank 1" in texts[0]
    assert "busy_until" in texts[0]


def test_a_timeout_of_ones_own() -> None:
    """wait and monitored_barrier take a timeout that is shorter than the group's."""
    over = threading.Event()

    def act(rank):
        if rank == 1:
            busy_until(over)
        try:
            dist.monitored_barrier(timeout=timedelta(seconds=0.2))
        finally:
            over.set()

    texts = heard(2, act)
    assert "monitored_barrier() #1 of group 'world': expected all ranks within 0.2 s" in texts[0]


PROGRAM = """
import os, resource, signal, sys, time
from datetime import timedelta
import tensorcore as torch, tensorcore.distributed as dist

def busy_elsewhere():
    time.sleep(600)

dist.init_process_group()
print("pid", os.getpid(), flush=True)
group = dist.new_group(timeout=timedelta(seconds=float(sys.argv[2])))
x = torch.ones(3)
dist.all_reduce(x)
if dist.get_rank() == 2:
    {
        "raise": lambda: 1 / 0,
        "exit": lambda: sys.exit(3),
        "end": lambda: sys.exit(0),
        "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
        "segv": lambda: os.kill(os.getpid(), signal.SIGSEGV),
        "stop": lambda: os.kill(os.getpid(), signal.SIGSTOP),
        "late": busy_elsewhere,
        "shape": lambda: dist.all_reduce(torch.ones(4), group=group),
        "order": lambda: dist.barrier(group),
        "memory": lambda: (resource.setrlimit(resource.RLIMIT_AS, (1 << 33, 1 << 33)), torch.ones(1 << 33)),
    }[sys.argv[1]]()
dist.all_reduce(x, group=group)
"""


@pytest.mark.parametrize(
    ("fault", "timeout", "code", "said"),
    [
        ("raise", 600, 1, "rank 2 of 3 failed first, exit code 1:\n.*ZeroDivisionError: division by zero\n$"),
        ("exit", 600, 3, r"rank 2 of 3 failed first, exit code 3:\nsys.exit\(3\)\n$"),
        ("end", 600, 1, "expected rank 2 to take part, got none: it has ended its program, or left the group\n$"),
        ("kill", 600, 137, r"rank 2 of 3 was killed by signal 9 \(SIGKILL\)\n$"),
        ("segv", 600, 139, r"rank 2 of 3 was killed by signal 11 \(SIGSEGV\)\n$"),
        ("stop", 3, 1, "rank 2 never called it: .*; its process was stopped by a signal; SIGCONT lets it go on"),
        ("late", 3, 1, r"rank 2 never called it: its last call was #2 .* busy_elsewhere: time.sleep\(600\)\n$"),
        ("shape", 600, 1, r"rank 2: all_reduce\(SUM, float32 \[4\]\)"),
        ("order", 600, 1, r"rank 2: barrier\(\)"),
        ("memory", 600, 1, "rank 2 of 3 failed first, exit code 1:\n.*OutOfMemoryError: full: expected room"),
    ],
)
def test_faults_over_mpi(launched, fault, timeout, code, said) -> None:
    """Each fault ends the whole job, before a timeout but for those that say nothing; the culprit is named last."""
    ended = launched(PROGRAM, 3, fault, str(timeout))
    assert ended.code == code, ended.err
    assert re.search(said, ended.err, re.DOTALL), ended.err
    pids = [int(line.split()[-1]) for line in ended.out.splitlines() if " pid " in line]
    assert len(pids) == 3
    assert not [one for pid in pids for one in Path("/dev/shm").glob(f"tensorcore-*-{pid}-*")]


def test_a_full_disk_at_a_checkpoint(launched, tmp_path) -> None:
    """A rank that cannot write ends the job with its reason, and the checkpoint before is whole."""
    ended = launched(
        """
        import resource, signal, sys
        import tensorcore as torch, tensorcore.distributed as dist
        from tensorcore.distributed import checkpoint
        from tensorcore.distributed.device_mesh import init_device_mesh
        from tensorcore.distributed.tensor import Shard, ones

        dist.init_process_group()
        mesh = init_device_mesh("cpu", (3,))
        for count in (30, 300_000):
            if count > 30 and dist.get_rank() == 1:
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
                resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
            state = {"x": ones(count, device_mesh=mesh, placements=[Shard(0)]), "count": count}
            checkpoint.save(state, checkpoint_id=sys.argv[1])
        """,
        3,
        str(tmp_path / "best"),
    )
    assert ended.code == 1
    assert re.search(
        r"CheckpointException: save: .*got rank 1: OSError: .*File too large; what was there before", ended.err
    )
    found = {"x": torch.zeros(30), "count": 0}
    checkpoint.load(found, checkpoint_id=tmp_path / "best")
    assert (found["x"].sum().item(), found["count"]) == (30.0, 30)
    assert not list(tmp_path.glob(".best*"))


def test_calls_are_compared_by_messages(monkeypatch) -> None:
    """TENSORCORE_CHECK_COLLECTIVES finds calls that differ where the ranks cannot see one another's board."""
    monkeypatch.setattr(Board, "differs", lambda *_: False)
    monkeypatch.setenv("TENSORCORE_CHECK_COLLECTIVES", "1")

    def act(rank):
        dist.all_reduce(torch.ones(1))
        dist.all_reduce(torch.ones(2 + rank))

    texts = heard(2, act)
    for text in texts.values():
        assert (
            "expected the same call on all ranks as #2 of group 'world', got rank 0: all_reduce(SUM, float32 [2])"
            in text
        )
        assert "rank 1: all_reduce(SUM, float32 [3])" in text
    assert len(texts) == 2
