"""Work that is written down once and launched as one: CUDA graphs, with memory and random numbers of their own."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from tensorcore.plugin import ArgumentError

__all__ = ["Graph"]


class Graph:
    """One captured graph.

    What is captured takes its memory from a pool of the graph's own, so that no array made elsewhere ever lies where a
    replay writes. Random numbers count from a number on the device that each replay moves on.

    Attributes:
        pool: that memory; graphs that never run at the same time may share it.
    """

    def __init__(self, backend: Any) -> None:
        self.backend = backend
        self.pool: Any = None
        self.graph: Any = None
        self._allocator: Any = None
        self._draws = 0
        self._sources: list[Any] = []  # host memory that replays read
        self._base: Any = None

    def new_pool(self) -> Any:
        """Memory for several graphs."""
        return cupy.cuda.MemoryPool()

    def begin(self, pool: Any = None) -> None:
        """Write down what this thread calls on its current stream from now on, which cannot be the default one."""
        if self.graph is not None:
            raise ArgumentError(
                "capture_begin: expected a graph that was not captured yet, got one that was; call reset()"
            )
        backend = self.backend
        stream = backend.current_stream().cupy_stream
        with backend.place:
            self.pool = cupy.cuda.MemoryPool() if pool is None else pool
            self._base = cupy.zeros((2,), np.uint64)
            backend.synchronize()
            self._allocator = cupy.cuda.using_allocator(backend.memory.allocator(self.pool))
            self._allocator.__enter__()
            backend.transfers.captured = []
            random = backend.own_generator
            random.base, random.taken = self._base, 0
            # Relaxed: the pool may ask the device for memory while it is captured.
            stream.begin_capture(cupy.cuda.runtime.streamCaptureModeRelaxed)

    def end(self) -> None:
        """The capture is over; nothing of it has run."""
        random = self.backend.own_generator
        with self.backend.place:
            try:
                self.graph = self.backend.current_stream().cupy_stream.end_capture()
            finally:
                self._allocator.__exit__(None, None, None)
                self._draws, random.base = random.taken, None
                self._sources = self.backend.transfers.captured

    def replay(self) -> None:
        """Run it on the current stream."""
        if self.graph is None:
            raise ArgumentError(
                "replay: expected a graph that was captured, got one that was not; call capture_begin first"
            )
        random = self.backend.own_generator
        with self.backend.place:
            if self._draws:
                self._base[:1].fill(random.key)
                self._base[1:].fill(random.offset)
                random.offset += self._draws
            self.graph.launch(self.backend.current_stream().cupy_stream)

    def reset(self) -> None:
        """Forget what was captured, and its memory."""
        self.graph = self.pool = None
