"""The workers as the main process sees them: started, given tasks, heard, and ended."""

from __future__ import annotations

import contextlib
import mmap
import os
import pickle
import select
import signal
import socket
import time
from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorcore.backend.registry import made_devices
from tensorcore.backend.sharing import anonymous_file
from tensorcore.utils.data.channel import Channel, Mapped, unpack
from tensorcore.utils.data.fetch import Recipe
from tensorcore.utils.data.worker import Failure, Job, run, shown

if TYPE_CHECKING:
    from tensorcore.backend.base import Backend

__all__ = ["Cancelled", "Crew", "context_for", "supported"]

# Seconds that workers have to end by themselves once nobody listens to them, and after they were asked to.
_PATIENCE, _GRACE = 2.0, 1.0


class Cancelled(Exception):
    """The crew was told to wait no more."""


def supported() -> bool:
    """Whether processes of this system can hand file handles to one another, which the workers do."""
    return hasattr(socket, "send_fds") and hasattr(select, "poll")


def context_for(context: Any) -> Any:
    """How to start processes: as the loader says, else as Python does, but with no fork of a device in use.

    A forked process has the driver's state of its parent and none of its threads, and hangs or crashes in it.
    """
    import multiprocessing

    if context is not None:
        return context
    in_use = [one for one in map(_innermost, made_devices()) if one.capabilities.values and not one.capabilities.host]
    if in_use and multiprocessing.get_start_method(allow_none=True) in (None, "fork"):
        methods = multiprocessing.get_all_start_methods()
        return multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
    return multiprocessing.get_context()


def _innermost(device: Backend) -> Backend:
    """The device that computes in the end, for one that wraps others."""
    while device.wraps is not None:
        device = device.wraps
    return device


class _Worker:
    """One process, the socket to it, its blocks, and what it has still to do."""

    def __init__(self, process: Any, channel: Channel, board: Any) -> None:
        self.process, self.channel, self.board = process, channel, board
        self.mapped = Mapped()
        self.tasks: dict[tuple[int, int], Any] = {}
        self.gone = False


