"""Arrays as MPI takes them: bytes, numbers that it knows, and pieces of a size that it moves well."""

from __future__ import annotations

import numpy as np
from mpi4py import MPI

from .arithmetic import pieces

__all__ = ["LARGEST", "PIECE", "memory_of", "messages", "operation", "typed"]

# MPICH moves 64 MB four times as fast in pieces of this many bytes as in one call, and they fit into any MPI's counts.
PIECE = 4 << 20
LARGEST = 1 << 30  # bytes of one message
_REDUCTIONS = {"sum": MPI.SUM, "mean": MPI.SUM, "product": MPI.PROD, "min": MPI.MIN, "max": MPI.MAX}
_LOGICAL = {"sum": MPI.MAX, "product": MPI.MIN, "min": MPI.MIN, "max": MPI.MAX}  # of bool as bytes of 0 and 1


def memory_of(array: np.ndarray) -> np.ndarray:
    """The memory of a flat array as bytes: MPI only moves it, and does not know bfloat16."""
    return array.view(np.uint8)


def typed(array: np.ndarray) -> np.ndarray:
    """The array in a dtype that MPI reduces."""
    return array.view(np.uint8) if array.dtype == bool else array


def operation(dtype: np.dtype, op: str) -> MPI.Op:
    """MPI's name of a reduction; a mean is a sum to begin with."""
    return (_LOGICAL if dtype in (np.dtype(bool),) else _REDUCTIONS)[op]


def messages(size: int) -> list[slice]:
    """Pieces of a message; one that is empty is sent all the same."""
    return list(pieces(size, LARGEST)) or [slice(0, 0)]
