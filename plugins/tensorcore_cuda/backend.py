"""A CUDA device as a backend: CuPy's arrays, kernels of ``XPBackend`` over CuPy, and fused ones of our own."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable
from typing import Any

import cupy
import numpy as np

from tensorcore.plugin import Capabilities, XPBackend, dtypes

from . import interop, kernels, kernels_array, probe
from .graphs import Graph
from .kernels.cudnn import cudnn_version
from .memory import Memory
from .namespace import Namespace
from .pinned import PinnedPool
from .random import Philox, refuse_in_capture
from .streams import Event, Stream
from .transfers import Transfers

__all__ = ["CudaBackend"]

Native = Any
_DLPACK_CUDA = 2


class CudaBackend(XPBackend):
    """One NVIDIA device.

    Attributes:
        cupy: the module.
        memory: its allocator, counted.
        pinned: page-locked host memory, one pool for all devices.
    """

    capabilities = Capabilities(
        tuple(one.name for one in dtypes.ALL), host=False, pinned=True, streams=True, graphs=True
    )
    numbered = True
    pinned: PinnedPool | None = None

    def __init__(self, index: int = 0) -> None:
        self.cupy = cupy
        self.several = probe.device_count() > 1
        self.place = cupy.cuda.Device(index)
        self.memory = Memory(cupy, index)
        if CudaBackend.pinned is None:
            CudaBackend.pinned = PinnedPool(cupy)
        with self.place:
            super().__init__(Namespace(cupy), "cuda", index)
        self.dlpack_type = _DLPACK_CUDA
        self.transfers = Transfers(self)
        self.own_generator = Philox(self, self.process_seed())
        self.table.update(kernels_array.kernels(self))
        for name in ("add", "mul", "maximum", "minimum"):  # without the Python frame around CuPy's functions
            self.table[name] = getattr(self.xp, {"mul": "multiply"}.get(name, name))
        self.driver = None
        if os.environ.get("TENSORCORE_CUDA_KERNELS") != "0":  # CuPy's functions alone: for comparison
            with self.place:
                self.driver = kernels.Driver(cupy)
            self.table = kernels.over(self.table, self.driver)
            self.nondeterministic = kernels.NONDETERMINISTIC
            self._compile = kernels.compiler(self.driver)
            self.checks_indices = True

    def find_kernel(self, name: str) -> Callable[..., Any] | None:
        found = super().find_kernel(name)
        return found if found is None or not self.several else self.on_device(found)

    def on_device(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, called with this device as the thread's current one, as CuPy's functions need it."""
        index, runtime = self.index, cupy.cuda.runtime
        current, choose = runtime.getDevice, runtime.setDevice

        def call(*args: Any, **options: Any) -> Any:
            before = current()
            if before == index:
                return function(*args, **options)
            choose(index)
            try:
                return function(*args, **options)
            finally:
                choose(before)

        return call

    def compile(self, program: Any) -> Callable[..., Any] | None:
        found = None if self.driver is None else self._compile(program)
        return found if found is None or not self.several else self.on_device(found)

    @classmethod
    def device_count(cls) -> int:
        return probe.device_count()

    # Memory

    def allocate(self, shape: tuple[int, ...], dtype: dtypes.dtype) -> Native:
        if not self.several:
            return cupy.ndarray(shape, dtype.numpy)
        with self.place:
            return cupy.ndarray(shape, dtype.numpy)

    def as_native(self, value: Any) -> Native:
        with self.place:
            return cupy.asarray(value)

    def from_host(self, array: np.ndarray) -> Native:
        return self.transfers.send(array, wait=True)

    def share_host(self, array: np.ndarray) -> Native:
        return self.from_host(array)

    def to_host(self, native: Native) -> np.ndarray:
        with self.place:
            made = native.get()
        self.check_faults()
        return made

    def copy_from(self, other: Any, native: Native) -> Native:
        if isinstance(other, CudaBackend):
            return self.transfers.between(other, native)
        return self.from_host(other.to_host(native))

    def begin_copy(self, other: Any, native: Native) -> Native:
        if isinstance(other, CudaBackend):
            return self.transfers.between(other, native)
        return self.transfers.send(other.to_host(native), wait=False)

    def begin_to_host(self, native: Native) -> np.ndarray:
        return self.transfers.fetch(native)

    def pin(self, array: np.ndarray) -> np.ndarray:
        return self.pinned.pin(array)  # type: ignore[union-attr]

    def is_pinned(self, array: np.ndarray) -> bool:
        return isinstance(array, np.ndarray) and self.pinned.holds(array)  # type: ignore[union-attr]

    def over(self, native: Native, shape: tuple[int, ...], dtype: Any, start: int, strides: tuple[int, ...]) -> Native:
        return cupy.ndarray(shape, dtype, native.data + start, strides)

    def as_strided(self, native: Native, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> Native:
        size, block = native.dtype.itemsize, native.data.mem
        if 0 not in shape:
            last = offset + sum([(n - 1) * step for n, step in zip(shape, strides, strict=True)])
            if offset < 0 or (last + 1) * size > self.memory.size_of(block):
                raise ValueError("strides is incompatible with shape of requested array and size of buffer")
        pointer = cupy.cuda.MemoryPointer(block, min(offset * size, self.memory.size_of(block)))
        return cupy.ndarray(shape, native.dtype, pointer, tuple([step * size for step in strides]))

    def layout(self, native: Native) -> tuple[tuple[int, ...], int]:
        data = native.data
        return self.strides(native), (data.ptr - data.mem.ptr) // native.dtype.itemsize

    def storage(self, native: Native) -> Native:
        block = native.data.mem
        count = self.memory.size_of(block) // native.dtype.itemsize
        return cupy.ndarray((count,), native.dtype, cupy.cuda.MemoryPointer(block, 0))

    def storage_key(self, native: Native) -> Hashable:
        block = native.data.mem
        return block.ptr or id(block)

    def data_pointer(self, native: Native) -> int:
        return native.data.ptr  # type: ignore[no-any-return]

    def memory_stats(self) -> dict[str, int]:
        return self.memory.stats()

    def reset_peak_memory_stats(self) -> None:
        self.memory.reset_peaks()

    def empty_cache(self) -> int:
        return self.memory.empty()

    def limit_memory(self, fraction: float) -> None:
        self.memory.limit(fraction)

    def free_memory(self) -> tuple[int, int]:
        with self.place:
            free, total = cupy.cuda.runtime.memGetInfo()
        return int(free), int(total)

    def reads_from(self, other: Any) -> bool:
        return bool(cupy.cuda.runtime.deviceCanAccessPeer(self.index, other.index))

    # Streams

    def synchronize(self) -> None:
        with self.place:
            self.place.synchronize()
        self.check_faults()

    def check_faults(self) -> None:
        """Raise for an index that a kernel found outside its dim; the device must have been waited for."""
        if self.driver is not None:
            self.driver.faults.check()

    def new_stream(self, priority: int = 0) -> Stream:
        with self.place:
            return Stream(self, cupy.cuda.Stream(non_blocking=True, priority=priority))

    def stream_at(self, pointer: int) -> Stream:
        with self.place:
            return Stream(self, cupy.cuda.ExternalStream(pointer, self.index))

    def default_stream(self) -> Stream:
        with self.place:
            return Stream(self, cupy.cuda.Stream(null=True))

    def current_stream(self) -> Stream:
        return Stream(self, cupy.cuda.get_current_stream(self.index))

    def use_stream(self, stream: Stream) -> None:
        with self.place:
            stream.cupy_stream.use()

    def new_event(self, timing: bool = False, blocking: bool = False) -> Event:
        with self.place:
            return Event(self, timing, blocking)

    def record_stream(self, native: Native, stream: Stream) -> None:
        self.memory.record_stream(native, self.current_stream().cupy_stream, stream.cupy_stream)

    def new_graph(self) -> Graph:
        return Graph(self)

    def capturing(self) -> bool:
        return bool(cupy.cuda.get_current_stream(self.index).is_capturing())

    # Random numbers

    def new_generator(self) -> Philox:
        return Philox(self)

    def host_generator(self) -> Any:
        """A generator of the host."""
        return super().new_generator()

    def random(
        self, kind: str, shape: tuple[int, ...], dtype: dtypes.dtype, generator: Any = None, **options: Any
    ) -> Native:
        source = self.own_generator if generator is None else generator
        if isinstance(source, Philox):
            return source.draw(kind, shape, dtype, **options)
        return super().random(kind, shape, dtype, generator, **options)

    def draw(self, op: str, function: Callable[..., np.ndarray], *natives: Native) -> Native:
        if self.capturing():
            refuse_in_capture(op)
        return super().draw(op, function, *natives)

    # Exchange with others

    def to_dlpack(self, native: Native, dtype: dtypes.dtype, **options: Any) -> Any:
        return interop.to_dlpack(self, native, dtype, **options)

    def from_dlpack(self, exporter: Any, **options: Any) -> tuple[Native, dtypes.dtype]:
        return interop.from_dlpack(self, exporter, **options)

    def array_interface(self, native: Native) -> dict[str, Any]:
        with self.place:
            found: dict[str, Any] = native.__cuda_array_interface__
        found["strides"] = native.strides
        return found

    def properties(self) -> dict[str, Any]:
        """What the device is, by PyTorch's names."""
        found = cupy.cuda.runtime.getDeviceProperties(self.index)
        return {
            "name": found["name"].decode(),
            "major": found["major"],
            "minor": found["minor"],
            "total_memory": found["totalGlobalMem"],
            "multi_processor_count": found["multiProcessorCount"],
            "warp_size": found["warpSize"],
            "max_threads_per_multi_processor": found["maxThreadsPerMultiProcessor"],
            "L2_cache_size": found["l2CacheSize"],
            "shared_memory_per_block": found["sharedMemPerBlock"],
            "is_integrated": bool(found["integrated"]),
            "is_multi_gpu_board": bool(found["isMultiGpuBoard"]),
        }

    def report(self) -> dict[str, str | int | float | bool | None]:
        """The device, its memory, and the versions that run it."""
        found = self.properties()
        runtime = cupy.cuda.runtime
        return {
            "library": f"CuPy {cupy.__version__}",
            "device": found["name"],
            "memory": found["total_memory"],
            "capability": f"{found['major']}.{found['minor']}",
            "runtime": _version(runtime.runtimeGetVersion()),
            "driver": _version(runtime.driverGetVersion()),
            "cudnn": None if self.driver is None else cudnn_version(self.driver),
        }


def _version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"
