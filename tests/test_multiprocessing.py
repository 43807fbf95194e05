"""Tensors in memory that several processes see: forked, in queues and pipes, and processes that are started together."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import tensorcore as tc
from tensorcore import multiprocessing as mp
from tensorcore.parameter import Parameter

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="memory is shared by file handles")


def fill(index: int, x: Any, value: float) -> None:
    x[index] = value + index


def fail(index: int, how: str) -> None:
    if index == 1:
        if how == "raise":
            raise ValueError("what it was")
        if how == "exit":
            os._exit(3)
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)


def echo(received: Any, answers: Any) -> None:
    x = received.get()
    x += 1
    answers.put("done")


class TestSharing:
    """``share_memory_``."""

    def test_a_forked_process_writes(self) -> None:
        """Values that a child writes are seen here; strides, offset, grad and the object itself stay."""
        x = Parameter(tc.arange(6.0).reshape(2, 3).t())
        assert not x.is_shared()
        assert x.share_memory_() is x
        assert (x.is_shared(), x.stride(), x.requires_grad, x.is_leaf) == (True, (1, 3), True, True)
        memory = x.data_ptr()
        child = os.fork()
        if not child:
            x.data.fill_(7)
            os._exit(0)
        os.waitpid(child, 0)
        assert x.tolist() == [[7.0, 7.0]] * 3
        assert x.share_memory_().data_ptr() == memory
        assert x[1:].is_shared()

    @pytest.mark.parametrize("value", [tc.zeros(0, 3), tc.tensor(5), tc.ones(3, dtype=tc.bfloat16), tc.ones(5)[2:]])
    def test_every_shape(self, value: Any) -> None:
        """Empty, 0-d, of NumPy's extension dtypes, and parts."""
        expected = value.tolist()
        assert value.clone().share_memory_().tolist() == expected
        assert value.share_memory_().tolist() == expected

    def test_other_devices_refuse(self) -> None:
        """Only the host's memory can be shared."""
        assert not tc.ones(2, device="meta").is_shared()
        with pytest.raises(NotImplementedError, match="share_memory_"):
            tc.ones(2, device="meta").share_memory_()

    def test_nothing_is_left(self) -> None:
        """Memory and handle go with the last tensor that shows them."""
        if not Path("/proc/self/fd").exists():
            pytest.skip("needs /proc")
        before = len(os.listdir("/proc/self/fd"))
        x = tc.ones(10).share_memory_()
        part = x[2:]
        del x
        assert len(os.listdir("/proc/self/fd")) > before
        assert part.tolist() == [1.0] * 8
        del part
        gc.collect()
        assert len(os.listdir("/proc/self/fd")) == before


class TestQueues:
    """Tensors between processes."""

    def test_a_queue(self) -> None:
        """The receiver writes into the sender's memory."""
        context = mp.get_context("fork")
        sent, answers = context.SimpleQueue(), context.SimpleQueue()
        child = context.Process(target=echo, args=(sent, answers))
        child.start()
        x = tc.zeros(2, 2, requires_grad=False)
        sent.put(x)
        assert answers.get() == "done"
        child.join()
        assert x.tolist() == [[1.0, 1.0]] * 2

    def test_what_comes_back(self) -> None:
        """Parameters, attributes and views of one storage are what they were."""
        ours, theirs = mp.Pipe()
        p = Parameter(tc.arange(4.0))
        p.note = "kept"
        theirs.send([p, p.data[1:3].t()])
        first, second = ours.recv()
        assert isinstance(first, Parameter)
        assert (first.note, first.requires_grad, second.tolist()) == ("kept", True, [1.0, 2.0])
        first.data.zero_()
        assert p.tolist() == [0.0] * 4

    def test_names_of_multiprocessing(self) -> None:
        """Its names are here, too, and the one strategy."""
        import multiprocessing

        assert mp.Queue == multiprocessing.Queue
        assert tc.multiprocessing.Process is multiprocessing.Process
        assert mp.get_sharing_strategy() in mp.get_all_sharing_strategies()
        mp.set_sharing_strategy("file_descriptor")
        with pytest.raises(ValueError, match="file_system"):
            mp.set_sharing_strategy("file_system")


class TestSpawn:
    """Processes that are started together."""

    def test_they_work(self) -> None:
        """Each gets its number and the arguments; tensors are shared."""
        x = tc.zeros(2).share_memory_()
        mp.spawn(fill, (x, 5.0), nprocs=2, start_method="fork")
        assert x.tolist() == [5.0, 6.0]

    @pytest.mark.parametrize(
        "how, error, text",
        [
            ("raise", mp.ProcessRaisedException, "(?s)Process 1 terminated.*what it was"),
            ("exit", mp.ProcessExitedException, "process 1 terminated with exit code 3"),
            ("kill", mp.ProcessExitedException, "process 1 terminated with signal SIGKILL"),
        ],
    )
    def test_one_fails(self, how: str, error: type, text: str) -> None:
        """The failure is raised with what is known, and the others end."""
        context = mp.spawn(fail, (how,), nprocs=3, join=False, start_method="fork")
        assert len(context.pids()) == 3
        with pytest.raises(error, match=text) as caught:
            context.join()
        assert caught.value.error_index == 1
        assert not any(process.is_alive() for process in context.processes)

    def test_waiting_for_a_while(self) -> None:
        """``join`` with a timeout says whether all have ended."""
        context = mp.spawn(time.sleep, (), nprocs=1, join=False, start_method="fork")
        assert context.join(10)
        context = mp.spawn(fail, ("sleep",), nprocs=1, join=False, daemon=True, start_method="fork")
        assert not context.join(0.05)
        context.processes[0].terminate()
        with pytest.raises(mp.ProcessExitedException, match="SIGTERM"):
            context.join()

    def test_from_anew(self, tmp_path: Path) -> None:
        """A program whose processes start anew shares the tensors that it gives them."""
        (tmp_path / "main.py").write_text(
            "import tensorcore as torch\nimport tensorcore.multiprocessing as mp\n"
            "def work(i, x): x[i] = i + 1\n"
            "if __name__ == '__main__':\n    x = torch.zeros(2)\n    mp.spawn(work, (x,), nprocs=2)\n    print(x.tolist())\n"
        )
        done = subprocess.run([sys.executable, tmp_path / "main.py"], capture_output=True, text=True, check=False)
        assert (done.stdout, done.stderr) == ("[1.0, 2.0]\n", "")


BESIDE_THREADS = """
import os, signal, threading
import tensorcore as tc

def work():
    w = tc.randn(40, 40, requires_grad=True)
    with tc.lazy():
        (tc.randn(40, 40) @ tc.randn(40, 40)).sum().item()
    (tc.randn(40, 40) @ w).sum().backward()
    w.sum().backward()

def on():
    while running:
        work()

work()
running = True
threads = [threading.Thread(target=on) for _ in range(3)]
for one in threads:
    one.start()
ended = []
for _ in range(25):
    child = os.fork()
    if not child:
        signal.alarm(60)  # ends a child that waits for a lock
        tc.manual_seed(3)
        first = tc.randn(5).tolist()
        work()
        tc.manual_seed(3)
        os._exit(tc.randn(5).tolist() != first)
    ended.append(os.waitpid(child, 0)[1])
    if ended[-1]:
        break
running = False
print(ended)
"""


def test_a_child_of_busy_threads_draws_and_trains() -> None:
    """Whatever other threads were in the middle of, a forked child finds generators, gradients and lazy values free."""
    done = subprocess.run([sys.executable, "-c", BESIDE_THREADS], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.returncode) == (str([0] * 25), 0), done.stderr
