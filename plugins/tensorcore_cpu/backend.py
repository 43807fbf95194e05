"""The CPU as a backend: kernels in C where they were built, NumPy's functions for the rest, over memory of our own."""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorcore.plugin import Capabilities, XPBackend, dtypes

from . import blas, native
from .memory import Allocator

if TYPE_CHECKING:
    from tensorcore.plugin import Program

__all__ = ["CPUBackend"]

# Kernels whose way may be chosen by measuring, see `benchmark`.
_MEASURED = ("conv", "conv_input_gradient", "conv_weight_gradient")
# What stays with the process when a kernel's result is freed, in bytes.
_KEPT = 1 << 30
_LARGEST_HEAP_BLOCK = 32 << 20


class CPUBackend(XPBackend):
    """NumPy on this machine's processor.

    Attributes:
        memory: the allocator that all logical CPU devices share.
    """

    capabilities = Capabilities(tuple(one.name for one in dtypes.ALL), host=True, pinned=True)
    nondeterministic = MappingProxyType({name: name + "_by_rule" for name in _MEASURED})
    narrow_numbers = native.narrow_numbers()
    adds_into = native.adds_into()
    takes_out = native.takes_out()
    memory = Allocator()
    writes = os.environ.get("TENSORCORE_CODEGEN", "0") not in ("", "0")

    def __init__(self, index: int = 0) -> None:
        super().__init__(np, "cpu", index)
        twins = {name: name + "_by_rule" for name in _MEASURED}
        self.table.update({twin: self.table[name] for name, twin in twins.items()})
        self.layings.update({twins[name]: self.layings[name] for name in twins.keys() & self.layings.keys()})
        self.table = native.over(self.table, self.layings)
        vars(self).update(native.methods(self.random))  # 0.1 us in the place of 1
        _keep_freed_memory()

    def allocate(self, shape: tuple[int, ...], dtype: dtypes.dtype) -> np.ndarray:
        if math.prod(shape) * dtype.itemsize < 32768:
            return np.empty(shape, dtype.numpy)  # three times faster than an aligned one, and too small to gain by it
        return self.memory.empty(tuple(shape), dtype.numpy)

    def from_host(self, array: np.ndarray) -> np.ndarray:
        if array.nbytes < 32768:
            return np.array(array)
        made = self.memory.empty(array.shape, array.dtype)
        self.table["copy"](made, array)
        return made

    def compile(self, program: Program) -> Any:
        """One kernel that goes over the data once: in C block by block, in NumPy tile by tile."""
        from .compile import compile

        return compile(program, self)

    def threads(self, count: int | None = None) -> int:
        """Set, if given, how many threads a kernel may use, BLAS's included; how many that are."""
        if count is not None:
            blas.set_threads(count)
        return native.threads(count) if native.available() else blas.get_threads()

    def benchmark(self, wanted: bool | None = None) -> bool:
        return native.measures(wanted)

    def codegen(self, wanted: bool | None = None) -> bool:
        """Set, if given, whether programs are written down as C for a compiler; whether they are. ``TENSORCORE_CODEGEN=1`` is the start."""
        if wanted is not None:
            CPUBackend.writes = wanted
        return CPUBackend.writes and native.available()

    def properties(self) -> dict[str, Any]:
        """The name, and the instruction set that kernels run with: ``avx512``, ``avx2`` or ``plain``."""
        return {**super().properties(), "instructions": native.isa() or "plain"}

    def pin(self, array: np.ndarray) -> np.ndarray:
        return self.memory.pin(array)

    def is_pinned(self, native: np.ndarray) -> bool:
        """Whether the array lies in page-locked memory."""
        return self.memory.is_pinned(native)

    def memory_stats(self) -> dict[str, int]:
        """The allocator's statistics, those of the C kernels' results included; peaks are the sum of both peaks."""
        counts = self.memory.statistics()
        for name, count in native.memory_stats().items():
            counts[name] += count
        return counts

    def reset_peak_memory_stats(self) -> None:
        self.memory.reset_peak_statistics()
        native.reset_peak_memory_stats()

    def empty_cache(self) -> int:
        """Give unused blocks back to the system; how many bytes that were."""
        return self.memory.empty_cache() + native.empty_cache()

    def report(self) -> dict[str, str | int | float | bool | None]:
        """NumPy, what products run on, the cores, the memory, and whether kernels in C run."""
        found = super().report()
        found["blas"] = native.describe_products()
        found["cores"] = os.cpu_count()
        with contextlib.suppress(AttributeError, OSError, ValueError):  # not on every system
            found["memory"] = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        state = f"yes, {native.isa()}, {native.threads()} threads" if native.available() else f"no: {native.reason}"
        found["compiled"] = state
        return found


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
