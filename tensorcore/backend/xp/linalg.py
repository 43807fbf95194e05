"""Matrix products."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tensorcore.backend.base import Kernel, Native
    from tensorcore.backend.xp import XPBackend

__all__ = ["kernels"]

_EXACT = 1032  # products of -128 and 127 whose sum has 24 bits


def kernels(backend: XPBackend) -> dict[str, Kernel]:
    """The family's kernels for one backend."""
    xp = backend.xp
    dot, matmul_ = xp.dot, xp.matmul

    def matmul(x: Native, y: Native) -> Native:
        if x.ndim == 2 == y.ndim and x.itemsize > 2:
            return dot(x, y)  # 0.3 us less than matmul
        return product(x, y)

    def matmul_nt(x: Native, y: Native) -> Native:
        """``x`` times ``y`` with its last two dims swapped."""
        if y.ndim == 2 and x.ndim == 2 and x.itemsize > 2:
            return dot(x, y.T)
        return product(x, y.swapaxes(-1, -2))

    def matmul_tn(x: Native, y: Native) -> Native:
        """``x`` with its last two dims swapped, times ``y``."""
        if x.ndim == 2 == y.ndim and x.itemsize > 2:
            return dot(x.T, y)
        return product(x.swapaxes(-1, -2), y)

    def product(x: Native, y: Native) -> Native:
        if x.dtype.kind not in "iufc" or x.dtype == np.float16:
            return product(x.astype(np.float32), y.astype(np.float32)).astype(x.dtype)
        if y.ndim == 2 and x.ndim > 2:
            # One product instead of one for each matrix of the batch.
            return dot(x.reshape(-1, x.shape[-1]) if x.size else x.reshape(rows(x), x.shape[-1]), y).reshape(
                *x.shape[:-1], y.shape[-1]
            )
        if y.ndim == 1 and 0 < x.ndim < 3 and (x.ndim == 1 or x.flags.forc):
            return xp.asarray(dot(x, y))  # of vectors with any step
        return xp.asarray(matmul_(fit_for_blas(x), fit_for_blas(y)))

    def rows(x: Native) -> int:
        count = 1
        for size in x.shape[:-1]:
            count *= size
        return count

    def fit_for_blas(x: Native) -> Native:
        """``x``, copied where NumPy would leave BLAS for loops ten times as slow: no dim of step 1 among the last two."""
        if x.ndim < 2:
            return x
        size = x.itemsize
        across, down = x.strides[-1], x.strides[-2]
        rows, columns = x.shape[-2:]
        fits = (across == size and down >= size * columns) or (down == size and across >= size * rows)
        return x if fits or x.dtype.kind not in "fc" else xp.ascontiguousarray(x)

    def is_short(x: Native) -> bool:
        """Whether products of ``x`` are taken in float32; what is added to them then is added before the one rounding."""
        # NumPy's kind of bfloat16 is V.
        return bool(x.dtype.kind not in "iufcb" or x.dtype == np.float16)

    def linear(x: Native, weight: Native, bias: Native | None) -> Native:
        if bias is not None and is_short(x):
            return linear(x.astype(np.float32), weight.astype(np.float32), bias.astype(np.float32)).astype(x.dtype)
        if x.ndim == 2 and x.itemsize > 2:
            made = dot(x, weight.T)
        else:
            made = product(x, weight.T)
        if bias is not None:
            made += bias
        return made

    def linear_int8(x: Native, weight: Native, scale: Native, bias: Native | None) -> Native:
        """A float32 ``x``, rounded to eight bits, times the transpose of an int8 weight and its scale, and the bias.

        The range of ``x``, 0 included, is 127 steps wide, and 0 is a whole number of them. ``scale`` is one for all outputs,
        without dims, or one for each. Sums are exact.
        """
        one, step = x.dtype.type(1), x.dtype.type(1)
        if x.size:
            low, high = xp.minimum(x.min(), 0 * one), xp.maximum(x.max(), 0 * one)
            step = (high - low) / (127 * one)
            step = xp.where(step > 0, step, one)
            zero = xp.clip(xp.round(-low / step), 0, 127)
            x = xp.clip(xp.round(x * (one / step)) + zero, 0, 255) - zero
        exact = np.float32 if x.shape[-1] <= _EXACT else np.float64
        made = xp.asarray(matmul_(x.astype(exact), weight.astype(exact).T).astype(np.float32) * (scale * step))
        return made if bias is None else made + bias

    def addmm(input: Native, x: Native, y: Native, *, beta: Any, alpha: Any) -> Native:
        """``beta * input + alpha * x @ y``; an input times 0 is not read, whatever is in it."""
        if is_short(x):
            wide = [each.astype(np.float32) for each in (input, x, y)]
            return addmm(*wide, beta=beta, alpha=alpha).astype(x.dtype)
        made = xp.asarray(matmul(x, y))
        if alpha != 1:
            made *= made.dtype.type(alpha)
        if beta:
            made += input if beta == 1 else input * made.dtype.type(beta)
        return made

    def cross(x: Native, y: Native, *, dim: int) -> Native:
        return xp.ascontiguousarray(xp.cross(x, y, axis=dim))

    def take_diagonal(x: Native, *, dim1: int, dim2: int) -> Native:
        """The elements of equal index along two dims; they become the last dim."""
        return xp.ascontiguousarray(xp.diagonal(x, 0, dim1, dim2))

    def put_diagonal(x: Native, *, shape: tuple[int, ...], dim1: int, dim2: int) -> Native:
        """Zeros of ``shape`` with ``x`` where two dims have equal index."""
        made = xp.zeros(shape, x.dtype)
        moved = xp.moveaxis(made, (dim1, dim2), (-2, -1))
        at = xp.arange(x.shape[-1])
        moved[..., at, at] = x
        return made

    return {function.__name__: function for function in (
        matmul, matmul_nt, matmul_tn, linear, linear_int8, addmm, cross, take_diagonal, put_diagonal,
    )}  # fmt: skip
