"""Functions of single elements."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from math import inf, log, pi
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorcore import dtypes
from tensorcore.dtypes import iinfo
from tensorcore.errors import DivisionError

if TYPE_CHECKING:
    from tensorcore.backend.base import Native
    from tensorcore.backend.composed.kernels import Kernels

__all__ = [
    "acos", "acosh", "angle", "asin", "asinh", "atan", "atanh", "bitwise_not", "bitwise_or", "ceil", "clamp",
    "clamp_max", "clamp_min", "complex", "conj_physical", "copysign", "cosh", "exp2", "fmax", "fmin", "ge", "gt",
    "hypot", "imag", "isfinite", "isinf", "isnan", "le", "log2", "log10", "logaddexp", "logaddexp2", "logical_and",
    "logical_not", "logical_or", "logical_xor", "masked_fill", "minimum", "ne", "neg", "positive", "real", "reciprocal",
    "relu", "remainder", "rsqrt", "sgn", "sigmoid", "sign", "signbit", "sinh", "square", "tan", "tanh", "trunc",
    "trunc_divide",
]  # fmt: skip


# The integers that have as many bytes as a floating dtype.
_SAME_BITS = {2: dtypes.int16, 4: dtypes.int32, 8: dtypes.int64}


def _with_out(formula: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(formula)
    def kernel(k: Kernels, *operands: Native, out: Native | None = None) -> Native:
        return k.placed(formula(k, *operands), out)

    return kernel


# Arithmetic


@_with_out
def neg(k: Kernels, x: Native) -> Native:
    if k.kind(x) == "complex":  # a product would have inf times 0 in it
        return k.complex(k.neg(k.real(x)), k.neg(k.imag(x)))
    return k.mul(x, -1.0) if k.kind(x) == "floating" else k.sub(0, x)


@_with_out
def positive(k: Kernels, x: Native) -> Native:
    return k.clone(x)


@_with_out
def minimum(k: Kernels, x: Native, y: Native) -> Native:
    if not hasattr(x, "shape"):
        x, y = y, x
    first = k.lt(x, y)
    return k.where(k.logical_or(first, k.isnan(x)) if k.kind(x) == "floating" else first, x, y)


@_with_out
def square(k: Kernels, x: Native) -> Native:
    return k.mul(x, x)


@_with_out
def reciprocal(k: Kernels, x: Native) -> Native:
    return k.div(1.0, x)


@_with_out
def rsqrt(k: Kernels, x: Native) -> Native:
    return k.div(1.0, k.sqrt(x))


@_with_out
def remainder(k: Kernels, x: Native, y: Native) -> Native:
    """With the sign of the divisor: that of C's division, and one divisor more where the signs differ."""
    try:
        left = k.fmod(x, y)
    except DivisionError as error:  # in the words of the op that was called
        raise DivisionError(str(error).replace("fmod:", "remainder:", 1)) from None
    negative = k.lt(y, 0) if hasattr(y, "shape") else y < 0
    if negative is True:
        differs = k.lt(0, left)
    elif negative is False:
        differs = k.lt(left, 0)
    else:
        differs = k.logical_and(k.ne(left, 0), k.logical_xor(k.lt(left, 0), negative))
    return k.where(differs, k.add(left, y), left)


@_with_out
def trunc_divide(k: Kernels, x: Native, y: Native) -> Native:
    if k.kind(x if hasattr(x, "shape") else y) == "floating":
        return k.trunc(k.div(x, y))
    try:
        left = k.fmod(x, y)
    except DivisionError as error:  # in the words of the op that was called
        raise DivisionError(str(error).replace("fmod:", "div:", 1)) from None
    return k.floor_divide(k.sub(x, left), y)


@_with_out
def bitwise_or(k: Kernels, x: Native, y: Native) -> Native:
    return k.bitwise_xor(k.bitwise_xor(x, y), k.bitwise_and(x, y))


