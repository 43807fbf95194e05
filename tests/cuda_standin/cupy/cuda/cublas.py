"""The part of cuBLAS that the plugin calls, by the emulation beside this folder, in the order of the current stream."""

from __future__ import annotations

import ctypes
from typing import Any

from .. import _memory, _state
from .._kernels import emulated, run

__all__ = ["gemmEx", "gemmStridedBatchedEx"]


def _call(name: str, places: tuple[int, ...]) -> Any:
    def call(*args: Any) -> None:
        factors = (args[6], args[places[2] - 1])
        # cuBLAS reads the two factors in the host's memory at once, the rest when its turn comes.
        kept = [_kept(one) for one in factors]
        given = [*args]
        given[6], given[places[2] - 1] = kept[0][0], kept[1][0]
        memories = [_memory.block_at(args[i]) for i in places]

        def compute() -> None:
            getattr(emulated("cublas"), name)(*given)
            assert kept  # their memory is what the factors lie in

        run(_state.current_line(), [one for one in memories if one is not None], compute, name)

    return call


def _kept(address: int) -> tuple[int, Any]:
    copy = ctypes.create_string_buffer(ctypes.string_at(address, 16), 16)
    return ctypes.addressof(copy), copy


# Where the addresses of A, B and C are among the arguments.
gemmEx = _call("gemmEx", (7, 10, 14))
gemmStridedBatchedEx = _call("gemmStridedBatchedEx", (7, 11, 16))
