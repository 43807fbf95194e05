"""Arithmetic: sums, products, quotients, remainders, powers, roots and signs, element by element."""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from typing import Any

from tensorcore import dtypes
from tensorcore.errors import ArgumentTypeError, DtypeError, UnsupportedDtype
from tensorcore.ops.calls import PLAIN_FLOATS
from tensorcore.ops.define import OPS, Op, same
from tensorcore.ops.inplace import usual_write
from tensorcore.ops.kinds import (
    BOOL,
    COMPLEX,
    FLOATING,
    INTEGER,
    NUMBERS,
    REAL,
    alias,
    composite,
    elementwise,
    method,
    operation,
)
from tensorcore.ops.older import older
from tensorcore.ops.operands import NARROW, check_number, check_tensors, minus, once_rounded, one_pass, result_type
from tensorcore.ops.output import check_apart, free_place, store
from tensorcore.ops.pointwise.choice import where
from tensorcore.ops.pointwise.complex import conjugate
from tensorcore.ops.samples import elementwise as samples
from tensorcore.tensor import Tensor

__all__ = [
    "abs", "absolute", "add", "copysign", "div", "divide", "float_power", "floor_divide", "fmod",
    "hypot", "lerp", "mul", "multiply", "neg", "negative", "nextafter", "positive", "pow", "reciprocal", "remainder", "rsqrt",
    "rsub", "sgn", "sign", "sqrt", "square", "sub", "subtract", "true_divide",
]  # fmt: skip


def _replace(name: str, function: Any) -> None:
    """Let ``function``, which takes one more option, stand for the op of that name."""
    OPS[name].function = function
    method(function, name)


# Sums

_SUB_BOOL = (
    "sub: Subtraction, the `-` operator, with a bool tensor is not supported, got one. If you are trying to invert a mask, "
    "use the `~` or `logical_not()` operator instead"
)


def _no_bool(*values: Any) -> Any:
    for one in values:
        if (one.dtype is dtypes.bool_) if isinstance(one, Tensor) else dtypes.kind_of(one) == "bool":
            raise DtypeError(_SUB_BOOL)
    return result_type(*values)


_add = elementwise(
    "add", "input other", "Sum of two tensors, element by element.",
    grads=dict(input=same, other=same), operator="add", commutes=True, samples=samples.pair_alpha,
)  # fmt: skip
_sub = elementwise(
    "sub", "input other", "Difference of two tensors, element by element.", takes=NUMBERS - BOOL, rule=_no_bool,
    grads=dict(input=same, other=lambda g: -g), operator="sub", samples=samples.pair_alpha,
)  # fmt: skip


_SCALED = PLAIN_FLOATS | COMPLEX | INTEGER | NARROW  # of which the last two have the kernel where the device says so


@composite(
    inputs="input other", name="add_scaled", method=False, register=False, quick=_SCALED, takes=_SCALED,
    grads=dict(input=same, other=lambda g, alpha: g * alpha.conjugate()), backward_name="AddBackward0",
)  # fmt: skip
def _add_scaled(input: Tensor, other: Tensor, *, alpha: Any, out: Tensor | None = None) -> Tensor:
    return _add(input, mul(other, alpha))


def _scaled(op: str, input: Any, other: Any, alpha: Any) -> Any:
    """``alpha * other`` in the dtype that the sum is computed in."""
    if dtypes.kind_of(other) is None:
        check_tensors(op, other=other)
    compute = result_type(input, other)
    kind = dtypes.kind_of(alpha)
    if kind == "bool" and compute is not dtypes.bool_:
        raise DtypeError(f"{op}: Boolean alpha only supported for Boolean results, got alpha={alpha}; pass a number")
    if (kind == "complex" and not compute.is_complex) or (kind == "floating" and compute.kind in ("bool", "integer")):
        raise DtypeError(
            f"{op}: For integral input tensors, argument alpha must not be a floating point number (nor complex for real "
            f"ones), got alpha={alpha}; convert the tensor with .to(...)"
        )
    check_number(op, alpha, compute)
    if compute is dtypes.bool_ and alpha and isinstance(other, Tensor):
        return other
    factor = bool(alpha) if compute is dtypes.bool_ else alpha
    return mul(other.to(compute), factor) if isinstance(other, Tensor) else other * alpha  # type: ignore[attr-defined]


