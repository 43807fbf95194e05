"""Processes that an MPI launcher started: mpi4py's non-blocking calls in pieces, with deadlines and a helper thread."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from mpi4py import MPI

from tensorcore.plugin import ArgumentError, Backend, Communicator, CommunicatorError, Handle

from .arithmetic import FUNCTIONS, combine, flat, pieces, wide
from .buffers import LARGEST, PIECE, memory_of, messages, operation, typed
from .deadline import LOOK, Deadline, going
from .ending import given_up, leave_well, unlink_shared_memory
from .line import Line, Task
from .neighbours import LEAST, meet_neighbours
from .slots import Arrival, meet_in_memory

__all__ = ["MpiCommunicator"]

# Messages that nobody has waited for yet. They move while this process is in a call of MPI's.
_transfers: weakref.WeakSet[Handle] = weakref.WeakSet()
_PAUSE = 5e-5  # seconds between two tests of what moves without this thread
_ALL = 4 << 20  # bytes of all ranks' arrays that each rank reads

Request = MPI.Request | Arrival


class MpiCommunicator(Communicator):
    """One process's end of all processes that the MPI launcher started, or of some of them.

    Collectives run in their order: in the thread that waits for them, or after ``advance`` in a thread of the
    communicator. Both test a request or block in one, never in a call that moves nothing else.

    Args:
        backend: a device whose memory is the host's.
        rank, size: what the program believes; checked against MPI. None takes MPI's.
        timeout: seconds.
        comm: the processes, those of ``MPI.COMM_WORLD`` where None; duplicated, so no message of others mixes in.
    """

    means = True

    def __init__(
        self,
        backend: Backend,
        rank: int | None = None,
        size: int | None = None,
        *,
        timeout: float = 300.0,
        comm: MPI.Comm | None = None,
        world: str | None = None,
    ) -> None:
        parent = MPI.COMM_WORLD if comm is None else comm
        rank, size = parent.rank if rank is None else rank, parent.size if size is None else size
        super().__init__(backend, rank, size, timeout=timeout)
        if (rank, size) != (parent.rank, parent.size):
            raise ArgumentError(
                f"mpi: expected rank {rank} of {size} processes that MPI started, got rank {parent.rank} of "
                f"{parent.size}; start the program with python -m tensorcore.distributed.launch -n {size}"
            )
        if not backend.capabilities.host:
            raise ArgumentError(
                f"mpi: expected a device in host memory, got {backend}; make the communicator for the host"
            )
        if MPI.Query_thread() < MPI.THREAD_MULTIPLE:
            raise CommunicatorError("mpi: expected an MPI for several threads, got one without; use another MPI")
        self.comm = parent.Dup()
        self.comm.Set_errhandler(MPI.ERRORS_RETURN)
        if comm is None:
            self.comm.Barrier()
            unlink_shared_memory()
        self.line = Line(self._in_thread)
        self.neighbours = meet_neighbours(self.comm, MPI)
        self.slots = meet_in_memory(self.comm, MPI)
        self.broken: str | None = None
        leave_well()

    # Collectives

    def all_reduce(self, native: Any, op: str = "sum", *, out: Any = None, timeout: float | None = None) -> Handle:
        out = native if out is None else out
        self.contiguous("all_reduce", native, out)
        self.reduction("all_reduce", op)
        source, target = self._host(native), self._host(out)

        def small() -> Iterator[Arrival]:
            slots: Any = self.slots
            yield from slots.meet((0, memory_of(source)))
            parts = [slots.found(rank, 0, source.nbytes).view(source.dtype) for rank in range(self.size)]
            parts[self.rank] = source
            if self.size == 2 and op != "mean" and wide(source.dtype) is source.dtype:
                FUNCTIONS[op](*parts, out=target)
            else:
                combine(parts, [target], op)

        if self._is_small(source.nbytes):
            return self._start("all_reduce", small, out, timeout)

        def near() -> Iterator[Request]:
            neighbours: Any = self.neighbours
            places = self._places(source, target)
            yield from places.exchange
            # Each rank combines its part for all, and puts it where they want it.
            mine = slice(source.size * self.rank // self.size, source.size * (self.rank + 1) // self.size)
            sources, targets = (places.all + mine.start * source.itemsize).T
            neighbours.combine(op, source[mine], target[mine], sources, targets, going(self._check, self._look))
            yield from self._meet()

        if self._is_near(source):
            return self._start("all_reduce", near, out, timeout, small=True)

        def steps() -> Iterator[MPI.Request]:
            dtype = wide(source.dtype)
            if dtype is source.dtype and source.ctypes.data != target.ctypes.data:
                target[...] = source
            for piece in pieces(source.size, max(1, PIECE // dtype.itemsize)):
                part = target[piece] if dtype is source.dtype else source[piece].astype(dtype)
                yield self.comm.Iallreduce(MPI.IN_PLACE, typed(part), operation(part.dtype, op))
                if op == "mean":
                    np.divide(part, self.size, out=part)
                if dtype is not source.dtype:
                    target[piece] = part

        return self._start("all_reduce", steps, out, timeout)

    def reduce_scatter(self, native: Any, out: Any, op: str = "sum", *, timeout: float | None = None) -> Handle:
        self.blocks("reduce_scatter", out, native)
        self.reduction("reduce_scatter", op)
        source, target = self._host(native).reshape(self.size, -1), self._host(out)

        def small() -> Iterator[Arrival]:
            slots: Any = self.slots
            whole, start, end = memory_of(flat(source)), self.rank * target.nbytes, (self.rank + 1) * target.nbytes
            yield from slots.meet((0, whole[:start]), (end, whole[end:]))
            parts = [slots.found(rank, start, end).view(source.dtype) for rank in range(self.size)]
            parts[self.rank] = source[self.rank]
            combine(parts, [target], op)

        if self._is_small(source.nbytes):
            return self._start("reduce_scatter", small, out, timeout)

        def near() -> Iterator[Request]:
            places = self._places(source, target)
            yield from places.exchange
            neighbours: Any = self.neighbours
            mine = source[self.rank]
            result = np.empty_like(target) if np.shares_memory(mine, target) else target
            neighbours.combine(op, mine, result, places.all[:, 0] + self.rank * mine.nbytes)
            yield from self._meet()
            if result is not target:
                target[...] = result

        if self._is_near(source):
            return self._start("reduce_scatter", near, out, timeout, small=True)

        def steps() -> Iterator[MPI.Request]:
            dtype = wide(source.dtype)
            for piece in pieces(target.size, max(1, PIECE // dtype.itemsize // self.size)):
                parts = np.ascontiguousarray(source[:, piece].astype(dtype))
                mine = np.empty(parts.shape[1], dtype)
                yield self.comm.Ireduce_scatter_block(typed(flat(parts)), typed(mine), operation(dtype, op))
                target[piece] = mine

        return self._start("reduce_scatter", steps, out, timeout)

    def broadcast(self, native: Any, root: int, *, timeout: float | None = None) -> Handle:
        self.contiguous("broadcast", native)
        self.member("broadcast", "root", root)
        data = memory_of(self._host(native))

        def small() -> Iterator[Arrival]:
            slots: Any = self.slots
            if self.rank == root:
                yield from slots.meet((0, data), sources=())
            else:
                yield from slots.meet(sources=(root,))
                data[...] = slots.found(root, 0, data.size)

        if self._is_small(data.nbytes):
            return self._start("broadcast", small, native, timeout)

        def near() -> Iterator[Request]:
            places = self._places(data, data)
            yield from places.exchange
            neighbours: Any = self.neighbours
            if self.rank != root:
                neighbours.read(root, int(places.all[root, 0]), data)
            yield from self._meet()

        if self._is_near(data):
            return self._start("broadcast", near, native, timeout, small=True)

        def steps() -> Iterator[MPI.Request]:
            for piece in pieces(data.size, PIECE):
                yield self.comm.Ibcast(data[piece], root)

        return self._start("broadcast", steps, native, timeout)

    def all_gather(self, native: Any, out: Any, *, timeout: float | None = None) -> Handle:
        self.blocks("all_gather", native, out)
        source, whole = memory_of(self._host(native)), memory_of(self._host(out)).reshape(self.size, -1)

        def small() -> Iterator[Arrival]:
            slots: Any = self.slots
            yield from slots.meet((0, source))
            for rank in range(self.size):
                whole[rank] = source if rank == self.rank else slots.found(rank, 0, source.size)

        if self._is_small(source.nbytes):
            return self._start("all_gather", small, out, timeout)

        def near() -> Iterator[Request]:
            places = self._places(source, source)
            yield from places.exchange
            neighbours: Any = self.neighbours
            for step in range(self.size):
                rank = (self.rank + step) % self.size
                if rank != self.rank:
                    neighbours.read(rank, int(places.all[rank, 0]), whole[rank])
                elif source.ctypes.data != whole[rank].ctypes.data:
                    whole[rank] = source
            yield from self._meet()

        if self._is_near(source):
            return self._start("all_gather", near, out, timeout, small=True)

        def steps() -> Iterator[MPI.Request]:
            in_place = source.size and source.ctypes.data == whole[self.rank].ctypes.data
            if source.size <= PIECE:
                if source.size:
                    yield self.comm.Iallgather(MPI.IN_PLACE if in_place else source, flat(whole))
                return
            # Larger ones go from each rank to all others in pieces, which land where they belong.
            if not in_place:
                whole[self.rank] = source
            for piece in pieces(source.size, PIECE):
                requests = [self.comm.Ibcast(whole[rank, piece], rank) for rank in range(self.size)]
                yield from requests

        return self._start("all_gather", steps, out, timeout)

    def all_to_all(self, native: Any, out: Any, *, timeout: float | None = None) -> Handle:
        if tuple(native.shape) != tuple(out.shape) or native.shape[:1] != (self.size,):
            return super().all_to_all(native, out, timeout=timeout)  # which says what is wrong
        self.contiguous("all_to_all", native, out)
        source, target = memory_of(self._host(native)), memory_of(self._host(out))
        if source.size > LARGEST:
            return super().all_to_all(native, out, timeout=timeout)

        def steps() -> Iterator[MPI.Request]:
            if source.size:
                yield self.comm.Ialltoall(source, target)

        return self._start("all_to_all", steps, out, timeout)

    def barrier(self, *, timeout: float | None = None) -> None:
        self.backend.synchronize()

        self._start("barrier", self._meet, None, timeout).wait()

    # Messages

    def send(self, native: Any, dest: int, *, tag: int = 0, timeout: float | None = None) -> Handle:
        self.contiguous("send", native)
        self.member("send", "dest", dest)
        data = memory_of(self._host(native))
        if dest == self.rank:
            data = data.copy()  # nobody else tests the receive that this one may wait for
        self._check()
        requests = [self.comm.Isend(data[piece], dest, tag) for piece in messages(data.size)]
        return self._transfer(f"send to rank {dest}", requests, None, timeout)

    def recv(self, native: Any, source: int, *, tag: int = 0, timeout: float | None = None) -> Handle:
        self.contiguous("recv", native)
        self.member("recv", "source", source)
        data = memory_of(self._host(native))
        self._check()
        requests = [self.comm.Irecv(data[piece], source, tag) for piece in messages(data.size)]
        return self._transfer(f"recv from rank {source}", requests, native, timeout)

    def sender(self, tag: int = 0) -> int | None:
        self._check()
        status = MPI.Status()
        return status.source if self.comm.Iprobe(MPI.ANY_SOURCE, tag, status) else None

    def _transfer(self, what: str, requests: list[MPI.Request], result: Any, timeout: float | None) -> Handle:
        def wait(asked: float | None) -> None:
            self.line.advance()  # the other side may be waiting for a collective that was started before
            deadline = Deadline(what, self.seconds(timeout) if asked is None else asked, self._look)
            for request in requests:
                deadline.complete(request)
            _transfers.discard(handle)

        def done() -> bool:
            self._check()
            return MPI.Request.Testall(requests)

        handle = Handle(result, wait, done)
        _transfers.add(handle)
        return handle

    # The group

    def split(self, color: int | None, key: int = 0) -> MpiCommunicator | None:
        self.barrier()  # MPI's own call cannot be left when a rank is missing
        made = self.comm.Split(MPI.UNDEFINED if color is None else color, key)
        if color is None:
            return None
        try:
            return MpiCommunicator(self.backend, timeout=self.timeout, comm=made)
        finally:
            made.Free()

    def abort(self, reason: str) -> None:
        """Refuse all later calls. This process ends by ``MPI_Abort``, which ends the others, whom nothing else reaches."""
        if self.broken is None:
            self.broken = reason
            given_up.append(reason)

    def close(self) -> None:
        if self.broken is None and self.comm != MPI.COMM_NULL and not MPI.Is_finalized():
            self.line.close()
            self.comm.Free()
            self.broken = "close: expected an open communicator, got a closed one; make another"

    # Within a host

    def _is_small(self, nbytes: int) -> bool:
        """Whether each rank may as well read all of every rank's array as a part of it, and a slot holds it."""
        return self.slots is not None and nbytes <= self.slots.largest and nbytes * self.size <= _ALL

    def _is_near(self, array: np.ndarray) -> bool:
        return self.neighbours is not None and array.nbytes >= LEAST and array.dtype != bool

    def _places(self, source: np.ndarray, target: np.ndarray) -> _Places:
        mine, every = np.array([source.ctypes.data, target.ctypes.data]), np.empty((self.size, 2), np.int64)

        def exchange() -> Iterator[Request]:
            if self.slots is None:
                yield self.comm.Iallgather(mine, every)
                return
            yield from self.slots.meet((0, memory_of(mine)))
            for rank in range(self.size):
                every[rank] = self.slots.found(rank, 0, mine.nbytes).view(np.int64)

        return _Places(every, exchange())

    def _meet(self) -> Iterator[Request]:
        """Wait until all ranks have come here."""
        if self.slots is None:
            yield self.comm.Ibarrier()
        else:
            yield from self.slots.meet()

    def _host(self, native: Any) -> np.ndarray:
        return flat(self.backend.to_host(native))

    def _start(
        self, what: str, steps: Callable[[], Iterator[Any]], result: Any, timeout: float | None, *,
        small: bool = False,
    ) -> Handle:  # fmt: skip
        self._check()
        return _Collective(self, self.line.add(Task(what, steps, small)), result, timeout)

    def _complete(self, request: Request, deadline: Deadline) -> None:
        """Wait in the thread that asked."""
        if isinstance(request, MPI.Request):
            deadline.complete(request)
        elif not request.spin():
            while not request.Test():
                self._sleep(request)
                deadline.look_around()

    def _in_thread(self, task: Task, request: Request) -> None:
        """Wait in the thread of the line, which the thread that computes may need its processor from."""
        if isinstance(request, Arrival):
            while not request.Test():
                self._sleep(request)
        elif task.small:
            while not request.Test():
                time.sleep(_PAUSE)
        else:
            # Blocks in C without the interpreter's lock, but on a processor, which moves what there is to move.
            request.Wait()

    def _sleep(self, arrival: Arrival) -> None:
        """Sleep until somebody comes; not long where messages are under way, which MPI moves within its calls alone."""
        if _transfers:
            self.comm.Iprobe()
        arrival.sleep(_PAUSE if _transfers else LOOK)

    def _check(self) -> None:
        if self.broken is not None:
            raise CommunicatorError(self.broken)

    def _look(self) -> None:
        self._check()
        if self.watch is not None:
            self.watch()


