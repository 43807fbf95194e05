"""Matrix products by cuBLAS: one call for a product or for a batch, on tensor cores for the half types and where TF32 may be."""

from __future__ import annotations

from itertools import product as places
from math import prod
from typing import Any, NamedTuple

import numpy as np

from tensorcore.plugin import dtypes, switches
from tensorcore_cuda.kernels.launch import merged

__all__ = ["Blas"]

Native = Any


class _Type(NamedTuple):
    """How cuBLAS knows a dtype: its cudaDataType, what it is computed in, and the dtype of the two factors."""

    data: int
    compute: int
    factors: np.dtype[Any]


_IN_FLOAT32, _IN_FLOAT64, _IN_TF32 = 68, 70, 77  # cublasComputeType_t
_FLOAT32, _FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
_COMPLEX64, _COMPLEX128 = np.dtype(np.complex64), np.dtype(np.complex128)
_TYPES = {
    np.dtype(np.float16): _Type(2, _IN_FLOAT32, _FLOAT32),
    dtypes.bfloat16.numpy: _Type(14, _IN_FLOAT32, _FLOAT32),
    _FLOAT32: _Type(0, _IN_FLOAT32, _FLOAT32),
    _FLOAT64: _Type(1, _IN_FLOAT64, _FLOAT64),
    _COMPLEX64: _Type(4, _IN_FLOAT32, _COMPLEX64),
    _COMPLEX128: _Type(5, _IN_FLOAT64, _COMPLEX128),
}
_LARGEST = (1 << 31) - 1  # of a size, which cuBLAS takes as a C int
_ANY = -1  # CUBLAS_GEMM_DEFAULT


class _Matrix(NamedTuple):
    """Whether a matrix lies column by column, and how many elements are between its rows or columns."""

    turned: int
    step: int


class Blas:
    """Products of CuPy's arrays.

    Args:
        cupy: CuPy, or what stands in for it.
    """

    def __init__(self, cupy: Any) -> None:
        self.cupy, self.array, self.empty = cupy, cupy.ndarray, cupy.ndarray
        self.cublas: Any = None
        self.captured: Any = None

    def takes(self, x: Any, y: Any) -> bool:
        """Whether ``product`` has these two: matrices or batches of them, of one floating dtype."""
        return (
            type(x) is self.array is type(y)
            and x.dtype == y.dtype
            and x.dtype in _TYPES
            and x.ndim > 1 < y.ndim
            and max(*x.shape, *y.shape) <= _LARGEST
        )

    def product(self, x: Native, y: Native, out: Native | None = None, alpha: Any = 1, beta: Any = 0) -> Native:
        """``alpha * x @ y + beta * out``, in ``out``.

        Args:
            x, y: (..., m, k) and (..., k, n), of which ``takes`` is true; their other dims are broadcast.
            out: (..., m, n), C-contiguous, of their dtype, or of float32 for half types; a new array where None. With a
                ``beta`` of 0 it is not read.
        """
        (m, k), n = x.shape[-2:], y.shape[-1]
        if y.shape[-2] != k:
            raise ValueError(f"matmul: expected matrices that fit, got {x.shape} and {y.shape}; check their inner dims")
        batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
        if out is None:
            out = self.empty((*batch, m, n), x.dtype)
        if not out.size:
            return out
        if not k:
            if beta == 0:
                out.fill(0)
            elif beta != 1:
                out *= out.dtype.type(beta)
            return out
        rows = prod(x.shape[:-1])
        if y.ndim == 2 and x.ndim > 2 and rows <= _LARGEST and len(merged(x.shape[:-1], x.strides[:-1])[0]) < 2:
            x = x.reshape(-1, k)  # one product instead of one for each of the batch
            batch, m = (), x.shape[0]
        x, across = self.readable(x)
        y, down = self.readable(y)
        sizes, (xs, ys, steps) = merged(batch, *[_spread(one, batch) for one in (x, y)], _dense((*batch, m, n))[:-2])
        count, *jumps = (sizes[-1], xs[-1], ys[-1], steps[-1]) if sizes else (1, 0, 0, 0)
        for at in places(*map(range, sizes[:-1])):
            first = [sum([i * step for i, step in zip(at, one, strict=False)]) for one in (xs, ys, steps)]
            pointers = [one.data.ptr + i * one.itemsize for one, i in zip((x, y, out), first, strict=True)]
            self.call((x.dtype, out.dtype), (m, n, k), pointers, across, down, count, jumps, alpha, beta)
        return out

    def call(
        self, kinds: tuple[np.dtype[Any], np.dtype[Any]], sizes: tuple[int, int, int], pointers: list[int], across: _Matrix, down: _Matrix,
        count: int, jumps: list[int], alpha: Any, beta: Any,
    ) -> None:  # fmt: skip
        """One call of cuBLAS, which sees all matrices turned: it computes the product's transpose, of y's and x's."""
        if self.cublas is None:
            self.cublas = self.cupy.cuda.cublas
        (m, n, k), dtype, (kind, result) = sizes, kinds[0], [_TYPES[one] for one in kinds]
        compute = kind.compute
        if compute == _IN_FLOAT32 and dtype in (_FLOAT32, _COMPLEX64) and switches("cuda").matmul.allow_tf32:
            compute = _IN_TF32
        factors = np.array([alpha, beta], kind.factors)
        address = factors.ctypes.data
        handle, (px, py, made), (jx, jy, jump) = self.cupy.cuda.get_cublas_handle(), pointers, jumps
        start = handle, down.turned, across.turned, n, m, k, address
        end, data = address + kind.factors.itemsize, kind.data
        name, given = "gemmEx", (
            *start, py, data, down.step, px, data, across.step, end, made, result.data, n, compute, _ANY
        )  # fmt: skip
        if count > 1:
            name, given = "gemmStridedBatchedEx", (
                *start, py, data, down.step, jy, px, data, across.step, jx, end, made, result.data, n, jump, count, compute, _ANY
            )  # fmt: skip
        try:
            getattr(self.cublas, name)(*given)
        except NotImplementedError:  # CuPy's, in a capture
            if self.captured is None:
                from tensorcore_cuda.captured import Products

                self.captured = Products()
            getattr(self.captured, name)(*given)

    def readable(self, x: Native) -> tuple[Native, _Matrix]:
        """``x`` as cuBLAS can read its matrices, by rows or by columns, and how; copied where that is neither."""
        found = _matrix(x)
        if found is None:
            x = self.cupy.ascontiguousarray(x)
            found = _matrix(x)
            assert found is not None
        return x, found


def _steps(x: Native) -> tuple[int, ...]:
    return tuple([one // x.itemsize for one in x.strides])


def _spread(x: Native, batch: tuple[int, ...]) -> list[int]:
    """The steps of the dims before the matrices, 0 along those that are broadcast."""
    own = [step if size != 1 else 0 for size, step in zip(x.shape[:-2], _steps(x), strict=False)]
    return [0] * (len(batch) - len(own)) + own


def _dense(shape: tuple[int, ...]) -> list[int]:
    return [prod(shape[i + 1 :]) for i in range(len(shape))]


def _matrix(x: Native) -> _Matrix | None:
    (rows, columns), (down, across) = x.shape[-2:], _steps(x)[-2:]
    if (across == 1 or columns == 1) and (rows == 1 or columns <= down <= _LARGEST):
        return _Matrix(0, down if rows > 1 else columns)
    if (down == 1 or rows == 1) and (columns == 1 or rows <= across <= _LARGEST):
        return _Matrix(1, across if columns > 1 else rows)
    return None
