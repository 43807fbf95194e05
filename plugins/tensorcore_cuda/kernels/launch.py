"""Compiling and launching: source files, kernels compiled when first used, and launches that bypass CuPy's slow path.

A launch packs its parameters into a buffer and hands its address to the driver: about 1 us where CuPy's own takes
several. That is why a kernel's parameters are declared here, as a format: ``P`` a pointer, ``q`` and ``i`` integers of 8
and 4 bytes, ``f`` and ``d`` floats, ``?`` a bool, and a number before ``s`` that many bytes of a struct.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tensorcore.plugin import dtypes

__all__ = ["C_TYPES", "WIDE", "Driver", "Kernel", "family", "layout_of", "merged", "source_of", "vector_of"]

Native = Any
HERE = Path(__file__).parent

# The C name of each dtype's elements, as types.cuh has them.
C_TYPES: dict[np.dtype[Any], str] = {
    np.dtype(np.float32): "float",
    np.dtype(np.float64): "double",
    np.dtype(np.float16): "float16",
    dtypes.bfloat16.numpy: "bfloat16",
    np.dtype(np.int64): "int64",
    np.dtype(np.int32): "int",
    np.dtype(np.int16): "short",
    np.dtype(np.int8): "signed char",
    np.dtype(np.uint8): "unsigned char",
    np.dtype(np.bool_): "bool",
}
# What the floating ones are computed in.
WIDE: dict[np.dtype[Any], np.dtype[Any]] = {
    dtype: np.dtype(np.float32) if dtype.itemsize == 2 else dtype
    for dtype in (np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.float16), dtypes.bfloat16.numpy)
}
OPTIONS = ("--std=c++17",)
DIMS = 6  # of a layout in types.cuh
_LAYOUT = struct.Struct("@i6I6q")
LAYOUT_BYTES = _LAYOUT.size


@cache
def source_of(name: str) -> str:
    """The text of a source file with the files that it includes by ``#include "..."`` in their places, each once."""
    return _expanded(name, set())


def _expanded(name: str, seen: set[str]) -> str:
    seen.add(name)
    lines = []
    for line in (HERE / name).read_text().splitlines():
        if line.startswith('#include "'):
            other = line.split('"')[1]
            lines.append("" if other in seen else _expanded(other, seen))
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"


class Driver:
    """What launchers need of CuPy for one device: it compiles, launches, and makes arrays.

    Args:
        xp: CuPy, or what stands in for it.
        stream: answers with the address of the stream to launch on.
    """

    def __init__(self, xp: Any, stream: Callable[[], int] | None = None) -> None:
        self.xp = xp
        self.empty: Callable[..., Native] = xp.ndarray
        self.launch = xp.cuda.driver.launchKernel
        self.zeros: Callable[..., Native] = xp.zeros
        self.stream = stream or (lambda: xp.cuda.get_current_stream().ptr)
        self.faults = Faults(*_host_words(xp))
        self.kernels: dict[tuple[str, str], Kernel] = {}
        self.cudnn: Any = ...  # not looked for yet
        self.limit = 16 * self.multiprocessors()

    def multiprocessors(self) -> int:
        """How many the device has."""
        attribute = self.xp.cuda.runtime.cudaDevAttrMultiProcessorCount
        device = self.xp.cuda.runtime.getDevice()
        return int(self.xp.cuda.runtime.deviceGetAttribute(attribute, device))

    def kernel(self, source: str, name: str, parameters: str) -> Kernel:
        """The kernel of that name expression, compiled the first time."""
        found = self.kernels.get((source, name))
        if found is None:
            found = self.kernels[source, name] = Kernel(self, source, name, parameters)
        return found

    def blocks(self, wanted: int) -> int:
        """A number of blocks for kernels that walk on by their whole grid: as many as keep the device busy."""
        return max(1, min(wanted, self.limit))


class Kernel:
    """One compiled kernel, called with a grid, a block, bytes of shared memory, and its parameters."""

    __slots__ = ("buffers", "driver", "module", "name", "packing", "pointer")

    def __init__(self, driver: Driver, source: str, name: str, parameters: str) -> None:
        self.driver, self.name = driver, name
        expressions = (name,) if "<" in name else None
        self.module = driver.xp.RawModule(code=source, options=OPTIONS, name_expressions=expressions)
        self.pointer = self.module.get_function(name).kernel.ptr
        self.packing = packing_of(parameters)
        # One a launch under way: the driver copies the parameters while other threads run.
        self.buffers: list[_Buffer] = []

    def __call__(self, grid: tuple[int, int, int], block: tuple[int, int, int], shared: int, *parameters: Any) -> None:
        try:
            buffer = self.buffers.pop()
        except IndexError:
            buffer = _Buffer(self.packing.size)
        self.packing.pack_into(buffer.memory, 0, *parameters)
        driver = self.driver
        driver.launch(self.pointer, *grid, *block, shared, driver.stream(), 0, buffer.extra)
        self.buffers.append(buffer)


