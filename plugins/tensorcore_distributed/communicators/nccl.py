"""GPUs among one another: NCCL through CuPy, whose processes find one another over MPI."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from tensorcore.plugin import (
    ArgumentError,
    Backend,
    Communicator,
    CommunicatorError,
    CommunicatorTimeout,
    Handle,
    dtypes,
)

from .arithmetic import wide

__all__ = ["NcclCommunicator"]

_LOOK = 0.05  # seconds between two looks at whether somebody gave up
_TYPES = {
    "int8": "INT8", "uint8": "UINT8", "int32": "INT32", "uint32": "UINT32", "int64": "INT64", "uint64": "UINT64",
    "float16": "FLOAT16", "float32": "FLOAT32", "float64": "FLOAT64",
}  # fmt: skip
_OPS = {"sum": "SUM", "product": "PROD", "min": "MIN", "max": "MAX"}
_LOGICAL = {"sum": "MAX", "product": "MIN", "min": "MIN", "max": "MAX"}  # of bool as bytes of 0 and 1


_Method = TypeVar("_Method", bound=Callable[..., Any])


def _on_its_device(method: _Method) -> _Method:
    """The method with the communicator's device as the thread's current one, which NCCL and CuPy's events go by."""

    @wraps(method)
    def call(self: NcclCommunicator, *args: Any, **options: Any) -> Any:
        with self.place:
            return method(self, *args, **options)

    return call  # type: ignore[return-value]


