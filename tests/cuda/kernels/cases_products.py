"""Cases of matrix products."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.cuda.kernels.case import FLOATS, INT32, Kernels, Put, Results, case, values


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


@case(FLOATS)
def sparse_products(k: Kernels, put: Put, dtype: Any) -> Results:
    """Of elements stored row by row and in any order, some twice; of empty rows, one column, and nothing."""
    rows, columns = np.array([0, 0, 2, 2, 2, 4]), np.array([1, 3, 0, 1, 3, 2])
    starts, given = np.array([0, 2, 2, 5, 5, 6]), values(dtype, 6)
    anyhow = np.array([4, 0, 2, 0, 2, 2])
    for kind in (None, INT32):
        at, begin, to = put(columns, kind), put(starts, kind), put(anyhow, kind)
        for n in (1, 3, 8, 70):
            x, g = put(values(dtype, 4, n)), put(values(dtype, 5, n, seed=2))
            for held, compressed in ((begin, True), (put(rows, kind), False), (to, False)):
                options = dict(count=5, compressed=compressed)
                yield k["sparse_matmul"](held, at, put(given), x, **options)
                for needs in ((False, False, True, True), (False, False, True, False)):
                    found = k["sparse_matmul_backward"](g, held, at, put(given), x, needs=needs, **options)
                    yield from [one for one in found if one is not None]
    nothing = put(columns[:0]), put(given[:0]), put(values(dtype, 4, 3))
    yield k["sparse_matmul"](put(np.zeros(6, np.int64)), *nothing, count=5, compressed=True)
    yield k["sparse_matmul"](put(rows[:0]), *nothing, count=5, compressed=False)
