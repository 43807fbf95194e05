"""Device memory, pools of it, and page-locked host memory."""

from __future__ import annotations

import bisect
import ctypes
import threading
import weakref
from typing import Any

import numpy as np

from . import _timeline as timeline
from ._state import current_device, current_line, sizes

__all__ = ["Memory", "MemoryPointer", "MemoryPool", "OutOfMemoryError", "UnownedMemory"]

POISON = 0xFF  # as bytes of a float a NaN, as an integer -1
_UNIT = 512
_used: dict[int, int] = {}
_live: weakref.WeakValueDictionary[int, Memory] = weakref.WeakValueDictionary()
_starts: list[int] = []  # their addresses in order, and some of blocks that are gone
_finding = threading.RLock()  # the garbage collector gives blocks back in the middle of anything


class OutOfMemoryError(MemoryError):
    """As CuPy's."""

    def __init__(self, size: int, total: int, limit: int = 0) -> None:
        text = f"Out of memory allocating {size:,} bytes (allocated so far: {total:,} bytes"
        super().__init__(text + (f", limit set to: {limit:,} bytes)." if limit else ")."))


class Memory:
    """One block of a device. ``stream`` is the line it was taken for: only there it may be used again without a wait."""

    def __init__(self, size: int, device: int) -> None:
        if _used.get(device, 0) + size > sizes.get(device, 1 << 62):
            raise OutOfMemoryError(size, _used.get(device, 0))
        self.size, self.device_id = size, device
        self.data = np.full(size, POISON, np.uint8)
        self.ptr = self.data.ctypes.data
        self.writer: tuple[int, int] | None = None
        self.readers: timeline.Clock = {}
        self.pending: timeline.Work | None = None
        self.register()

    def register(self) -> None:
        """Count it and let its address be found. A pool does so again with what the garbage collector had given up."""
        if _live.get(self.ptr) is not self:
            _used[self.device_id] = _used.get(self.device_id, 0) + self.size
            weakref.finalize(self, _release, self.device_id, self.size)
            if self.size:
                with _finding:
                    _live[self.ptr] = self
                    at = bisect.bisect_left(_starts, self.ptr)
                    if at == len(_starts) or _starts[at] != self.ptr:
                        bisect.insort(_starts, self.ptr)

    def read_on(self, line: timeline.Line, name: str) -> None:
        """Note a read, after the last write."""
        self._after_write(line, name, "reads")
        self._settle()
        self.readers[line.number] = line.clock[line.number]

    def write_on(self, line: timeline.Line, name: str) -> None:
        """Note a write, after the last write and all reads."""
        self._after_write(line, name, "writes")
        for number, at in self.readers.items():
            if not timeline.ordered(line.clock, number, at):
                raise timeline.Race(
                    f"{name} on stream {line.number} writes memory that work on stream {number} may still be reading: wait for an event"
                )
        self._settle()
        self.writer, self.readers = (line.number, line.clock[line.number]), {}

    def read_by_host(self, name: str) -> None:
        """The host looks at the bytes."""
        self._after_write(timeline.host, name, "reads")
        self._settle()

    def _after_write(self, line: timeline.Line, name: str, what: str) -> None:
        if self.writer is not None and not timeline.ordered(line.clock, *self.writer):
            raise timeline.Race(
                f"{name} on stream {line.number} {what} memory that work on stream {self.writer[0]} may still be writing: wait for an event"
            )

    def _settle(self) -> None:
        if self.pending is not None:
            pending, self.pending = self.pending, None
            pending.finish()


def block_at(address: int) -> Memory | None:
    """The block that an address lies in."""
    with _finding:
        while (at := bisect.bisect_right(_starts, address) - 1) >= 0:
            start = _starts[at]
            one = _live.get(start)
            if bisect.bisect_right(_starts, address) - 1 != at or _starts[at] != start:
                continue  # the garbage collector gave a block back meanwhile
            if one is not None:
                return one if address < one.ptr + one.size else None
            del _starts[at]
    return None


def _release(device: int, size: int) -> None:
    _used[device] -= size


class UnownedMemory:
    """Memory of somebody else, who is kept alive."""

    def __init__(self, ptr: int, size: int, owner: Any, device_id: int = -1) -> None:
        self.ptr, self.size, self.owner = ptr, size, owner
        self.device_id = current_device() if device_id < 0 else device_id
        kind = ctypes.c_uint8 * max(size, 1)
        self.data = np.frombuffer(kind.from_address(ptr), np.uint8)[:size] if size else np.empty(0, np.uint8)

    def read_on(self, line: timeline.Line, name: str) -> None:
        """Nothing is known of who else uses it."""

    write_on = read_on

    def read_by_host(self, name: str) -> None:
        """Nothing is known of who else uses it."""


