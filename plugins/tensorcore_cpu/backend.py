"""The CPU as a backend: NumPy's functions, over memory from our own allocator."""

from __future__ import annotations

import ctypes
import math
from typing import Any

import numpy as np

from tensorcore.plugin import Capabilities, XPBackend, dtypes

from .memory import Allocator

__all__ = ["CPUBackend"]

# What stays with the process when a kernel's result is freed, in bytes.
_KEPT = 1 << 30
_LARGEST_HEAP_BLOCK = 32 << 20


class CPUBackend(XPBackend):
    """NumPy on this machine's processor.

    Attributes:
        memory: the allocator that all logical CPU devices share.
    """

    capabilities = Capabilities(tuple(one.name for one in dtypes.ALL), host=True, pinned=True)
    memory = Allocator()

    def __init__(self, index: int = 0) -> None:
        super().__init__(np, "cpu", index)
        _keep_freed_memory()

    def allocate(self, shape: tuple[int, ...], dtype: dtypes.dtype) -> np.ndarray:
        if math.prod(shape) * dtype.itemsize < 32768:
            return np.empty(shape, dtype.numpy)  # three times faster than an aligned one, and too small to gain by it
        return self.memory.empty(tuple(shape), dtype.numpy)

    def from_host(self, array: np.ndarray) -> np.ndarray:
        if array.nbytes < 32768:
            return np.array(array)
        made = self.memory.empty(array.shape, array.dtype)
        np.copyto(made, array)
        return made

    def pin(self, array: np.ndarray) -> np.ndarray:
        return self.memory.pin(array)

    def is_pinned(self, native: np.ndarray) -> bool:
        """Whether the array lies in page-locked memory."""
        return self.memory.is_pinned(native)

    def memory_stats(self) -> dict[str, int]:
        """The allocator's statistics."""
        return self.memory.statistics()

    def empty_cache(self) -> int:
        """Give unused blocks back to the system; how many bytes that were."""
        return self.memory.empty_cache()


def _keep_freed_memory() -> None:
    """Ask glibc to keep freed blocks of up to 32 MiB instead of returning them to the kernel.

    NumPy's functions allocate their results with malloc, and fresh pages cost more than the arithmetic:
    three chained sums of 1 MB take 1.1 ms (700 page faults a round) without this and 0.09 ms with it.
    Does nothing on other C libraries.
    """
    try:
        mallopt: Any = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return
    m_trim_threshold, m_mmap_threshold = -1, -3
    mallopt(m_mmap_threshold, _LARGEST_HEAP_BLOCK)
    mallopt(m_trim_threshold, _KEPT)
