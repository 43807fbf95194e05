"""What a case is: calls of kernels, written once, for the emulation beside the NumPy kernels and for CUDA's compiler.

A case is a function of a table of kernels, of ``put``, which makes arrays of that table's device, and of a dtype; it
answers with the results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

__all__ = [
    "BFLOAT16", "BOOL", "CASES", "COMPLEX", "DOUBLE", "FLOAT", "FLOATS", "HALF", "INT8", "INT32", "INT64", "INTS", "UINT8", "Case",
    "Kernels", "Put", "Results", "case", "corners", "values",
]  # fmt: skip

Kernels = Mapping[str, Callable[..., Any]]
Put = Callable[..., Any]
Results = Iterator[Any]

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
HALF = np.dtype(np.float16)
FLOAT = np.dtype(np.float32)
DOUBLE = np.dtype(np.float64)
COMPLEX = np.dtype(np.complex64)
FLOATS = (HALF, BFLOAT16, FLOAT, DOUBLE)
INT64, INT32, INT16, INT8, UINT8, BOOL = map(np.dtype, (np.int64, np.int32, np.int16, np.int8, np.uint8, np.bool_))
INTS = (INT64, INT32, INT16, INT8, UINT8)


class Case(NamedTuple):
    """One family, or a part of one.

    Attributes:
        dtypes: those it is run with.
        scale: by how much the limits of ``close`` are wider, for long sums.
    """

    name: str
    run: Callable[[Kernels, Put, Any], Results]
    dtypes: tuple[np.dtype[Any], ...]
    scale: float


CASES: list[Case] = []


def case(dtypes: tuple[np.dtype[Any], ...] = FLOATS, scale: float = 4.0) -> Callable[[Any], Any]:
    def add(run: Any) -> Any:
        CASES.append(Case(run.__name__, run, dtypes, scale))
        return run

    return add


def values(dtype: Any, *shape: int, low: float = -3.0, high: float = 3.0, seed: int = 8) -> np.ndarray:
    """Reproducible values of a dtype: small ones, so that results of every dtype can be compared."""
    dtype = np.dtype(dtype)
    random = np.random.default_rng(seed)
    if dtype.kind == "b":
        return random.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        return random.integers(max(low, 0 if dtype.kind == "u" else -9), 9, shape).astype(dtype)
    return random.uniform(low, high, shape).astype(dtype)


def corners(dtype: Any) -> np.ndarray:
    """Zeros, infinities, NaN and ordinary numbers, in a number that no pack divides."""
    dtype = np.dtype(dtype)
    if dtype.kind in "iub":
        return values(dtype, 37)
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, 2.0, -2.5, 1e-3, 7.75]
    return np.concatenate([np.array(special), values(DOUBLE, 25)]).astype(dtype)