class _Places(NamedTuple):
    """Where the ranks' arrays lie, a row of source and target for each, once they have told one another."""

    all: np.ndarray
    exchange: Iterator[Request]


class _Collective(Handle):
    """A collective in its line."""

    def __init__(self, owner: MpiCommunicator, task: Task, result: Any, timeout: float | None) -> None:
        super().__init__(result, self._run)
        self._owner, self._task, self._timeout = owner, task, timeout

    def advance(self) -> None:
        self._owner.line.advance()

    def done(self) -> bool:
        if not self._task.finished.is_set():
            self._owner.line.advance()
        return self._task.finished.is_set()

    def _run(self, asked: float | None) -> None:
        owner, task = self._owner, self._task
        seconds = owner.seconds(self._timeout) if asked is None else asked
        deadline = Deadline(task.what, seconds, owner._look)
        if owner.line.take(task):
            task.run(lambda request: owner._complete(request, deadline))
            owner.line.done(task)
        else:
            owner.line.advance()
            deadline.join(task.finished)
        if task.error is not None:
            if isinstance(task.error, CommunicatorError | KeyboardInterrupt):
                raise task.error
            owner._look()  # whoever watches may know better what happened
            raise CommunicatorError(
                f"{task.what}: expected MPI to carry it out, got {task.error}; see that all ranks make the same calls"
            ) from task.error