@_with_out
def bitwise_not(k: Kernels, x: Native) -> Native:
    dtype = k.dtype(x)
    if dtype.kind == "bool":
        return k.logical_not(x)
    return k.bitwise_xor(x, k.full((), iinfo(dtype).max if iinfo(dtype).min == 0 else -1, dtype=dtype))


@_with_out
def hypot(k: Kernels, x: Native, y: Native) -> Native:
    """Scaled by the larger side, so that no square overflows."""
    x, y = k.abs(x), k.abs(y)
    large, small = k.maximum(x, y), k.minimum(x, y)
    ratio = k.div(small, k.where(k.eq(large, 0), 1.0, large))
    made = k.mul(large, k.sqrt(k.add(k.mul(ratio, ratio), 1.0)))
    return k.where(k.logical_or(k.isinf(x), k.isinf(y)), inf, made)


# Numbers of two parts


def real(k: Kernels, x: Native) -> Native:
    return _part(k, x, 0)


def imag(k: Kernels, x: Native) -> Native:
    return _part(k, x, 1)


def _part(k: Kernels, x: Native, at: int) -> Native:
    parts = k.view_as_real(k.backend.as_native(x))  # of no dims NumPy answers a scalar, which has no memory to show
    if 0 in x.shape:  # there is no place in its memory that a view could begin at
        return k.full(tuple(x.shape), 0, dtype=k.dtype(parts))
    return k.part(parts, len(x.shape), at)


@_with_out
def complex(k: Kernels, x: Native, y: Native) -> Native:
    shape = np.broadcast_shapes(tuple(x.shape), tuple(y.shape))
    parts = [k.reshape(k.expand(one, shape=shape), (*shape, 1)) for one in (x, y)]
    return k.view_as_complex(k.contiguous(k.joined(parts, len(shape))))  # pairs, whatever the parts lie like


@_with_out
def conj_physical(k: Kernels, x: Native) -> Native:
    return k.complex(k.real(x), k.neg(k.imag(x))) if k.kind(x) == "complex" else k.clone(x)


# Signs and whole numbers


@_with_out
def ceil(k: Kernels, x: Native) -> Native:
    return k.neg(k.floor(k.neg(x)))


@_with_out
def trunc(k: Kernels, x: Native) -> Native:
    return k.where(k.lt(x, 0), k.ceil(x), k.floor(x))


@_with_out
def sign(k: Kernels, x: Native) -> Native:
    dtype = k.dtype(x)
    if dtype.kind == "bool":
        return k.clone(x)
    return k.sub(k.cast(k.lt(0, x), dtype=dtype), k.cast(k.lt(x, 0), dtype=dtype))


@_with_out
def sgn(k: Kernels, x: Native) -> Native:
    if k.kind(x) != "complex":
        return k.sign(x)
    return k.where(k.eq(x, 0), x, k.div(x, k.cast(k.abs(x), dtype=k.dtype(x))))


@_with_out
def signbit(k: Kernels, x: Native) -> Native:
    """By the bits, where that of the sign stands in front in floats as in integers.

    Where the device has no such integers, by the infinity that 1 divided by a zero is; a NaN then has no sign.
    """
    if k.kind(x) != "floating":
        return k.lt(x, 0)
    bits = _SAME_BITS[k.dtype(x).itemsize]
    if bits.name in k.backend.capabilities.dtypes:
        return k.lt(k.reinterpret(x, dtype=bits), 0)
    return k.logical_or(k.lt(x, 0), k.lt(k.div(1.0, x), 0))


@_with_out
def copysign(k: Kernels, x: Native, y: Native) -> Native:
    if not hasattr(y, "shape"):
        return k.neg(k.abs(x)) if math.copysign(1.0, y) < 0 else k.abs(x)
    size = k.abs(x) if hasattr(x, "shape") else k.full((), abs(x), dtype=k.dtype(y))
    return k.where(k.signbit(y), k.neg(size), size)