def packing_of(parameters: str) -> struct.Struct:
    """The layout of a parameter buffer: as a C struct, in which structs (of 8-byte alignment) stand as bytes."""
    parts, count = [], ""
    for letter in parameters:
        if letter.isdigit():
            count += letter
            continue
        parts.append(f"0q{count}s" if letter == "s" else {"P": "Q"}.get(letter, letter))
        count = ""
    return struct.Struct("@" + "".join(parts))


class _Buffer:
    """Memory for the parameters of a launch, and the list by which the driver finds it."""

    __slots__ = ("extra", "list", "memory", "size")

    def __init__(self, size: int) -> None:
        self.memory = ctypes.create_string_buffer(max(size, 1))
        self.size = ctypes.c_size_t(size)
        # CU_LAUNCH_PARAM_BUFFER_POINTER, its value, CU_LAUNCH_PARAM_BUFFER_SIZE, its value, CU_LAUNCH_PARAM_END
        self.list = (ctypes.c_void_p * 5)(1, ctypes.addressof(self.memory), 2, ctypes.addressof(self.size), 0)
        self.extra = ctypes.addressof(self.list)


def family(driver: Driver, file: str) -> Callable[[str, str], Kernel]:
    """The kernels of one source file: ``family(driver, "softmax.cu")("row<float>", "PPi")``."""
    cached: dict[str, Kernel] = {}

    def kernel(name: str, parameters: str) -> Kernel:
        try:
            return cached[name]
        except KeyError:
            found = cached[name] = driver.kernel(source_of(file), name, parameters)
            return found

    return kernel


class Faults:
    """Where kernels report an index that lies outside: three int64 in host memory that the device writes."""

    def __init__(self, words: np.ndarray, pointer: int) -> None:
        self.words, self.pointer = words, pointer
        words[...] = 0

    def check(self) -> None:
        """Raise IndexError if a kernel reported something since the last look; the device must have been waited for."""
        if self.words[0]:
            _, index, size = map(int, self.words)
            self.words[...] = 0
            raise IndexError(
                f"index: expected indices from 0 to {size - 1}, got {index}; a kernel that ran before this call met it"
            )


def _host_words(xp: Any) -> tuple[np.ndarray, int]:
    """Three int64 in page-locked host memory, which every device can write, and their address; kept for good."""
    runtime = xp.cuda.runtime
    address = runtime.hostAlloc(24, runtime.hostAllocPortable)
    return np.ctypeslib.as_array((ctypes.c_int64 * 3).from_address(address)), address


# Layouts


def merged(shape: Sequence[int], *strides: Sequence[int]) -> tuple[list[int], list[list[int]]]:
    """The same elements in as few dims as possible: sizes of 1 left out, dims joined that lie behind one another in all.

    Only the first may become too large for the 32 bits in which kernels take sizes: theirs they never divide by.
    """
    sizes: list[int] = []
    steps: list[list[int]] = [[] for _ in strides]
    for i, size in enumerate(shape):
        if size == 1:
            continue
        small = len(sizes) == 1 or (len(sizes) > 1 and sizes[-1] * size < 1 << 31)
        if small and all(made[-1] == given[i] * size for made, given in zip(steps, strides, strict=True)):
            sizes[-1] *= size
            for made, given in zip(steps, strides, strict=True):
                made[-1] = given[i]
            continue
        sizes.append(size)
        for made, given in zip(steps, strides, strict=True):
            made.append(given[i])
    return sizes, steps


def layout_of(sizes: Sequence[int], strides: Sequence[int]) -> bytes:
    """A ``layout`` of types.cuh; at most ``DIMS`` dims."""
    rest = (0,) * (DIMS - len(sizes))
    first = [min(one, (1 << 32) - 1) for one in sizes[:1]]  # which no kernel reads
    return _LAYOUT.pack(len(sizes), *first, *sizes[1:], *rest, *strides, *rest)


def vector_of(itemsize: int, count: int, *addresses: int) -> int:
    """How many elements of the widest loads of 16 bytes fit: all addresses and ``count`` are multiples of that many."""
    wanted = 16 // itemsize
    for one in addresses:
        while one % (wanted * itemsize):
            wanted //= 2
    while count % wanted:
        wanted //= 2
    return wanted
