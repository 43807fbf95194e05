"""Functions of each element, or of the elements in one place of two arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorcore
from tensorcore import dtypes
from tensorcore.array_api.promotion import array, pair, promoted
from tensorcore.ops.pointwise import choice
from tensorcore.tensor import Tensor

__all__ = [
    "abs",
    "acos",
    "acosh",
    "add",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "ceil",
    "clip",
    "conj",
    "copysign",
    "cos",
    "cosh",
    "divide",
    "equal",
    "exp",
    "expm1",
    "floor",
    "floor_divide",
    "greater",
    "greater_equal",
    "hypot",
    "imag",
    "isfinite",
    "isinf",
    "isnan",
    "less",
    "less_equal",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "multiply",
    "negative",
    "nextafter",
    "not_equal",
    "positive",
    "pow",
    "real",
    "reciprocal",
    "remainder",
    "round",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "subtract",
    "tan",
    "tanh",
    "trunc",
    "where",
]  # fmt: skip


def _unary(name: str, ours: str | None = None) -> Callable[[Tensor], Tensor]:
    function = getattr(tensorcore, ours or name)

    def call(x: Tensor, /) -> Tensor:
        return function(array(name, x))  # type: ignore[no-any-return]

    call.__name__ = call.__qualname__ = name
    call.__doc__ = function.__doc__
    return call


def _binary(name: str, ours: str | None = None) -> Callable[[Any, Any], Tensor]:
    function = getattr(tensorcore, ours or name)

    def call(x1: Any, x2: Any, /) -> Tensor:
        a, b = pair(x1, x2)
        return function(a, b)  # type: ignore[no-any-return]

    call.__name__ = call.__qualname__ = name
    call.__doc__ = function.__doc__
    return call


abs, acos, acosh, asin, asinh, atan, atanh = map(_unary, ("abs", "acos", "acosh", "asin", "asinh", "atan", "atanh"))
cos, cosh, exp, isfinite, isinf, isnan = map(_unary, ("cos", "cosh", "exp", "isfinite", "isinf", "isnan"))
log, log10, log1p, log2, logical_not, negative = map(
    _unary, ("log", "log10", "log1p", "log2", "logical_not", "negative")
)
positive, reciprocal, signbit, sin, sinh, sqrt = map(
    _unary, ("positive", "reciprocal", "signbit", "sin", "sinh", "sqrt")
)
square, tan, tanh = map(_unary, ("square", "tan", "tanh"))
bitwise_invert = _unary("bitwise_invert", "bitwise_not")
add, atan2, bitwise_and, bitwise_or, bitwise_xor = map(
    _binary, ("add", "atan2", "bitwise_and", "bitwise_or", "bitwise_xor")
)
bitwise_left_shift, bitwise_right_shift = map(_binary, ("bitwise_left_shift", "bitwise_right_shift"))
copysign, divide, floor_divide, hypot, logaddexp = map(
    _binary, ("copysign", "divide", "floor_divide", "hypot", "logaddexp")
)
equal, not_equal = _binary("equal", "eq"), _binary("not_equal")
greater, greater_equal, less, less_equal = map(_binary, ("greater", "greater_equal", "less", "less_equal"))
logical_and, logical_or, logical_xor = map(_binary, ("logical_and", "logical_or", "logical_xor"))
maximum, minimum, multiply, nextafter, pow = map(_binary, ("maximum", "minimum", "multiply", "nextafter", "pow"))
remainder, subtract = map(_binary, ("remainder", "subtract"))


def _whole(name: str) -> Callable[[Tensor], Tensor]:
    """Roundings, which leave integers as they are."""
    function = getattr(tensorcore, name)

    def call(x: Tensor, /) -> Tensor:
        if array(name, x).dtype.is_complex:
            return tensorcore.complex(function(x.real), function(x.imag))  # type: ignore[attr-defined, no-any-return]
        return x.clone() if x.dtype.kind == "integer" else function(x)  # type: ignore[attr-defined, no-any-return]

    call.__name__ = call.__qualname__ = name
    call.__doc__ = function.__doc__
    return call


ceil, floor, round, trunc = map(_whole, ("ceil", "floor", "round", "trunc"))


def expm1(x: Tensor, /) -> Tensor:
    """The exponential minus one, exact near zero; of complex numbers too, whose infinities the standard spells out."""
    if not array("expm1", x).dtype.is_complex:
        return tensorcore.expm1(x)
    a, b = x.real, x.imag  # type: ignore[attr-defined]
    # e^(a+bi) - 1 = (e^a - 1) cos b - 2 sin^2(b/2) + i e^a sin b; the first two summands do not cancel near zero.
    real = tensorcore.expm1(a) * tensorcore.cos(b) - 2 * tensorcore.sin(b / 2) ** 2
    imag = tensorcore.exp(a) * tensorcore.sin(b)
    lost = ~tensorcore.isfinite(b)
    real = tensorcore.where(
        (b == 0) | (lost & tensorcore.isinf(a)), tensorcore.expm1(a) + 0.0, real
    )  # no negative zero
    imag = tensorcore.where(b == 0, b, tensorcore.where(lost & (a == -tensorcore.inf), 0.0, imag))
    return tensorcore.complex(real, imag)


def sign(x: Tensor, /) -> Tensor:
    """-1, 0 or 1, of complex elements the direction, and NaN of NaN."""
    made = tensorcore.sgn(array("sign", x))
    return choice.where(tensorcore.isnan(x), x, made) if x.dtype.is_floating_point else made


def conj(x: Tensor, /) -> Tensor:
    """The complex conjugate of each element; real ones are their own."""
    return array("conj", x).conj()  # type: ignore[attr-defined, no-any-return]


def real(x: Tensor, /) -> Tensor:
    """The real part of each element."""
    return array("real", x).real  # type: ignore[attr-defined, no-any-return]


def imag(x: Tensor, /) -> Tensor:
    """The imaginary part of each element of a complex array; zeros of a real one."""
    return x.imag if array("imag", x).dtype.is_complex else tensorcore.zeros_like(x)  # type: ignore[attr-defined, no-any-return]


def clip(x: Tensor, /, min: Any = None, max: Any = None) -> Tensor:
    """The elements, the bounds in place of those outside; in the dtype of ``x``. NaN stays, and in a bound wins."""
    made = array("clip", x)
    for bound, function in ((min, tensorcore.maximum), (max, tensorcore.minimum)):
        if bound is None:
            continue
        if not isinstance(bound, Tensor):
            if x.dtype.kind == "integer":  # bounds beyond the dtype bound nothing
                info = dtypes.iinfo(x.dtype)
                bound = info.min if bound < info.min else info.max if bound > info.max else bound
            bound = tensorcore.tensor(bound, dtype=x.dtype, device=x.device)
        made = function(made, bound.to(x.dtype))
    return made.clone() if made is x else made  # type: ignore[attr-defined, no-any-return]


def where(condition: Tensor, x1: Any, x2: Any, /) -> Tensor:
    """The element of ``x1`` where the condition holds, else that of ``x2``."""
    if not isinstance(x1, Tensor) and not isinstance(x2, Tensor):
        return choice.where(condition, x1, x2)
    a, b = promoted(x1, x2)
    return choice.where(condition, a, b)
