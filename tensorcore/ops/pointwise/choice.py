"""Choices among values: where, clamp, maxima and minima of two tensors, and replacements of NaN."""

from __future__ import annotations

from typing import Any

from tensorcore import dtypes
from tensorcore.dtypes import kind_of
from tensorcore.errors import ArgumentTypeError, DtypeError, UnsupportedDtype
from tensorcore.ops.calls import PLAIN_FLOATS, apply_into
from tensorcore.ops.define import Op
from tensorcore.ops.kinds import (
    BOOL,
    COMPLEX,
    FLOATING,
    INTEGER,
    REAL,
    alias,
    composite,
    elementwise,
    method,
    operation,
)
from tensorcore.ops.mixed import explain
from tensorcore.ops.operands import (
    NARROW,
    PLAIN_INTEGERS,
    as_argument,
    check_number,
    check_tensors,
    one_device,
    plain,
    result_type,
)
from tensorcore.ops.output import store
from tensorcore.ops.pointwise.complex import complex
from tensorcore.ops.record import record
from tensorcore.ops.samples import elementwise as samples
from tensorcore.shortcuts import place_way
from tensorcore.tape.mode import mode
from tensorcore.tensor import Tensor, new_tensor

__all__ = [
    "clamp", "clamp_max", "clamp_min", "clip", "fmax", "fmin", "heaviside", "maximum", "minimum", "nan_to_num", "where",
]  # fmt: skip

_where = Op(
    "where", "condition input other", "input where condition, else other.", register=False,
    grads=dict(input=lambda g, condition: where(condition, g, 0.0), other=lambda g, condition: where(condition, 0.0, g)),
)  # fmt: skip


# What two operands to choose from become, by their dtypes, or the classes of numbers, and whether they have no dims.
_results: dict[Any, Any] = {}
dtypes.remembered.append(_results)


_FIELDS = FLOATING | COMPLEX
_SMALL = frozenset([int, bool])  # numbers that have an order


def _rank(one: Any) -> Any:
    return (one.dtype, not one.native.shape) if type(one) is Tensor else type(one)


def _met(condition: Any, input: Any, other: Any) -> Tensor | None:
    """The choice between operands of dtypes that have met before, or of floats and small ints; None where something is unusual."""
    if type(condition) is not Tensor or condition.dtype is not dtypes.bool_:
        return None
    device, natives = condition.device, []
    final = _results.get((device, _rank(input), _rank(other)))
    if final is None:
        return None
    for one in (input, other):
        if type(one) is Tensor:
            if one.device is not device or one.node is not None:
                return None
            natives.append(one.native if one.dtype is final else device.kernels["cast"](one.native, dtype=final))
        elif type(one) is float or (type(one) in _SMALL and -128 < one < 128):
            natives.append(float(one) if final.is_floating_point else one)
        else:
            return None
    if type(input) is not Tensor and type(other) is not Tensor:
        natives[0] = device.kernels["full"]((), natives[0], dtype=final)
    try:
        return new_tensor(device.kernels["where"](condition.native, *natives), final, device)  # type: ignore[no-any-return]
    except Exception:
        return None  # the complete call says in words what is wrong


