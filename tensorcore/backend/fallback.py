"""Kernels that a device lacks, run on another device: the policy that allows it, and the ledger of what it cost."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import ContextDecorator
from contextvars import ContextVar
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from tensorcore import dtypes
from tensorcore.errors import ArgumentError, KernelMissing

if TYPE_CHECKING:
    from tensorcore.backend.base import Backend, Native

__all__ = ["LEDGER", "Entry", "FallbackWarning", "Ledger", "fallback", "run_elsewhere"]

Policy = Literal["error", "warn", "allow"]


class FallbackWarning(UserWarning):
    """A kernel ran on another device than its tensors."""


class Entry(NamedTuple):
    """What one kernel of one device cost elsewhere: calls, bytes copied there and back, seconds in all."""

    calls: int
    bytes: int
    seconds: float


class Ledger:
    """What ran elsewhere: an ``Entry`` for each pair of device and kernel name, in the order of their first call."""

    def __init__(self) -> None:
        self.entries: dict[tuple[str, str], Entry] = {}

    def add(self, device: str, op: str, nbytes: int, seconds: float) -> None:
        """Count one call."""
        before = self.entries.get((device, op), Entry(0, 0, 0.0))
        self.entries[device, op] = Entry(before.calls + 1, before.bytes + nbytes, before.seconds + seconds)

    def clear(self) -> None:
        """Start again from nothing."""
        self.entries.clear()

    @property
    def calls(self) -> int:
        """How many kernels ran elsewhere."""
        return sum([one.calls for one in self.entries.values()])

    @property
    def bytes(self) -> int:
        """How many bytes were copied, there and back."""
        return sum([one.bytes for one in self.entries.values()])

    @property
    def seconds(self) -> float:
        """How long it took, copies included."""
        return sum([one.seconds for one in self.entries.values()])

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[tuple[tuple[str, str], Entry]]:
        return iter(self.entries.items())

    def __repr__(self) -> str:
        return f"<Ledger of {len(self)} kernels, {self.calls} calls, {self.bytes} bytes>"

    def __str__(self) -> str:
        if not self.entries:
            return "nothing ran on another device"
        lines = [
            f"{device:<12} {op:<24} {one.calls:>8} calls {one.bytes:>14} bytes {one.seconds:>10.4f} s"
            for (device, op), one in sorted(self.entries.items(), key=lambda item: -item[1].seconds)
        ]
        return "\n".join(lines)


_BFLOAT16 = dtypes.bfloat16.numpy
LEDGER = Ledger()  # of the whole process, in all threads


class fallback(ContextDecorator):
    """What happens to an op whose kernel its device lacks, within the ``with`` block or the decorated function.

    Without it, such an op raises KernelMissing. Kernels that decompose into others never fall back. Tensors stay
    where they are: the kernel's arguments are copied to ``device``, its results back. Blocks nest, the inner one
    decides, and each keeps the ledger that ``as`` gives, of itself and the blocks within it;
    ``tensorcore.backend.fallback.LEDGER`` is that of the whole process. The variable TENSORCORE_FALLBACK
    (``cpu``, or ``warn:cpu``) is the policy outside of all blocks.

    Args:
        device: where to run, such as ``"cpu"``; None for the policy ``error``.
        policy: ``allow``; ``warn`` once for each device and kernel; or ``error``.

    Raises:
        ArgumentError: for another policy.
        UnknownDevice, DeviceUnavailable: from the block's start, where the device cannot be used.
    """

    def __init__(self, device: str | Backend | None, *, policy: Policy = "allow") -> None:
        if policy not in ("error", "warn", "allow"):
            raise ArgumentError(
                f"fallback: expected policy 'error', 'warn' or 'allow', got {policy!r}; pass one of them"
            )
        self.device = device
        self.policy: Policy = "error" if device is None else policy
        self.ledgers: list[Ledger] = []
        self._tokens: list[Any] = []

    def __enter__(self) -> Ledger:
        from tensorcore.backend.registry import device as find_device

        target = None if self.device is None else find_device(self.device)
        ledger = Ledger()
        scope = _Scope(target, self.policy, (*_scope().ledgers, ledger), set())
        self._tokens.append(_current.set(scope))
        return ledger

    def __exit__(self, *raised: object) -> None:
        _current.reset(self._tokens.pop())


class _Scope(NamedTuple):
    device: Backend | None
    policy: Policy
    ledgers: tuple[Ledger, ...]
    warned: set[tuple[str, str]]


_current: ContextVar[_Scope | None] = ContextVar("tensorcore_fallback", default=None)
_outermost: list[_Scope] = []  # made from the environment at the first missing kernel


def _scope() -> _Scope:
    scope = _current.get()
    if scope is not None:
        return scope
    if not _outermost:
        _outermost.append(_from_environment())
    return _outermost[0]


def _from_environment() -> _Scope:
    from tensorcore.backend.registry import device as find_device

    policy, _, name = os.environ.get("TENSORCORE_FALLBACK", "").strip().rpartition(":")
    if not name or name == "error":
        return _Scope(None, "error", (LEDGER,), set())
    if policy.isalpha() and policy not in ("error", "warn", "allow"):  # the name of a device and an index
        policy, name = "allow", f"{policy}:{name}"
    return _Scope(find_device(name), policy or "allow", (LEDGER,), set())  # type: ignore[arg-type]


def run_elsewhere(backend: Backend, name: str, natives: tuple[Native, ...], options: dict[str, Any]) -> Native:
    """The kernel ``name``, which ``backend`` lacks, on the device that the policy names; KernelMissing where none is."""
    scope = _scope()
    other = scope.device
    # Without ``copy`` nothing could be brought back into an array that is written to.
    if other is None or other is backend or scope.policy == "error" or name == "copy":
        raise KernelMissing(
            f"{name}: expected a kernel on device '{backend}', got none; write it in the plugin, move the tensors to a "
            f"device that has it, or allow it to run elsewhere: with fallback('cpu')"
        )
    if scope.policy == "warn" and (str(backend), name) not in scope.warned:
        scope.warned.add((str(backend), name))
        text = (
            f"{name}: device '{backend}' has no kernel, so it runs on '{other}' through copies; write it in the plugin"
        )
        warnings.warn(text, FallbackWarning, stacklevel=_outside())
    started = perf_counter()
    result, nbytes = _run(backend, other, name, natives, options)
    seconds = perf_counter() - started
    for ledger in scope.ledgers:
        ledger.add(str(backend), name, nbytes, seconds)
    return result


def _run(
    backend: Backend, other: Backend, name: str, natives: tuple[Native, ...], options: dict[str, Any]
) -> tuple[Native, int]:
    moved = 0

    def there(value: Any) -> Any:
        nonlocal moved
        if type(value) is list or type(value) is tuple:
            return type(value)([there(one) for one in value])
        if not _is_native(backend, value):
            return value
        array = backend.to_host(value)
        moved += array.nbytes
        # In the order in which it lies in memory, which results of single elements take over.
        order = sorted(range(array.ndim), key=lambda i: -backend.strides(value)[i])
        if array.flags.c_contiguous and order != sorted(order) and 0 not in backend.strides(value):
            array = np.ascontiguousarray(array.transpose(order)).transpose(np.argsort(order))
        return other.from_host(array)

    def operands() -> tuple[Native, ...]:
        """The arrays there; a number beside bfloat16 as an array of it, for NumPy makes float32 of the two."""
        given: tuple[Native, ...] = there(natives)
        if not any(getattr(one, "dtype", None) == _BFLOAT16 for one in given):
            return given
        return tuple([other.from_host(np.array(one, _BFLOAT16)) if type(one) in (int, float) else one for one in given])

    def back(value: Any) -> Any:
        nonlocal moved
        if type(value) is list or type(value) is tuple:
            return type(value)([back(one) for one in value])
        if not hasattr(value, "shape"):
            return value
        array = other.to_host(value if type(value) is other.array else other.as_native(value))
        moved += array.nbytes
        return _placed(backend, array)

    out = options.pop("out", None)
    result = back(other.kernels[name](*operands(), **{key: there(one) for key, one in options.items()}))
    if out is None:
        return result, moved
    backend.kernels["copy"](out, result)
    return out, moved


def _placed(backend: Backend, array: np.ndarray) -> Native:
    """A host array on the device, in the order in which it lies in memory: a factor column after column, as anywhere."""
    order = sorted(range(array.ndim), key=lambda i: -array.strides[i])
    lines = array.transpose(order)
    if array.flags.c_contiguous or not lines.flags.c_contiguous or not backend.capabilities.views:
        return backend.from_host(array)
    made = backend.from_host(lines)
    steps, offset = backend.layout(made)
    strides = [steps[order.index(i)] for i in range(array.ndim)]
    return backend.as_strided(made, array.shape, tuple(strides), offset)


def _is_native(backend: Backend, value: Any) -> bool:
    return isinstance(value, backend.array) and hasattr(value, "shape") and not isinstance(value, type)


def _outside() -> int:
    """The stack level of the first caller outside of tensorcore, whom a warning is for."""
    import sys

    level, frame = 2, sys._getframe(2)
    while frame.f_back is not None and str(frame.f_globals.get("__name__", "")).partition(".")[0] == "tensorcore":
        level, frame = level + 1, frame.f_back
    return level
