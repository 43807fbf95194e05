"""Reductions of host arrays: which function, which dtype to add up in, and pieces that stay in the cache."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

__all__ = ["combine", "flat", "pieces", "wide"]

FUNCTIONS = {"sum": np.add, "mean": np.add, "product": np.multiply, "min": np.minimum, "max": np.maximum}
# Elements a thread combines at once: a piece of each rank's array fits into a core's cache with the result.
PIECE = 1 << 16


def wide(dtype: np.dtype) -> np.dtype:
    """The dtype in which values of this one are added up: float32 for the half types, else the same."""
    return np.dtype(np.float32) if dtype.itemsize == 2 and dtype.kind in "fV" else dtype


def flat(array: np.ndarray) -> np.ndarray:
    """A contiguous array as one of one dim over the same memory."""
    return array.reshape(-1)


def pieces(count: int, size: int) -> Iterator[slice]:
    """Slices that cover ``count`` elements, ``size`` at a time."""
    for start in range(0, count, size):
        yield slice(start, min(start + size, count))


def combine(inputs: Sequence[np.ndarray], outs: Sequence[np.ndarray], op: str) -> None:
    """Combine flat arrays in their order, and write the result into each of ``outs``, which may be inputs too."""
    function = FUNCTIONS[op]
    dtype = inputs[0].dtype
    sums = np.empty(min(PIECE, inputs[0].size), wide(dtype))
    for piece in pieces(inputs[0].size, PIECE):
        total = sums[: piece.stop - piece.start]
        total[...] = inputs[0][piece]
        for one in inputs[1:]:
            function(total, one[piece].astype(total.dtype, copy=False), out=total)
        if op == "mean":
            np.divide(total, len(inputs), out=total)
        for out in outs:
            out[piece] = total
