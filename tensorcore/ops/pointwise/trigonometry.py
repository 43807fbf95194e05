"""Trigonometric and hyperbolic functions, and their inverses."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tensorcore.errors import DtypeError
from tensorcore.ops.define import OPS, by_slope
from tensorcore.ops.kinds import COMPLEX, FLOATING, REAL, alias, composite, computes_in, elementwise, operation
from tensorcore.ops.operands import NARROW, check_tensors, once_rounded
from tensorcore.ops.output import store
from tensorcore.ops.pointwise.arithmetic import mul
from tensorcore.ops.pointwise.choice import where
from tensorcore.ops.pointwise.complex import conjugate
from tensorcore.ops.samples import elementwise as samples
from tensorcore.tensor import Tensor

__all__ = [
    "acos", "acosh", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "asin", "asinh", "atan", "atan2",
    "atanh", "cos", "cosh", "deg2rad", "rad2deg", "sin", "sinc", "sinh", "tan", "tanh",
]  # fmt: skip

sin = elementwise("sin", "input", "The sine of each element, in radians.", gives="float",
                  grads=dict(input=lambda g, input: g * conjugate(cos(input))), samples=samples.unary)  # fmt: skip
cos = elementwise("cos", "input", "The cosine of each element, in radians.", gives="float",
                  grads=dict(input=lambda g, input: g * -conjugate(sin(input))), samples=samples.unary)  # fmt: skip
tan = elementwise("tan", "input", "The tangent of each element, in radians.", gives="float",
                  grads=dict(input=lambda g, out: g * conjugate(out * out + 1)), samples=samples.within_one)  # fmt: skip
asin = elementwise("asin", "input", "The angle in [-pi/2, pi/2] of which each element is the sine.", gives="float",
                   grads=dict(input=lambda g, input: g * conjugate((1 - input * input).rsqrt())),
                   samples=samples.within_one)  # fmt: skip
acos = elementwise("acos", "input", "The angle in [0, pi] of which each element is the cosine.", gives="float",
                   grads=dict(input=lambda g, input: g * -conjugate((1 - input * input).rsqrt())),
                   samples=samples.within_one)  # fmt: skip
atan = elementwise("atan", "input", "The angle in [-pi/2, pi/2] of which each element is the tangent.", gives="float",
                   grads=dict(input=lambda g, input: g / conjugate(input * input + 1)), samples=samples.unary)  # fmt: skip
sinh = elementwise("sinh", "input", "The hyperbolic sine of each element.", gives="float",
                   grads=dict(input=lambda g, input: g * conjugate(cosh(input))), samples=samples.unary)  # fmt: skip
cosh = elementwise("cosh", "input", "The hyperbolic cosine of each element.", gives="float",
                   grads=dict(input=lambda g, input: g * conjugate(sinh(input))), samples=samples.unary)  # fmt: skip


def _tanh_slope(g: Any, out: Any) -> Any:
    """The gradient of ``tanh``, rounded once where floats are narrow, as by its kernel."""
    if g.dtype in NARROW:
        return once_rounded(_tanh_slope, g.dtype, g, out)
    return g * conjugate(1 - out * out)


tanh = elementwise("tanh", "input", "The hyperbolic tangent of each element.", gives="float",
                   grads=dict(input=_tanh_slope), samples=samples.unary)  # fmt: skip
by_slope(OPS["tanh"])
asinh = elementwise("asinh", "input", "The inverse of sinh.", gives="float",
                    grads=dict(input=lambda g, input: g * conjugate((input * input + 1).rsqrt())),
                    samples=samples.unary)  # fmt: skip
acosh = elementwise("acosh", "input", "The inverse of cosh, for elements of at least 1.", gives="float",
                    grads=dict(input=lambda g, input: g * conjugate((input - 1).rsqrt() * (input + 1).rsqrt())),
                    samples=samples.over_one)  # fmt: skip
atanh = elementwise("atanh", "input", "The inverse of tanh, for elements within [-1, 1].", gives="float",
                    grads=dict(input=lambda g, input: g / conjugate(1 - input * input)), samples=samples.within_one)  # fmt: skip
arcsin, arccos, arctan = alias("arcsin", asin), alias("arccos", acos), alias("arctan", atan)
arcsinh, arccosh, arctanh = alias("arcsinh", asinh), alias("arccosh", acosh), alias("arctanh", atanh)


def _turn(g: Tensor, input: Tensor, other: Tensor) -> Tensor:
    """``g`` over the squared length, and 0 at the origin, where the angle has no slope."""
    square = input * input + other * other
    return where(square == 0, 0.0, g / square)


atan2 = elementwise("atan2", "input other", "The angle in [-pi, pi] of the point with y = input and x = other.", gives="float",
                    takes=REAL, numbers=False, samples=samples.pair_of_tensors,
                    grads=dict(input=lambda g, input, other: other * _turn(g, input, other),
                               other=lambda g, input, other: -input * _turn(g, input, other)))  # fmt: skip
arctan2 = alias("arctan2", atan2)


def _turned(op: str, input: Tensor, factor: float) -> Tensor:
    if type(input) is not Tensor:
        check_tensors(op, input=input)
    if input.dtype.is_complex:
        raise DtypeError(f"{op}: {op} is not supported for complex tensors, got {input.dtype.name}; take the real part")
    return input * factor  # type: ignore[no-any-return, operator]


def _turning(factor: float) -> Callable[..., bool]:
    """What turns angles of floats in place."""
    multiplied = mul.op.overwritten  # type: ignore[attr-defined]
    return lambda input, others, **options: not others and not options and multiplied(input, (factor,))


@operation(samples=samples.unary, writes=True, overwritten=_turning(math.pi / 180))
def deg2rad(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Degrees as radians."""
    made = _turned("deg2rad", input, math.pi / 180)
    return made if out is None else store("deg2rad", made, out)


@operation(samples=samples.unary, writes=True, overwritten=_turning(180 / math.pi))
def rad2deg(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Radians as degrees."""
    made = _turned("rad2deg", input, 180 / math.pi)
    return made if out is None else store("rad2deg", made, out)


def _sinc_grad(g: Tensor, input: Tensor) -> Tensor:
    angle = input * math.pi
    safe = where(input == 0, 1.0, angle)
    slope = (cos(angle) * angle - sin(angle)) / (safe * safe) * math.pi
    return where(input == 0, 0.0, g * conjugate(slope))


def _check_sinc(input: Tensor) -> tuple[Tensor]:
    return (input.to(computes_in("sinc", input, takes=FLOATING | COMPLEX)),)  # type: ignore[attr-defined]


@composite(inputs="input", check=_check_sinc, quick=FLOATING | COMPLEX, takes=FLOATING | COMPLEX, grads=dict(input=_sinc_grad), writes=True,
           samples=samples.unary)  # fmt: skip
def sinc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``sin(pi x) / (pi x)`` of each element, 1 at 0."""
    if input.dtype in NARROW:
        return once_rounded(sinc, input.dtype, input)
    angle = input * math.pi
    return where(angle == 0, 1.0, sin(angle) / where(angle == 0, 1.0, angle))