@operation(samples=samples.where, method=False)
def where(condition: Tensor, input: Any = None, other: Any = None, *, out: Tensor | None = None) -> Any:
    """``input`` where ``condition`` (bools) holds, ``other`` where not; with the condition alone, the indices where it holds.

    The gradient of an element that was not chosen is 0, whatever its value.
    """
    if (
        type(condition) is Tensor
        and type(input) is Tensor
        and type(other) is Tensor
        and condition.dtype is dtypes.bool_
        and input.dtype is other.dtype
        and condition.device is input.device is other.device
        and input.node is None
        and other.node is None
    ):
        # Nothing to promote and nothing to record: half of the steps below.
        device = condition.device
        if out is None:
            try:
                native = device.kernels["where"](condition.native, input.native, other.native)
            except Exception as error:
                raise explain(_where, (condition, input, other), error) from error
            return new_tensor(native, input.dtype, device)
        if (made := apply_into(_where, (condition, input, other), {}, input.dtype, out)) is not None:
            return made
    if out is None and (made := _met(condition, input, other)) is not None:
        return made
    given = _rank(input), _rank(other)
    if out is not None and not (isinstance(input, Tensor) and isinstance(other, Tensor)):
        raise ArgumentTypeError(
            f"where: expected two tensors to choose from where there is an out, got {input!r} and {other!r}; wrap numbers in "
            f"torch.tensor(...)"
        )
    if input is None and other is None:
        return condition.nonzero(as_tuple=True)  # type: ignore[attr-defined]
    if not isinstance(condition, Tensor):
        raise ArgumentTypeError(
            f"where: expected condition to be a Tensor, got {condition!r}; wrap it in torch.tensor(...)"
        )
    if condition.dtype is not dtypes.bool_:
        if condition.dtype is not dtypes.uint8:
            raise DtypeError(
                f"where: where expected condition to be a boolean tensor, but got a tensor with dtype {condition.dtype.name}; "
                f"convert it with .bool()"
            )
        condition = condition.bool()  # type: ignore[attr-defined]
    first = input if isinstance(input, Tensor) else other
    plain = (
        isinstance(first, Tensor)
        and first.device is condition.device
        and all(
            [
                (one.dtype is first.dtype and one.device is first.device)
                if isinstance(one, Tensor)
                else (first.dtype in _FIELDS and (type(one) is float or type(one) is int))
                or (first.dtype.kind == "integer" and type(one) is int and 0 <= one < 128)  # which each of them holds
                for one in (input, other)
            ]
        )
    )
    if plain:
        device, final = condition.device, first.dtype
        natives = [one.native if isinstance(one, Tensor) else one for one in (input, other)]
        choice = condition.native
    else:
        for one in (input, other):
            if not isinstance(one, Tensor) and kind_of(one) is None:
                raise ArgumentTypeError(
                    f"where: expected a Tensor or a number to choose from, got {one!r}; wrap it in torch.tensor(...)"
                )
        if not isinstance(first, Tensor):
            # Two numbers: one becomes a tensor of the dtype that both have in common.
            final = result_type(input, other)
            input = condition.new_full((), input, dtype=final)  # type: ignore[attr-defined]
        device, (condition, input, other) = one_device("where", (condition, input, other))
        final = result_type(input, other)
        for one in (input, other):
            if not isinstance(one, Tensor):
                check_number("where", one, final)
        natives = [as_argument("where", device, one, final) for one in (input, other)]
        choice = condition.native
    try:
        made = new_tensor(device.kernels["where"](choice, *natives), final, device)
    except Exception as error:
        raise explain(_where, (condition, input, other), error) from error
    if final not in NARROW and (final.is_floating_point or final.is_complex or final in PLAIN_INTEGERS):
        _results[device, *given] = final
    if mode.enabled and any([isinstance(one, Tensor) and one.node is not None for one in (input, other)]):
        record(_where, (condition, input, other), None, made)
    return made if out is None else store("where", made, out, condition, input, other)


def _where_method(self: Tensor, condition: Tensor, other: Any) -> Tensor:
    """``self`` where ``condition`` holds, ``other`` where not."""
    return where(condition, self, other)


method(_where_method, "where")


# Bounds


def _real_result(*values: Any) -> Any:
    compute = result_type(*values)
    if compute.is_complex:
        raise UnsupportedDtype(
            "clamp: clamp is not supported for complex types, got complex numbers; clamp real and imag"
        )
    return compute


def _bounds_result(*values: Any) -> Any:
    compute = _real_result(*values)
    for one in values[1:]:
        if not isinstance(one, Tensor):
            if compute is dtypes.bool_:
                raise UnsupportedDtype(
                    "clamp: clamp with a number not implemented for bool, got one; use .to(torch.uint8)"
                )
            check_number("clamp", one, compute)
    return compute


def _low_grad(g: Tensor, input: Tensor, min: Any, max: Any) -> Tensor:
    return where((input < min) & (min < max), g, 0.0)


