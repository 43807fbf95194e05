"""Kernels given as source: compiled with g++ by the emulation beside this folder, and executed."""

from __future__ import annotations

import ctypes
import importlib
import itertools
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np

from . import _memory, _state
from . import _timeline as timeline
from ._array import ndarray

__all__ = ["ElementwiseKernel", "RawKernel", "RawModule", "ReductionKernel", "emulated", "launch", "line_of", "run"]

_ROOT = str(Path(__file__).parents[3])
_handles = itertools.count(0x7F0000000001)
_functions: dict[int, Any] = {}


def emulated(name: str) -> Any:
    """A module of the emulation."""
    if _ROOT not in sys.path:
        sys.path.append(_ROOT)
    try:
        return importlib.import_module(f"tests.cuda_standin.emulation.{name}")
    except ImportError as missing:
        raise NotImplementedError(
            f"{name}: the emulation of kernels (tests/cuda_standin/emulation) is not here"
        ) from missing


class RawModule:
    """A module of source code; compiled when its first function is asked for."""

    def __init__(
        self, *, code: str | None = None, path: str | None = None, options: Any = (), backend: str = "nvrtc",
        translate_cucomplex: bool = False, enable_cooperative_groups: bool = False, name_expressions: Any = None,
        jitify: bool = False,
    ) -> None:  # fmt: skip
        if code is None:
            raise NotImplementedError("RawModule: the stand-in compiles source text only")
        self.code, self.options, self.name_expressions = code, tuple(options), name_expressions
        self._module: Any = None

    def compile(self, log_stream: Any = None) -> None:
        """Compile now."""
        if self._module is None:
            self._module = emulated("compile").emulate(self.code, self.name_expressions, self.options)

    def get_function(self, name: str) -> RawFunction:
        """One kernel, by its name or name expression."""
        self.compile()
        return RawFunction(self._module.get_function(name))


class RawFunction:
    """A kernel that can be launched."""

    def __init__(self, found: Any) -> None:
        self._found = found
        self.kernel = _Handle(next(_handles))
        _functions[self.kernel.ptr] = found
        self.name = found.name

    @property
    def max_dynamic_shared_size_bytes(self) -> int:
        """How much dynamic shared memory a launch may ask for."""
        return self._found.max_dynamic_shared_size_bytes  # type: ignore[no-any-return]

    @max_dynamic_shared_size_bytes.setter
    def max_dynamic_shared_size_bytes(self, size: int) -> None:
        self._found.max_dynamic_shared_size_bytes = size

    def __call__(self, grid: Any, block: Any, args: Any, *, shared_mem: int = 0, stream: Any = None) -> None:
        line = _state.current_line() if stream is None else stream._line
        memories = []
        for one in args:
            if isinstance(one, np.ndarray):
                raise TypeError(f"Unsupported type {type(one)}")
            if isinstance(one, ndarray) and one.size:
                memories.append(_memory._root(one.data.mem))
        plain = [one._a if isinstance(one, ndarray) else one for one in args]
        run(line, memories, lambda: self._found(grid, block, plain, shared_mem), self.name)


class RawKernel(RawFunction):
    """A module of one kernel."""

    def __init__(self, code: str, name: str, options: Any = (), **rest: Any) -> None:
        super().__init__(RawModule(code=code, options=options).get_function(name)._found)


class _Handle:
    def __init__(self, ptr: int) -> None:
        self.ptr = ptr


def launch(
    f: int, grid_dim_x: int, grid_dim_y: int, grid_dim_z: int, block_dim_x: int, block_dim_y: int, block_dim_z: int,
    shared_mem_bytes: int, stream: int, kernel_params: int, extra: int,
) -> None:  # fmt: skip
    """As ``cuLaunchKernel``: the parameters lie in a buffer whose address ``extra`` says."""
    if kernel_params or not extra:
        raise NotImplementedError("launchKernel: the stand-in takes parameters in one buffer only")
    given = (ctypes.c_void_p * 5).from_address(extra)
    assert given[0] == 1, given
    assert given[2] == 2, given
    size = ctypes.c_size_t.from_address(given[3]).value
    parameters = ctypes.string_at(given[1], size)
    line = line_of(stream)
    words = struct.unpack(f"<{len(parameters) // 8}Q", parameters[: len(parameters) // 8 * 8])
    memories = [found for one in words if (found := _memory.block_at(one)) is not None]
    function = _functions[f]
    grid, block = (grid_dim_x, grid_dim_y, grid_dim_z), (block_dim_x, block_dim_y, block_dim_z)
    run(line, memories, lambda: function.launch(grid, block, parameters, shared_mem_bytes), function.name)


def line_of(stream: int) -> timeline.Line:
    """The line of time of a stream by its address."""
    if stream in (0, 1, 2):
        return _state.default_stream(_state.current_device())
    return timeline.streams[stream >> 8]


def run(line: timeline.Line, memories: list[Any], work: Any, name: str) -> None:
    """Run it. Which memories it writes is seen by what has changed."""
    memories = [one for one in dict.fromkeys(memories) if type(one) is _memory.Memory]
    device = _state.current_device()
    for one in memories:
        if one.device_id != device:
            raise timeline.DeviceFault(
                f"cudaErrorIllegalAddress: {name} was given memory of device {one.device_id} on {device}"
            )
    if line.device != device:
        raise timeline.DeviceFault(
            f"cudaErrorInvalidResourceHandle: {name} on a stream of device {line.device}, and the current one is {device}"
        )
    timeline.launch(line, memories, [], name)
    before = [one.data.copy() for one in memories]
    if line.graph is not None:
        for one in memories:
            line.graph.note(one)
        line.graph.work.append(work)
        work()
        return
    work()
    changed = [one for one, was in zip(memories, before, strict=True) if not np.array_equal(one.data, was)]
    for one in changed:
        one.write_on(line, name)


class ElementwiseKernel:
    """Not stood in for: the plugin has kernels of its own."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError("ElementwiseKernel: the stand-in has RawModule only")


class ReductionKernel(ElementwiseKernel):
    """Not stood in for: the plugin has kernels of its own."""
