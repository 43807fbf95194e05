"""What a capture takes although CuPy refuses it there: products by cuBLAS, and copies between host and device."""

from __future__ import annotations

import ctypes
import os
from typing import Any

import cupy
import numpy as np

__all__ = ["Products", "fetch", "send"]

Native = Any
_P, _I, _L = ctypes.c_void_p, ctypes.c_int, ctypes.c_longlong
# A product's own memory, which otherwise is taken for each capture and stays until the handle goes: as much as Hopper wants.
_WORKSPACE = 32 << 20


class Products:
    """cuBLAS' products by the library itself, under CuPy's names and with CuPy's arguments.

    CuPy's functions raise NotImplementedError in a capture, before they do anything. The library has no such limit; it is in
    the process already, so that its name is enough for the loader.
    """

    def __init__(self) -> None:
        major = cupy.cuda.runtime.runtimeGetVersion() // 1000
        name = f"cublas64_{major}.dll" if os.name == "nt" else f"libcublas.so.{major}"
        self.library = ctypes.CDLL(name)
        self._set_stream = self._function("cublasSetStream_v2", _P, _P)
        self._set_workspace = self._function("cublasSetWorkspace_v2", _P, _P, ctypes.c_size_t)
        self._gemm = self._function("cublasGemmEx", _P, *[_I] * 5, _P, _P, _I, _I, _P, _I, _I, _P, _P, *[_I] * 4)
        self._batched = self._function(
            "cublasGemmStridedBatchedEx",
            _P,
            *[_I] * 5,
            _P,
            _P,
            _I,
            _I,
            _L,
            _P,
            _I,
            _I,
            _L,
            _P,
            _P,
            _I,
            _I,
            _L,
            _I,
            _I,
            _I,
        )

    def gemmEx(self, handle: int, *rest: Any) -> None:
        """One product."""
        self._run(self._gemm, handle, rest)

    def gemmStridedBatchedEx(self, handle: int, *rest: Any) -> None:
        """A batch of them."""
        self._run(self._batched, handle, rest)

    def _run(self, function: Any, handle: int, rest: tuple[Any, ...]) -> None:
        # From the graph's own pool: what is given back here serves what is captured behind it.
        workspace = cupy.ndarray((_WORKSPACE,), np.uint8)
        self._set_stream(handle, cupy.cuda.get_current_stream().ptr)
        self._set_workspace(handle, workspace.data.ptr, _WORKSPACE)
        function(handle, *rest)

    def _function(self, name: str, *types: Any) -> Any:
        function = getattr(self.library, name)
        function.argtypes, function.restype = types, _I

        def call(*args: Any) -> None:
            status = function(*args)
            if status:
                raise RuntimeError(f"{name}: expected cuBLAS to take it in a capture, got status {status}")

        return call


def send(source: np.ndarray, made: Native, stream: Any) -> None:
    """Page-locked memory to the device, read anew at each replay."""
    runtime = cupy.cuda.runtime
    runtime.memcpyAsync(made.data.ptr, source.ctypes.data, made.nbytes, runtime.memcpyHostToDevice, stream.ptr)


def fetch(source: Native, made: np.ndarray, stream: Any) -> None:
    """The device's values to page-locked memory, at each replay."""
    runtime = cupy.cuda.runtime
    runtime.memcpyAsync(made.ctypes.data, source.data.ptr, made.nbytes, runtime.memcpyDeviceToHost, stream.ptr)