def _high_grad(g: Tensor, input: Tensor, min: Any, max: Any) -> Tensor:
    return where((input > max) | (max < min), g, 0.0)


_clamp = elementwise(
    "clamp", "input min max", "Each element, kept within [min, max].", takes=REAL, rule=_bounds_result, method=False,
    grads=dict(input=lambda g, input, min, max: where((input >= min) & (input <= max), g, 0.0), min=_low_grad, max=_high_grad),
    samples=samples.bounds, backward_name="ClampBackward1", tensor_first=True,
)  # fmt: skip
clamp_min = elementwise(
    "clamp_min", "input min", "Each element, but no less than min.", takes=REAL, rule=_bounds_result,
    grads=dict(input=lambda g, input, min: where(input >= min, g, 0.0), min=lambda g, input, min: where(input < min, g, 0.0)),
    samples=samples.bound, tensor_first=True,
)  # fmt: skip
clamp_max = elementwise(
    "clamp_max", "input max", "Each element, but no more than max.", takes=REAL, rule=_bounds_result,
    grads=dict(input=lambda g, input, max: where(input <= max, g, 0.0), max=lambda g, input, max: where(input > max, g, 0.0)),
    samples=samples.bound, tensor_first=True,
)  # fmt: skip


_clamp_into = place_way(_clamp.op, PLAIN_FLOATS, None, PLAIN_FLOATS)  # type: ignore[attr-defined]


def _clamped(input: Tensor, min: Any, max: Any, out: Any, both: Any, low: Any, high: Any) -> Tensor:
    options = {} if out is None else {"out": out}
    if max is None:
        if min is None:
            raise DtypeError("clamp: At least one of 'min' or 'max' must not be None, got neither; pass one")
        return low(input, min, **options)
    if min is not None and (type(min) is Tensor) is not (type(max) is Tensor):
        min, max = plain(min), plain(max)  # a number beside a 0-d tensor are two numbers
        if isinstance(min, Tensor) or isinstance(max, Tensor):
            check_tensors("clamp", min=min, max=max)
    return high(input, max, **options) if min is None else both(input, min, max, **options)


@operation(samples=samples.bounds)
def clamp(input: Tensor, min: Any = None, max: Any = None, *, out: Tensor | None = None) -> Tensor:
    """Each element, kept within ``min`` and ``max``, numbers or tensors; ``max`` wins where ``min`` is larger."""
    if (
        (type(min) is float or type(min) is int)
        and (type(max) is float or type(max) is int)
        and -65504 <= min <= 65504
        and -65504 <= max <= 65504
        and type(input) is Tensor
        and input.node is None
        and (
            input.dtype in PLAIN_FLOATS
            or (input.dtype in NARROW and "clamp" in input.device.narrow_numbers)
            or (input.dtype in PLAIN_INTEGERS and type(min) is int is type(max))
        )
    ):  # bounds that every dtype holds, and nothing to record: half of a small call
        if out is not None:
            made = _clamp_into(out, input, min, max)
            return _clamped(input, min, max, out, _clamp, clamp_min, clamp_max) if made is None else made
        try:
            return new_tensor(input.device.kernels["clamp"](input.native, min, max), input.dtype, input.device)
        except MemoryError:
            pass  # tried once more, with the caches freed
    return _clamped(input, min, max, out, _clamp, clamp_min, clamp_max)


_clamp_written, _clamp_min_, _clamp_max_ = Tensor.clamp_, Tensor.clamp_min_, Tensor.clamp_max_  # type: ignore[attr-defined]