class MemoryPointer:
    """A place in a block."""

    def __init__(self, mem: Any, offset: int) -> None:
        self.mem, self._offset = mem, offset

    @property
    def ptr(self) -> int:
        """The address."""
        return self.mem.ptr + self._offset

    @property
    def device_id(self) -> int:
        """The index of the device."""
        return self.mem.device_id

    @property
    def device(self) -> Any:
        """The device."""
        from .cuda import Device

        return Device(self.mem.device_id)

    def __int__(self) -> int:
        return self.ptr

    def __add__(self, offset: int) -> MemoryPointer:
        return MemoryPointer(self.mem, self._offset + offset)

    def bytes(self, size: int) -> np.ndarray:
        """The bytes themselves, for the stand-in alone."""
        return _bytes_of(self.mem)[self._offset : self._offset + size]

    def copy_from_device_async(self, src: MemoryPointer, size: int, stream: Any = None) -> None:
        """A copy between devices or within one."""
        line = current_line() if stream is None else stream._line
        a, b = _root(self.mem), _root(src.mem)
        timeline.launch(line, [b], [a], "copy")
        record(line, lambda: _move(self.bytes(size), src.bytes(size)), a)

    def copy_from_device(self, src: MemoryPointer, size: int) -> None:
        """The same on the current stream."""
        self.copy_from_device_async(src, size)

    def copy_from_host_async(self, mem: Any, size: int, stream: Any = None) -> None:
        """A copy from the host; from pinned memory it happens when somebody may first look at the result."""
        line = current_line() if stream is None else stream._line
        refuse_copy_in_capture(line, "H2D transfers")
        self.receive(line, mem, size)

    def receive(self, line: timeline.Line, mem: Any, size: int) -> None:
        """The copy itself, which CUDA can capture although CuPy's methods refuse to."""
        source, target = _host_bytes(mem, size), self.bytes(size)
        root = _root(self.mem)
        timeline.launch(line, [], [root], "copy from the host")
        timeline.counts.copies += 1
        if line.graph is not None:
            if not is_pinned(source):
                refuse_in_capture(line, "a copy from pageable memory")
            record(line, lambda: _move(target, source), root)
        elif is_pinned(source):
            target[...] = POISON
            work = timeline.Work(line, lambda: _move(target, source))
            line.pending.append(work)
            if hasattr(root, "pending"):
                if root.pending is not None and not root.pending.done:
                    before = root.pending.run
                    then = work.run
                    root.pending.done = True
                    work.run = lambda: (before(), then())  # type: ignore[assignment, return-value]
                root.pending = work
        else:  # pageable memory is staged before the call returns
            _move(target, source)

    def copy_from_host(self, mem: Any, size: int) -> None:
        """A copy that is over when the call returns."""
        line = current_line()
        refuse_copy_in_capture(line, "synchronous API calls")
        self.copy_from_host_async(mem, size)
        timeline.wait(line.clock)

    def copy_to_host_async(self, mem: Any, size: int, stream: Any = None) -> None:
        """A copy to the host, where it arrives when the host has waited for it."""
        line = current_line() if stream is None else stream._line
        refuse_copy_in_capture(line, "D2H transfers")
        self.deliver(line, mem, size)

    def deliver(self, line: timeline.Line, mem: Any, size: int) -> None:
        """The copy itself, which CUDA can capture although CuPy's methods refuse to."""
        target, root = _host_bytes(mem, size), _root(self.mem)
        timeline.launch(line, [root], [], "copy to the host")
        timeline.counts.copies += 1
        if line.graph is not None:
            if not is_pinned(target):
                refuse_in_capture(line, "a copy to pageable memory")
            line.graph.work.append(lambda: _move(target, self.bytes(size)))
            return
        values = self.bytes(size).copy()
        if not is_pinned(target):
            timeline.wait(line.clock)  # as the runtime does for pageable memory
            _move(target, values)
            return
        target[...] = POISON
        line.pending.append(timeline.Work(line, lambda: _move(target, values)))

    def copy_to_host(self, mem: Any, size: int) -> None:
        """A copy that is over when the call returns."""
        line = current_line()
        refuse_copy_in_capture(line, "synchronous API calls")
        timeline.launch(line, [_root(self.mem)], [], "copy to the host")
        timeline.wait(line.clock)
        _move(_host_bytes(mem, size), self.bytes(size))

    def memset_async(self, value: int, size: int, stream: Any = None) -> None:
        """Fill with a byte."""
        line = current_line() if stream is None else stream._line
        timeline.launch(line, [], [_root(self.mem)], "memset")
        record(line, lambda: self.bytes(size).fill(value), _root(self.mem))


def record(line: timeline.Line, run: Any, root: Any) -> None:
    """Run a piece of work, or put it into the graph that is being captured."""
    if line.graph is None:
        run()
    else:
        line.graph.add(run, root)


def refuse_copy_in_capture(line: timeline.Line, what: str) -> None:
    """Raise as CuPy does before it calls CUDA; the capture goes on."""
    if line.graph is not None:
        raise RuntimeError(f"the current stream is capturing, so {what} are disallowed")


