"""Elementwise kernels: one function of the namespace each, or a few where dtypes or corners ask for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorcore.dtypes import ALL
from tensorcore.errors import DivisionError, DtypeError

if TYPE_CHECKING:
    from tensorcore.backend.base import Kernel, Native
    from tensorcore.backend.xp import XPBackend

__all__ = ["kernels"]

# Kernel name -> function of the namespace.
UNARY = {
    "abs": "absolute", "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan",
    "atanh": "arctanh", "bitwise_not": "bitwise_not", "ceil": "ceil", "conj_physical": "conjugate", "cos": "cos", "cosh": "cosh",
    "exp": "exp", "expm1": "expm1", "floor": "floor", "isfinite": "isfinite", "isinf": "isinf",
    "isnan": "isnan", "log": "log", "log10": "log10", "log1p": "log1p", "log2": "log2", "logical_not": "logical_not",
    "neg": "negative", "positive": "positive", "signbit": "signbit", "sgn": "sign", "sin": "sin", "sinh": "sinh",
    "sqrt": "sqrt", "square": "square", "tan": "tan", "tanh": "tanh", "trunc": "trunc",
}  # fmt: skip
BINARY = {
    "add": "add", "atan2": "arctan2", "bitwise_and": "bitwise_and", "bitwise_or": "bitwise_or",
    "bitwise_xor": "bitwise_xor", "copysign": "copysign", "div": "true_divide", "eq": "equal", "fmax": "fmax",
    "fmin": "fmin", "gcd": "gcd", "ge": "greater_equal", "gt": "greater", "hypot": "hypot", "lcm": "lcm", "le": "less_equal",
    "logaddexp": "logaddexp", "logaddexp2": "logaddexp2", "logical_and": "logical_and", "logical_or": "logical_or",
    "logical_xor": "logical_xor", "lt": "less", "maximum": "maximum", "minimum": "minimum", "mul": "multiply",
    "ne": "not_equal", "nextafter": "nextafter", "sub": "subtract", "bitwise_left_shift": "left_shift",
}  # fmt: skip


# From so many elements on, NumPy's clip is 3.5 times as fast as its maximum; below, the wrapper around it costs more.
_MANY = 4096
# A long formula's passes over memory: in blocks of so many elements, all but the first find them in the cache.
_BLOCK = 16384


def kernels(backend: XPBackend) -> dict[str, Kernel]:
    """The family's kernels for one backend."""
    xp = backend.xp
    # The functions themselves: one Python frame less. The frontend mends NumPy's scalars for 0-d results.
    table: dict[str, Kernel] = {name: getattr(xp, function) for name, function in (UNARY | BINARY).items()}
    for function in (
        *_arithmetic(backend), *_powers(backend), *_integers(backend), *_choices(backend), *_complex(backend),
    ):  # fmt: skip
        table[function.__name__] = function
    table.update(_activations(backend))
    table["rational"] = _rational(backend)

    def compare_over(x: Native, y: Native, *, by: str) -> Native:
        """Writes 1 over each element of ``x`` where the comparison (or logical op) of the name ``by`` holds, else 0."""
        x[...] = table[by](x, y)
        return x

    table["compare_over"] = compare_over
    return table


