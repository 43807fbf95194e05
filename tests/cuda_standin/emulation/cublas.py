"""cuBLAS' products of matrices by addresses, computed by NumPy: column by column, rounded to TF32 where that is asked for."""

from __future__ import annotations

import ctypes
from typing import Any

import ml_dtypes
import numpy as np

__all__ = ["gemmEx", "gemmStridedBatchedEx"]

_DATA = {
    2: np.dtype(np.float16), 14: np.dtype(ml_dtypes.bfloat16), 0: np.dtype(np.float32), 1: np.dtype(np.float64),
    4: np.dtype(np.complex64), 5: np.dtype(np.complex128),
}  # fmt: skip
_FLOAT32, _TF32, _FLOAT64 = 68, 77, 70  # cublasComputeType_t
_COMPUTED = {_FLOAT32: (0, 2, 4, 14), _TF32: (0, 4), _FLOAT64: (1, 5)}


def gemmEx(
    handle: int, transa: int, transb: int, m: int, n: int, k: int, alpha: int, A: int, Atype: int, lda: int, B: int,
    Btype: int, ldb: int, beta: int, C: int, Ctype: int, ldc: int, computeType: int, algo: int,
) -> None:  # fmt: skip
    """``C = alpha * op(A) @ op(B) + beta * C``."""
    gemmStridedBatchedEx(
        handle, transa, transb, m, n, k, alpha, A, Atype, lda, 0, B, Btype, ldb, 0, beta, C, Ctype, ldc, 0, 1, computeType,
        algo,
    )  # fmt: skip


def gemmStridedBatchedEx(
    handle: int, transa: int, transb: int, m: int, n: int, k: int, alpha: int, A: int, Atype: int, lda: int, strideA: int,
    B: int, Btype: int, ldb: int, strideB: int, beta: int, C: int, Ctype: int, ldc: int, strideC: int, batchCount: int,
    computeType: int, algo: int,
) -> None:  # fmt: skip
    """The same for matrices that lie a fixed number of elements apart."""
    results = (Atype, 0) if Atype in (2, 14) else (Atype,)
    if min(m, n, k, batchCount) < 1 or Atype != Btype or Ctype not in results or Atype not in _COMPUTED[computeType]:
        raise RuntimeError(f"CUBLAS_STATUS_NOT_SUPPORTED: {Atype} to {Ctype} in {computeType}, {m} by {n} by {k}")
    if transa not in (0, 1) or transb not in (0, 1):
        raise RuntimeError("CUBLAS_STATUS_INVALID_VALUE: no such operation")
    if lda < (k if transa else m) or ldb < (n if transb else k) or ldc < m:
        raise RuntimeError(f"CUBLAS_STATUS_INVALID_VALUE: leading dims {lda}, {ldb} and {ldc} are too small")
    dtype, result = _DATA[Atype], _DATA[Ctype]
    wide = np.dtype(np.float32) if dtype.itemsize == 2 else dtype
    factors = [np.frombuffer(ctypes.string_at(one, wide.itemsize), wide)[0] for one in (alpha, beta)]
    for i in range(batchCount):
        a = _matrix(A + i * strideA * dtype.itemsize, dtype, (k, m) if transa else (m, k), lda)
        b = _matrix(B + i * strideB * dtype.itemsize, dtype, (n, k) if transb else (k, n), ldb)
        c = _matrix(C + i * strideC * result.itemsize, result, (m, n), ldc)
        a, b = (one.T if turned else one for one, turned in ((a, transa), (b, transb)))
        a, b = (_rounded(one.astype(wide)) if computeType == _TF32 else one.astype(wide) for one in (a, b))
        with np.errstate(all="ignore"):  # a GPU says nothing of infinities
            made = (a @ b) * factors[0]
            c[...] = (made + c.astype(wide) * factors[1] if factors[1] else made).astype(result)


def _matrix(address: int, dtype: np.dtype[Any], shape: tuple[int, int], leading: int) -> np.ndarray:
    size = dtype.itemsize
    memory = (ctypes.c_uint8 * ((leading * (shape[1] - 1) + shape[0]) * size)).from_address(address)
    return np.ndarray(shape, dtype, memory, strides=(size, leading * size))


def _rounded(x: np.ndarray) -> np.ndarray:
    """To the 10 bits that TF32 keeps."""
    bits = np.ascontiguousarray(x).view(np.uint32)
    return ((bits + 0x1000) & 0xFFFFE000).astype(np.uint32).view(x.dtype)
