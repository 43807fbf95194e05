"""What launchers of row kernels share: teams of threads for rows, and dense arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorcore_cuda.kernels.launch import Driver

__all__ = ["dense", "spans", "teams"]

Native = Any
_SMALL = 1024  # elements of a row that a warp does by itself
_MANY = 8  # warps of a block of such


def teams(driver: Driver, rows: int, packs: int) -> tuple[int, tuple[int, int, int], tuple[int, int, int]]:
    """The size of a team (32, or 0 for a block), the grid and the block, for rows of so many packs of elements."""
    if packs <= _SMALL // 4:
        return 32, (driver.blocks(-(-rows // _MANY)), 1, 1), (32 * _MANY, 1, 1)
    threads = min(1024, -(-packs // (4 * 32)) * 32)
    return 0, (max(1, min(rows, 1 << 30)), 1, 1), (threads, 1, 1)


def spans(shape: tuple[int, ...], dim: int) -> tuple[int, int, int]:
    """How many elements lie before, along and behind a dim."""
    outer = inner = 1
    for size in shape[:dim]:
        outer *= size
    for size in shape[dim + 1 :]:
        inner *= size
    return outer, shape[dim], inner


def dense(x: Native, contiguous: Callable[[Native], Native], alignment: int = 1) -> Native:
    """``x`` itself where its elements lie in order without gaps, from such an address on; else a copy of which that holds."""
    return x if x.flags.c_contiguous and not x.data.ptr % alignment else contiguous(x)
