"""Copies between host and device and between devices: on a stream of their own, ordered by events."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from tensorcore_cuda import captured

__all__ = ["Transfers"]

Native = Any


class Transfers:
    """The copies of one device.

    A copy from or to page-locked memory that the host need not wait for runs on the copy stream, beside the kernels that
    were called before it. The current stream waits for what arrives by an event; the host goes on.
    """

    def __init__(self, backend: Any) -> None:
        self.backend = backend
        self._stream: Any = None
        self.captured: list[np.ndarray] = []  # what the graph under way copies from or to at each replay

    @property
    def stream(self) -> Any:
        """The copy stream, made on first use."""
        if self._stream is None:
            with self.backend.place:
                self._stream = cupy.cuda.Stream(non_blocking=True)
        return self._stream

    def send(self, array: np.ndarray, *, wait: bool) -> Native:
        """A new device array with a host array's values.

        Without ``wait`` the values are those that the host array has when the copy runs, if it is page-locked: until then
        it must stay as it is. Other memory is read before this returns.
        """
        pinned = self.backend.pinned
        if array.ndim > 1 and not array.flags.c_contiguous:
            # Dense memory goes as it lies, and the dims come out in their order: results of LAPACK are column-major.
            order = sorted(range(array.ndim), key=lambda i: -abs(array.strides[i]))
            turned = array.transpose(order)
            if turned.flags.c_contiguous:
                return self.send(turned, wait=wait).transpose(np.argsort(order).tolist())
        with self.backend.place:
            if not array.size:
                return cupy.ndarray(array.shape, array.dtype)
            current = cupy.cuda.get_current_stream()
            source = np.ascontiguousarray(array).reshape(array.shape)
            if source is not array and not np.shares_memory(source, array):
                wait = True  # the values are the copy's, which nobody else can see
            locked = pinned.holds(source)
            if current.is_capturing():
                self.captured.append(pinned.pin(source))
                made = cupy.ndarray(array.shape, array.dtype)
                captured.send(self.captured[-1], made, current)
                return made
            if wait or not locked:
                made = cupy.ndarray(array.shape, array.dtype)
                made.set(source)
                if locked:
                    current.synchronize()
                return made
            stream = self.stream
            with stream:
                made = cupy.ndarray(array.shape, array.dtype)
                made.set(source)
                done = cupy.cuda.Event(disable_timing=True)
                done.record(stream)
            current.wait_event(done)
            pinned.used(source, done)
            # The memory goes back to the copy stream, which must not write it while this stream reads.
            self.backend.memory.record_stream(made, stream, current)
            return made

    def fetch(self, native: Native) -> np.ndarray:
        """The values in page-locked memory, which are there when the device or the current stream was waited for."""
        pinned = self.backend.pinned
        with self.backend.place:
            made = pinned.empty(native.shape, native.dtype)
            if not native.size:
                return made  # type: ignore[no-any-return]
            current = cupy.cuda.get_current_stream()
            source = cupy.ascontiguousarray(native).reshape(native.shape)
            if current.is_capturing():
                self.captured.append(made)
                captured.fetch(source, made, current)
                return made  # type: ignore[no-any-return]
            stream = self.stream
            ready = cupy.cuda.Event(disable_timing=True)
            ready.record(current)
            stream.wait_event(ready)
            source.get(stream=stream, out=made, blocking=False)
            done = cupy.cuda.Event(disable_timing=True)
            done.record(stream)
            current.wait_event(done)
            pinned.used(made, done)
            return made  # type: ignore[no-any-return]

    def between(self, other: Any, native: Native) -> Native:
        """A copy of another device's array: the two streams wait for one another, the host for neither."""
        with other.place:
            source = cupy.ascontiguousarray(native).reshape(native.shape)
            theirs = cupy.cuda.get_current_stream()
            ready = cupy.cuda.Event(disable_timing=True)
            ready.record(theirs)
        with self.backend.place:
            made = cupy.ndarray(native.shape, native.dtype)
            ours = cupy.cuda.get_current_stream()
            ours.wait_event(ready)
            if made.size:
                made.data.copy_from_device_async(source.data, made.nbytes, ours)
            done = cupy.cuda.Event(disable_timing=True)
            done.record(ours)
        with other.place:  # where ``theirs`` is the legacy stream, it is that of the current device
            theirs.wait_event(done)
        return made
