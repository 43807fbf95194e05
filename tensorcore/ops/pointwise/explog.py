"""Exponentials, logarithms, and the special functions made of them."""

from __future__ import annotations

import math
from typing import Any

from tensorcore.dtypes import kind_of
from tensorcore.errors import ArgumentError, ArgumentTypeError, DtypeError
from tensorcore.ops import rules
from tensorcore.ops.calls import apply
from tensorcore.ops.define import OPS, Op, by_slope
from tensorcore.ops.inplace import usual_write
from tensorcore.ops.kinds import (
    COMPLEX,
    FLOATING,
    REAL,
    composite,
    computes_in,
    elementwise,
    method,
    operation,
    quick_pair,
)
from tensorcore.ops.operands import NARROW, alike, check_tensors, once_rounded
from tensorcore.ops.output import store
from tensorcore.ops.pointwise.choice import where
from tensorcore.ops.pointwise.complex import conjugate
from tensorcore.ops.samples import elementwise as samples
from tensorcore.shortcuts import place_way
from tensorcore.tensor import Tensor

__all__ = [
    "digamma",
    "erf",
    "erfc",
    "erfinv",
    "exp",
    "exp2",
    "expm1",
    "lgamma",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logaddexp2",
    "logit",
    "mvlgamma",
    "polygamma",
    "sigmoid",
    "xlog1py",
    "xlogy",
]  # fmt: skip

_LN2, _LN10 = math.log(2), math.log(10)

exp = elementwise("exp", "input", "e to the power of each element.", gives="float",
                  grads=dict(input=lambda g, out: g * conjugate(out)), samples=samples.unary)  # fmt: skip
exp2 = elementwise("exp2", "input", "2 to the power of each element.", gives="float",
                   grads=dict(input=lambda g, out: g * conjugate(out * _LN2)), samples=samples.unary)  # fmt: skip
expm1 = elementwise("expm1", "input", "e to the power of each element, minus 1, exact near 0.", gives="float",
                    grads=dict(input=lambda g, out: g * conjugate(out + 1)), samples=samples.unary)  # fmt: skip
log = elementwise("log", "input", "The natural logarithm of each element.", gives="float",
                  grads=dict(input=lambda g, input: g / conjugate(input)), samples=samples.positive)  # fmt: skip
log2 = elementwise("log2", "input", "The logarithm to base 2 of each element.", gives="float",
                   grads=dict(input=lambda g, input: g / (conjugate(input) * _LN2)), samples=samples.positive)  # fmt: skip
log10 = elementwise("log10", "input", "The logarithm to base 10 of each element.", gives="float",
                    grads=dict(input=lambda g, input: g / (conjugate(input) * _LN10)), samples=samples.positive)  # fmt: skip
log1p = elementwise("log1p", "input", "The natural logarithm of 1 + each element, exact near 0.", gives="float",
                    grads=dict(input=lambda g, input: g / conjugate(input + 1)), samples=samples.positive,
                    backward_name="Log1PBackward0")  # fmt: skip

logaddexp = elementwise(
    "logaddexp", "input other", "log(exp(input) + exp(other)) without overflow.", takes=FLOATING | COMPLEX, writes=False,
    numbers=False,
    grads=dict(input=lambda g, input, other: g * _softmax_of_two(input, other),
               other=lambda g, input, other: g * _softmax_of_two(other, input)),
    samples=samples.pair_of_tensors,
)  # fmt: skip
logaddexp2 = elementwise(
    "logaddexp2", "input other", "log2(2**input + 2**other) without overflow.", takes=FLOATING, writes=False, numbers=False,
    grads=dict(input=lambda g, input, other: g * _softmax_of_two(input * _LN2, other * _LN2),
               other=lambda g, input, other: g * _softmax_of_two(other * _LN2, input * _LN2)),
    samples=samples.pair_of_tensors,
)  # fmt: skip


def _softmax_of_two(mine: Tensor, other: Tensor) -> Tensor:
    """exp(mine) / (exp(mine) + exp(other)); two equal infinities have half each."""
    return conjugate(where(mine == other, 0.5, sigmoid(mine - other)))  # type: ignore[no-any-return]