def add(input: Any, other: Any, *late: Any, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
    """``input + alpha * other``, element by element."""
    if late:
        return older("add", (input, other, *late), {"out": out}, "alpha")
    if alpha == 1 and alpha is not True:
        return _add(input, other) if out is None else _add(input, other, out=out)
    if one_pass(input, other, alpha) and (out is None or free_place(out, (input, other))):
        return _add_scaled(input, other, alpha=alpha, out=out)
    return _add(input, _scaled("add", input, other, alpha), out=out)


def sub(input: Any, other: Any, *late: Any, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
    """``input - alpha * other``, element by element. Raises for bools."""
    if late:
        return older("sub", (input, other, *late), {"out": out}, "alpha")
    if alpha == 1 and alpha is not True:
        return _sub(input, other) if out is None else _sub(input, other, out=out)
    plain = one_pass(input, other, alpha) and input.node is other.node is None  # else it is named on the tape
    if plain and (out is None or free_place(out, (input, other))):
        return _add_scaled(input, other, alpha=minus(alpha, input.dtype), out=out)
    _no_bool(input, other)
    return _sub(input, _scaled("sub", input, other, alpha), out=out)


_add_into = usual_write(_add_scaled.op, _SCALED, None, False, frozenset(["alpha"]))  # type: ignore[attr-defined]


def _scaling(op: Op, written: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """What the in-place form does with a factor."""
    name, add = f"{op.name}_", op.name == "add"

    def scaled(input: Tensor, other: Any, *late: Any, alpha: Any = 1) -> Tensor:
        if late:
            return older(name, (input, other, *late), {}, "alpha", frames=2)
        if alpha == 1 and alpha is not True:
            return written(input, other)
        if one_pass(input, other, alpha) and _add_into(
            input, (other,), alpha=alpha if add else minus(alpha, input.dtype)
        ):
            return input
        check_apart(name, input, (other,))
        return written(input, _scaled(name, input, other, alpha))

    scaled.__qualname__ = name
    return scaled


_replace("add", add)
_replace("sub", sub)
_add.op.scaled = _scaling(_add.op, Tensor.add_)  # type: ignore[attr-defined]
_sub.op.scaled = _scaling(_sub.op, Tensor.sub_)  # type: ignore[attr-defined]
subtract = alias("subtract", sub)


@operation(samples=samples.pair_alpha, method=False)
def rsub(input: Any, other: Any, alpha: Any = 1) -> Tensor:
    """``other - alpha * input``, element by element."""
    if type(input) is not Tensor:
        check_tensors("rsub", input=input)
    quick = alpha == 1 and (type(other) is float or type(other) is int)
    return Tensor.__rsub__(input, other) if quick else sub(other, input, alpha=alpha)  # type: ignore[attr-defined, no-any-return]


# Products and quotients

mul = elementwise(
    "mul", "input other", "Product of two tensors, element by element.",
    grads=dict(input=lambda g, other: g * conjugate(other) if g.dtype.is_complex else g * other,
               other=lambda g, input: g * conjugate(input) if g.dtype.is_complex else g * input),
    operator="mul", commutes=True, widens=True, samples=samples.pair,
)  # fmt: skip
multiply = alias("multiply", mul)

_div = elementwise(
    "div", "input other", "Quotient of two tensors, element by element.", gives="float",
    grads=dict(input=lambda g, other: g / conjugate(other),
               other=lambda g, input, other: -g * conjugate(input / other / other)),
    operator="truediv", widens=True, samples=samples.quotient,
)  # fmt: skip
Tensor.__rdiv__ = Tensor.__rtruediv__  # type: ignore[attr-defined]
_div_trunc = elementwise(
    "trunc_divide", "input other", "The quotient cut off at the point.", takes=REAL - BOOL, method=False, writes=False,
    grads=dict(input=lambda g: _zeros(g), other=lambda g: _zeros(g)), samples=samples.steps, backward_name="DivBackward1",
)  # fmt: skip
_div_floor = elementwise(
    "floor_divide", "input other", "The quotient rounded down.", takes=REAL - BOOL, operator="floordiv", widens=True,
    grads=dict(input=lambda g: _zeros(g), other=lambda g: _zeros(g)), samples=samples.steps, backward_name="DivBackward1",
)  # fmt: skip
_div_written = {None: Tensor.div_, "floor": Tensor.floor_divide_}  # type: ignore[attr-defined]


def _mode(op: str, rounding_mode: Any) -> Any:
    if rounding_mode not in (None, "trunc", "floor"):
        raise DtypeError(
            f"{op}: div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}', got an "
            f"unknown one; pass one of these"
        )
    return rounding_mode


def div(input: Any, other: Any, *, rounding_mode: str | None = None, out: Tensor | None = None) -> Tensor:
    """Quotient, element by element; with ``rounding_mode`` cut off ("trunc") or rounded down ("floor").

    Integers become the default floating dtype unless rounded; rounded, they raise on a zero divisor.
    """
    if rounding_mode is None:
        return _div(input, other) if out is None else _div(input, other, out=out)
    return (_div_trunc if _mode("div", rounding_mode) == "trunc" else _div_floor)(input, other, out=out)


def div_(input: Tensor, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """In-place form of :func:`div`."""
    if _mode("div_", rounding_mode) == "trunc":
        from tensorcore.ops.inplace import inplace

        return inplace("div_", lambda before: _div_trunc(before, other))(input)
    return _div_written[rounding_mode](input, other)


_replace("div", div)
method(div_)
divide, true_divide = alias("divide", div), alias("true_divide", div)
floor_divide = _div_floor

remainder = elementwise(
    "remainder", "input other", "What is left of the quotient rounded down; it has the sign of other.", takes=REAL - BOOL,
    grads=dict(input=same, other=lambda g, input, other: -g * _div_floor(input, other)), operator="mod", samples=samples.steps,
)  # fmt: skip
fmod = elementwise(
    "fmod", "input other", "What is left of the quotient cut off at the point; it has the sign of input.", takes=REAL - BOOL,
    grads=dict(input=same, other=lambda g, input, other: -g * _div_trunc(input, other)), samples=samples.steps,
    tensor_first=True,
)  # fmt: skip


# Powers and roots


def _pow_input(g: Tensor, input: Any, exponent: Any) -> Any:
    if not isinstance(exponent, Tensor):
        if exponent == 0:
            return _zeros(g)
        if exponent == 1:
            return g
        slope = input * exponent if exponent == 2 else pow(input, exponent - 1) * exponent
        return g * conjugate(slope)
    # 0 * x**-1 is NaN at x = 0; the slope of x**0 is 0 everywhere.
    return where(exponent == 0, 0.0, g * conjugate(exponent * pow(input, exponent - 1)))


def _pow_other(g: Tensor, input: Any, exponent: Tensor, out: Tensor) -> Tensor:
    if not isinstance(input, Tensor):
        if input == 0:
            log: Any = -math.inf
        elif isinstance(input, complex) or g.dtype.is_complex:
            log = cmath.log(input)
        else:
            log = math.log(input) if input > 0 else math.nan
    else:
        log = input.to(g.dtype).log()  # type: ignore[attr-defined]
    slope = g * conjugate(out * log)
    if isinstance(input, Tensor) or input == 0:
        # 0**y stays 0 (or 1) however y moves, and the formula would say 0 * -inf.
        real = exponent.real if exponent.dtype.is_complex else exponent  # type: ignore[attr-defined]
        at_zero = (input == 0) & (real >= 0) if isinstance(input, Tensor) else real >= 0
        return where(at_zero, 0.0, slope)
    return slope


def _pow_result(input: Any, exponent: Any) -> dtypes.dtype:
    compute = result_type(input, exponent)
    if compute.kind == "integer" and not isinstance(exponent, Tensor):
        if exponent < 0:
            raise DtypeError(
                f"pow: Integers to negative integer powers are not allowed, got exponent {exponent}; use a floating dtype"
            )
        check_number("pow", exponent, compute)
    return compute


pow = elementwise(
    "pow", "input exponent", "input to the power of exponent. Integers raise on a negative number as exponent.",
    takes=NUMBERS - BOOL, rule=_pow_result, by_value=True, grads=dict(input=_pow_input, exponent=_pow_other), operator="pow",
    samples=samples.powers,
)  # fmt: skip


@operation(samples=samples.powers)
def float_power(input: Any, exponent: Any, *, out: Tensor | None = None) -> Tensor:
    """``input`` to the power of ``exponent`` in double precision."""
    first = input if type(exponent) in (int, float) else exponent
    if out is None and type(first) is Tensor and (first is input or type(input) in (int, float)):
        made: Any = first.to(dtypes.complex128 if first.dtype.is_complex else dtypes.float64)  # type: ignore[attr-defined]
        return pow(made, exponent) if first is input else pow(input, made)
    wide = dtypes.complex128 if result_type(input, exponent).is_complex else dtypes.float64
    base, power = (one.to(wide) if isinstance(one, Tensor) else one for one in (input, exponent))  # type: ignore[attr-defined]
    return pow(base, power) if out is None else store("float_power", pow(base, power), out)


@method
def float_power_(input: Tensor, exponent: Any) -> Tensor:
    """In-place form of :func:`float_power`, for tensors in double precision."""
    wide = dtypes.complex128 if result_type(input, exponent).is_complex else dtypes.float64
    if input.dtype is not wide:
        raise DtypeError(
            f"float_power_: the base given to float_power_ has dtype {input.dtype.name} but the operation's result requires "
            f"dtype {wide.name}, got the wrong one; use float_power"
        )
    power = exponent.to(wide) if isinstance(exponent, Tensor) else exponent
    return input.pow_(power)  # type: ignore[attr-defined, no-any-return]


square = elementwise("square", "input", "Each element times itself.", takes=NUMBERS - BOOL,
                     rule=lambda input: result_type(input, 2), backward_name="PowBackward0",
                     grads=dict(input=lambda g, input: g * (conjugate(input) * 2)), samples=samples.unary)  # fmt: skip
sqrt = elementwise("sqrt", "input", "The square root of each element.", gives="float",
                   grads=dict(input=lambda g, out: g / (conjugate(out) * 2)), samples=samples.positive)  # fmt: skip
rsqrt = elementwise("rsqrt", "input", "One over the square root of each element.", gives="float",
                    grads=dict(input=lambda g, out: g * (conjugate(out * out * out) * -0.5)),
                    samples=samples.positive)  # fmt: skip
reciprocal = elementwise("reciprocal", "input", "One over each element.", gives="float",
                         grads=dict(input=lambda g, out: -g * conjugate(out * out)), samples=samples.nonzero)  # fmt: skip
hypot = elementwise("hypot", "input other", "The length of the hypotenuse over two sides.", takes=FLOATING, numbers=False,
                    grads=dict(input=lambda g, input, out: g * (input / out), other=lambda g, other, out: g * (other / out)),
                    samples=samples.pair)  # fmt: skip


# Signs


def _no_negative_bool(input: Tensor) -> Any:
    if input.dtype is dtypes.bool_:
        raise DtypeError(
            "neg: Negation, the `-` operator, on a bool tensor is not supported, got one. If you are trying to invert a mask, "
            "use the `~` or `logical_not()` operator instead"
        )
    return input.dtype


neg = elementwise("neg", "input", "The negative of each element.", takes=NUMBERS - BOOL, rule=_no_negative_bool,
                  grads=dict(input=lambda g: -g), operator="neg", samples=samples.unary)  # fmt: skip
negative = alias("negative", neg)


def _sgn_grad(g: Tensor, input: Tensor, out: Tensor) -> Tensor:
    """Only the part of ``g`` across the radius moves the direction."""
    size = abs(input)
    safe = where(size == 0, 1.0, size)
    radial = (g * conjugate(out)).real  # type: ignore[attr-defined]
    return where(size == 0, 0.0, (g - out * radial) / safe)


sign = elementwise("sign", "input", "-1, 0 or 1 by the sign of each element; 0 for NaN.", takes=REAL,
                   grads=dict(input=lambda g: _zeros(g)), samples=samples.nonzero)  # fmt: skip
_sgn = elementwise("sgn", "input", "Each complex number divided by its absolute value.", takes=COMPLEX, method=False,
                   writes=False, grads=dict(input=_sgn_grad), samples=samples.nonzero)  # fmt: skip


@operation(samples=samples.nonzero, writes=True, overwritten=sign.op.overwritten)  # type: ignore[attr-defined]
def sgn(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The sign of each element: of a complex one the number of the same angle and length 1."""
    if type(input) is not Tensor:
        check_tensors("sgn", input=input)
    return (_sgn if input.dtype.is_complex else sign)(input, out=out)


OPS["sgn"] = _sgn.op  # type: ignore[attr-defined]
OPS["sgn"].function = sgn

abs = elementwise("abs", "input", "The absolute value of each element.", takes=NUMBERS - BOOL, gives="real",
                  grads=dict(input=lambda g, input: g * sgn(input)), operator="abs", samples=samples.nonzero)  # fmt: skip
_abs_written = Tensor.abs_  # type: ignore[attr-defined]


@method
def abs_(input: Tensor) -> Tensor:
    """In-place form of :func:`abs`. Raises for complex tensors."""
    if input.dtype.is_complex:
        raise DtypeError("abs_: In-place abs is not supported for complex tensors, got one; use abs()")
    return _abs_written(input)


absolute = alias("absolute", abs)


@operation(samples=samples.unary)
def positive(input: Tensor) -> Tensor:
    """The tensor itself. Raises for bools."""
    if type(input) is not Tensor:
        check_tensors("positive", input=input)
    if input.dtype is dtypes.bool_:
        raise DtypeError("positive: The `+` operator, on a bool tensor is not supported, got one; use .to(torch.uint8)")
    return input


method(positive, "__pos__")
copysign = elementwise(
    "copysign", "input other", "The size of input with the sign of other.", gives="float", takes=FLOATING,
    grads=dict(input=lambda g, input, out: where(input == 0, 0.0, g * (out / input)), other=lambda g: _zeros(g)),
    samples=samples.steps, tensor_first=True,
)  # fmt: skip
nextafter = elementwise("nextafter", "input other", "The next number from input towards other.",
                        takes=FLOATING, numbers=False, samples=samples.pair,
                        grads=dict(input=lambda g, input, other: where(input == other, 0.0, g),
                                   other=lambda g: _zeros(g)))  # fmt: skip


# Products in sums


def _same_dtype(op: str, input: Tensor, **others: Any) -> None:
    for name, one in others.items():
        if isinstance(one, Tensor) and one.dtype is not input.dtype:
            raise DtypeError(
                f"{op}: expected dtype {input.dtype.name} for `{name}` but got dtype {one.dtype.name}; convert it with .to(...)"
            )


def _check_lerp(input: Tensor, end: Tensor, weight: Any) -> tuple[Any, ...]:
    check_tensors("lerp", end=end)
    if not isinstance(weight, Tensor) and dtypes.kind_of(weight) is None:
        raise ArgumentTypeError(f"lerp: expected weight to be a number or a Tensor, got {weight!r}; pass a float")
    zero_dim = isinstance(weight, Tensor) and not weight.native.shape
    _same_dtype("lerp", input, end=end, weight=None if zero_dim else weight)
    if zero_dim and weight.dtype is not input.dtype:
        weight = weight.to(input.dtype)
    if not input.dtype.is_complex and isinstance(weight, complex):
        raise DtypeError(f"lerp: value cannot be converted to {input.dtype.name}, got {weight!r}; pass a float")
    if input.dtype.kind in ("bool", "integer"):
        raise UnsupportedDtype(f'lerp: "lerp" not implemented for {input.dtype.name}, got one; use .float()')
    return input, end, weight


@composite(
    inputs="input end weight", check=_check_lerp, takes=FLOATING | COMPLEX, numbers=True, writes=True,
    quick=FLOATING | COMPLEX, samples=samples.lerp,
    grads=dict(input=lambda g, weight: g * conjugate(1 - weight), end=lambda g, weight: g * conjugate(weight),
               weight=lambda g, input, end: g * conjugate(end - input)),
)  # fmt: skip
def lerp(input: Tensor, end: Tensor, weight: Any, *, out: Tensor | None = None) -> Tensor:
    """``input + weight * (end - input)``, from whichever end is nearer, so that both ends come out exactly."""
    if input.dtype in NARROW:
        return once_rounded(lerp, input.dtype, input, end, weight)
    difference = end - input
    if isinstance(weight, Tensor):
        return where(abs(weight) < 0.5, input + weight * difference, end - difference * (1 - weight))
    near = math.sqrt(weight.real**2 + weight.imag**2) < 0.5
    if near:
        return input + weight * difference
    one = input.dtype.numpy.type
    # Complex numbers are weighed in their own precision, as PyTorch does.
    return end - difference * (complex(one(1) - one(weight)) if input.dtype.is_complex else 1 - weight)


def _zeros(g: Tensor) -> Tensor:
    return g.new_zeros(g.shape)  # type: ignore[attr-defined]
