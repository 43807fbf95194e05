"""The part of cuBLAS that the plugin calls, by the emulation beside this folder, in the order of the current stream.

CuPy's functions refuse to run in a capture. The library itself does not: a stand-in of it has the name under which the
loader finds the real one in a process that uses it.
"""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

from .. import _memory, _state
from .. import _timeline as timeline
from .._kernels import emulated, line_of, run

__all__ = ["gemmEx", "gemmStridedBatchedEx", "load"]

_SOURCE = Path(__file__).parents[2] / "cublas.cc"
# Where the addresses of A, B and C are among the arguments.
_PLACES = {"gemmEx": (7, 10, 14), "gemmStridedBatchedEx": (7, 11, 16)}


def _run(name: str, line: timeline.Line, args: tuple[Any, ...]) -> None:
    places = _PLACES[name]
    # cuBLAS reads the two factors in the host's memory at once, the rest when its turn comes.
    kept = [_kept(one) for one in (args[6], args[places[2] - 1])]
    given = [*args]
    given[6], given[places[2] - 1] = kept[0][0], kept[1][0]
    memories = [_memory.block_at(args[i]) for i in places]

    def compute() -> None:
        getattr(emulated("cublas"), name)(*given)
        assert kept  # their memory is what the factors lie in

    run(line, [one for one in memories if one is not None], compute, name)


def _kept(address: int) -> tuple[int, Any]:
    copy = ctypes.create_string_buffer(ctypes.string_at(address, 16), 16)
    return ctypes.addressof(copy), copy


def _call(name: str) -> Any:
    def call(*args: Any) -> None:
        line = _state.current_line()
        if line.graph is not None:
            raise NotImplementedError("calling cuBLAS API during stream capture is currently unsupported")
        _run(name, line, args)

    return call


gemmEx = _call("gemmEx")
gemmStridedBatchedEx = _call("gemmStridedBatchedEx")

# The library

_P, _I, _L = ctypes.c_void_p, ctypes.c_int, ctypes.c_longlong
_TYPES = {
    "stream": (_P, _P),
    "workspace": (_P, _P, ctypes.c_size_t),
    "gemmEx": (_P, *[_I] * 5, _P, _P, _I, _I, _P, _I, _I, _P, _P, *[_I] * 4),
    "gemmStridedBatchedEx": (_P, *[_I] * 5, _P, _P, _I, _I, _L, _P, _I, _I, _L, _P, _P, _I, _I, _L, _I, _I, _I),
}
_streams: dict[int, int] = {}  # of each handle
_spaces: dict[int, int] = {}


@cache
def load() -> Any:
    """Load ``libcublas.so.13``; what it calls is kept for good."""
    compiler = emulated("compile")
    library = ctypes.CDLL(str(compiler._built(_SOURCE.read_text("utf-8"), ("-Wl,-soname,libcublas.so.13",), [])))
    calls = [
        ctypes.CFUNCTYPE(_I, *_TYPES[name])(function)
        for name, function in (
            ("stream", _set_stream), ("workspace", _set_workspace), ("gemmEx", _captured("gemmEx")),
            ("gemmStridedBatchedEx", _captured("gemmStridedBatchedEx")),
        )
    ]  # fmt: skip
    library.standin_register(*calls)
    return library, calls


def _set_stream(handle: int, stream: int | None) -> int:
    _streams[handle], _spaces[handle] = stream or 0, 0
    return 0


def _set_workspace(handle: int, address: int, size: int) -> int:
    block = _memory.block_at(address)
    if block is None or block.size < size:
        return 7  # CUBLAS_STATUS_INVALID_VALUE
    _spaces[handle] = address
    return 0


def _captured(name: str) -> Any:
    def call(handle: int, *args: Any) -> int:
        line = line_of(_streams[handle])
        if line.graph is not None and not _spaces[handle]:
            return 3  # of its own it would take memory that no graph gives back
        try:
            _run(name, line, (handle, *args))
        except RuntimeError:
            return 15  # CUBLAS_STATUS_NOT_SUPPORTED
        return 0

    return call
