"""The emulation behind the names of CuPy's that kernels are compiled and launched by."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from tests.cuda_standin.emulation.compile import EmulationError, Function, emulate

__all__ = ["RawModule", "launchKernel"]

_functions: dict[int, Function] = {}
_END, _BUFFER, _SIZE = 0, 1, 2


class RawModule:
    """As ``cupy.RawModule``: compiled when made, for the name expressions asked for."""

    def __init__(
        self, *, code: str, options: Sequence[str] = (), name_expressions: Sequence[str] | None = None, **_: Any
    ) -> None:
        self.module = emulate(code, name_expressions, options)

    def get_function(self, name: str) -> _RawKernel:
        return _RawKernel(self.module.get_function(name))


class _RawKernel:
    """As ``cupy.RawKernel``."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.kernel = _Handle(function)

    def __call__(self, grid: Sequence[int], block: Sequence[int], args: Sequence[Any], *, shared_mem: int = 0) -> None:
        self.function(grid, block, args, shared_mem)

    @property
    def max_dynamic_shared_size_bytes(self) -> int:
        return self.function.max_dynamic_shared_size_bytes

    @max_dynamic_shared_size_bytes.setter
    def max_dynamic_shared_size_bytes(self, bytes: int) -> None:
        self.function.max_dynamic_shared_size_bytes = bytes


class _Handle:
    def __init__(self, function: Function) -> None:
        self.ptr = id(function)
        _functions[self.ptr] = function


def launchKernel(
    f: int, grid_dim_x: int, grid_dim_y: int, grid_dim_z: int, block_dim_x: int, block_dim_y: int, block_dim_z: int,
    shared_mem_bytes: int, stream: int, kernel_params: int, extra: int,
) -> None:  # fmt: skip
    """As ``cupy.cuda.driver.launchKernel``, for parameters in a buffer that ``extra`` names."""
    if kernel_params or not extra:
        raise EmulationError("launchKernel: expected the parameters in a buffer that extra names, got a list of them")
    listed = (ctypes.c_void_p * 5).from_address(extra)
    if (listed[0], listed[2], listed[4] or _END) != (_BUFFER, _SIZE, _END):
        raise EmulationError("launchKernel: expected a buffer, its size and an end in extra, got another list")
    parameters = ctypes.string_at(listed[1], ctypes.c_size_t.from_address(listed[3]).value)
    grid, block = (grid_dim_x, grid_dim_y, grid_dim_z), (block_dim_x, block_dim_y, block_dim_z)
    _functions[f].launch(grid, block, parameters, shared_mem_bytes)