class Crew:
    """The workers of one loader.

    Args:
        context: of multiprocessing.
        recipe, init, base_seed: as Job has them.
        count: how many workers.
        prefetch: how many batches each has under way.
    """

    def __init__(self, context: Any, recipe: Recipe, init: Any, base_seed: int, count: int, prefetch: int) -> None:
        self.owner = os.getpid()
        self.workers: list[_Worker] = []
        self.arrived: deque[tuple[int, int, int, Any]] = deque()
        self.poll = select.poll()
        self.listener = True  # whether the thread that gives out tasks is also the one that listens
        self.bell, self.rope = socket.socketpair()
        self.bell.setblocking(False)
        self.poll.register(self.bell, select.POLLIN)
        self.by_handle: dict[int, _Worker] = {}
        self.closed = False
        self.error: RuntimeError | None = None
        try:
            for number in range(count):
                self._start(context, Job(recipe, init, base_seed, number, count, prefetch + 2))
        except BaseException:
            self.close()
            raise

    def _start(self, context: Any, job: Job) -> None:
        ours, theirs = socket.socketpair()
        forked = context.get_start_method() == "fork"
        others = [worker.channel.socket for worker in self.workers] + [ours, self.bell, self.rope] if forked else []
        process = context.Process(target=run, args=(theirs, others, job), daemon=True)
        try:
            process.start()
        except BaseException as error:
            ours.close()
            if isinstance(error, Exception) and not forked:
                error.add_note(
                    "DataLoader: expected a data set, collate_fn and worker_init_fn that can be pickled, because workers "
                    f"are started with {context.get_start_method()!r}; move them to the top level of a module, or pass "
                    "multiprocessing_context='fork' where no device but the host is in use"
                )
            raise
        finally:
            theirs.close()
        handle = anonymous_file(mmap.PAGESIZE)
        try:
            board = np.frombuffer(mmap.mmap(handle, mmap.PAGESIZE), np.int64, 2)
            channel = Channel(ours)
            worker = _Worker(process, channel, board)
            self.workers.append(worker)
            with contextlib.suppress(BrokenPipeError):  # it is dead already, which the first wait tells
                channel.send(b"board", handle)
        finally:
            os.close(handle)
        ours.setblocking(False)
        for one in (ours.fileno(), process.sentinel):
            self.by_handle[one] = worker
            self.poll.register(one, select.POLLIN)

    def give(self, number: int, epoch: int, task: int | None, indices: Any, start: int) -> None:
        """Give a worker a task; None for one that only begins an epoch."""
        worker = self.workers[number]
        if task is not None:
            worker.tasks[epoch, task] = indices
        message = pickle.dumps((epoch, task, indices, start, worker.mapped.taken()), 5)
        frame = memoryview(len(message).to_bytes(4, "little") + message)
        while len(frame):
            try:
                frame = frame[worker.channel.socket.send(frame) :]
            except BlockingIOError:
                # The worker may wait for its answers to be read before it reads on.
                if self.listener:
                    self._listen(50, wanted=worker)
                else:
                    writable = select.poll()
                    writable.register(worker.channel.socket, select.POLLOUT)
                    writable.poll(50)
            except OSError:
                return  # it is dead, which the next wait tells

    def hear(self, timeout: float | None) -> tuple[int, int, int, Any] | None:
        """Worker, epoch, task and answer that arrived next; None after ``timeout`` seconds.

        An answer is a batch, a Failure, or StopIteration for an iterable that has ended. Raises RuntimeError for a
        worker that died, Cancelled when the bell was rung.
        """
        until = None if timeout is None else time.monotonic() + timeout
        while not self.arrived:
            if self.error is not None or self.closed:
                raise self.error or RuntimeError("DataLoader: expected workers, got none any more; iterate again")
            left = None if until is None else max(until - time.monotonic(), 0)
            self._listen(None if left is None else left * 1000)
            if left == 0 and not self.arrived:
                return None
        return self.arrived.popleft()

    def ring(self) -> None:
        """Let whoever waits in ``hear`` wait no more."""
        if os.getpid() == self.owner:  # a fork's copy would ring its parent's
            with contextlib.suppress(OSError):
                self.rope.send(b"!")

    def _listen(self, milliseconds: float | None, wanted: _Worker | None = None) -> None:
        if wanted is not None:
            self.poll.modify(wanted.channel.socket, select.POLLIN | select.POLLOUT)
        try:
            events = self.poll.poll(milliseconds)
        finally:
            if wanted is not None:
                self.poll.modify(wanted.channel.socket, select.POLLIN)
        for handle, _ in events:
            if handle == self.bell.fileno():
                raise Cancelled
            worker = self.by_handle.get(handle)
            if worker is not None and not worker.gone:
                self._read(worker)
                if worker.channel.closed or handle == worker.process.sentinel:
                    self._lost(worker)

    def _read(self, worker: _Worker) -> None:
        number = self.workers.index(worker)
        for message in worker.channel.messages():
            epoch, task, answer = pickle.loads(message)
            worker.tasks.pop((epoch, task), None)
            found: Any
            if "failure" in answer:
                found = answer["failure"]
            elif "end" in answer:
                found = StopIteration
            else:
                try:
                    found = unpack(answer, worker.mapped, worker.channel)
                except Exception as error:
                    found = Failure(None, f"DataLoader: expected a batch that can be unpickled, got {error!r}")
            self.arrived.append((number, epoch, task, found))

    def _lost(self, worker: _Worker) -> None:
        worker.gone = True
        worker.process.join(_GRACE)
        for one in (worker.channel.socket, worker.process.sentinel):
            with contextlib.suppress(KeyError, ValueError):
                self.poll.unregister(one)
        code = worker.process.exitcode
        how = f"exit code {code}"
        if code is not None and code < 0:
            with contextlib.suppress(ValueError):
                how = f"exit code {code}: is killed by signal: {signal.strsignal(-code)} ({signal.Signals(-code).name})"
        self.error = self.error or RuntimeError(
            f"DataLoader worker (pid(s) {worker.process.pid}) exited unexpectedly with {how}; expected "
            f"{self._doing(worker)}; run with num_workers=0 to see where it goes wrong, and see whether there was memory "
            "left"
        )

    def _doing(self, worker: _Worker) -> str:
        if not worker.tasks:
            return "it to wait for the next epoch"
        (_, task), indices = next(iter(worker.tasks.items()))
        place = int(worker.board[0])
        if not isinstance(indices, (list, tuple)) or not 0 <= place < len(indices):
            return f"{shown(indices)} for batch {task}" if indices is not None else f"batch {task}"
        if indices[place] is None:
            return f"sample {place} of batch {task}"
        return f"{shown(indices[place])}, number {place} of batch {task}"

    def close(self) -> None:
        """End the workers; those that do not end by themselves are terminated. Returns when all are gone."""
        if self.closed:
            return
        self.closed = True
        mine = os.getpid() == self.owner
        for worker in self.workers:
            if mine:
                worker.board[1] = 1
                # Workers of other loaders that were forked later have copies of this end: closing it is not enough.
                with contextlib.suppress(OSError):
                    worker.channel.socket.shutdown(socket.SHUT_RDWR)
            worker.channel.close()
        self.bell.close()
        self.rope.close()
        if not mine:  # a fork's copy: the processes are its parent's
            return
        until = time.monotonic() + _PATIENCE
        for worker in self.workers:
            worker.process.join(max(until - time.monotonic(), 0))
        for end in ("terminate", "kill"):
            late = [worker.process for worker in self.workers if worker.process.is_alive()]
            for process in late:
                getattr(process, end)()
            for process in late:
                process.join(_GRACE)
        for worker in self.workers:
            with contextlib.suppress(ValueError):
                worker.process.close()
        self.arrived.clear()
