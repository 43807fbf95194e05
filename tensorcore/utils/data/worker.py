"""The worker process: it makes the batches that it is told to, until the other end of its socket is closed."""

from __future__ import annotations

import contextlib
import faulthandler
import mmap
import os
import pickle
import socket
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorcore.utils.data.channel import Blocks, Channel, pack
from tensorcore.utils.data.fetch import Fetcher, Recipe, WorkerInfo, seed_everything, set_worker_info

__all__ = ["Failure", "Job", "run", "shown"]


@dataclass(frozen=True, slots=True)
class Job:
    """What a worker is told when it starts.

    Attributes:
        recipe, init: the loader's.
        base_seed, number, count: of all workers, of this one, and how many there are.
        kept: how many free blocks of memory to keep.
    """

    recipe: Recipe
    init: Callable[[int], None] | None
    base_seed: int
    number: int
    count: int
    kept: int


@dataclass(frozen=True, slots=True)
class Failure:
    """An exception on its way to the main process, which raises one of the same class."""

    kind: Any
    text: str

    def raise_again(self) -> None:
        """Raise it, or a RuntimeError of the same text where its class takes no text alone."""
        if self.kind is None:
            raise RuntimeError(self.text)
        if issubclass(self.kind, KeyError):
            raise self.kind(_Verbatim(self.text))
        try:
            error = self.kind(self.text)
        except Exception:
            raise RuntimeError(self.text) from None
        try:
            raise error
        finally:
            del error  # its traceback leads to this frame: a circle, which would keep the iterator and its workers


class _Verbatim(str):
    """KeyError prints the repr of its argument: this one's is the text, lines and all."""

    def __repr__(self) -> str:
        return str(self)


def run(end: socket.socket, others: list[socket.socket], job: Job) -> None:
    """The life of a worker.

    Args:
        end: its end of the socket.
        others: the main process's ends, of which a fork has copies: open here, they would hide that it is gone.
    """
    for other in others:
        other.close()
    # Ctrl-C reaches every process of the terminal; the main one tells what it means.
    with contextlib.suppress(KeyboardInterrupt, BrokenPipeError, ConnectionResetError, _Dismissed):
        if not faulthandler.is_enabled():
            faulthandler.enable(2)  # not sys.stderr, which is no file in a notebook
        _Worker(Channel(end), job).work()


class _Dismissed(BaseException):
    """Nobody waits for the batch any more."""


class _Worker:
    def __init__(self, channel: Channel, job: Job) -> None:
        self.channel, self.job = channel, job
        self.blocks = Blocks(job.kept)
        self.epoch = -1
        self.fetcher: Fetcher | None = None
        self.board = self._board()
        self.failure: Failure | None = None
        self.ended = False

    def _board(self) -> np.ndarray:
        """Two numbers that the main process sees too: which sample is being loaded, and whether to go on at all."""
        if self.channel.receive() is None:
            raise BrokenPipeError
        handle = self.channel.handle()
        try:
            return np.frombuffer(mmap.mmap(handle, mmap.PAGESIZE), np.int64, 2)
        finally:
            os.close(handle)

    def work(self) -> None:
        self._prepare()
        while (message := self.channel.receive()) is not None:
            epoch, task, indices, start, freed = pickle.loads(message)
            self.blocks.give_back(freed)
            if epoch != self.epoch:
                self.epoch, self.ended = epoch, False
                if self.fetcher is not None and self.job.recipe.iterable:
                    self._attempt(self._renew)
            if task is None or self.ended:
                continue  # an iterable that has ended has nothing for the tasks that were on their way
            self._send(epoch, task, indices, start)

    def _prepare(self) -> None:
        job = self.job
        seed = job.base_seed + job.number
        words = [job.number, job.base_seed & 0xFFFFFFFF, job.base_seed >> 32, 0]
        seed_everything(seed, np.random.SeedSequence(words).generate_state(4))
        set_worker_info(WorkerInfo(job.number, job.count, seed, job.recipe.dataset))
        self._attempt(self._begin)

    def _begin(self) -> None:
        if self.job.init is not None:
            self.job.init(self.job.number)
        self._renew()

    def _renew(self) -> None:
        self.fetcher = Fetcher(self.job.recipe, self.job.base_seed, self._note)

    def _note(self, place: int) -> None:
        self.board[0] = place
        if self.board[1]:
            raise _Dismissed

    def _attempt(self, function: Callable[[], None]) -> None:
        try:
            function()
        except Exception as error:
            self.failure = self._failure(error, "")

    def _send(self, epoch: int, task: int, indices: Any, start: int) -> None:
        handle = None
        self.board[0] = -1
        answer: dict[str, Any]
        try:
            if self.failure is not None:
                answer, self.failure = {"failure": self.failure}, None
            else:
                assert self.fetcher is not None
                answer, handle = pack(self.fetcher.fetch(indices, start), self.blocks)
        except StopIteration as stop:
            if self.job.recipe.iterable:
                answer, self.ended = {"end": True}, True
            else:
                answer = {"failure": self._failure(stop, self._where(task))}
        except Exception as error:
            answer = {"failure": self._failure(error, self._where(task))}
        try:
            self.channel.send(pickle.dumps((epoch, task, answer), 5), handle)
        finally:
            if handle is not None:
                os.close(handle)

    def _where(self, task: int) -> str:
        item = "" if self.fetcher is None else f"It was loading {shown(self.fetcher.item)} for batch {task}.\n"
        return item

    def _failure(self, error: Exception, where: str) -> Failure:
        kind: Any = type(error)
        text = (
            f"Caught {kind.__name__} in DataLoader worker process {self.job.number}.\n{where}"
            f"Original {traceback.format_exc()}"
        )
        try:
            pickle.loads(pickle.dumps(kind))
        except Exception:
            kind = None  # a class that the main process cannot find
        return Failure(kind, text)


def shown(item: Any) -> str:
    """A sample's index, or the indices of a batch, in few words."""
    text = repr(item)
    many = isinstance(item, (list, tuple))
    return f"sample{'s' if many else ''} {text if len(text) <= 200 else text[:200] + '...'}"
