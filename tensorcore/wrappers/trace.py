"""A device that notes each kernel that runs on the device it wraps: its name, what it took and gave, how long it ran."""

from __future__ import annotations

import time
from collections import deque
from typing import Any, NamedTuple

import numpy as np

from tensorcore.backend.base import Backend, Kernel, Native
from tensorcore.ops.placement import as_device

__all__ = ["TraceBackend", "TracedCall", "trace"]

_MOST = 100_000  # older calls are forgotten
_HANDED_ON = (
    "allocate", "from_host", "to_host", "all_values", "as_strided", "layout", "storage", "data_pointer", "strides", "as_native",
    "copy_from", "share_host", "storage_key", "pin", "is_pinned", "memory_stats", "reset_peak_memory_stats", "empty_cache",
    "is_contiguous", "random", "threads", "draw", "synchronize", "report",
)  # fmt: skip


class TracedCall(NamedTuple):
    """One call of a kernel.

    Attributes:
        kernel: its name.
        operands: shape and dtype of each array, other operands as they are.
        options: what it took by keyword, arrays as their shape and dtype.
        made: shape and dtype of the results.
        seconds: how long it took; where kernels run later, until they were started.
    """

    kernel: str
    operands: Any
    options: dict[str, Any]
    made: Any
    seconds: float

    def __str__(self) -> str:
        options = "".join(f", {key}={value}" for key, value in self.options.items())
        return (
            f"{self.kernel}({', '.join(map(str, self.operands))}{options}) -> {self.made}  {1e6 * self.seconds:.0f} us"
        )


class TraceBackend(Backend):
    """The wrapped device with a note of every kernel call.

    Its arrays are those of the wrapped device; its tensors are on a device of their own.

    Attributes:
        inner: the wrapped device.
        calls: those so far, the oldest first.
    """

    def __init__(self, inner: Backend) -> None:
        super().__init__("trace", inner.index)
        self.inner = inner
        self.capabilities = inner.capabilities
        self.array = inner.array
        self.calls: deque[TracedCall] = deque(maxlen=_MOST)
        for name in _HANDED_ON:
            setattr(self, name, getattr(inner, name))

    @property
    def acts_as(self) -> str:
        return self.inner.acts_as

    def find_kernel(self, name: str) -> Kernel | None:
        kernel = self.inner.kernels[name]
        if not kernel:
            return None

        def run(*natives: Native, **options: Any) -> Any:
            operands, given = described(natives), {key: described(one) for key, one in options.items()}
            started = time.perf_counter()
            made = kernel(*natives, **options)
            self.calls.append(TracedCall(name, operands, given, described(made), time.perf_counter() - started))
            return made

        return run

    def __str__(self) -> str:
        return f"trace:{self.inner}"

    def __repr__(self) -> str:
        return f"device(type={str(self)!r})"

    def __reduce__(self) -> Any:
        return trace, (str(self.inner),)


_devices: dict[int, TraceBackend] = {}


def trace(device: Any = None) -> TraceBackend:
    """The device that notes the kernel calls on ``device``; always the same one."""
    inner = as_device(device)
    if isinstance(inner, TraceBackend):
        return inner
    found = _devices.get(id(inner))
    if found is None:
        found = _devices[id(inner)] = TraceBackend(inner)
    return found


def described(value: Any) -> Any:
    """A value with the shape and dtype of each array in its place."""
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"{np.dtype(value.dtype).name}{list(value.shape)}"
    if isinstance(value, list | tuple):
        return type(value)([described(one) for one in value])
    return value