@method
def clamp_(input: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """In-place form of :func:`clamp`."""
    return _clamped(input, min, max, None, _clamp_written, _clamp_min_, _clamp_max_)


clip = alias("clip", clamp)


# Larger and smaller


def _ordered(name: str) -> Any:
    def rule(*values: Any) -> Any:
        compute = result_type(*values)
        if compute.is_complex:
            raise UnsupportedDtype(f"{name}: {name} not implemented for complex tensors, got some; take abs() first")
        return compute

    return rule


def _share(g: Tensor, wins: Tensor, ties: Tensor) -> Tensor:
    """All of ``g`` where one operand wins, half of it where both are equal."""
    return where(ties, g * 0.5, where(wins, g, 0.0))


maximum = elementwise(
    "maximum", "input other", "The larger of two elements, NaN if either is.", takes=REAL, rule=_ordered("maximum"), numbers=False,
    grads=dict(input=lambda g, input, other: _share(g, (input < other).logical_not(), input == other),
               other=lambda g, input, other: _share(g, (other < input).logical_not(), input == other)),
    writes=False, samples=samples.pair,
)  # fmt: skip
minimum = elementwise(
    "minimum", "input other", "The smaller of two elements, NaN if either is.", takes=REAL, rule=_ordered("minimum"), numbers=False,
    grads=dict(input=lambda g, input, other: _share(g, (input > other).logical_not(), input == other),
               other=lambda g, input, other: _share(g, (other > input).logical_not(), input == other)),
    writes=False, samples=samples.pair,
)  # fmt: skip
fmax = elementwise(
    "fmax", "input other", "The larger of two elements, the other one if one is NaN.", takes=REAL, rule=_ordered("fmax"), numbers=False,
    grads=dict(input=lambda g, input, other: where((input >= other) | (other != other), g, 0.0),
               other=lambda g, input, other: where((input >= other) | (other != other), 0.0, g)),
    writes=False, samples=samples.pair,
)  # fmt: skip
fmin = elementwise(
    "fmin", "input other", "The smaller of two elements, the other one if one is NaN.", takes=REAL, rule=_ordered("fmin"), numbers=False,
    grads=dict(input=lambda g, input, other: where((input <= other) | (other != other), g, 0.0),
               other=lambda g, input, other: where((input <= other) | (other != other), 0.0, g)),
    writes=False, samples=samples.pair,
)  # fmt: skip


@composite(inputs="input", quick=FLOATING | COMPLEX, takes=FLOATING | COMPLEX, writes=True, samples=samples.unary,
           unchanged=INTEGER | BOOL, grads=dict(input=lambda g, input: where(input.isfinite(), g, 0.0)))  # fmt: skip
def nan_to_num(
    input: Tensor,
    nan: float | None = 0.0,
    posinf: float | None = None,
    neginf: float | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The elements, with numbers in place of NaN and of the infinities; those become the dtype's limits by default."""
    if input.dtype.kind in ("bool", "integer"):
        return input.clone()  # type: ignore[attr-defined]
    if input.dtype.is_complex:
        parts = [nan_to_num(part, nan, posinf, neginf) for part in (input.real, input.imag)]  # type: ignore[attr-defined]
        return complex(*parts)
    limits = dtypes.finfo(input.dtype)
    made = where(input != input, 0.0 if nan is None else float(nan), input)
    if posinf is None and neginf is None:
        return clamp(made, limits.min, limits.max)  # type: ignore[no-any-return]
    made = where(made == float("inf"), limits.max if posinf is None else float(posinf), made)
    return where(made == float("-inf"), limits.min if neginf is None else float(neginf), made)


_STEPS = FLOATING | INTEGER | BOOL


def _check_heaviside(input: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    check_tensors("heaviside", input=input, values=values)
    if input.dtype is not values.dtype:
        raise DtypeError(
            f"heaviside: heaviside is not yet implemented for tensors with different dtypes, got {input.dtype.name} and "
            f"{values.dtype.name}; convert one with .to(...)"
        )
    if input.dtype.is_complex:
        raise UnsupportedDtype(
            "heaviside: heaviside is not yet implemented for complex tensors, got one; take its real part"
        )
    return input.detach(), values.detach()


@composite(inputs="input values", check=_check_heaviside, quick=_STEPS, takes=_STEPS, writes=True,
           samples=samples.heaviside)  # fmt: skip
def heaviside(input: Tensor, values: Tensor, *, out: Tensor | None = None) -> Tensor:
    """0 below 0, 1 above, and ``values`` at 0."""
    return where(input == 0, values, (input > 0).to(input.dtype))  # type: ignore[attr-defined, no-any-return]