def _arithmetic(backend: XPBackend) -> tuple[Kernel, ...]:
    xp = backend.xp
    divide, exp, negative, sqrt = xp.true_divide, xp.exp, xp.negative, xp.sqrt
    # 0-d arrays of the right dtype: a Python 0 costs 0.2 us more to convert.
    zeros = {one.numpy: xp.zeros((), backend.xp_dtype(one)) for one in ALL}
    ones = {one.numpy: xp.ones((), backend.xp_dtype(one)) for one in ALL}
    maximum = xp.maximum

    def relu(x: Native, out: Any = None) -> Native:
        if x.size > _MANY and x.dtype.kind == "f":
            return xp.clip(x, 0.0, np.inf, out=out)
        if out is None:
            return maximum(x, zeros[x.dtype])  # an out= of None costs 30 ns
        return maximum(x, zeros[x.dtype], out=out)

    def sigmoid(x: Native, out: Any = None) -> Native:
        # Written into one new array: exp overflows to inf for the smallest, which is where the result is 0.
        if x.dtype.itemsize == 2:
            return _half(sigmoid, x, out)
        result = xp.asarray(negative(x, out=out))
        exp(result, out=result)
        xp.add(result, ones[x.dtype], out=result)
        return divide(ones[x.dtype], result, out=result)

    def rsqrt(x: Native, out: Any = None) -> Native:
        if x.dtype.itemsize == 2:
            return _half(rsqrt, x, out)
        return divide(ones[x.dtype], sqrt(x), out=out)

    def reciprocal(x: Native, out: Any = None) -> Native:
        return divide(ones[x.dtype], x, out=out)

    def exp2(x: Native, out: Any = None) -> Native:
        return exp(x * np.log(x.dtype.type(2)), out=out) if x.dtype.kind == "c" else xp.exp2(x, out=out)

    def sign(x: Native, out: Any = None) -> Native:
        """The sign of each element: that of NaN is 0, and bools are their own."""
        if x.dtype.kind == "b":
            return _into(xp.array(x), out)
        result = xp.asarray(xp.sign(x))
        if x.dtype.kind not in "iu":
            result[x != x] = 0
        return _into(result, out)

    def round(x: Native, out: Any = None) -> Native:
        return xp.positive(x, out=out) if x.dtype.kind in "iu" else xp.rint(x, out=out)

    def _half(function: Kernel, x: Native, out: Any) -> Native:
        return _into(function(x.astype(np.float32)).astype(x.dtype), out)

    return relu, sigmoid, rsqrt, reciprocal, exp2, sign, round


def _powers(backend: XPBackend) -> tuple[Kernel, ...]:
    xp = backend.xp
    power, square, sqrt, divide, multiply = xp.power, xp.square, xp.sqrt, xp.true_divide, xp.multiply

    def pow(x: Native, y: Native, out: Any = None) -> Native:
        """``x`` to the power of ``y``; of integers to negative ones the quotient cut off, and DtypeError for a negative number."""
        if type(y) is int or type(y) is float:
            if y == 2:
                return square(x, out=out)
            if x.dtype.kind in "biu":
                if y < 0:
                    raise DtypeError(
                        f"pow: Integers to negative integer powers are not allowed, got exponent {y}; convert to a "
                        f"floating dtype first"
                    )
            # Exact where the general function is off by a rounding, and ten times as fast.
            elif y == 3:
                if x.dtype.itemsize == 2:  # the square is not rounded by itself
                    return _into(pow(x.astype(np.float32), y).astype(x.dtype), out)
                return multiply(square(x), x, out=out)
            elif y == 0.5 and x.dtype.kind != "c":
                return sqrt(x, out=out)
            elif y == -0.5 and x.dtype.kind != "c":
                return divide(x.dtype.type(1), sqrt(x), out=out)
            elif y == -1:
                return divide(x.dtype.type(1), x, out=out)
            elif y == -2:
                return divide(x.dtype.type(1), square(x), out=out)
        elif hasattr(y, "dtype") and y.dtype.kind == "i" and bool((y < 0).any()):
            # NumPy refuses; the true quotient cut off is 0 unless the base is 1 or -1, and the last bit says which it is then.
            base = xp.asarray(x, y.dtype)
            result = power(base, xp.where(y < 0, y & 1, y))
            return _into(xp.where(y < 0, xp.where(xp.abs(base) == 1, result, 0), result).astype(y.dtype), out)
        return power(x, y, out=out)

    return (pow,)


