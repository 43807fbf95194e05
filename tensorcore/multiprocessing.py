"""Python's multiprocessing with tensors that cross in shared memory, and PyTorch's ``spawn``.

``import tensorcore.multiprocessing`` lets every queue and pipe of multiprocessing send tensors on the host as handles
of their memory: sender and receiver see the same values. All names of multiprocessing are names of this module.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
import time
import traceback
from collections.abc import Callable
from multiprocessing import connection, reduction
from typing import Any

import numpy as np

from tensorcore.backend.base import Backend
from tensorcore.backend.sharing import SharedMemory
from tensorcore.errors import ArgumentError
from tensorcore.memory import shared_memory
from tensorcore.storage import storage_of, tensor_over
from tensorcore.tensor import Tensor

__all__ = [
    "ProcessContext", "ProcessException", "ProcessExitedException", "ProcessRaisedException", "SpawnContext",
    "get_all_sharing_strategies", "get_sharing_strategy", "set_sharing_strategy", "spawn", "start_processes",
]  # fmt: skip

_STRATEGY = "file_descriptor"


def __getattr__(name: str) -> Any:
    return getattr(multiprocessing, name)


def get_all_sharing_strategies() -> set[str]:
    """The one way in which memory is shared: by handle, so that nothing is left behind."""
    return {_STRATEGY}


def get_sharing_strategy() -> str:
    """Always ``"file_descriptor"``."""
    return _STRATEGY


def set_sharing_strategy(new_strategy: str) -> None:
    """Accepts ``"file_descriptor"``."""
    if new_strategy != _STRATEGY:
        raise ArgumentError(f"set_sharing_strategy: expected {_STRATEGY!r}, got {new_strategy!r}; leave it out")


class ProcessException(Exception):
    """A process of ``spawn`` that failed.

    Attributes:
        msg: what is known.
        error_index: its number.
        pid: of the process.
    """

    def __init__(self, msg: str, error_index: int, pid: int) -> None:
        super().__init__(msg)
        self.msg, self.error_index, self.pid = msg, error_index, pid

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """It raised; the message has its traceback."""


class ProcessExitedException(ProcessException):
    """It ended without a word.

    Attributes:
        exit_code: of the process.
        signal_name: of the signal that ended it, or None.
    """

    def __init__(
        self, msg: str, error_index: int, error_pid: int, exit_code: int, signal_name: str | None = None
    ) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.pid, self.exit_code, self.signal_name)


class ProcessContext:
    """Processes that were started together, by ``spawn(..., join=False)``."""

    def __init__(self, processes: list[Any], reports: list[Any]) -> None:
        self.processes, self._reports = processes, reports
        self._running = {process.sentinel: index for index, process in enumerate(processes)}

    def pids(self) -> list[int]:
        """Of the processes."""
        return [process.pid for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait until one fails or all have ended, or for ``timeout`` seconds; True when all have ended well.

        Where one fails the others are terminated, and killed after ``grace_period``, and its failure is raised.
        """
        until = None if timeout is None else time.monotonic() + timeout
        while self._running:
            left = None if until is None else max(until - time.monotonic(), 0)
            ended = connection.wait(list(self._running), left)
            if not ended:
                return False
            for sentinel in ended:
                index = self._running.pop(sentinel)  # type: ignore[call-overload]
                process = self.processes[index]
                process.join()
                if process.exitcode != 0:
                    self._end_all(grace_period)
                    self._raise(index, process)
        return True

    def _end_all(self, grace_period: float | None) -> None:
        for end in ("terminate", "kill"):
            alive = [process for process in self.processes if process.is_alive()]
            for process in alive:
                getattr(process, end)()
            until = None if grace_period is None else time.monotonic() + grace_period
            for process in alive:
                process.join(None if until is None else max(until - time.monotonic(), 0))

    def _raise(self, index: int, process: Any) -> None:
        with contextlib.suppress(EOFError):  # it ended without a word
            text = f"\n\n-- Process {index} terminated with the following error:\n{self._reports[index].recv()}"
            raise ProcessRaisedException(text, index, process.pid)
        code = process.exitcode
        if code < 0:
            try:
                name = signal.Signals(-code).name
            except ValueError:
                name = f"<Unknown signal {-code}>"
            raise ProcessExitedException(
                f"process {index} terminated with signal {name}", index, process.pid, code, name
            )
        raise ProcessExitedException(f"process {index} terminated with exit code {code}", index, process.pid, code)


SpawnContext = ProcessContext


def start_processes(
    fn: Callable[..., Any], args: tuple[Any, ...] = (), nprocs: int = 1, join: bool = True, daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:  # fmt: skip
    """Call ``fn(i, *args)`` in ``nprocs`` new processes; see ``spawn``."""
    context: Any = multiprocessing.get_context(start_method)
    processes, reports = [], []
    for index in range(nprocs):
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_run, args=(fn, index, args, theirs), daemon=daemon)
        process.start()
        theirs.close()
        processes.append(process)
        reports.append(ours)
    started = ProcessContext(processes, reports)
    if not join:
        return started
    while not started.join():
        pass
    return None


def spawn(
    fn: Callable[..., Any], args: tuple[Any, ...] = (), nprocs: int = 1, join: bool = True, daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:  # fmt: skip
    """Call ``fn(i, *args)`` in ``nprocs`` new processes, ``i`` counted from 0.

    Args:
        join: wait for all; a failure of one ends the others and is raised here, with its traceback. Without it, the
            ProcessContext is returned.
        daemon: end the processes with this one.
    """
    return start_processes(fn, args, nprocs, join, daemon, start_method)


def _run(fn: Callable[..., Any], index: int, args: tuple[Any, ...], report: Any) -> None:
    try:
        fn(index, *args)
    except KeyboardInterrupt:
        pass  # the parent's to tell
    except Exception:
        report.send(traceback.format_exc())
        raise SystemExit(1) from None


# Tensors in queues and pipes


def _reduce(tensor: Tensor) -> Any:
    if not tensor.device.capabilities.host or (tensor.requires_grad and not tensor.is_leaf):
        return tensor.__reduce_ex__(4)
    tensor.share_memory_()  # type: ignore[attr-defined]
    memory = shared_memory(tensor)
    assert memory is not None
    whole = tensor.device.storage(tensor.native)
    strides, offset = tensor.device.layout(tensor.native)
    place = tensor.device.data_pointer(whole) - memory.start
    shown = (tensor.dtype, place, whole.shape[0], tuple(tensor.native.shape), strides, offset)
    notes = {key: value for key, value in tensor.__dict__.items() if key != "_grad"}
    handle = reduction.DupFd(memory.handle)
    return _rebuild, (handle, len(memory), tensor.device, shown, tensor.requires_grad, type(tensor), notes)


def _rebuild(handle: Any, size: int, device: Backend, shown: Any, requires_grad: bool, cls: type, notes: Any) -> Tensor:
    dtype, place, count, shape, strides, offset = shown
    memory = SharedMemory.of(size, handle.detach())
    storage = storage_of(device, device.share_host(np.frombuffer(memory, dtype.numpy, count, place)))
    made = tensor_over(storage, dtype, shape, strides, offset, cls)
    made.__dict__.update(notes)
    return made.requires_grad_() if requires_grad else made


reduction.ForkingPickler.register(Tensor, _reduce)