def _two_floats(op: str, input: Any, other: Any) -> tuple[Any, Any]:
    """Both operands in the floating dtype of their product; a number as a tensor of no dims."""
    rules.broadcast(op, *[tuple(one.native.shape) for one in (input, other) if isinstance(one, Tensor)])
    compute = computes_in(op, input, other)
    like = input if isinstance(input, Tensor) else other
    for one in (input, other):
        if not isinstance(like, Tensor) or (not isinstance(one, Tensor) and kind_of(one) is None):
            raise ArgumentTypeError(
                f"{op}: expected a Tensor and a Tensor or a number, got {one!r}; wrap it in torch.tensor(...)"
            )
    return tuple(  # type: ignore[return-value]
        [
            one.to(compute) if isinstance(one, Tensor) else like.new_full((), one, dtype=compute)
            for one in (input, other)
        ]
    )


def _masked(input: Tensor, edge: Tensor, slope: Tensor) -> Tensor:
    return where((input == 0) & edge, 0.0, slope)


@composite(
    inputs="input other", name="xlogy", method=False, quick=FLOATING,
    grads=dict(input=lambda g, input, other: _masked(input, other <= 0, g * other.log()),
               other=lambda g, input, other: g * input / other),
)  # fmt: skip
def _xlogy_op(input: Tensor, other: Tensor) -> Tensor:
    return where(other != other, math.nan, where(input == 0, 0.0, input * log(other)))


@composite(
    inputs="input other", name="xlog1py", method=False, quick=FLOATING,
    grads=dict(input=lambda g, input, other: _masked(input, other <= -1, g * other.log1p()),
               other=lambda g, input, other: g * input / (other + 1)),
)  # fmt: skip
def _xlog1py_op(input: Tensor, other: Tensor) -> Tensor:
    return where(other != other, math.nan, where(input == 0, 0.0, input * log1p(other)))


_into_xlogy, _into_xlog1py = (place_way(OPS[one], FLOATING, None) for one in ("xlogy", "xlog1py"))


