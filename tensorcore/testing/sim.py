"""The device ``sim``: as many as asked for, each with a memory and a queue of its own, and with faults on demand."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import prod
from typing import Any

import numpy as np

from tensorcore import dtypes
from tensorcore.backend.base import Backend, Capabilities, Kernel, Native
from tensorcore.backend.kernels import RULES
from tensorcore.backend.meta import MetaArray, MetaBackend
from tensorcore.backend.strided import Memory, StridedArray, StridedBackend
from tensorcore.backend.strides import contiguous_strides
from tensorcore.backend.xp import XPBackend
from tensorcore.errors import AcceleratorError, ArgumentError, OutOfMemoryError, ValuesMissing

__all__ = ["DeviceLost", "Faults", "SimBackend"]

Shape = tuple[int, ...]
# Kernels that run when they are called: of a shape that only values tell, or with errors that the op explains.
_AT_ONCE = frozenset([*(set(XPBackend(np).table) - set(RULES)), "inverse", "index_fill"])
_POISON = 0xFF  # as a float's bytes a NaN, as an integer's -1


class DeviceLost(AcceleratorError):
    """The device stopped answering; everything on it is gone."""


class Faults:
    """What goes wrong on a device, and how far it is; counts start when the faults are injected, at 1.

    Attributes:
        out_of_memory_at: the allocation that fails, and each one after it.
        capacity: bytes that the device has; None for no limit.
        lost_at: the kernel at which the device is lost.
        slow_copy: seconds that each copy from or to the host takes longer.
        flip_bit_at: the kernel in whose first result one high bit of the first element is wrong,
            or the lowest one of an integer.
        allocations, kernels, copies: how many there have been.
    """

    def __init__(
        self,
        *,
        out_of_memory_at: int | None = None,
        capacity: int | None = None,
        lost_at: int | None = None,
        slow_copy: float = 0.0,
        flip_bit_at: int | None = None,
    ) -> None:
        for name, at in (("out_of_memory_at", out_of_memory_at), ("lost_at", lost_at), ("flip_bit_at", flip_bit_at)):
            if at is not None and at < 1:
                raise ArgumentError(f"inject: expected {name} of 1 or more, got {at}; the first one is 1")
        self.out_of_memory_at = out_of_memory_at
        self.capacity = capacity
        self.lost_at = lost_at
        self.slow_copy = slow_copy
        self.flip_bit_at = flip_bit_at
        self.allocations = self.kernels = self.copies = 0


class SimMemory(Memory):
    """Memory that is poisoned when it is given, and again when the last array over it goes."""

    __slots__ = ("device",)

    def __init__(self, device: SimBackend, data: np.ndarray) -> None:
        super().__init__(data, data.dtype, data.nbytes)
        self.device = device

    def __del__(self) -> None:
        device = getattr(self, "device", None)
        if device is not None:
            device.release(self.data)


class SimBackend(StridedBackend):
    """NumPy behind a queue: a kernel that is called has not run yet, and what it will write is poison until then.

    The queue runs when somebody looks at values, or at ``synchronize``; an error in a kernel is raised there.
    Memory is the device's own: nothing of the host is shared, and a block that was freed comes back poisoned.

    Attributes:
        faults: those that are injected now.
    """

    capabilities = Capabilities(tuple(one.name for one in dtypes.ALL))
    numbered = True

    def __init__(self, index: int = 0) -> None:
        super().__init__("sim", index)
        self.faults = Faults()
        self.lost = False
        self.dense_kernels: dict[str, Kernel] = {
            name: kernel for name, kernel in XPBackend(np).table.items() if name not in ("copy", "fill")
        }
        self._meta = MetaBackend()
        self._queue: deque[Callable[[], None]] = deque()
        self._free: dict[int, list[np.ndarray]] = {}
        self._allocated = self._peak = self._live = 0

    @contextmanager
    def inject(self, **faults: Any) -> Iterator[Faults]:
        """Within the ``with`` block the device has the faults of ``Faults(**faults)``; afterwards it is whole again.

        A device that was lost has lost its queue, and its tensors hold poison.
        """
        before, self.faults = self.faults, Faults(**faults)
        try:
            yield self.faults
        finally:
            self.faults, self.lost = before, False

    # The queue

    def pending(self) -> int:
        """How many kernels and copies were called and have not run."""
        return len(self._queue)

    def synchronize(self) -> None:
        """Run the queue; raises what its kernels raise, and goes on with the rest at the next call."""
        while self._queue:
            self._queue.popleft()()

    def launch(self, name: str, kernel: Kernel, natives: tuple[Any, ...], options: dict[str, Any]) -> Any:
        self._alive(name)
        try:
            shapes = self._meta.kernels[name](*_on_meta(natives), **_on_meta(options)) if name not in _AT_ONCE else None
        except ValuesMissing:
            shapes = None
        if shapes is None:  # of a shape that only the values tell
            self.synchronize()
            return super().launch(name, kernel, natives, options)
        several = isinstance(shapes, tuple)
        made = [
            None if one is None else self.new(one.shape, one.dtype, one.strides)
            for one in (shapes if several else [shapes])
        ]

        def run() -> None:
            self._started(name)
            found = kernel(*self._read(natives), **{key: self._read(one) for key, one in options.items()})
            for place, one in zip(made, found if several else [found], strict=False):
                if place is not None and place.size:
                    self._view(place)[...] = one
            if self.faults.kernels == self.faults.flip_bit_at:
                _flip(self._view(made[0]))

        self._queue.append(run)
        return tuple(made) if several else made[0]

    def kernel_copy(self, target: StridedArray, source: Any) -> StridedArray:
        """Write ``source``, broadcast and cast, into the memory of ``target``."""
        self._alive("copy")

        def run() -> None:
            self._started("copy")
            self._view(target)[...] = self._read(source)

        if isinstance(source, StridedArray):
            np.broadcast_shapes(source.shape, target.shape)
        self._queue.append(run)
        return target

    def kernel_fill(self, target: StridedArray, value: Any) -> StridedArray:
        """Write a number everywhere."""
        return self.kernel_copy(target, value)

    def _started(self, name: str) -> None:
        self._alive(name)
        self.faults.kernels += 1
        if self.faults.kernels == self.faults.lost_at:
            self.lost = True
            self._queue.clear()
            self._alive(name)

    def _alive(self, name: str) -> None:
        if self.lost:
            raise DeviceLost(
                f"{name}: expected device '{self}' to answer, got none: it was lost; make the tensors again on another"
            )

    # Memory

    def dense(self, array: np.ndarray) -> np.ndarray:
        return np.array(array)

    def host(self, dense: Any) -> np.ndarray:
        return np.array(dense)

    def read(self, data: Any, shape: Shape, strides: Shape, offset: int) -> np.ndarray:
        if 0 in shape:  # its offset may lie behind the end
            return np.empty(shape, data.dtype)
        size = data.itemsize
        return np.ndarray(shape, data.dtype, data, offset * size, [step * size for step in strides])

    def write(self, data: Any, shape: Shape, strides: Shape, offset: int, values: Any) -> Any:
        self.read(data, shape, strides, offset)[...] = values
        return data

    def new(self, shape: Shape, dtype: np.dtype[Any], strides: Shape | None = None) -> StridedArray:
        self._alive("allocate")
        memory = SimMemory(self, self._take(prod(shape), dtype))
        return StridedArray(shape, contiguous_strides(shape) if strides is None else strides, 0, dtype, memory)

    def wrap(self, dense: Any) -> StridedArray:
        made = self.new(tuple(dense.shape), dense.dtype)
        self._view(made)[...] = dense
        return made

    def from_host(self, array: np.ndarray) -> StridedArray:
        made, before = self.new(array.shape, array.dtype), np.array(array)
        self._copied()

        def run() -> None:
            self._alive("copy")
            self._view(made)[...] = before

        self._queue.append(run)
        return made

    def to_host(self, native: Native) -> np.ndarray:
        self._alive("copy")
        self.synchronize()
        self._copied()
        return np.array(self._view(native))

    def copy_from(self, other: Backend, native: Native) -> StridedArray:
        return self.from_host(other.to_host(native))

    def memory_stats(self) -> dict[str, int]:
        """Bytes in use and their peak, the number of live blocks, and the bytes kept for reuse."""
        return {
            "allocated_bytes.current": self._allocated,
            "allocated_bytes.peak": self._peak,
            "active.current": self._live,
            "reserved_bytes.current": self._allocated + self._cached(),
        }

    def empty_cache(self) -> int:
        """Forget the freed blocks; how many bytes those were."""
        freed = self._cached()
        self._free.clear()
        return freed

    def report(self) -> dict[str, str | int | float | bool | None]:
        return {
            "library": f"NumPy {np.__version__}, simulated",
            "memory": self.faults.capacity,
            "queue": self.pending(),
        }

    def release(self, data: np.ndarray) -> None:
        """Take a block back and poison it."""
        self._allocated -= data.nbytes
        self._live -= 1
        data.view(np.uint8).fill(_POISON)
        if data.nbytes:
            self._free.setdefault(data.nbytes, []).append(data.view(np.uint8))

    def _take(self, size: int, dtype: np.dtype[Any]) -> np.ndarray:
        nbytes, faults = size * dtype.itemsize, self.faults
        faults.allocations += 1
        full = faults.capacity is not None and self._allocated + nbytes > faults.capacity
        full = full or nbytes >= 1 << 56
        if full or (faults.out_of_memory_at is not None and faults.allocations >= faults.out_of_memory_at):
            room = "its memory" if faults.capacity is None else f"{faults.capacity} bytes"
            raise OutOfMemoryError(
                f"allocate: expected room for {nbytes} bytes on '{self}', got {self._allocated} of {room} in use; free tensors"
            )
        self._allocated += nbytes
        self._live += 1
        self._peak = max(self._peak, self._allocated)
        blocks = self._free.get(nbytes)
        if blocks:
            return blocks.pop().view(dtype)
        return np.full(nbytes, _POISON, np.uint8).view(dtype)

    def _cached(self) -> int:
        return sum([nbytes * len(blocks) for nbytes, blocks in self._free.items()])

    def _copied(self) -> None:
        self.faults.copies += 1
        if self.faults.slow_copy:
            time.sleep(self.faults.slow_copy)

    def _view(self, native: StridedArray) -> np.ndarray:
        """The memory under an array, as it is now."""
        data = native.storage.data
        return self.read(data if data.dtype == native.dtype else data.view(native.dtype),
                         native.shape, native.strides, native.offset)  # fmt: skip

    def _read(self, value: Any) -> Any:
        if type(value) is StridedArray:
            return self._view(value)
        return type(value)([self._read(one) for one in value]) if type(value) in (list, tuple) else value

    def load(self, native: StridedArray) -> np.ndarray:
        self.synchronize()
        return self._view(native)


def _on_meta(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _on_meta(one) for key, one in value.items()}
    if type(value) in (list, tuple):
        return type(value)([_on_meta(one) for one in value])
    if type(value) is StridedArray:
        return MetaArray(value.shape, value.strides, value.offset, value.dtype, value.storage)
    return value


def _flip(array: np.ndarray) -> None:
    if not array.size:
        return
    floating = array.dtype.kind in "fcV"
    bits = np.array(array.flat[0], array.dtype).reshape(1).view(np.uint8)
    bits[-2 if floating and array.itemsize > 1 else 0] ^= 0x40 if floating and array.itemsize > 1 else 1
    array.flat[0] = bits.view(array.dtype)[0]
