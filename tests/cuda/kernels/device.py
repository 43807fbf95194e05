"""A device for tests of kernels: NumPy's memory between guards, CuPy's names for launches, and the NumPy kernels as oracle."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from tensorcore.backend.xp import XPBackend
from tensorcore_cuda.kernels import Driver, over
from tests.cuda_standin import emulation
from tests.cuda_standin.emulation import cublas
from tests.cuda_standin.emulation.driver import RawModule, launchKernel

GUARD = 64
_GUARDS = 0xA5
_guarded: list[np.ndarray] = []


class Array(np.ndarray):
    """An array that is made and shows its address as CuPy's do."""

    def __new__(cls, shape: Any, dtype: Any) -> Array:
        return empty(shape, dtype)

    @property
    def data(self) -> Any:  # type: ignore[override]
        return SimpleNamespace(ptr=self.__array_interface__["data"][0])


_start = [0]


@contextlib.contextmanager
def moved(elements: int) -> Iterator[None]:
    """Within it new arrays begin so many elements behind a multiple of 64 bytes."""
    _start[0] = elements
    try:
        yield
    finally:
        _start[0] = 0


def empty(shape: Any, dtype: Any) -> Array:
    """A new array full of ones as bits (NaN) between two guards, which ``check_guards`` looks at."""
    dtype = np.dtype(dtype)
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    size = int(np.prod(shape)) * dtype.itemsize
    memory = np.full(size + 5 * GUARD, _GUARDS, np.uint8)
    start = -memory.ctypes.data % GUARD + GUARD + _start[0] * dtype.itemsize
    memory[start : start + size] = 0xFF
    _guarded.append((memory, start, size))
    return np.ndarray(shape, dtype, memory, start).view(Array)


def put(values: Any, dtype: Any = None) -> Array:
    """A contiguous copy on the device."""
    values = np.asarray(values, dtype)
    made = empty(values.shape, values.dtype)
    made[...] = values
    return made


def check_guards() -> None:
    """Fail where anything was written outside the arrays made since the last call."""
    for memory, start, size in _guarded:
        outside = np.concatenate([memory[:start], memory[start + size :]])
        assert (outside == _GUARDS).all(), "written out of bounds"
    _guarded.clear()


_pinned: list[Any] = []


def _host_alloc(size: int) -> int:
    _pinned.append(ctypes.create_string_buffer(size))
    return ctypes.addressof(_pinned[-1])


xp = SimpleNamespace(
    ndarray=Array,
    zeros=lambda shape, dtype: put(np.zeros(shape, dtype)),
    RawModule=RawModule,
    ascontiguousarray=lambda x: put(x) if x.size else x,
    cuda=SimpleNamespace(
        cublas=cublas,
        get_cublas_handle=lambda: 1,
        driver=SimpleNamespace(launchKernel=launchKernel),
        get_current_stream=lambda: SimpleNamespace(ptr=0),
        runtime=SimpleNamespace(
            hostAllocPortable=1,
            hostAlloc=lambda size, flags: _host_alloc(size),
            cudaDevAttrMultiProcessorCount=16, getDevice=lambda: 0, deviceGetAttribute=lambda attribute, device: 2
        ),
    ),
)  # fmt: skip
oracle = XPBackend(np).kernels
driver = Driver(xp)


class _Recorder:
    """As a RawModule; only notes what is asked for."""

    wanted: ClassVar[list[tuple[str, Any, Any]]] = []

    def __init__(self, *, code: str, options: Any, name_expressions: Any) -> None:
        self.wanted.append((code, name_expressions, options))

    def get_function(self, name: str) -> Any:
        return SimpleNamespace(kernel=SimpleNamespace(ptr=0))


def dry(launch: Any, kind: Any = Array) -> dict[str, Any]:
    """Kernels that are asked for and called, but neither compiled nor run; new arrays are of a kind."""
    idle = SimpleNamespace(**{**vars(xp.cuda), "driver": SimpleNamespace(launchKernel=launch)})
    names = {**vars(xp), "RawModule": _Recorder, "cuda": idle, "ndarray": kind}
    return over(fallbacks(), Driver(SimpleNamespace(**names)))


def recorded(run: Any, dtype: Any) -> list[tuple[str, Any, Any]]:
    """What a case compiles: sources, name expressions, options."""
    _Recorder.wanted.clear()
    for _ in run(dry(lambda *_: None), put, dtype):
        pass
    check_guards()
    return list(dict.fromkeys(_Recorder.wanted))


def prepare(run: Any, dtype: Any) -> None:
    """Compile all that a case needs in one go."""
    emulation.prepare(recorded(run, dtype))


def _refuse(name: str) -> Any:
    def fallback(*natives: Any, **options: Any) -> Any:
        raise NotTaken(name)

    return fallback


class NotTaken(Exception):
    """The kernel handed on what it was called with."""


def fallbacks() -> dict[str, Any]:
    """Kernels that raise, so that a test sees that what it checks ran in CUDA C++."""
    return {name: _refuse(name) for name in XPBackend(np).table}


kernels = over(fallbacks(), driver)


def tolerance(dtype: Any) -> dict[str, float]:
    """How far results may lie apart: some units in the last place of the dtype, or of float32 for what is computed in it."""
    name = np.dtype(dtype).name
    return {"float64": dict(rtol=1e-12, atol=1e-12), "float32": dict(rtol=2e-6, atol=2e-6),
            "float16": dict(rtol=2e-3, atol=2e-3), "bfloat16": dict(rtol=1.6e-2, atol=1.6e-2)}.get(name, {})  # fmt: skip


def close(actual: Any, expected: Any, scale: float = 1.0) -> None:
    """Equal shapes and dtypes, values as near as the dtype allows (times ``scale``), NaN where NaN is, guards unhurt."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    limits = {name: value * scale for name, value in tolerance(expected.dtype).items()}
    if expected.dtype.kind in "biu":
        np.testing.assert_array_equal(actual, expected)
    else:
        wide = np.float64 if expected.dtype.itemsize == 8 else np.float32
        np.testing.assert_allclose(actual.astype(wide), expected.astype(wide), **limits, equal_nan=True)
    check_guards()
