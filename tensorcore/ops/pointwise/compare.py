"""Comparisons, logic, bits, and tests of elements; their results have no gradient."""

from __future__ import annotations

import math
from typing import Any

from tensorcore import dtypes
from tensorcore.errors import ArgumentTypeError, DtypeError
from tensorcore.ops.creation.create import zeros_like
from tensorcore.ops.kinds import BOOL, FLOATING, INTEGER, REAL, alias, elementwise, method, operation
from tensorcore.ops.operands import check_tensors
from tensorcore.ops.output import store
from tensorcore.ops.samples import elementwise as samples
from tensorcore.ops.shortage import again
from tensorcore.shortcuts import elementwise_way
from tensorcore.tensor import Tensor

__all__ = [
    "allclose", "bitwise_and", "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "eq",
    "equal", "ge", "greater", "greater_equal", "gt", "isclose", "isfinite", "isinf", "isnan", "isneginf", "isposinf", "le",
    "less", "less_equal", "logical_and", "logical_not", "logical_or", "logical_xor", "lt", "ne", "not_equal", "signbit",
]  # fmt: skip


def _comparison(name: str, text: str, **kind: Any) -> Any:
    return elementwise(name, "input other", f"Whether input {text} other, element by element.", gives="bool", operator=name,
                       tensor_first=True, samples=samples.pair, **kind)  # fmt: skip


eq = _comparison("eq", "==")
ne = _comparison("ne", "!=")
lt = _comparison("lt", "<", takes=REAL)
le = _comparison("le", "<=", takes=REAL)
gt = _comparison("gt", ">", takes=REAL)
ge = _comparison("ge", ">=", takes=REAL)
not_equal, less, less_equal = alias("not_equal", ne), alias("less", lt), alias("less_equal", le)
greater, greater_equal = alias("greater", gt), alias("greater_equal", ge)

# Logic: a number counts as true where it is not 0

logical_not = elementwise("logical_not", "input", "Whether each element is 0.", gives="bool", samples=samples.unary)
logical_and = elementwise("logical_and", "input other", "Whether both elements are not 0.", gives="bool",
                          numbers=False, samples=samples.pair_of_tensors)  # fmt: skip
logical_or = elementwise("logical_or", "input other", "Whether one of both elements is not 0.", gives="bool",
                         numbers=False, samples=samples.pair_of_tensors)  # fmt: skip
logical_xor = elementwise("logical_xor", "input other", "Whether exactly one of both elements is not 0.", gives="bool",
                          numbers=False, samples=samples.pair_of_tensors)  # fmt: skip

# Bits

bitwise_not = elementwise("bitwise_not", "input", "Each bit the other way; bools negated.", takes=BOOL | INTEGER,
                          samples=samples.integers)  # fmt: skip


def _bitwise(name: str, doc: str, operator: str, commutes: bool = True) -> Any:
    return elementwise(name, "input other", doc, takes=BOOL | INTEGER if commutes else INTEGER, operator=operator,
                       commutes=commutes, samples=samples.integer_pair if commutes else samples.shifts)  # fmt: skip


bitwise_and = _bitwise("bitwise_and", "The bits that are set in both.", "and")
bitwise_or = _bitwise("bitwise_or", "The bits that are set in one or both.", "or")
bitwise_xor = _bitwise("bitwise_xor", "The bits that are set in one of both.", "xor")
bitwise_left_shift = _bitwise("bitwise_left_shift", "The bits moved up by other places.", "lshift", False)
bitwise_right_shift = _bitwise(
    "bitwise_right_shift", "The bits moved down by other places, the sign kept.", "rshift", False
)


def _invert(self: Tensor) -> Tensor:
    """``~input``."""
    if self.dtype not in BOOL | INTEGER:
        raise ArgumentTypeError(
            f"~: ~ (operator.invert) is only implemented on integer and Boolean-type tensors, got {self.dtype.name}; "
            f"use logical_not()"
        )
    return bitwise_not(self)


Tensor.__invert__ = _invert  # type: ignore[attr-defined]

# Tests of one element

isnan = elementwise("isnan", "input", "Whether each element is NaN.", gives="bool", writes=False, samples=samples.unary)
isinf = elementwise(
    "isinf", "input", "Whether each element is infinite.", gives="bool", writes=False, samples=samples.unary
)
isfinite = elementwise("isfinite", "input", "Whether each element is neither infinite nor NaN.", gives="bool", writes=False,
                       samples=samples.unary)  # fmt: skip