@_with_out
def angle(k: Kernels, x: Native) -> Native:
    if k.kind(x) == "complex":
        return k.atan2(k.imag(x), k.real(x))
    return k.where(k.isnan(x), x, k.where(k.lt(x, 0), k.full((), pi, dtype=k.dtype(x)), k.zeros((), x)))


# Exponentials and their inverses


@_with_out
def exp2(k: Kernels, x: Native) -> Native:
    return k.exp(k.mul(x, log(2.0)))


@_with_out
def log2(k: Kernels, x: Native) -> Native:
    return k.div(k.log(x), log(2.0))


@_with_out
def log10(k: Kernels, x: Native) -> Native:
    return k.div(k.log(x), log(10.0))


@_with_out
def logaddexp(k: Kernels, x: Native, y: Native) -> Native:
    """The larger one, and what the smaller one adds to it; of equal ones, infinities too, log 2 more."""
    made = k.add(k.maximum(x, y), k.log1p(k.exp(k.neg(k.abs(k.sub(x, y))))))
    return k.where(k.eq(x, y), k.add(x, log(2.0)), made)


@_with_out
def logaddexp2(k: Kernels, x: Native, y: Native) -> Native:
    return k.div(k.logaddexp(k.mul(x, log(2.0)), k.mul(y, log(2.0))), log(2.0))


@_with_out
def sigmoid(k: Kernels, x: Native) -> Native:
    return k.div(1.0, k.add(k.exp(k.neg(x)), 1.0))


@_with_out
def tan(k: Kernels, x: Native) -> Native:
    return k.div(k.sin(x), k.cos(x))


def _turned(k: Kernels, x: Native) -> Native:
    """Complex numbers times i."""
    return k.complex(k.neg(k.imag(x)), k.real(x))


def _turned_back(k: Kernels, x: Native) -> Native:
    return k.complex(k.imag(x), k.neg(k.real(x)))


def _side(k: Kernels, x: Native) -> Native:
    """The other side of a right triangle whose longest is 1."""
    return k.sqrt(k.mul(k.sub(1.0, x), k.add(x, 1.0)))


@_with_out
def asin(k: Kernels, x: Native) -> Native:
    if k.kind(x) == "complex":
        return _turned_back(k, k.asinh(_turned(k, x)))
    return k.atan2(x, _side(k, x))


@_with_out
def acos(k: Kernels, x: Native) -> Native:
    return k.sub(pi / 2, k.asin(x)) if k.kind(x) == "complex" else k.atan2(_side(k, x), x)


@_with_out
def atan(k: Kernels, x: Native) -> Native:
    if k.kind(x) == "complex":
        return _turned_back(k, k.atanh(_turned(k, x)))
    return k.atan2(x, 1.0)


@_with_out
def cosh(k: Kernels, x: Native) -> Native:
    return k.mul(k.add(k.exp(x), k.exp(k.neg(x))), 0.5)


@_with_out
def sinh(k: Kernels, x: Native) -> Native:
    """By ``expm1``, which is exact where the two exponentials would cancel."""
    if k.kind(x) == "complex":
        return k.mul(k.sub(k.exp(x), k.exp(k.neg(x))), 0.5)
    grown = k.expm1(k.abs(x))
    made = k.mul(k.add(grown, k.div(grown, k.add(grown, 1.0))), 0.5)
    return k.copysign(k.where(k.isinf(grown), grown, made), x)


@_with_out
def tanh(k: Kernels, x: Native) -> Native:
    """By ``expm1``, of sizes up to where the result is 1."""
    if k.kind(x) == "complex":
        return k.div(k.sinh(x), k.cosh(x))
    limit = {2: 5.0, 4: 10.0, 8: 20.0}[k.dtype(x).itemsize]
    grown = k.expm1(k.mul(k.minimum(k.abs(x), limit), 2.0))
    return k.copysign(k.div(grown, k.add(grown, 2.0)), x)


