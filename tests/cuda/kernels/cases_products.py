"""Cases of matrix products."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.cuda.kernels.case import FLOATS, Kernels, Put, Results, case, values


@case(FLOATS)
def products(k: Kernels, put: Put, dtype: Any) -> Results:
    """Of matrices by rows and by columns, of batches that are broadcast, of slices and of nothing."""
    x, y = put(values(dtype, 3, 4, 5)), put(values(dtype, 3, 5, 2))
    many = put(values(dtype, 2, 3, 4, 5))
    for left, right in (
        (x, y), (x[0], y[0]), (x, y[0]), (x[0], y), (many, y), (many[:, :1], y), (many[:, :, :, ::2], many[:, :, :3]),
        (x[:, ::2], y), (x[:, :1], y), (x[:, :, :1], y[:, :1]), (x[:, :, :0], y[:, :0]), (x[:, :0], y), (many[:, ::2], y[0]),
        (many.transpose(1, 0, 2, 3), y[:, None]), (x[:, :, :1], put(values(dtype, 3, 1, 2))),
    ):  # fmt: skip
        yield k["matmul"](left, right)
    yield k["matmul_nt"](x, many)
    yield k["matmul_tn"](x, many)
    yield k["matmul_nt"](x[0], x[1])
    yield k["matmul_tn"](x[0], x[1])
    yield k["matmul"](x[0].T, x[1])


@case(FLOATS)
def affine_products(k: Kernels, put: Put, dtype: Any) -> Results:
    """With what is added to them."""
    x, weight, bias = put(values(dtype, 3, 4, 5)), put(values(dtype, 2, 5)), put(values(dtype, 2))
    for given in (x, x[0], x[:, 0], x[:0]):
        yield k["linear"](given, weight, bias)
        yield k["linear"](given, weight, None)
    yield k["linear"](x, put(values(dtype, 5, 2)).T, bias)
    added = put(np.full((4, 2), np.nan, dtype))
    yield k["addmm"](added, x[0], weight.T, beta=0, alpha=2)
    for one in (bias, put(values(dtype, 4, 2)), put(values(dtype, 4, 1))):
        yield k["addmm"](one, x[0], weight.T, beta=1, alpha=1)
        yield k["addmm"](one, x[0], weight.T, beta=0.5, alpha=-1.5)
    yield k["addmm"](bias, x[0][:, :0], weight.T[:0], beta=0.5, alpha=1)
