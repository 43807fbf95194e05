"""Loading in worker processes: order, seeds, memory, and whatever can go wrong with a process."""

from __future__ import annotations

import faulthandler
import gc
import io
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorcore as tc
from tensorcore.utils import data
from tests.data import loading

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="workers are tested where processes can fork")


@pytest.fixture(autouse=True)
def few_processes_are_enough(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Machines with one core would warn of two workers; and no test leaves a process behind."""
    monkeypatch.setattr(data.dataloader, "_warn_of_crowd", lambda count: None)
    yield
    gc.collect()
    assert multiprocessing.active_children() == []


def values(loader: Any) -> list[Any]:
    return [y.tolist() for _, y in loader]


class TestOrder:
    """Batches are those that the main process would make."""

    @pytest.mark.parametrize("workers", [1, 2, 3])
    def test_batches_come_in_order(self, workers: int) -> None:
        """Whatever worker is first, values and order are the sampler's."""
        for x, y in data.DataLoader(loading.Numbers(10), 4, num_workers=workers):
            assert x[:, 3, 4].tolist() == y.tolist()
        assert values(data.DataLoader(loading.Numbers(10), 4, num_workers=workers)) == [
            [0, 1, 2, 3],
            [4, 5, 6, 7],
            [8, 9],
        ]

    def test_standard_error_that_is_no_file(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A notebook's or a test's stand-in for ``sys.stderr`` does not hurt the workers."""
        monkeypatch.setattr(sys, "stderr", io.StringIO())
        monkeypatch.setattr(faulthandler, "is_enabled", lambda: False)  # pytest has enabled it
        assert values(data.DataLoader(loading.Numbers(3), 2, num_workers=1)) == [[0, 1], [2]]

    def test_out_of_order(self) -> None:
        """With ``in_order=False`` every batch comes once."""
        found = values(data.DataLoader(loading.Numbers(40), 4, num_workers=2, in_order=False))
        assert sorted(found) == [list(range(i, i + 4)) for i in range(0, 40, 4)]

    @pytest.mark.parametrize("options", [{"batch_size": None}, {"batch_sampler": [[3, 1], [2]]}, {"sampler": [4, 2], "batch_size": 2},
                                         {"batch_size": 3, "drop_last": True}, {"batch_size": 2, "prefetch_factor": 5}])  # fmt: skip
    def test_every_way_to_batch(self, options: Any) -> None:
        """Samplers, batch samplers and single samples go as they do without workers."""
        alone = data.DataLoader(loading.Numbers(8), **{k: v for k, v in options.items() if k != "prefetch_factor"})
        expected = [repr(one) for one in alone]
        assert [repr(one) for one in data.DataLoader(loading.Numbers(8), num_workers=2, **options)] == expected

    def test_a_tensor_dataset(self) -> None:
        """The batch that is gathered at once is the one that is stacked."""
        loader = data.DataLoader(data.TensorDataset(tc.arange(5000).reshape(5, 1000)), 2, num_workers=2)
        assert [x[:, 0].tolist() for (x,) in loader] == [[0, 1000], [2000, 3000], [4000]]

    def test_samples_of_every_kind(self) -> None:
        """Text, arrays, views, strides, dtypes and what is long cross as they are."""
        loader = data.DataLoader(loading.Odd(), 1, num_workers=1, collate_fn=loading.as_they_are)
        for index, ((theirs,), ours) in enumerate(zip(loader, (loading.Odd()[i] for i in range(3)), strict=True)):
            assert theirs["view"].tolist() == [index, index + 1, index + 2]
            assert theirs["view"].untyped_storage().nbytes() < 1000
            assert theirs["turned"].stride() == ours["turned"].stride()
            assert theirs["grad"].requires_grad
            assert {k: v for k, v in theirs.items() if isinstance(v, str | bytes | None)} == {
                k: v for k, v in ours.items() if isinstance(v, str | bytes | None)
            }
            for name in ("array", "half", "complex", "empty", "turned"):
                assert (theirs[name].dtype, theirs[name].tolist()) == (ours[name].dtype, ours[name].tolist())

    def test_shared_memory_is_the_batchs_own(self) -> None:
        """Batches can be kept and written to; two tensors over one storage stay so."""
        kept = list(data.DataLoader(loading.Numbers(12), 2, num_workers=2))
        for x, _ in kept:
            x.add_(1)
        assert [x[:, 0, 0].tolist() for x, _ in kept] == [[i + 1.0, i + 2.0] for i in range(0, 12, 2)]

    def test_a_stream(self) -> None:
        """Each worker gives its part; the batches of one that has ended are made up for by none."""
        loader = data.DataLoader(loading.Split(), 2, num_workers=2)
        assert [x.tolist() for x in loader] == [[0, 2], [1, 3], [4, 6], [5, 7], [8], [9]]
        assert [x.tolist() for x in data.DataLoader(loading.Split(3), 2, num_workers=2, drop_last=True)] == [[0, 2]]
        assert sorted(x for x in data.DataLoader(loading.Split(5), None, num_workers=2)) == [0, 1, 2, 3, 4]

    def test_more_than_was_promised(self) -> None:
        """A stream that each worker gives whole is longer than its length, which is said."""

        class Whole(data.IterableDataset):
            def __iter__(self) -> Any:
                return iter(range(3))

            def __len__(self) -> int:
                return 3

        loader = data.DataLoader(Whole(), None, num_workers=2)
        assert len(loader) == 3
        with pytest.warns(UserWarning, match="was reported to be 3"):
            assert len(list(loader)) == 6


class TestWorkers:
    """What a worker knows, and how long it lives."""

    def test_who_they_are(self) -> None:
        """Samples are loaded by turns in other processes; the main one has no worker's knowledge."""
        batches = list(data.DataLoader(loading.Who(), 2, num_workers=2))
        assert [i.tolist() for i, *_ in batches] == [[0, 1], [2, 3], [4, 5], [6, 7]]
        assert [who.tolist() for _, who, _, _ in batches] == [[0, 0], [1, 1], [0, 0], [1, 1]]
        assert {count for _, _, counts, _ in batches for count in counts.tolist()} == {2}
        assert os.getpid() not in {p for *_, pids in batches for p in pids.tolist()}
        assert data.get_worker_info() is None

    def test_persistent_workers(self) -> None:
        """They are the same in each pass, also after one that was left early; others are new."""
        loader = data.DataLoader(loading.Who(), 2, num_workers=2, persistent_workers=True)
        passes = [{p for *_, pids in loader for p in pids.tolist()} for _ in range(2)]
        assert passes[0] == passes[1]
        for _ in loader:
            break
        assert [i.tolist() for i, *_ in loader] == [[0, 1], [2, 3], [4, 5], [6, 7]]
        again = data.DataLoader(loading.Split(6), 2, num_workers=2, persistent_workers=True)
        assert [[x.tolist() for x in again] for _ in range(2)] == [[[0, 2], [1, 3], [4], [5]]] * 2

    def test_init_function(self) -> None:
        """It is called in each worker with its number, where the worker's knowledge is there."""

        def init(number: int) -> None:
            info = data.get_worker_info()
            assert info is not None
            info.dataset.count = 5 + number

        class Counted(loading.Numbers):
            def __getitem__(self, index: int) -> Any:
                return self.count

        loader = data.DataLoader(Counted(4), 1, num_workers=2, worker_init_fn=init)
        assert [x.item() for x in loader] == [5, 6, 5, 6]

    @pytest.mark.parametrize("method", ["forkserver", "spawn"])
    def test_start_methods(self, method: str) -> None:
        """Workers that start anew load the same."""
        for context in (method, multiprocessing.get_context(method)):
            loader = data.DataLoader(loading.Numbers(6), 2, num_workers=1, multiprocessing_context=context)
            assert values(loader) == [[0, 1], [2, 3], [4, 5]]

    def test_no_fork_of_a_device_in_use(self) -> None:
        """Once a device with memory of its own was made, workers do not start by a fork."""
        from tensorcore.backend.registry import isolated_registry
        from tensorcore.plugin import Capabilities, XPBackend, hookimpl
        from tensorcore.utils.data.crew import context_for

        class Far(XPBackend):
            capabilities = Capabilities(("bool", "int64", "float32"), host=False)

        class Plugin:
            @hookimpl
            def register_backends(self, register: Any) -> None:
                register("far", lambda index: Far(np, "far", index))

        with isolated_registry(Plugin()):
            tc.device("meta")
            assert context_for(None).get_start_method() == multiprocessing.get_start_method()
            tc.device("far")
            assert context_for(None).get_start_method() == "forkserver"
            assert context_for(multiprocessing.get_context("fork")).get_start_method() == "fork"

    def test_leaving_early_ends_them(self) -> None:
        """A pass that is left leaves no process, no handle and no thread behind."""
        if not Path("/proc/self/fd").exists():
            pytest.skip("needs /proc")
        for _ in data.DataLoader(loading.Numbers(), 2, num_workers=1):
            pass
        gc.collect()
        handles, threads = loading.open_files(), threading.active_count()
        for _ in range(3):
            for _ in data.DataLoader(loading.Numbers(), 2, num_workers=2):
                break
        gc.collect()
        assert (loading.open_files(), threading.active_count()) == (handles, threads)
        assert multiprocessing.active_children() == []

    def test_memory_is_used_again(self) -> None:
        """A long pass takes no more blocks than batches are alive at a time."""
        loader = iter(data.DataLoader(loading.Numbers(200), 4, num_workers=1))
        for _ in loader:
            blocks = len(loader._crew.workers[0].mapped.maps) if not loader._crew.closed else 0
            assert blocks <= 6


class TestSeeds:
    """Random numbers in workers."""

    @pytest.mark.oracle
    @pytest.mark.parametrize("own", [False, True])
    @pytest.mark.parametrize("workers", [1, 2])
    def test_numbers_are_pytorchs(self, torch: Any, own: bool, workers: int) -> None:
        """Python's, NumPy's and this library's numbers in each worker are those of PyTorch's workers, as is what follows."""
        import random

        found = []
        for library in (tc, torch):
            library.manual_seed(7)
            generator = library.Generator().manual_seed(9) if own else None

            class Drawn(library.utils.data.Dataset):
                def __getitem__(self, index: int, library: Any = library) -> Any:
                    return index, random.random(), float(np.random.rand()), library.rand(2)

                def __len__(self) -> int:
                    return 8

            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # PyTorch's, of the number of cores
                loader = library.utils.data.DataLoader(
                    Drawn(), 2, shuffle=True, num_workers=workers, generator=generator
                )
            passes = [[[one.tolist() for one in batch] for batch in loader] for _ in range(2)]
            found.append((passes, library.rand(2).tolist()))
        assert found[0] == found[1]

    @pytest.mark.parametrize("workers", [0, 1, 2])
    def test_seeds_of_items(self, workers: int) -> None:
        """With ``seed_items`` the numbers do not depend on the workers, and the main process's own are left alone."""
        tc.manual_seed(3)
        loader = data.DataLoader(loading.Drawn(), 2, num_workers=workers, seed_items=True)
        found = [[x.tolist() for x in batch] for batch in loader]
        after = tc.rand(1).item()
        tc.manual_seed(3)
        expected = [[x.tolist() for x in batch] for batch in data.DataLoader(loading.Drawn(), 2, seed_items=True)]
        assert found == expected
        assert after == tc.rand(1).item()
        assert found[0] != found[1]


class TestFailures:
    """Whatever happens in a worker, the main process is told at once."""

    @pytest.mark.parametrize("workers", [1, 2])
    @pytest.mark.parametrize("how, error", [("value", ValueError), ("key", KeyError), ("stop", StopIteration), ("two", RuntimeError),
                                            ("local", RuntimeError)])  # fmt: skip
    def test_an_exception(self, how: str, error: type, workers: int) -> None:
        """It is raised again, with the worker's traceback and the sample; batches before it come first."""
        loader = iter(data.DataLoader(loading.Failing(how), 2, num_workers=workers))
        assert [next(loader)[1].tolist() for _ in range(2)] == [[0, 1], [2, 3]]
        with pytest.raises(Exception, match=r"what it was|first") as caught:
            next(loader)
        assert type(caught.value) is (RuntimeError if how == "stop" and error is RuntimeError else error)
        text = str(caught.value)
        assert "in DataLoader worker process" in text
        assert "It was loading sample 5 for batch 2." in text
        assert "Original Traceback" in text
        assert "__getitem__" in text
        assert next(loader)[1].tolist() == [6, 7]

    def test_an_exception_that_is_caught_ends_the_workers(self) -> None:
        """Nothing keeps a pass that was left by an error, and no collection is needed for its workers to end."""
        gc.disable()
        try:
            with pytest.raises(ValueError, match="what it was"):
                list(data.DataLoader(loading.Failing("value"), 2, num_workers=2))
            assert multiprocessing.active_children() == []
        finally:
            gc.enable()

    @pytest.mark.parametrize("pinned", [False, True])
    @pytest.mark.parametrize(
        "how, text", [("kill", r"exit code -9: is killed by signal: Killed \(SIGKILL\)"), ("exit", "exit code 3")]
    )
    def test_a_death(self, how: str, text: str, pinned: bool, monkeypatch: Any) -> None:
        """It is told with the exit code and the sample within a moment, and the other workers end."""
        if pinned:
            monkeypatch.setattr(data.iterators, "_pin_device", lambda named: tc.device("cpu"))
        start = time.monotonic()
        with pytest.raises(
            RuntimeError, match=rf"DataLoader worker \(pid\(s\) \d+\) exited unexpectedly with {text}"
        ) as caught:
            list(data.DataLoader(loading.Failing(how), 2, num_workers=2, pin_memory=pinned))
        assert "sample 5, number 1 of batch 2" in str(caught.value)
        assert time.monotonic() - start < 5

    def test_killed_from_outside(self) -> None:
        """A worker that is idle may be killed, too: the next batch says so."""
        loader = iter(data.DataLoader(loading.Numbers(), 2, num_workers=1))
        next(loader)
        os.kill(loader._crew.workers[0].process.pid, signal.SIGKILL)
        with pytest.raises(RuntimeError, match="exited unexpectedly"):
            list(loader)
        with pytest.raises(RuntimeError, match="exited unexpectedly"):
            next(loader)

    def test_an_init_that_fails(self) -> None:
        """The first batch raises what worker_init_fn did."""
        with pytest.raises(ValueError, match=r"(?s)Caught ValueError in DataLoader worker process 0.*init of 0"):
            next(iter(data.DataLoader(loading.Numbers(), num_workers=2, worker_init_fn=loading.fail)))

    def test_timeout(self) -> None:
        """Waiting longer than allowed is an error, with PyTorch's words; the worker is ended."""
        loader = iter(data.DataLoader(loading.Failing("sleep"), 2, num_workers=1, timeout=0.3))
        assert next(loader)[1].tolist() == [0, 1]
        with pytest.raises(RuntimeError, match=r"DataLoader timed out after 0\.3 seconds"):
            list(loader)
        del loader

    def test_a_data_set_that_cannot_be_pickled(self) -> None:
        """Where workers start anew, it is refused before they do, with the way out."""
        dataset = loading.Numbers()
        dataset.function = lambda: 0
        with pytest.raises(Exception, match="pickle") as caught:
            iter(data.DataLoader(dataset, num_workers=2, multiprocessing_context="spawn"))
        assert "can be pickled" in caught.value.__notes__[0]

    def test_a_batch_that_cannot_be_pickled(self) -> None:
        """What cannot cross is an error of that batch."""
        loader = data.DataLoader(loading.Numbers(4), 2, num_workers=1, collate_fn=lambda batch: lambda: batch)
        with pytest.raises(Exception, match="in DataLoader worker process 0"):
            next(iter(loader))

    def test_large_tasks_and_large_answers_at_once(self) -> None:
        """Main process and worker that both have much to say do not wait for one another."""

        class Wide(data.Dataset):
            def __getitem__(self, index: int) -> Any:
                return "x" * 10

            def __len__(self) -> int:
                return 400_000

        sampler = [list(range(100_000))] * 6
        loader = data.DataLoader(Wide(), batch_sampler=sampler, num_workers=1, prefetch_factor=6, collate_fn=len)
        assert list(loader) == [100_000] * 6

    def test_in_a_daemon(self) -> None:
        """A worker cannot have workers, which multiprocessing says."""

        class Nested(data.Dataset):
            def __getitem__(self, index: int) -> Any:
                return len(list(data.DataLoader(loading.Numbers(2), num_workers=1)))

            def __len__(self) -> int:
                return 1

        with pytest.raises(AssertionError, match="daemonic processes are not allowed to have children"):
            list(data.DataLoader(Nested(), num_workers=1))


SCRIPT = """
import os, signal, sys, time
import tensorcore as tc
from tensorcore.utils import data
class Slow(data.Dataset):
    def __getitem__(self, index):
        time.sleep(0.05)
        return tc.zeros(50, 50)
    def __len__(self):
        return 1000
"""


def script(text: str, **options: Any) -> subprocess.Popen[str]:
    code = SCRIPT + textwrap.dedent(text)
    return subprocess.Popen(
        [sys.executable, "-W", "error::ResourceWarning", "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


class TestTheEnd:
    """How a program with workers ends."""

    def test_control_c(self) -> None:
        """Ctrl-C in the terminal reaches all; one traceback is printed, and nobody is left."""
        process = script(
            """
            import signal
            # Whoever runs the tests in the background of a shell passes on that Ctrl-C is ignored.
            signal.signal(signal.SIGINT, signal.default_int_handler)
            loader = iter(data.DataLoader(Slow(), 2, num_workers=2))
            next(loader)
            print(*[w.process.pid for w in loader._crew.workers], flush=True)
            for _ in loader: pass
            """,
            start_new_session=True,
        )
        assert process.stdout is not None
        pids = [int(one) for one in process.stdout.readline().split()]
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        assert errors.count("KeyboardInterrupt") == 1, errors
        assert errors.count("Traceback") == 1, errors
        assert process.returncode != 0
        assert [pid for pid in pids if alive(pid)] == []

    def test_a_killed_main_process(self) -> None:
        """Workers whose main process is killed end by themselves."""
        process = script(
            """
            loader = iter(data.DataLoader(Slow(), 2, num_workers=2, pin_memory=False))
            next(loader)
            print(*[w.process.pid for w in loader._crew.workers], flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
            """
        )
        assert process.stdout is not None
        pids = [int(one) for one in process.stdout.readline().split()]
        process.communicate(timeout=60)
        until = time.monotonic() + 10
        while any(alive(pid) for pid in pids) and time.monotonic() < until:
            time.sleep(0.05)
        assert len(pids) == 2
        assert [pid for pid in pids if alive(pid)] == []

    @pytest.mark.parametrize("ending", ["pass", "sys.exit(0)", "del loader", "raise SystemExit"])
    def test_nothing_is_printed_or_left(self, ending: str) -> None:
        """A program that ends with workers under way ends in silence, and leaves no segment of shared memory."""
        shared = set(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else set()
        process = script(
            f"""
            loader = iter(data.DataLoader(Slow(), 2, num_workers=2, persistent_workers=True))
            kept = next(loader)
            {ending}
            """
        )
        out, errors = process.communicate(timeout=30)
        assert (out, errors, process.returncode) == ("", "", 0)
        if os.path.isdir("/dev/shm"):
            assert {one for one in os.listdir("/dev/shm") if one.startswith(("psm_", "tensorcore", "torch"))} <= shared


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