def _integers(backend: XPBackend) -> tuple[Kernel, ...]:
    """Quotients, remainders and shifts, where integers have corners of their own."""
    xp = backend.xp
    # A look at the values would make a device wait for itself; there, as in PyTorch, the result is undefined.
    looks = backend.capabilities.host
    floor_divide_, remainder_, fmod_, right = xp.floor_divide, xp.remainder, xp.fmod, xp.right_shift

    def nonzero(name: str, x: Native, y: Native) -> None:
        is_integer = type(y) is int and (not hasattr(x, "dtype") or x.dtype.kind in "iu")
        empty = not getattr(x, "size", 1)  # whatever it would be divided by
        if not empty and ((is_integer and y == 0) or (hasattr(y, "dtype") and y.dtype.kind in "iu" and not y.all())):
            raise DivisionError(
                f"{name}: ZeroDivisionError: expected integers other than 0 to divide by, got 0; mask them out"
            )

    def floor_divide(x: Native, y: Native, out: Any = None) -> Native:
        if looks:
            nonzero("floor_divide", x, y)
        return floor_divide_(x, y, out=out)

    def trunc_divide(x: Native, y: Native, out: Any = None) -> Native:
        if (x if hasattr(x, "dtype") else y).dtype.kind not in "iu":
            return xp.trunc(xp.true_divide(x, y), out=out)
        if looks:
            nonzero("div", x, y)
        return floor_divide_(xp.subtract(x, fmod_(x, y)), y, out=out)

    def remainder(x: Native, y: Native, out: Any = None) -> Native:
        if looks:
            nonzero("remainder", x, y)
        if (x if hasattr(x, "dtype") else y).dtype.kind in "iu":
            return remainder_(x, y, out=out)
        made = remainder_(x, y)
        return _into(xp.where(made == 0, xp.copysign(made, x), made), out)  # a zero has the sign of x, as in PyTorch

    def fmod(x: Native, y: Native, out: Any = None) -> Native:
        if looks:
            nonzero("fmod", x, y)
        return fmod_(x, y, out=out)

    def bitwise_right_shift(x: Native, y: Native, out: Any = None) -> Native:
        return right(x, y, out=out)

    return floor_divide, trunc_divide, remainder, fmod, bitwise_right_shift


def _choices(backend: XPBackend) -> tuple[Kernel, ...]:
    xp = backend.xp
    maximum, minimum = xp.maximum, xp.minimum

    def where(condition: Native, x: Native, y: Native, out: Any = None) -> Native:
        # Numbers by themselves would come out in double precision.
        if not hasattr(x, "dtype"):
            x = xp.asarray(x, dtype=y.dtype)
        elif not hasattr(y, "dtype"):
            y = xp.asarray(y, dtype=x.dtype)
        if out is None and condition.size > _MANY and x.dtype == y.dtype:
            # Fill with one and copy the other over it: half the time of xp.where (0.25 against 0.49 ms for 1e6).
            if x.shape == condition.shape and not y.ndim:
                made = xp.full(x.shape, y, x.dtype)
                xp.copyto(made, x, where=condition)
                return made
            if y.shape == condition.shape and not x.ndim:
                made = xp.array(y)
                xp.copyto(made, x, where=condition)
                return made
        return _into(xp.asarray(xp.where(condition, x, y)), out)

    def clamp(x: Native, low: Native, high: Native, out: Any = None) -> Native:
        if x.size > _MANY and x.dtype.kind == "f" and type(low) is not xp.ndarray and type(high) is not xp.ndarray:
            return xp.clip(x, low, high, out=out)
        return minimum(maximum(x, low), high, out=out)

    def clamp_min(x: Native, low: Native, out: Any = None) -> Native:
        return maximum(x, low, out=out)

    def clamp_max(x: Native, high: Native, out: Any = None) -> Native:
        return minimum(x, high, out=out)

    return where, clamp, clamp_min, clamp_max


def _complex(backend: XPBackend) -> tuple[Kernel, ...]:
    """Parts of complex numbers; real, imag and the two ``view_as`` show the same memory."""
    xp = backend.xp

    def angle(x: Native, out: Any = None) -> Native:
        if x.dtype.kind == "c":
            return _into(xp.asarray(xp.angle(x)), out)
        result = xp.where(x < 0, xp.asarray(np.pi, dtype=x.dtype), xp.asarray(0, dtype=x.dtype))
        return _into(xp.where(x != x, x, result), out)

    def logaddexp(x: Native, y: Native, out: Any = None) -> Native:
        if x.dtype.kind != "c":
            return xp.logaddexp(x, y, out=out)
        # By the larger real part; two equal infinities differ by NaN.
        first = x.real >= y.real
        top, low = xp.where(first, x, y), xp.where(first, y, x)
        endless = xp.isinf(x.real) & (x.real == y.real) & (x.imag == y.imag)
        return _into(xp.where(endless, x, top + xp.log1p(xp.exp(low - top))), out)

    def real(x: Native) -> Native:
        return x.real

    def imag(x: Native) -> Native:
        return x.imag

    def view_as_real(x: Native) -> Native:
        if x.ndim and x.size and x.flags.c_contiguous:
            return x.view(np.float32 if x.itemsize == 8 else np.float64).reshape((*x.shape, 2))
        parts = x.real
        strides, offset = backend.layout(parts)
        return backend.as_strided(parts, (*x.shape, 2), (*strides, 1), offset)

    def view_as_complex(x: Native) -> Native:
        dtype = np.dtype(np.complex64 if x.itemsize == 4 else np.complex128)
        if x.ndim and x.size and x.flags.c_contiguous:
            return x.view(dtype).reshape(x.shape[:-1])
        flat = backend.storage(x)
        _, offset = backend.layout(x)
        return backend.over(flat, x.shape[:-1], dtype, offset * x.itemsize, x.strides[:-1])

    def complex(x: Native, y: Native, out: Any = None) -> Native:
        shape = x.shape if x.shape == y.shape else np.broadcast_shapes(x.shape, y.shape)
        made = xp.empty(shape, np.complex64 if x.itemsize == 4 else np.complex128)
        made.real = x
        made.imag = y
        return _into(made, out)

    return angle, logaddexp, real, imag, view_as_real, view_as_complex, complex