_signbit = elementwise("signbit", "input", "Whether the sign of each element is minus, that of -0 too.", gives="bool",
                       takes=REAL, writes=False, method=False, samples=samples.unary)  # fmt: skip


@operation(samples=samples.unary, way=elementwise_way(_signbit.op, again, FLOATING, dtypes.bool_))  # type: ignore[attr-defined]
def signbit(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether the sign of each element is minus, that of -0 too."""
    if type(input) is not Tensor:
        check_tensors("signbit", input=input)
    if input.dtype.is_floating_point:
        return _signbit(input, out=out)
    if input.dtype is dtypes.bool_:
        made = zeros_like(input)
    else:
        made = input < 0  # PyTorch has no complex ones here either
    return made if out is None else store("signbit", made, out)


def _infinite(name: str, input: Tensor, value: float, out: Tensor | None) -> Tensor:
    if type(input) is not Tensor:
        check_tensors(name, input=input)
    if input.dtype.is_complex:
        raise DtypeError(f"{name}: {name} does not support complex inputs, got {input.dtype.name}; test the real part")
    if (
        input.dtype.is_floating_point
        and type(out) is Tensor
        and out.dtype is dtypes.bool_
        and out.native.shape == input.native.shape
    ):
        return eq(input, value, out=out)
    made = eq(input, value) if input.dtype.is_floating_point else zeros_like(input, dtype=dtypes.bool_)
    return made if out is None else store(name, made, out)


@operation(samples=samples.unary)
def isposinf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether each element is plus infinity."""
    return _infinite("isposinf", input, math.inf, out)


@operation(samples=samples.unary)
def isneginf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether each element is minus infinity."""
    return _infinite("isneginf", input, -math.inf, out)


# Nearness and equality


@operation(samples=samples.pair_of_tensors)
def isclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """Whether ``|input - other| <= atol + rtol * |other|``; equal infinities are close, NaN only if asked for."""
    check_tensors("isclose", input=input, other=other)
    if input.dtype is not other.dtype:
        raise DtypeError(
            f"isclose: {input.dtype.name} did not match {other.dtype.name}, got two dtypes; convert one with .to(...)"
        )
    if rtol < 0 or atol < 0:
        raise DtypeError(
            f"isclose: rtol and atol must be greater than or equal to zero, got rtol={rtol}, atol={atol}; pass both >= 0"
        )
    input, other = input.detach(), other.detach()
    close = input == other
    if equal_nan and input.dtype.kind in ("floating", "complex"):
        close = close | ((input != input) & (other != other))
    if not rtol and not atol:
        return close
    if input.dtype is dtypes.bool_:
        input, other = input.to(dtypes.uint8), other.to(dtypes.uint8)  # type: ignore[attr-defined]
    gap = (input - other).abs()  # type: ignore[attr-defined]
    return close | (gap.isfinite() & (gap <= atol + (other * rtol).abs()))


@operation(samples=samples.pair_of_tensors)
def allclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether all elements are close, see :func:`isclose`."""
    return not bool(logical_not(isclose(input, other, rtol, atol, equal_nan)).sum())  # type: ignore[attr-defined]


@operation(samples=samples.pair_of_tensors)
def equal(input: Tensor, other: Tensor) -> bool:
    """Whether both tensors have the same shape and the same elements."""
    if type(input) is not Tensor:
        check_tensors("equal", input=input)
    if not isinstance(other, Tensor):
        raise ArgumentTypeError(f"equal: expected other to be a Tensor, got {other!r}; wrap it in torch.tensor(...)")
    if tuple(input.native.shape) != tuple(other.native.shape):
        return False
    if input.dtype is other.dtype and input.device is other.device and type(input) is Tensor is type(other):
        if input.native is other.native and input.dtype.kind in ("integer", "bool"):
            return True  # what may be NaN is not equal to itself
        kernel = input.device.kernels["equal"]
        if kernel:
            return kernel(input.native, other.native)  # type: ignore[no-any-return]
    return not bool(ne(input, other).sum())  # type: ignore[attr-defined]


def _contains(self: Tensor, element: Any) -> bool:
    """Whether an element, or with a tensor any element of the same place, is equal."""
    if not isinstance(element, Tensor) and dtypes.kind_of(element) is None:
        raise DtypeError(
            f"in: Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}; use == and any()"
        )
    return bool(eq(self, element).any())


method(_contains, "__contains__")
