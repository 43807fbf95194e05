"""The machine's limit for a row: the time that its bytes and its multiply-adds take at best, on as many threads.

What is both read and written goes through memory by memcpy, or by stores past the caches where that takes less, what is only
read by memchr for a byte that is not there, what is only written by memset, and what is changed by a loop: in buffers of the
row's own sizes, one run after the other, so in the caches that the row's own numbers are in. Multiply-adds are made in
registers. ``limits.c`` has the loops, compiled at the first limit.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import shlex
import subprocess
import sysconfig
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np

__all__ = ["Limit", "Work", "loops"]

SECONDS = 1e-3  # of a turn, of each of the two, where one run is not longer
SOURCE = Path(__file__).with_suffix(".c")
APART = 64 * 33  # bytes between two buffers, no multiple of 4096: a load after a store to such a distance waits for it


class Work(NamedTuple):
    """What a row cannot do without: bytes that it reads, writes and changes in place once each, and multiply-adds of a dtype."""

    read: int = 0
    written: int = 0
    changed: int = 0
    products: int = 0
    dtype: str = "float32"


class Limit:
    """A row's work as the machine does it at best, on ``count`` threads with a processor each.

    Raises:
        NotImplementedError: where there is no C compiler.
    """

    def __init__(self, work: Work, count: int = 1) -> None:
        self._work, self._count, self._runs, self._past = work, count, 1, 0
        self._pool = ThreadPoolExecutor(count, initializer=_pin, initargs=(iter(_processors()),)) if count > 1 else None
        self._parts = [_Part(Work(*(size // count for size in work[:3]))) for _ in range(count)]
        while (taken := self._memory()) < SECONDS / 2 and any(work[:3]):
            self._runs *= 2 if taken > SECONDS / 20 else 10
        self._past = min((0, 1, 0, 1), key=self._memory)

    def seconds(self) -> float:
        """Those of one run: of its bytes or of its multiply-adds, whichever take longer."""
        multiply = getattr(loops(), f"multiply_{self._work.dtype}")
        runs, taken = 100_000, 0.0
        if self._work.products:
            slowest = max(self._each(lambda _: multiply(runs)))
            made = self._count * runs * loops().lanes() / np.dtype(self._work.dtype).itemsize
            taken = self._work.products * slowest / made
        return max(taken, self._memory(self._past) / self._runs)

    def _memory(self, past: int = 0) -> float:
        return max(self._each(lambda part: part.pass_through(past, self._runs)))

    def _each(self, call: Callable[[_Part], float]) -> list[float]:
        return list((self._pool.map if self._pool else map)(call, self._parts))


class _Part:
    """One thread's buffers: ctypes gives up the interpreter's lock while they are passed through."""

    def __init__(self, work: Work) -> None:
        both = min(work.read, work.written)
        sizes = both, both, work.read - both, work.written - both, work.changed
        starts = np.cumsum([0, *[-(-size // 64) * 64 + APART for size in sizes]])
        # Not of malloc, which would keep its memory for the peer after it had given back buffers of such sizes.
        pages = mmap.mmap(-1, int(starts[-1]) + 64)
        if hasattr(mmap, "MADV_HUGEPAGE"):
            pages.madvise(mmap.MADV_HUGEPAGE)
        self._memory = np.frombuffer(pages, np.uint8)
        self._memory.fill(2)  # pages that nobody wrote are all the same one
        first = self._memory.ctypes.data
        target, source, seen, filled, kept = (first + int(start) for start in starts[:-1])
        self._given = target, source, both, seen, sizes[2], filled, sizes[3], kept, work.changed

    def pass_through(self, past: int, runs: int) -> float:
        return float(loops().passes(past, *self._given, runs))


@functools.cache
def loops() -> ctypes.CDLL:
    """The loops of ``limits.c``, compiled for this processor."""
    compiler = shlex.split(sysconfig.get_config_var("CC") or "cc")
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "limits.so"
        command = [
            *compiler,
            "-O3",
            "-march=native",
            "-ffp-contract=fast",
            "-shared",
            "-fPIC",
            "-o",
            str(made),
            str(SOURCE),
        ]
        try:
            subprocess.run(command, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise NotImplementedError(f"limits: expected a C compiler, got {error}") from None
        found = ctypes.CDLL(str(made))
    sizes = [ctypes.c_void_p, ctypes.c_size_t]
    found.passes.argtypes = [ctypes.c_int, ctypes.c_void_p, *sizes * 4, ctypes.c_long]
    found.lanes.restype = ctypes.c_long
    for multiply in (found.multiply_float32, found.multiply_float64):
        multiply.argtypes, multiply.restype = [ctypes.c_long], ctypes.c_double
    found.passes.restype = ctypes.c_double
    return found


def _processors() -> list[int]:
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


def _pin(processors: Iterator[int]) -> None:
    """Have this thread one processor for itself: systems may put both on one at first."""
    if (mine := next(processors, None)) is not None:
        os.sched_setaffinity(0, {mine})