def _activations(backend: XPBackend) -> dict[str, Kernel]:
    """Fused forms of some composites: fewer temporaries, and one Python frame instead of one an op."""
    xp = backend.xp
    exp, add, divide, multiply, tanh = xp.exp, xp.add, xp.true_divide, xp.multiply, xp.tanh
    ones = {one.numpy: xp.ones((), backend.xp_dtype(one)) for one in ALL}

    def silu(x: Native, out: Any = None) -> Native:
        if x.dtype.itemsize == 2:
            return _into(silu(x.astype(np.float32)).astype(x.dtype), out)
        result = xp.asarray(xp.negative(x))
        exp(result, out=result)
        add(result, ones[x.dtype], out=result)
        return divide(x, result, out=result if out is None else out)

    def gelu(x: Native, out: Any = None, *, approximate: str = "none") -> Native:
        if x.dtype.itemsize == 2:
            return _into(gelu(x.astype(np.float32), approximate=approximate).astype(x.dtype), out)
        if approximate == "tanh":
            result = xp.asarray(multiply(x, x))
            result *= 0.7978845608028654 * 0.044715
            result += 0.7978845608028654
            result *= x
            tanh(result, out=result)
        else:
            result = xp.asarray(backend.kernels["erf"](multiply(x, 0.7071067811865476)))
        add(result, ones[x.dtype], out=result)
        # Halved first: twice the largest numbers would overflow.
        result *= 0.5
        return multiply(result, x, out=result if out is None else out)

    def leaky_relu(x: Native, out: Any = None, *, negative_slope: float = 0.01) -> Native:
        if x.dtype.itemsize == 2:
            return _into(leaky_relu(x.astype(np.float32), negative_slope=negative_slope).astype(x.dtype), out)
        if 0 <= negative_slope <= 1:
            return _into(xp.maximum(x, multiply(x, negative_slope)), out)
        return _into(xp.where(x > 0, x, multiply(x, negative_slope)), out)

    def prelu(x: Native, weight: Native, out: Any = None) -> Native:
        """Each element, those below 0 times a weight that broadcasts."""
        if x.dtype.itemsize == 2:
            return _into(prelu(x.astype(np.float32), weight.astype(np.float32)).astype(x.dtype), out)
        return _into(xp.where(x > 0, x, multiply(x, weight)), out)

    return {"silu": silu, "gelu": gelu, "leaky_relu": leaky_relu, "prelu": prelu}


def _rational(backend: XPBackend) -> Kernel:
    xp = backend.xp

    def polynomial(x: Native, coefficients: tuple[float, ...]) -> Native:
        """Horner's rule, in place; the highest power comes first."""
        result = x * coefficients[0]
        for one in coefficients[1:-1]:
            result += one
            result *= x
        result += coefficients[-1]
        return result

    def rational(x: Native, out: Native | None = None, *, above: tuple[float, ...], below: tuple[float, ...]) -> Native:
        """The ratio of two polynomials, the highest power first, in the dtype of ``x``."""
        if x.size > _BLOCK and backend.capabilities.host:
            flat = xp.ravel(x)
            made = xp.empty_like(flat)
            for start in range(0, flat.size, _BLOCK):
                made[start : start + _BLOCK] = rational(flat[start : start + _BLOCK], above=above, below=below)
            return _into(made.reshape(x.shape), out)
        result = polynomial(x, above)
        return _into(xp.asarray(result if len(below) == 1 else result / polynomial(x, below)), out)

    return rational


def _into(result: Native, out: Any) -> Native:
    if out is None:
        return result
    out[...] = result
    return out
