"""Cases of elementwise kernels: every expression, numbers and options, strides, casts."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorcore import dtypes
from tensorcore_cuda.kernels.expressions import EXPRESSIONS
from tensorcore_cuda.kernels.launch import C_TYPES
from tests.cuda.kernels.case import (
    BOOL,
    DOUBLE,
    FLOAT,
    FLOATS,
    HALF,
    INT64,
    INTS,
    UINT8,
    Kernels,
    Put,
    Results,
    case,
    corners,
    values,
)

_POSITIVE = {"acosh", "lgamma", "log", "log10", "log1p", "log2", "pow", "rsqrt", "sqrt"}
_UNIT = {"acos", "asin", "atanh"}
_DIVISION = {"floor_divide", "trunc_divide", "remainder", "fmod"}


def _kind(dtype: np.dtype[Any]) -> str:
    return "b" if dtype.kind == "b" else "i" if dtype.kind in "iu" else "f"


@case((*FLOATS, *INTS, BOOL))
def unary(k: Kernels, put: Put, dtype: Any) -> Results:
    x = corners(dtype)
    for name, expression in EXPRESSIONS.items():
        if expression.operands != 1 or _kind(dtype) not in expression.kinds or name == "gelu_tanh":
            continue
        if name == "neg" and dtype == UINT8:
            continue
        if name in ("lgamma", "mish"):  # poles and infinities of the NumPy kernels are their own
            yield k[name](put(values(dtype, 37, low=0.5, high=6)))
        else:
            yield k[name](put(x))


@case((*FLOATS, *INTS, BOOL))
def binary(k: Kernels, put: Put, dtype: Any) -> Results:
    x, y = corners(dtype), corners(dtype)[::-1].copy()
    for name, expression in EXPRESSIONS.items():
        if (
            expression.operands != 2
            or _kind(dtype) not in expression.kinds
            or name in ("gelu_tanh_backward", "pow_by_number")
        ):
            continue
        if expression.options or name.endswith("_backward"):
            yield k[name](put(values(dtype, 37)), put(values(dtype, 37, seed=9)))
        elif name in _DIVISION:
            divisor = np.where(y == 0, y.dtype.type(1), y)
            finite = np.isfinite(divisor.astype(DOUBLE)) & np.isfinite(x.astype(DOUBLE))
            yield k[name](put(x[finite]), put(divisor[finite]))
        elif name == "pow":
            yield k[name](put(np.abs(values(dtype, 37))), put(values(dtype, 37, seed=9)))
            yield k[name](put(x), 2)
        else:
            yield k[name](put(x), put(y))


@case((*FLOATS, INT64, BOOL))
def choices(k: Kernels, put: Put, dtype: Any) -> Results:
    x, y = corners(dtype), values(dtype, 37, seed=9)
    yield k["where"](put(values(BOOL, 37)), put(x), put(y))
    yield k["where"](put(values(BOOL, 5, 1)), put(x), put(y))
    yield k["masked_fill"](put(x), put(values(BOOL, 37)), dtype == BOOL or 1)
    if dtype != BOOL:
        yield k["clamp"](put(x), -1, 2)
        yield k["clamp"](put(x), put(values(dtype, 1)), put(y))


@case(FLOATS)
def options(k: Kernels, put: Put, dtype: Any) -> Results:
    x, g = put(values(dtype, 3, 5)), put(values(dtype, 3, 5, seed=9))
    yield k["leaky_relu"](x, negative_slope=0.2)
    yield k["elu"](x, alpha=0.7)
    yield k["celu"](x, alpha=1.3)
    yield k["softplus"](x, beta=2.0, threshold=3.0)
    yield k["exponential_unit_backward"](g, x, alpha=0.5, scale=1.5, input_scale=2.0)
    yield k["leaky_relu_backward"](g, x, negative_slope=0.2)
    yield k["gelu"](x, approximate="tanh")
    yield k["gelu_backward"](g, x, approximate="tanh")


@case((FLOAT, HALF))
def strides(k: Kernels, put: Put, dtype: Any) -> Results:
    x, y = values(dtype, 6, 4, 16), values(dtype, 6, 4, 16, seed=9)
    yield k["add"](put(x), put(y[0, 0]))
    yield k["add"](put(x), put(y[:, :1, :1]))
    yield k["add"](put(x.transpose(2, 0, 1)).transpose(1, 2, 0), put(y))
    yield k["add"](put(x)[:, ::2], put(y)[:, ::2])
    yield k["add"](put(x)[::-1, :, ::-1], put(y))
    yield k["add"](put(x[0, 0, 0]), put(y))
    yield k["mul"](put(x), 2.5)
    yield k["sub"](1, put(x).T)
    yield k["add"](put(x[:0]), put(y[:0]))
    yield k["add"](put(x[0, 0, 0]), put(y[0, 0, 0]))
    yield k["contiguous"](put(x).transpose(1, 2, 0))
    yield k["add"](put(x).reshape(-1)[1:], put(y).reshape(-1)[1:])
    target = put(y)
    yield k["add"](target, put(x), out=target)
    square = put(x[0, :, :4])
    yield k["add"](square, square.T, out=square)
    yield k["copy"](put(y)[:, :, ::2], put(x[0, :, ::2]))
    yield k["lt"](put(x), 0.5)


@case((*FLOATS, *INTS, BOOL))
def casts(k: Kernels, put: Put, dtype: Any) -> Results:
    x = values(dtype, 19, low=0 if dtype.kind == "f" else -9)
    for target in dtypes.ALL:
        if target.numpy in C_TYPES:
            yield k["cast"](put(x), dtype=target)