@operation(samples=samples.xlogy, writes=True, overwritten=usual_write(OPS["xlogy"], FLOATING, None, numbers=False))
def xlogy(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """``input * log(other)``: 0 where ``input`` is 0, NaN where ``other`` is NaN."""
    if out is not None and (done := _into_xlogy(out, input, other)) is not None:
        return done  # type: ignore[no-any-return]
    if (made := quick_pair("xlogy", input, other, out=out)) is not None:
        return made
    made = _xlogy_op(*(input, other) if alike(input, other) else _two_floats("xlogy", input, other))
    return made if out is None else store("xlogy", made, out, input, other)


@operation(samples=samples.xlogy, method=False)
def xlog1py(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """``input * log(1 + other)``: 0 where ``input`` is 0, NaN where ``other`` is NaN."""
    if out is not None and (done := _into_xlog1py(out, input, other)) is not None:
        return done  # type: ignore[no-any-return]
    if (made := quick_pair("xlog1py", input, other, out=out)) is not None:
        return made
    made = _xlog1py_op(*(input, other) if alike(input, other) else _two_floats("xlog1py", input, other))
    return made if out is None else store("xlog1py", made, out, input, other)


for _name, _function in (("xlogy", xlogy), ("xlog1py", xlog1py)):
    OPS[_name].function, OPS[_name].samples, OPS[_name].doc = _function, samples.xlogy, _function.__doc__ or ""


def _sigmoid_slope(g: Any, out: Any) -> Any:
    """The gradient of ``sigmoid``, rounded once where floats are narrow, as by its kernel."""
    if g.dtype in NARROW:
        return once_rounded(_sigmoid_slope, g.dtype, g, out)
    return g * conjugate((1 - out) * out)


sigmoid = elementwise("sigmoid", "input", "1 / (1 + exp(-input)) of each element.", gives="float",
                      grads=dict(input=_sigmoid_slope), samples=samples.unary)  # fmt: skip
by_slope(OPS["sigmoid"])


def _check_logit(input: Tensor, eps: Any) -> tuple[Any, Any]:
    return input.to(computes_in("logit", input)), eps  # type: ignore[attr-defined]


def _logit_grad(g: Tensor, input: Tensor, eps: float | None) -> Tensor:
    slope = g / (input * (1 - input))
    if eps is None:
        return where((input >= 0) & (input <= 1), slope, math.nan)
    return where((input >= eps) & (input <= 1 - eps), slope, 0.0)


@composite(inputs="input", check=_check_logit, quick=FLOATING, takes=FLOATING, grads=dict(input=_logit_grad),
           writes=True, samples=samples.logit)  # fmt: skip
def logit(input: Tensor, eps: float | None = None, *, out: Tensor | None = None) -> Tensor:
    """``log(x / (1 - x))`` of each element; with ``eps`` of each kept within [eps, 1 - eps]."""
    x = input if eps is None else input.clamp(eps, 1 - eps)  # type: ignore[attr-defined]
    return log(x / (1 - x))


# The error function

erf = elementwise("erf", "input", "The error function of each element.", gives="float", takes=REAL,
                  grads=dict(input=lambda g, input: g * (exp(-input * input) * (2 / math.sqrt(math.pi)))),
                  samples=samples.unary)  # fmt: skip
erfc = elementwise("erfc", "input", "1 - erf of each element, with all digits where erf is near 1.", gives="float", takes=REAL,
                   grads=dict(input=lambda g, input: g * (exp(-input * input) * (-2 / math.sqrt(math.pi)))),
                   samples=samples.unary)  # fmt: skip
erfinv = elementwise("erfinv", "input", "The inverse of the error function.", gives="float", takes=REAL,
                     grads=dict(input=lambda g, out: g * (exp(out * out) * (math.sqrt(math.pi) / 2))),
                     samples=samples.within_one)  # fmt: skip

# The gamma function

lgamma = elementwise("lgamma", "input", "The logarithm of the absolute value of the gamma function.", gives="float",
                     takes=REAL, grads=dict(input=lambda g, input: g * digamma(input)), samples=samples.positive)  # fmt: skip
digamma = elementwise("digamma", "input", "The derivative of lgamma.", gives="float", takes=REAL,
                      grads=dict(input=lambda g, input: g * polygamma(1, input)), samples=samples.positive)  # fmt: skip
_polygamma = Op("polygamma", "input", "The n-th derivative of digamma.", register=False,
                grads=dict(input=lambda g, input, n: g * polygamma(n + 1, input)))  # fmt: skip


@operation(samples=samples.polygamma, method=False)
def polygamma(n: int, input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The ``n``-th derivative of digamma, ``n`` at least 0."""
    if type(input) is not Tensor:
        check_tensors("polygamma", input=input)
    n = rules.whole("polygamma", "n", n)
    if n < 0:
        raise DtypeError(f"polygamma: polygamma(n, x) does not support negative n, got {n}; pass an n of at least 0")
    if input.dtype not in FLOATING:
        compute = computes_in("polygamma", input)
        input = input if input.dtype is compute else input.to(compute)  # type: ignore[attr-defined]
    made = apply(_polygamma, (input,), {"n": n})
    return made if out is None else store("polygamma", made, out)


def _polygamma_method(self: Tensor, n: int) -> Tensor:
    """The ``n``-th derivative of digamma."""
    return polygamma(n, self)


method(_polygamma_method, "polygamma", writes=True)


@operation(samples=samples.mvlgamma, writes=True)
def mvlgamma(input: Tensor, p: int, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of the ``p``-variate gamma function, for elements over (p - 1) / 2."""
    if type(input) is not Tensor:
        check_tensors("mvlgamma", input=input)
    p = rules.whole("mvlgamma", "p", p)
    if p < 1:
        raise ArgumentError(f"mvlgamma: expected p to be at least 1, got {p}; pass a positive int")
    made: Any = p * (p - 1) / 4 * math.log(math.pi)
    for j in range(p):
        made = made + lgamma(input - j / 2)
    return made if out is None else store("mvlgamma", made, out)