class NcclCommunicator(Communicator):
    """One process's end of a group, each with a GPU of its own. What it sends goes along that GPU's current stream.

    NCCL matches messages by their order alone, so tags have to come in one order on both sides.

    Args:
        backend: the GPU.
        rank, size: of this process.
        timeout: seconds.
        control: how the processes agree: an mpi4py communicator, or what has its ``bcast`` and ``Split``. Where None, all that
            MPI started; without mpi4py there is one process.
        cupy: the module; another one in tests.
    """

    def __init__(
        self, backend: Backend, rank: int | None = None, size: int | None = None, *, timeout: float = 300.0,
        control: Any = None, cupy: Any = None, world: str | None = None,
    ) -> None:  # fmt: skip
        if control is None:
            control = _control(size)
        if cupy is None:
            import cupy
        rank, size = control.Get_rank() if rank is None else rank, control.Get_size() if size is None else size
        super().__init__(backend, rank, size, timeout=timeout)
        if backend.capabilities.host:
            raise ArgumentError(f"nccl: expected a GPU, got {backend}; make the communicator for cuda, or use mpi")
        self.control, self.cupy, self.nccl = control, cupy, cupy.cuda.nccl
        if not getattr(self.nccl, "available", True):
            raise CommunicatorError(
                "nccl: expected NCCL's library, got none that CuPy finds; pip install nvidia-nccl-cu13"
            )
        self.broken: str | None = None
        unique = control.bcast(self.nccl.get_unique_id() if rank == 0 else None, 0)
        self.place = cupy.cuda.Device(backend.index)
        with self.place:
            self.comm = self.nccl.NcclCommunicator(size, unique, rank)

    # Collectives

    @_on_its_device
    def all_reduce(self, native: Any, op: str = "sum", *, out: Any = None, timeout: float | None = None) -> Handle:
        out = native if out is None else out
        self.contiguous("all_reduce", native, out)
        self.reduction("all_reduce", op)
        source, kind, name, factor = self._reducible(native, op)
        target = out if source is native else source
        self._check()
        self.comm.allReduce(
            self._pointer(source), self._pointer(target), factor * _count(source), kind, name, self._stream()
        )
        return self._finished("all_reduce", out, timeout, source, self._written(out, target))

    @_on_its_device
    def reduce_scatter(self, native: Any, out: Any, op: str = "sum", *, timeout: float | None = None) -> Handle:
        self.blocks("reduce_scatter", out, native)
        self.reduction("reduce_scatter", op)
        source, kind, name, factor = self._reducible(native, op)
        target = out if source is native else self.backend.allocate(tuple(out.shape), dtypes.float32)
        self._check()
        self.comm.reduceScatter(
            self._pointer(source), self._pointer(target), factor * _count(target), kind, name, self._stream()
        )
        return self._finished("reduce_scatter", out, timeout, source, self._written(out, target))

    @_on_its_device
    def all_gather(self, native: Any, out: Any, *, timeout: float | None = None) -> Handle:
        self.blocks("all_gather", native, out)
        self._check()
        self.comm.allGather(
            self._pointer(native), self._pointer(out), _bytes(native), self.nccl.NCCL_UINT8, self._stream()
        )
        return self._finished("all_gather", out, timeout, native)

    @_on_its_device
    def broadcast(self, native: Any, root: int, *, timeout: float | None = None) -> Handle:
        self.contiguous("broadcast", native)
        self.member("broadcast", "root", root)
        self._check()
        place = self._pointer(native)
        self.comm.broadcast(place, place, _bytes(native), self.nccl.NCCL_UINT8, root, self._stream())
        return self._finished("broadcast", native, timeout, native)

    # Messages

    @_on_its_device
    def send(self, native: Any, dest: int, *, tag: int = 0, timeout: float | None = None) -> Handle:
        self.contiguous("send", native)
        self.member("send", "dest", dest)
        self._check()
        self.comm.send(self._pointer(native), _bytes(native), self.nccl.NCCL_UINT8, dest, self._stream())
        return self._finished(f"send to rank {dest}", None, timeout, native)

    @_on_its_device
    def recv(self, native: Any, source: int, *, tag: int = 0, timeout: float | None = None) -> Handle:
        self.contiguous("recv", native)
        self.member("recv", "source", source)
        self._check()
        self.comm.recv(self._pointer(native), _bytes(native), self.nccl.NCCL_UINT8, source, self._stream())
        return self._finished(f"recv from rank {source}", native, timeout, native)

    @contextmanager
    def group(self) -> Iterator[None]:
        self.nccl.groupStart()
        try:
            yield
        finally:
            self.nccl.groupEnd()

    # The group

    def split(self, color: int | None, key: int = 0) -> NcclCommunicator | None:
        made = self.control.Split(-1 if color is None else color, key)
        if color is None:
            return None
        return NcclCommunicator(self.backend, timeout=self.timeout, control=made, cupy=self.cupy)

    @_on_its_device
    def abort(self, reason: str) -> None:
        if self.broken is None:
            self.broken = reason
            self.comm.abort()

    @_on_its_device
    def close(self) -> None:
        if self.broken is None:
            self.broken = "close: expected an open communicator, got a closed one; make another"
            self.comm.destroy()

    def _reducible(self, native: Any, op: str) -> tuple[Any, int, int, int]:
        """What is reduced, as NCCL knows it: the array, the numbers of type and op, and how many elements make up one."""
        dtype = np.dtype(native.dtype)
        if dtype.kind == "b":
            return native, self.nccl.NCCL_UINT8, getattr(self.nccl, f"NCCL_{_LOGICAL[op]}"), 1
        if dtype.kind == "c":
            if op != "sum":
                raise ArgumentError(
                    f"nccl: expected the sum of complex arrays, got {op}; reduce real and imaginary parts"
                )
            half = "FLOAT32" if dtype.itemsize == 8 else "FLOAT64"
            return native, getattr(self.nccl, f"NCCL_{half}"), self.nccl.NCCL_SUM, 2
        if wide(dtype) is not dtype:
            native, dtype = self.backend.kernels["cast"](native, dtype=dtypes.float32), np.dtype(np.float32)
        if dtype.name not in _TYPES:
            raise ArgumentError(f"nccl: expected a dtype among {', '.join(_TYPES)}, got {dtype.name}; convert it first")
        return native, getattr(self.nccl, f"NCCL_{_TYPES[dtype.name]}"), getattr(self.nccl, f"NCCL_{_OPS[op]}"), 1

    def _written(self, out: Any, target: Any) -> Callable[[], None] | None:
        """Bring a result in float32 back to the half type."""
        if target is out:
            return None
        dtype = dtypes.from_numpy_dtype(np.dtype(out.dtype))
        return lambda: self.backend.kernels["copy"](out, self.backend.kernels["cast"](target, dtype=dtype))

    def _finished(
        self, what: str, result: Any, timeout: float | None, held: Any, last: Callable[[], None] | None = None
    ) -> Handle:
        """A handle of what is in the stream now, which keeps the array ``held``; it looks for errors while it waits."""
        event = self.cupy.cuda.Event()
        event.record()

        def wait(asked: float | None) -> None:
            seconds = self.seconds(timeout) if asked is None else asked
            start = looked = time.monotonic()
            assert held is not None
            while not event.done:
                self._check()
                now = time.monotonic()
                if now - looked >= _LOOK:
                    looked = now
                    self.comm.check_async_error()
                    if self.watch is not None:
                        self.watch()
                if now - start >= seconds:
                    raise CommunicatorTimeout(
                        f"{what}: expected the other ranks within {seconds:g} s, got no answer; see what they are doing"
                    )
                time.sleep(2e-5)
            if last is not None:
                with self.place:
                    last()

        return Handle(result, wait, lambda: bool(event.done))

    def _check(self) -> None:
        if self.broken is not None:
            raise CommunicatorError(self.broken)

    def _pointer(self, native: Any) -> int:
        return self.backend.data_pointer(native)

    def _stream(self) -> int:
        return int(self.cupy.cuda.get_current_stream().ptr)


class _Alone:
    """What a communicator of mpi4py is for one process."""

    def Get_rank(self) -> int:
        return 0

    def Get_size(self) -> int:
        return 1

    def bcast(self, one: Any, root: int) -> Any:
        return one

    def Split(self, color: int, key: int) -> _Alone:
        return self


def _control(size: int | None) -> Any:
    try:
        from mpi4py import MPI
    except ImportError:
        if size not in (None, 1):
            raise ArgumentError(
                f"nccl: expected mpi4py, by which {size} processes find one another, got none; pip install 'tensorcore[mpi]'"
            ) from None
        return _Alone()
    return MPI.COMM_WORLD


def _count(native: Any) -> int:
    return int(np.prod(native.shape, dtype=np.int64))


def _bytes(native: Any) -> int:
    return _count(native) * int(np.dtype(native.dtype).itemsize)
