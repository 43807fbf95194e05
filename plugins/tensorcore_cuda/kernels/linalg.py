"""Matrix products, with what is added to them in the same call of cuBLAS."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tensorcore_cuda.blas import Blas
from tensorcore_cuda.kernels.launch import Driver

__all__ = ["kernels"]

Native = Any
Run = Callable[..., Any]


def kernels(driver: Driver, table: Mapping[str, Run]) -> dict[str, Run]:
    """The family's kernels; what they do not take goes to the table's."""
    blas, empty, copy = Blas(driver.xp), driver.empty, table["copy"]
    takes, product = blas.takes, blas.product

    def matmul(x: Native, y: Native) -> Native:
        return product(x, y) if takes(x, y) else table["matmul"](x, y)

    def matmul_nt(x: Native, y: Native) -> Native:
        return product(x, y.swapaxes(-1, -2)) if takes(x, y) else table["matmul_nt"](x, y)

    def matmul_tn(x: Native, y: Native) -> Native:
        return product(x.swapaxes(-1, -2), y) if takes(x, y) else table["matmul_tn"](x, y)

    def linear(x: Native, weight: Native, bias: Native | None) -> Native:
        rows = x.reshape(1, -1) if x.ndim == 1 else x
        if not takes(rows, weight) or weight.ndim != 2 or (bias is not None and bias.dtype != x.dtype):
            return table["linear"](x, weight, bias)
        if bias is None:
            made = product(rows, weight.T)
        else:
            made = product(rows, weight.T, copy(empty((*rows.shape[:-1], weight.shape[0]), x.dtype), bias), beta=1)
        return made.reshape(-1) if x.ndim == 1 else made

    def addmm(input: Native, x: Native, y: Native, *, beta: Any, alpha: Any) -> Native:
        if not takes(x, y) or x.ndim != 2 or y.ndim != 2 or input.dtype != x.dtype:
            return table["addmm"](input, x, y, beta=beta, alpha=alpha)
        made = empty((x.shape[0], y.shape[1]), x.dtype)
        if beta:
            copy(made, input)
        return product(x, y, made, alpha, beta)

    return {function.__name__: function for function in (matmul, matmul_nt, matmul_tn, linear, addmm)}
