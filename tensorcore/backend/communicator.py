"""The interface of a transport: what moves native arrays between the processes of a group."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import Any, Literal

import numpy as np

from tensorcore.backend.base import Backend
from tensorcore.errors import ArgumentError, ShapeError, TensorcoreError

__all__ = [
    "COLLECTIVE_TAG", "REDUCTIONS", "Communicator", "CommunicatorError", "CommunicatorTimeout", "Handle", "Reduction",
]  # fmt: skip

Native = Any  # an array as the kernels of the communicator's backend understand it
Reduction = Literal["sum", "product", "min", "max"]
REDUCTIONS: tuple[Reduction, ...] = ("sum", "product", "min", "max")
COLLECTIVE_TAG = 32767  # of the messages of the collectives written here; the largest tag that every MPI has


class CommunicatorError(TensorcoreError, RuntimeError):
    """The group cannot go on: a process has gone, or the communicator was aborted or closed."""


class CommunicatorTimeout(CommunicatorError, TimeoutError):
    """The others did not join within the timeout."""


class Handle:
    """A transfer that was started. Until ``wait`` has returned, its arrays must neither be read nor written.

    ``wait`` is a callable of the seconds that may pass, which returns once the transfer is done or raises
    CommunicatorTimeout; ``done`` tells without blocking whether it would return at once.
    A transport with requests of its own derives from this class instead.
    """

    def __init__(
        self,
        result: Native = None,
        wait: Callable[[float | None], None] | None = None,
        done: Callable[[], bool] | None = None,
    ) -> None:
        self._result = result
        self._wait = wait
        self._done = done

    def wait(self, timeout: float | None = None) -> Native:
        """Return the array that was filled, once it may be used; None where this rank receives nothing.

        ``timeout``: seconds, None for that of the call that made this handle.
        On a device with streams "may be used" means by work that is queued from now on, so the host need not block.
        Raises CommunicatorTimeout, or CommunicatorError where the group was aborted. May be called again.
        """
        if self._wait is not None:
            self._wait(timeout)
            self._wait = self._done = None
        return self._result

    def advance(self) -> None:
        """Let it go on while nobody waits: the caller has other things to do. Never blocks.

        For transports whose transfers move only within calls of their library, which then hand it to a thread.
        """

    def done(self) -> bool:
        """Whether ``wait`` would return at once. Never blocks."""
        return self._wait is None or (self._done is not None and self._done())


class Communicator:
    """One process's end of a group of ``size`` processes, of which it is number ``rank``.

    A transport must write ``all_reduce``, ``reduce_scatter``, ``send``, ``recv``, ``split``, ``abort`` and ``close``.
    The other collectives are written here in terms of those, each with its cost, for a transport to do better.
    Costs count the bytes that the busiest rank sends, ``n`` bytes being one rank's array, beside what the best
    known algorithm sends.

    **Arrays** are natives of ``backend``, and C-contiguous: ``contiguous`` checks it, since MPI and NCCL take
    a pointer and give wrong values without a word for anything else. All ranks pass the same shapes and dtypes.
    The argument ``out`` is where the result goes, and must not overlap the input unless it *is* the input.

    **Order**: all ranks of a group start the same collectives in the same order. Every call returns a Handle
    as soon as the transfer is started, and several may be under way.

    **Half types** (float16, bfloat16) are reduced in float32 and rounded once at the end, so the
    result is that of the sum and not of its intermediate roundings; bool is reduced as a logical or
    (sum, max) and a logical and (product, min).

    **Same bits**: ``all_reduce`` gives every rank the same bits.

    **Timeouts** are in seconds and finite unless ``math.inf`` is passed on purpose. They run from the moment of
    ``wait``. A timeout leaves the communicator unusable but for ``abort`` and ``close``, since nobody
    knows which of the ranks have the result.

    **Watching**: where ``watch`` is set, it is called a few times a second while a handle waits; what it
    raises ends that wait, and leaves the communicator as unusable as a timeout does.

    **Means**: where ``means`` is true, ``all_reduce`` also takes ``"mean"`` of floating and complex arrays: the sum divided by
    the size before it is rounded, which saves the caller a pass over the result.

    **Errors**: ArgumentError for a bad root, peer or reduction, ShapeError for shapes that do not fit or an array that
    is not contiguous, before anything is sent; CommunicatorTimeout and CommunicatorError after.
    """

    watch: Callable[[], None] | None = None
    means: bool = False

    def __init__(self, backend: Backend, rank: int, size: int, *, timeout: float = 300.0) -> None:
        if size < 1 or not 0 <= rank < size:
            raise ArgumentError(
                f"communicator: expected a rank below the size, got rank {rank} of {size}; number the processes from 0"
            )
        if not timeout > 0:
            raise ArgumentError(
                f"communicator: expected a timeout above 0 seconds, got {timeout}; pass math.inf for none"
            )
        self.backend = backend
        self.rank = rank
        self.size = size
        self.timeout = timeout

    # Required

    def all_reduce(
        self, native: Native, op: Reduction = "sum", *, out: Native = None, timeout: float | None = None
    ) -> Handle:
        """Combine the arrays of all ranks, element by element; every rank gets the result.

        ``out``: same shape as ``native``; None puts the result in place of the input. Best: 2 n (size-1)/size bytes.
        """
        raise NotImplementedError

    def reduce_scatter(
        self, native: Native, out: Native, op: Reduction = "sum", *, timeout: float | None = None
    ) -> Handle:
        """Combine the arrays of all ranks, element by element; rank ``i`` gets block ``i`` of the result.

        ``native``: (size, ...). ``out``: (...), one block; it may be block ``rank`` of ``native``.
        Best: n (size-1)/size bytes, ``n`` being all of ``native``.
        """
        raise NotImplementedError

    def send(self, native: Native, dest: int, *, tag: int = 0, timeout: float | None = None) -> Handle:
        """Send to one rank, which calls ``recv`` with the same tag; messages of one tag arrive in order.

        Never waits for the receiver before it returns its handle. A rank may send to itself.
        ``tag``: 0 to 32766 (COLLECTIVE_TAG is above them). A transport without tags matches by order alone.
        """
        raise NotImplementedError

    def recv(self, native: Native, source: int, *, tag: int = 0, timeout: float | None = None) -> Handle:
        """Receive from one rank into ``native``, which has the shape and dtype of what is sent."""
        raise NotImplementedError

    def sender(self, tag: int = 0) -> int | None:
        """A rank whose message with this tag waits here for a ``recv``, None where there is none yet. Never blocks.

        Yours if the transport can tell; without it no rank receives from any.
        """
        raise ArgumentError(
            f"recv: expected the rank to receive from, got none; {type(self).__name__} cannot tell who has sent"
        )

    def split(self, color: int | None, key: int = 0) -> Communicator | None:
        """A new communicator of the ranks that pass the same ``color``; None for those that pass None.

        Collective over this group, and blocks. The new ranks are in the order of ``key``, ties in that of the
        old rank. The new communicator is independent of this one and has to be closed itself.
        """
        raise NotImplementedError

    def abort(self, reason: str) -> None:
        """Give up on the group, from any thread and without the others' help.

        Handles that wait here, and on every rank as far as the transport can reach it, raise CommunicatorError with
        the reason. Returns at once; every later call but ``close`` raises.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Release what the transport holds, once every handle has been waited for. May be called again."""
        raise NotImplementedError

    # Yours if you can do better

    def group(self) -> AbstractContextManager[object]:
        """Transfers started within the ``with`` block start together at its end, where the transport needs that.

        NCCL does: a send and the receive that it waits for would otherwise block one another.
        """
        return nullcontext()

    def all_gather(self, native: Native, out: Native, *, timeout: float | None = None) -> Handle:
        """Every rank gets the arrays of all.

        ``native``: (...). ``out``: (size, ...), block ``i`` from rank ``i``; ``native`` may be block ``rank`` of it.
        Here: each rank sends to each, n (size-1) bytes, which is the best, in ``size`` messages.
        """
        self.blocks("all_gather", native, out)
        return self._exchange(dict.fromkeys(range(self.size), native), self._parts(out), out, timeout)

    def broadcast(self, native: Native, root: int, *, timeout: float | None = None) -> Handle:
        """Every rank gets the root's array, in place of its own.

        Here: the root sends to each, n (size-1) bytes; the best is about n.
        """
        self.contiguous("broadcast", native)
        self.member("broadcast", "root", root)
        if self.rank != root:
            return self._exchange({}, {root: native}, native, timeout)
        others = {peer: native for peer in range(self.size) if peer != root}
        return self._exchange(others, {}, native, timeout)

    def reduce(self, native: Native, root: int, op: Reduction = "sum", *, timeout: float | None = None) -> Handle:
        """Combine the arrays of all ranks, element by element, in place of the root's array.

        On the other ranks the array is left with undefined values and the handle gives None.
        Here: an all_reduce whose result the others discard, 2 n (size-1)/size bytes; the best is n (size-1)/size.
        """
        self.member("reduce", "root", root)
        result = native if self.rank == root else None
        return self._all([self.all_reduce(native, op, timeout=timeout)], result, timeout)

    def gather(self, native: Native, out: Native, root: int, *, timeout: float | None = None) -> Handle:
        """The root gets the arrays of all ranks.

        ``native``: (...). ``out``: (size, ...) at the root, block ``i`` from rank ``i``; None at the others.
        Here: each sends to the root, n bytes, which is the best; the root receives ``size`` messages.
        """
        self.member("gather", "root", root)
        if self.rank == root:
            self.blocks("gather", native, out)
            return self._exchange({root: native}, self._parts(out), out, timeout)
        self.contiguous("gather", native)
        return self._exchange({root: native}, {}, None, timeout)

    def scatter(self, native: Native, out: Native, root: int, *, timeout: float | None = None) -> Handle:
        """Rank ``i`` gets block ``i`` of the root's array.

        ``native``: (size, ...) at the root, None at the others. ``out``: (...), one block.
        Here: the root sends to each, n (size-1) bytes with ``n`` being one block, which is the best.
        """
        self.member("scatter", "root", root)
        if self.rank == root:
            self.blocks("scatter", out, native)
            return self._exchange(self._parts(native), {root: out}, out, timeout)
        self.contiguous("scatter", out)
        return self._exchange({}, {root: out}, out, timeout)

    def all_to_all(self, native: Native, out: Native, *, timeout: float | None = None) -> Handle:
        """Rank ``i`` gets block ``i`` of every rank's array.

        Both: (size, ...); block ``j`` of ``out`` is from rank ``j``. ``out`` must not overlap ``native``.
        Here: each rank sends to each, n (size-1)/size bytes, which is the best, in ``size`` messages.
        """
        self.contiguous("all_to_all", native, out)
        shape = tuple(native.shape)
        if shape[:1] != (self.size,) or shape != tuple(out.shape):
            raise ShapeError(
                f"all_to_all: expected two arrays of one shape ({self.size}, ...), got {shape} and {tuple(out.shape)}; "
                f"put one block for each rank in the first dim"
            )
        return self._exchange(self._parts(native), self._parts(out), out, timeout)

    def barrier(self, *, timeout: float | None = None) -> None:
        """Return when every rank has called it, and the device has done what it was given before.

        Here: an all_reduce of one element.
        """
        self.backend.synchronize()
        token = self.backend.from_host(np.ones(1, np.float32))
        self.all_reduce(token, timeout=timeout).wait()
        self.backend.synchronize()

    # For transports: the checks that all of them need

    def contiguous(self, op: str, *natives: Native) -> None:
        """Raise ShapeError unless every array is C-contiguous."""
        for native in natives:
            shape = tuple(native.shape)
            strides, _ = self.backend.layout(native)
            expected = 1
            for length, stride in zip(reversed(shape), reversed(strides), strict=True):
                if length > 1 and stride != expected and 0 not in shape:
                    raise ShapeError(
                        f"{op}: expected a contiguous array, got shape {shape} with strides {tuple(strides)}; "
                        f"call .contiguous() first"
                    )
                expected *= length

    def blocks(self, op: str, block: Native, whole: Native) -> None:
        """Raise ShapeError unless both are contiguous and ``whole`` is ``size`` blocks of the shape of ``block``."""
        self.contiguous(op, block, whole)
        expected = (self.size, *block.shape)
        if tuple(whole.shape) != expected:
            raise ShapeError(
                f"{op}: expected an array of shape {expected}, got {tuple(whole.shape)}; "
                f"put one block for each rank in the first dim"
            )

    def member(self, op: str, what: str, rank: int) -> None:
        """Raise ArgumentError unless ``rank``, which the op calls ``what``, is one of the group."""
        if type(rank) is not int or not 0 <= rank < self.size:
            raise ArgumentError(
                f"{op}: expected {what} to be a rank from 0 to {self.size - 1}, got {rank!r}; "
                f"ranks are those of this communicator"
            )

    def reduction(self, op: str, reduction: str) -> None:
        """Raise ArgumentError unless it is one of REDUCTIONS."""
        if reduction not in REDUCTIONS and not (reduction == "mean" and self.means and op == "all_reduce"):
            raise ArgumentError(
                f"{op}: expected a reduction among {', '.join(REDUCTIONS)}, got {reduction!r}; "
                f"a mean is a sum divided by the size"
            )

    def seconds(self, timeout: float | None) -> float:
        """The timeout of a call: its own, or the communicator's."""
        return self.timeout if timeout is None else timeout

    # The end of a ``with`` block closes the communicator, or aborts the group where an exception leaves the block:
    # the others would otherwise wait for this rank until their timeout.

    def __enter__(self) -> Communicator:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self.abort(f"rank {self.rank} left with {kind.__name__}: {raised}")
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(rank={self.rank}, size={self.size}, device='{self.backend}')"

    def _exchange(
        self, sends: dict[int, Native], receives: dict[int, Native], result: Native, timeout: float | None
    ) -> Handle:
        """Start these transfers, by peer, together; one to this rank itself that is in place already is left out."""
        mine = self.rank
        if mine in sends and mine in receives:
            pointer = self.backend.data_pointer
            if pointer(sends[mine]) == pointer(receives[mine]):
                sends = {peer: native for peer, native in sends.items() if peer != mine}
                receives = {peer: native for peer, native in receives.items() if peer != mine}
        # Each rank starts with its right-hand neighbour, so that they do not all send to rank 0 first.
        order = [(mine + step) % self.size for step in range(1, self.size + 1)]
        with self.group():
            parts = [self.recv(native, peer, tag=COLLECTIVE_TAG, timeout=timeout) for peer, native in receives.items()]
            parts += [
                self.send(sends[peer], peer, tag=COLLECTIVE_TAG, timeout=timeout) for peer in order if peer in sends
            ]
        return self._all(parts, result, timeout)

    def _all(self, parts: Sequence[Handle], result: Native, timeout: float | None) -> Handle:
        def wait(asked: float | None) -> None:
            deadline = time.monotonic() + (self.seconds(timeout) if asked is None else asked)
            for part in parts:
                part.wait(max(0.0, deadline - time.monotonic()))

        return Handle(result, wait, lambda: all(part.done() for part in parts))

    def _parts(self, whole: Native) -> dict[int, Native]:
        strides, offset = self.backend.layout(whole)
        shape = tuple(whole.shape[1:])
        return {
            peer: self.backend.as_strided(whole, shape, strides[1:], offset + peer * strides[0])
            for peer in range(self.size)
        }