def refuse_in_capture(line: timeline.Line, what: str) -> None:
    """Raise as CUDA does for what a capture cannot hold."""
    if line.graph is not None:
        line.graph.broken = True
        raise timeline.DeviceFault(
            f"cudaErrorStreamCaptureUnsupported: operation not permitted when stream is capturing ({what})"
        )


class _Pooled:
    """A block on loan from a pool; it comes back when the last array over it goes."""

    def __init__(self, pool: MemoryPool, block: Memory, size: int, line: int) -> None:
        self.pool, self.block, self.size, self.line = pool, block, size, line
        self.ptr, self.device_id = block.ptr, block.device_id

    def __del__(self) -> None:
        pool = getattr(self, "pool", None)
        if pool is not None and pool._take_back is not None:
            pool._take_back(self)


def _root(mem: Any) -> Any:
    return mem.block if type(mem) is _Pooled else mem


def _bytes_of(mem: Any) -> np.ndarray:
    return _root(mem).data


class MemoryPool:
    """Blocks by device, stream and size; a block that is given back is poisoned."""

    def __init__(self, allocator: Any = None) -> None:
        self._free: dict[tuple[int, int, int], list[Memory]] = {}
        self._used: dict[int, int] = {}
        self._limit: dict[int, int] = {}
        self._lock = threading.RLock()

    def malloc(self, size: int) -> MemoryPointer:
        """A block on the current device for the current stream."""
        device, line = current_device(), current_line()
        rounded = -(-size // _UNIT) * _UNIT
        if not size:
            return MemoryPointer(Memory(0, device), 0)
        with self._lock:
            blocks = self._free.get((device, line.number, rounded))
            if blocks:
                block = blocks.pop()
            else:
                limit = self._limit.get(device, 0)
                if limit and self.total_bytes() + rounded > limit:
                    self.free_all_blocks()
                    if self.total_bytes() + rounded > limit:
                        raise OutOfMemoryError(rounded, self.total_bytes(), limit)
                try:
                    block = Memory(rounded, device)
                except OutOfMemoryError:
                    self.free_all_blocks()
                    block = Memory(rounded, device)
            self._used[device] = self._used.get(device, 0) + rounded
        return MemoryPointer(_Pooled(self, block, rounded, line.number), 0)

    def _take_back(self, mem: _Pooled) -> None:
        block = mem.block
        with self._lock:
            if block.pending is not None:
                block.pending.done = True  # nobody looks any more
                block.pending = None
            block.data.fill(POISON)
            block.register()
            self._used[mem.device_id] -= mem.size
            self._free.setdefault((mem.device_id, mem.line, mem.size), []).append(block)

    def free_all_blocks(self, stream: Any = None) -> None:
        """Give free blocks of the current device back."""
        device = current_device()
        with self._lock:
            for key in list(self._free):
                if key[0] == device and (stream is None or key[1] == stream._line.number):
                    del self._free[key]

    def used_bytes(self) -> int:
        """Bytes of live arrays on the current device."""
        return self._used.get(current_device(), 0)

    def free_bytes(self) -> int:
        """Bytes that lie ready."""
        device = current_device()
        return sum([size * len(blocks) for (where, _, size), blocks in self._free.items() if where == device])

    def total_bytes(self) -> int:
        """Both together."""
        return self.used_bytes() + self.free_bytes()

    def n_free_blocks(self) -> int:
        """How many lie ready."""
        device = current_device()
        return sum([len(blocks) for (where, _, _), blocks in self._free.items() if where == device])

    def set_limit(self, size: int | None = None, fraction: float | None = None) -> None:
        """The most bytes that the pool takes from the current device; 0 for no limit."""
        if fraction is not None:
            size = int(fraction * sizes.get(current_device(), 1 << 34))
        self._limit[current_device()] = size or 0

    def get_limit(self) -> int:
        """That number."""
        return self._limit.get(current_device(), 0)


# Host memory

_pinned: dict[int, tuple[int, Any]] = {}


def is_pinned(array: np.ndarray) -> bool:
    """Whether the bytes lie in page-locked memory."""
    start = array.ctypes.data
    return any([at <= start and start + array.nbytes <= at + size for at, (size, _) in list(_pinned.items())])


def _host_bytes(mem: Any, size: int) -> np.ndarray:
    address = mem if isinstance(mem, int) else mem.value if isinstance(mem, ctypes.c_void_p) else mem.ptr
    if not size:
        return np.empty(0, np.uint8)
    return np.frombuffer((ctypes.c_uint8 * size).from_address(address), np.uint8)


def _move(target: np.ndarray, source: np.ndarray) -> None:
    target[...] = source


def host_alloc(size: int) -> int:
    """Page-locked memory; its address."""
    data = np.full(max(size, 1), POISON, np.uint8)
    _pinned[data.ctypes.data] = (size, data)
    return data.ctypes.data


def host_free(address: int) -> None:
    """Give page-locked memory back; what still copies from it or to it then is at fault."""
    _pinned.pop(address)


def pinned_bytes() -> int:
    """All that is page-locked now."""
    return sum([size for size, _ in _pinned.values()])