@_with_out
def asinh(k: Kernels, x: Native) -> Native:
    if k.kind(x) == "complex":
        return k.log(k.add(x, k.sqrt(k.add(k.mul(x, x), 1.0))))
    size = k.abs(x)
    square = k.mul(size, size)
    made = k.log1p(k.add(size, k.div(square, k.add(k.sqrt(k.add(square, 1.0)), 1.0))))
    return k.copysign(k.where(k.lt(1e8, size), k.add(k.log(size), log(2.0)), made), x)


@_with_out
def acosh(k: Kernels, x: Native) -> Native:
    if k.kind(x) == "complex":
        return k.log(k.add(x, k.mul(k.sqrt(k.add(x, 1.0)), k.sqrt(k.sub(x, 1.0)))))
    above = k.sub(x, 1.0)
    return k.log1p(k.add(above, k.mul(k.sqrt(above), k.sqrt(k.add(above, 2.0)))))


@_with_out
def atanh(k: Kernels, x: Native) -> Native:
    if k.kind(x) == "complex":
        return k.mul(k.sub(k.log(k.add(x, 1.0)), k.log(k.sub(1.0, x))), 0.5)
    size = k.abs(x)
    return k.copysign(k.mul(k.log1p(k.div(k.mul(size, 2.0), k.sub(1.0, size))), 0.5), x)


# Comparison and choice


@_with_out
def logical_not(k: Kernels, x: Native) -> Native:
    return k.eq(x, False if k.kind(x) == "bool" else 0)


@_with_out
def ne(k: Kernels, x: Native, y: Native) -> Native:
    return k.logical_not(k.eq(x, y))


@_with_out
def gt(k: Kernels, x: Native, y: Native) -> Native:
    return k.lt(y, x)


@_with_out
def le(k: Kernels, x: Native, y: Native) -> Native:
    return k.logical_or(k.lt(x, y), k.eq(x, y))


@_with_out
def ge(k: Kernels, x: Native, y: Native) -> Native:
    return k.logical_or(k.lt(y, x), k.eq(x, y))


@_with_out
def isnan(k: Kernels, x: Native) -> Native:
    return k.ne(x, x)


@_with_out
def isinf(k: Kernels, x: Native) -> Native:
    return k.eq(k.abs(x), inf)


@_with_out
def isfinite(k: Kernels, x: Native) -> Native:
    return k.logical_not(k.logical_or(k.isnan(x), k.isinf(x)))


@_with_out
def logical_and(k: Kernels, x: Native, y: Native) -> Native:
    return k.bitwise_and(k.logical_not(k.logical_not(x)), k.logical_not(k.logical_not(y)))


@_with_out
def logical_or(k: Kernels, x: Native, y: Native) -> Native:
    return k.logical_not(k.logical_and(k.logical_not(x), k.logical_not(y)))


@_with_out
def logical_xor(k: Kernels, x: Native, y: Native) -> Native:
    return k.ne(k.logical_not(x), k.logical_not(y))


@_with_out
def fmax(k: Kernels, x: Native, y: Native) -> Native:
    return k.where(k.isnan(x), y, k.where(k.isnan(y), x, k.maximum(x, y)))


@_with_out
def fmin(k: Kernels, x: Native, y: Native) -> Native:
    return k.where(k.isnan(x), y, k.where(k.isnan(y), x, k.minimum(x, y)))


@_with_out
def clamp(k: Kernels, x: Native, low: Native, high: Native) -> Native:
    return k.minimum(k.maximum(x, low), high)


@_with_out
def clamp_min(k: Kernels, x: Native, low: Native) -> Native:
    return k.maximum(x, low)


@_with_out
def clamp_max(k: Kernels, x: Native, high: Native) -> Native:
    return k.minimum(x, high)


@_with_out
def relu(k: Kernels, x: Native) -> Native:
    return k.maximum(x, 0)


@_with_out
def masked_fill(k: Kernels, x: Native, mask: Native, value: Native) -> Native:
    return k.where(mask, value, x)
