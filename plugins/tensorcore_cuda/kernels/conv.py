"""Convolutions in one to three dims, and their two gradients: by cuDNN, else windows side by side and matrix products."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import numpy as np

from tensorcore.plugin import dtypes
from tensorcore_cuda.blas import Blas
from tensorcore_cuda.kernels.cudnn import ALIGNMENT, Cudnn
from tensorcore_cuda.kernels.launch import C_TYPES, WIDE, Driver, family
from tensorcore_cuda.kernels.reduce import Reducer
from tensorcore_cuda.kernels.rows import dense
from tensorcore_cuda.kernels.windows import WINDOWS_BYTES, windows_of

__all__ = ["kernels"]

Native = Any
Run = Callable[..., Any]

# Bytes of the windows that are copied at a time.
_BLOCK = 256 << 20


def kernels(driver: Driver, table: Mapping[str, Run]) -> dict[str, Run]:
    """The family's kernels; what they do not take goes to the table's."""
    find = family(driver, "conv.cu")
    contiguous, empty, reduce, blas = table["contiguous"], driver.empty, Reducer(driver), Blas(driver.xp)

    def takes(x: Native, weight_shape: Any) -> bool:
        return x.dtype in WIDE and 0 < len(weight_shape) - 2 <= 3 and prod(x.shape) > 0 and prod(weight_shape) > 0

    def wide_product(x: Native, y: Native) -> Native:
        """In single precision where these are narrower: what follows adds products up."""
        batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
        return blas.product(x, y, empty((*batch, x.shape[-2], y.shape[-1]), WIDE[x.dtype]))

    def narrow(x: Native, dtype: np.dtype[Any]) -> Native:
        return x if x.dtype == dtype else table["cast"](x, dtype=dtypes.from_numpy_dtype(dtype))

    def moved(name: str, source: Native, target: Native, of: bytes) -> None:
        kernel = find(f"{name}_windows<{C_TYPES[target.dtype]}>", f"PPq{WINDOWS_BYTES}s")
        grid = (driver.blocks(-(-target.size // 256)), 1, 1)
        kernel(grid, (256, 1, 1), 0, source.data.ptr, target.data.ptr, target.size, of)

    def blocks(batch: int, each: int) -> list[tuple[int, int]]:
        size = max(1, min(batch, _BLOCK // max(each, 1)))
        return [(start, min(start + size, batch)) for start in range(0, batch, size)]

    def pointwise(kernel: Any, stride: Any, padding: Any) -> bool:
        return prod(kernel) == 1 and set(stride) == {1} and not any(padding)

    def conv(x: Native, weight: Native, bias: Any, *, counts: Any, stride: Any, padding: Any, dilation: Any,
             groups: int) -> Native:  # fmt: skip
        if not takes(x, weight.shape) or weight.dtype != x.dtype or not prod(counts):
            return table["conv"](
                x, weight, bias, counts=counts, stride=stride, padding=padding, dilation=dilation, groups=groups
            )
        shape = (x.shape[0], weight.shape[0], *counts)
        options = dict(stride=stride, padding=padding, dilation=dilation)
        made = None
        library = Cudnn.of(driver)
        if library is not None:
            made = empty(shape, x.dtype)
            if not library.convolve(
                "fprop", dense(x, contiguous, ALIGNMENT), dense(weight, contiguous, ALIGNMENT), made, **options
            ):
                made = None
        if made is None:
            made = product(dense(x, contiguous), dense(weight, contiguous), counts, groups, options).reshape(shape)
        if bias is not None:
            table["add"](made, bias.reshape(-1, *[1] * len(counts)), out=made)
        return made

    def product(x: Native, weight: Native, counts: Any, groups: int, options: dict[str, Any]) -> Native:
        batch, kernel, pixels = x.shape[0], weight.shape[2:], prod(counts)
        depth = weight.shape[1] * prod(kernel)
        matrix = weight.reshape(1, groups, weight.shape[0] // groups, depth)
        if pointwise(kernel, options["stride"], options["padding"]):
            return blas.product(matrix, x.reshape(batch, groups, depth, pixels))
        made = empty((batch, groups, weight.shape[0] // groups, pixels), x.dtype)
        of = windows_of(x.shape[2:], counts, kernel, **options)
        for start, stop in blocks(batch, groups * depth * pixels * x.dtype.itemsize):
            columns = empty((stop - start, groups, depth, pixels), x.dtype)
            moved("gather", x[start:stop], columns, of)
            blas.product(matrix, columns, made[start:stop])
        return made

    def conv_input_gradient(g: Native, weight: Native, *, shape: Any, stride: Any, padding: Any, dilation: Any,
                            groups: int) -> Native:  # fmt: skip
        if not takes(g, weight.shape) or weight.dtype != g.dtype or not prod(shape):
            return table["conv_input_gradient"](
                g, weight, shape=shape, stride=stride, padding=padding, dilation=dilation, groups=groups
            )
        options = dict(stride=stride, padding=padding, dilation=dilation)
        library = Cudnn.of(driver)
        if library is not None:
            made = empty(tuple(shape), g.dtype)
            if library.convolve(
                "dgrad", made, dense(weight, contiguous, ALIGNMENT), dense(g, contiguous, ALIGNMENT), **options
            ):
                return made
        dtype, g, weight = g.dtype, dense(g, contiguous), dense(weight, contiguous)
        kernel, pixels = weight.shape[2:], prod(g.shape[2:])
        outs, depth = weight.shape[0] // groups, weight.shape[1] * prod(kernel)
        matrix = weight.reshape(1, groups, outs, depth).transpose(0, 1, 3, 2)
        rows = g.reshape(g.shape[0], groups, outs, pixels)
        if pointwise(kernel, stride, padding):
            return blas.product(matrix, rows).reshape(tuple(shape))
        made = empty(tuple(shape), WIDE[dtype])
        of = windows_of(shape[2:], g.shape[2:], kernel, **options)
        for start, stop in blocks(g.shape[0], groups * depth * pixels * made.itemsize):
            columns = wide_product(matrix, rows[start:stop])
            moved("scatter", columns, made[start:stop], of)
        return narrow(made, dtype)

    def conv_weight_gradient(g: Native, x: Native, *, shape: Any, stride: Any, padding: Any, dilation: Any,
                             groups: int) -> Native:  # fmt: skip
        if not takes(g, shape) or g.dtype != x.dtype or not x.size:
            return table["conv_weight_gradient"](
                g, x, shape=shape, stride=stride, padding=padding, dilation=dilation, groups=groups
            )
        options = dict(stride=stride, padding=padding, dilation=dilation)
        library = Cudnn.of(driver)
        if library is not None:
            made = empty(tuple(shape), g.dtype)
            if library.convolve(
                "wgrad", dense(x, contiguous, ALIGNMENT), made, dense(g, contiguous, ALIGNMENT), **options
            ):
                return made
        dtype, g, x = g.dtype, dense(g, contiguous), dense(x, contiguous)
        kernel, pixels = tuple(shape[2:]), prod(g.shape[2:])
        outs, depth = shape[0] // groups, shape[1] * prod(kernel)
        rows, made = g.reshape(g.shape[0], groups, outs, pixels), None
        of = windows_of(x.shape[2:], g.shape[2:], kernel, **options)
        for start, stop in blocks(g.shape[0], groups * depth * pixels * g.dtype.itemsize):
            if pointwise(kernel, stride, padding):
                columns = x[start:stop].reshape(stop - start, groups, depth, pixels)
            else:
                columns = empty((stop - start, groups, depth, pixels), x.dtype)
                moved("gather", x[start:stop], columns, of)
            part = wide_product(rows[start:stop], columns.transpose(0, 1, 3, 2))
            part = reduce("sum_of", part, (0,), False, part.dtype)
            made = part if made is None else table["add"](made, part)
        return narrow(made.reshape(tuple(shape)), dtype)

    return {function.__name__: function for function in (conv, conv_input_gradient, conv_weight_gradient)}
