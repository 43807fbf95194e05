"""The hot path: what happens between a call in the user's program and the kernel.

The closures here are written out by arity so that an ordinary call is one Python frame: identity
checks on dtype and device, one lookup in the kernel table, one test of the nodes. Whatever is
unusual (numbers of another kind, two dtypes, ``out=``, hooks, a shape that does not fit) leaves for
a slow function. Measured on 8 floats, each of these steps costs 15 to 40 ns of about 700.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tensorcore import dtypes
from tensorcore.dtypes import dtype, kind_of
from tensorcore.errors import ArgumentTypeError, ShapeError
from tensorcore.formats import Size
from tensorcore.ops import rules
from tensorcore.ops.creation.arrays import from_numpy
from tensorcore.ops.define import Op
from tensorcore.ops.operands import NARROW, arguments, common_device, one_device
from tensorcore.ops.output import check_out, store, written, written_into
from tensorcore.ops.record import record
from tensorcore.ops.shortage import again
from tensorcore.shortcuts import before, learn, place_way, placed_way, usual_way
from tensorcore.tape.memory import Version, next_order
from tensorcore.tape.mode import makers, mode, unusual
from tensorcore.tape.node import Node
from tensorcore.tensor import Tensor, new_tensor

__all__ = [
    "HIGHEST", "LOWEST", "PLAIN_FLOATS", "PLAIN_INTEGERS", "apply", "binary", "elementwise", "foreign", "reduction", "reflected",
    "unary",
]  # fmt: skip

new = object.__new__
makers.append(globals())
learn(Tensor, Size, Version, Node, unusual, mode, next_order)
_EMPTY: tuple[Any, ...] = ()
# The dtypes for which a kernel may be handed a Python number as it is. Narrower ones compute with
# numbers in single precision, and integers beyond 32 bits wrap: both are the slow path's.
PLAIN_FLOATS = frozenset([dtypes.float32, dtypes.float64])
PLAIN_INTEGERS = frozenset([dtypes.int32, dtypes.int64])
LOWEST, HIGHEST = -(2**31), 2**31 - 1


def strangers(name: str, inputs: Sequence[Any], options: dict[str, Any]) -> Any:
    """What inputs of classes that are no tensors make of a call; None if they have no say. ``overrides`` replaces it."""


def unary(op: Op, accepts: frozenset[dtype] | None, result: dtype | None) -> Callable[..., Tensor]:
    """The call of an elementwise op of one tensor.

    Args:
        accepts: the dtypes for which the kernel computes in the input's own; None for all.
        result: the result's dtype where that is not the input's.
    """
    name, keeps, keeps_out, differentiable = op.name, op.keeps_inputs, op.keeps_out, bool(op.grads)
    usual, into = usual_way(op, again, accepts, result), place_way(op, accepts, result)

    def call(input: Tensor, *, out: Tensor | None = None) -> Tensor:
        if (done := usual(input) if out is None else into(out, input)) is not None:
            return done
        if type(input) is not Tensor or out is not None or (accepts is not None and input.dtype not in accepts):
            return elementwise(op, (input,), out=out)
        device = input.device
        made = new(Tensor)
        try:
            native = device.kernels[name](input.native)
        except MemoryError as error:
            native = again(device, name, (input.native,), {}, error)
        if type(native) is not device.array:
            native = device.as_native(native)
        made.native = native
        made.dtype = result or input.dtype
        made.device = device
        made.node = made.version = made.trail = None
        edge = input.node
        if edge is not None and differentiable:
            if not unusual.threads or mode.plain:
                made.node = node = new(Node)
                node.op = op
                node.edges = (edge,)
                node.saved = (input,) if keeps else _EMPTY
                if keeps_out:
                    made.version = node.version = Version()
                    node.out = native
                node.extra = None
                node.shape = native.shape
                node.dtype = made.dtype
                node.order = next_order()
            elif mode.enabled:
                record(op, (input,), None, made)
        return made

    return call


def binary(
    op: Op,
    accepts: frozenset[dtype] | None,
    result: dtype | None,
    leave: Callable[..., Any] | None = None,
    numbers: bool = True,
) -> Callable[..., Tensor]:
    """The call of an elementwise op (or matmul) of two tensors, or of a tensor and a number.

    Args:
        leave: what whatever is unusual goes to; :func:`elementwise` unless told otherwise.
        numbers: whether a number beside a tensor is usual.
    """
    leave = leave or elementwise
    floats = PLAIN_FLOATS if accepts is None else PLAIN_FLOATS & accepts
    integers = PLAIN_INTEGERS if accepts is None else PLAIN_INTEGERS & accepts
    if not numbers:
        floats = integers = frozenset()
    name, keeps, keeps_out, differentiable = op.name, op.keeps_inputs, op.keeps_out, bool(op.grads)
    # Whether the formula of the second name keeps the first.
    input_for_input, input_for_other = 0 in op.needed_for[0], 1 in op.needed_for[0]
    other_for_input, other_for_other = 0 in op.needed_for[1], 1 in op.needed_for[1]

    numbered = floats, integers, NARROW if accepts is None else NARROW & accepts
    usual = usual_way(op, again, accepts, result, *numbered)

    def call(input: Tensor, other: Any, *, out: Tensor | None = None) -> Tensor:
        if (done := usual(input, other) if out is None else into(out, input, other)) is not None:
            return done
        try:
            if type(other) is Tensor:
                if (
                    out is not None
                    or input.dtype is not other.dtype
                    or input.device is not other.device
                    or (accepts is not None and input.dtype not in accepts)
                ):
                    return leave(op, (input, other), out=out)
                device = input.device
                native = device.kernels[name](input.native, other.native)
                other_edge = other.node
            elif out is None and (
                ((type(other) is float or type(other) is int) and input.dtype in floats)
                or (type(other) is int and input.dtype in integers and LOWEST <= other <= HIGHEST)
            ):
                device = input.device
                native = device.kernels[name](input.native, other)
                other_edge = None
            else:
                return leave(op, (input, other), out=out)
        except Exception as error:
            if type(input) is not Tensor:
                return leave(op, (input, other), out=out)
            if not isinstance(error, MemoryError):
                raise explain(op, (input, other), error) from None
            device = input.device
            native = again(device, name, (input.native, getattr(other, "native", other)), {}, error)
            other_edge = getattr(other, "node", None)
        if type(native) is not device.array:
            native = device.as_native(native)
        made = new(Tensor)
        made.native = native
        made.dtype = result or input.dtype
        made.device = device
        made.node = made.version = made.trail = None
        edge = input.node
        if (edge is not None or other_edge is not None) and differentiable:
            if not unusual.threads or mode.plain:
                made.node = node = new(Node)
                node.op = op
                node.edges = (edge, other_edge)
                if keeps:
                    node.saved = (
                        input
                        if (input_for_input and edge is not None) or (input_for_other and other_edge is not None)
                        else None,
                        other
                        if (other_for_input and edge is not None) or (other_for_other and other_edge is not None)
                        else None,
                    )
                else:
                    node.saved = _EMPTY
                if keeps_out:
                    made.version = node.version = Version()
                    node.out = native
                node.extra = None
                node.shape = native.shape
                node.dtype = made.dtype
                node.order = next_order()
            elif mode.enabled:
                record(op, (input, other), None, made)
        return made

    # Products come here too.
    into = place_way(op, accepts, result, *numbered) if op.kind == "elementwise" else placed_way(call)
    return call


def reduction(op: Op, accepts: frozenset[dtype], slow: Callable[..., Tensor], dims: bool = True) -> Callable[..., Any]:
    """The call of a reduction: over everything, or over one dim.

    Args:
        accepts: the dtypes whose result has the same dtype.
        slow: takes every other call, with the same parameters and ``dtype=``, ``out=`` and whatever else it knows.
        dims: whether a call with an int as ``dim`` runs here too, else only the one without arguments.
    """
    name, keeps, keeps_out, differentiable = op.kernel, op.keeps_inputs, op.keeps_out, bool(op.grads)

    def call(input: Tensor, dim: Any = None, keepdim: bool = False, **rest: Any) -> Any:
        if len(rest) == 1 and "out" in rest and (done := placed(rest["out"], input, dim, keepdim)) is not None:
            return done
        if rest or type(input) is not Tensor or input.dtype not in accepts:
            if hasattr(type(input), "instead"):
                return input.instead(op.name, (input, dim), rest | {"keepdim": keepdim})
            if dim is not None:
                rest["dim"] = dim
            if keepdim is not False:
                rest["keepdim"] = keepdim
            if not isinstance(input, Tensor) and (made := strangers(op.name, (input,), rest)) is not None:
                return made
            return slow(input, **rest)
        device = input.device
        native = input.native
        if dim is None and keepdim is False:
            try:
                made_native = device.kernels[name](native)
            except (ValueError, IndexError):  # no elements: the slow path knows what to say
                return slow(input)
            except MemoryError as error:
                made_native = again(device, name, (native,), {}, error)
        elif type(dim) is int and dims and -len(native.shape) <= dim < len(native.shape) and type(keepdim) is bool:
            dim = (dim % len(native.shape),)
            try:
                made_native = device.kernels[name](native, dim=dim, keepdim=keepdim)
            except (ValueError, IndexError):
                return slow(input, dim, keepdim)
            except MemoryError as error:
                made_native = again(device, name, (native,), {"dim": dim, "keepdim": keepdim}, error)
        else:
            return slow(input, dim, keepdim)
        if type(made_native) is not device.array:
            made_native = device.as_native(made_native)
        made = new(Tensor)
        made.native = made_native
        made.dtype = input.dtype
        made.device = device
        made.node = made.version = made.trail = None
        edge = input.node
        if edge is not None and differentiable:
            if not unusual.threads or mode.plain:
                made.node = node = new(Node)
                node.op = op
                node.edges = (edge,)
                node.saved = (input,) if keeps else _EMPTY
                node.options = {"dim": dim, "keepdim": keepdim, "input_shape": native.shape}
                if keeps_out:
                    made.version = node.version = Version()
                    node.out = made_native
                node.extra = None
                node.shape = made_native.shape
                node.dtype = made.dtype
                node.order = next_order()
            elif mode.enabled:
                record(op, (input,), {"dim": dim, "keepdim": keepdim}, made)
        return made

    placed = placed_way(call)
    return call


def reflected(op: Op, accepts: frozenset[dtype] | None, result: dtype | None) -> Callable[..., Tensor]:
    """The call of the operator ``number op tensor``, as a method of the tensor."""
    floats = PLAIN_FLOATS if accepts is None else PLAIN_FLOATS & accepts
    name, differentiable = op.name, bool(op.grads)

    def call(input: Tensor, other: Any) -> Tensor:
        if (type(other) is not float and type(other) is not int) or input.dtype not in floats:
            return foreign(op, (other, input))
        device = input.device
        native = device.kernels[name](other, input.native)
        made = new_tensor(
            native if type(native) is device.array else device.as_native(native), result or input.dtype, device
        )
        if input.node is not None and differentiable and mode.enabled:
            record(op, (other, input), None, made)
        return made

    return call


def foreign(op: Op, inputs: Sequence[Any], *, out: Tensor | None = None) -> Any:
    """The slow path of an operator: operands that are neither tensors nor numbers get their own turn."""
    for one in inputs:
        if not isinstance(one, Tensor) and kind_of(one) is None and not (isinstance(one, np.ndarray) and not one.ndim):
            return NotImplemented
    return elementwise(op, inputs, out=out)


@before("apply", record)
def apply(op: Op, inputs: Sequence[Tensor | None], options: dict[str, Any] | None = None, *, dtype: Any = None) -> Any:
    """Run the kernel of ``op`` on tensors of one device whose shapes and dtypes are checked, and record it.

    Args:
        inputs: the tensors, None for an optional one that is not there.
        options: what the kernel takes by keyword.
        dtype: the result's dtype, a tuple of them for several results; the first input's where None.
    """
    device: Any = None
    natives, recorded = [], False
    for one in inputs:
        if isinstance(one, Tensor):
            if one.device is not device:
                # Raises, unless one of the two wraps the other.
                device = one.device if device is None else common_device(op.name, inputs)
            natives.append(one.native)
            if one.node is not None:
                recorded = True
        else:
            if one is not None and kind_of(one) is None:
                common_device(op.name, inputs)
            natives.append(one)
    kernel = device.kernels[op.kernel]
    try:
        if op.variadic:
            native = kernel(natives, **options) if options else kernel(natives)
        else:
            native = kernel(*natives, **options) if options else kernel(*natives)
    except MemoryError as error:
        native = again(device, op.kernel, (natives,) if op.variadic else natives, options or {}, error)
    except Exception:
        for one in inputs:
            if hasattr(type(one), "instead"):  # a sparse tensor, which has no native array
                return one.instead(op.name, inputs, options)
        raise
    if dtype is None:
        first = inputs[0]
        dtype = first.dtype if first is not None else next(one.dtype for one in inputs if one is not None)
    if type(native) is tuple or type(native) is list:
        several = type(dtype) is tuple
        made: Any = [new_tensor(one, dtype[i] if several else dtype, device) for i, one in enumerate(native)]
        if recorded and op.grads and mode.enabled:
            record(op, inputs, options, made)
        return tuple(made)
    made = new(Tensor)
    made.native = native
    made.dtype = dtype
    made.device = device
    made.node = made.version = made.trail = None
    if recorded and op.grads and mode.enabled:
        record(op, inputs, options, made)
    return made


# Arithmetic that takes two of Python's numbers and gives a tensor.
_OF_NUMBERS = frozenset(["add", "div", "floor_divide", "mul", "sub", "trunc_divide"])


def elementwise(op: Op, inputs: Sequence[Any], *, out: Tensor | None = None, options: dict[str, Any] | None = None):
    """An elementwise call with numbers, several dtypes, or a result that has a place to go."""
    first = inputs[0]
    if out is None and type(first) is Tensor and first.dtype in op.quick:
        made = _uniform(op, first, inputs, options)
        if made is not None:
            return made
    elif type(first) is Tensor is type(out) and out.dtype in op.quick and written_into(op, inputs, out, options):
        return out
    for one in inputs:
        if hasattr(type(one), "instead"):  # a sparse tensor, which has no native array
            return one.instead(op.name, inputs, options)
    if any(type(one) is np.ndarray for one in inputs):  # tensor * array, in PyTorch by way of NumPy
        inputs = [from_numpy(one) if type(one) is np.ndarray else one for one in inputs]
    if not all([isinstance(one, Tensor) or kind_of(one) is not None for one in inputs]):
        found = strangers(op.name, inputs, {} if out is None else {"out": out})
        if found is not None:
            return found
    kind = kind_of(first)
    if kind is not None and op.name in _OF_NUMBERS and all([kind_of(one) is not None for one in inputs]):
        first = from_numpy(np.array(first, dtypes.default_for(kind).numpy))
        inputs = (first, *inputs[1:])
    if not isinstance(first, Tensor) and (op.tensor_first or not any([isinstance(one, Tensor) for one in inputs])):
        raise ArgumentTypeError(
            f"{op.name}: expected argument '{op.inputs[0]}' to be a Tensor, got {first!r}; wrap it in torch.tensor(...)"
        )
    for name, one in zip(op.inputs, inputs, strict=True):
        if not isinstance(one, Tensor) and kind_of(one) is None:
            raise ArgumentTypeError(
                f"{op.name}: expected argument '{name}' to be a Tensor or a number, got {type(one).__name__}; "
                f"wrap it in torch.tensor(...)"
            )
    device, inputs = one_device(op.name, inputs)
    compute, final = op.dtypes(op, inputs)  # type: ignore[attr-defined]
    if out is not None:
        check_out(op, inputs, out, final)
    natives, widened = arguments(op, device, inputs, compute)
    # The kernel writes into ``out`` where that is of the result's dtype and shape; else its result is copied there.
    there = out is not None and not widened and final is compute and _fits(op, out, device, final, inputs)
    options = {**(options or {}), "out": out.native} if there else options or {}  # type: ignore[union-attr]
    try:
        native = device.kernels[op.kernel](*natives, **options)
    except MemoryError as error:
        native = again(device, op.kernel, natives, options, error)
    except Exception as error:
        raise explain(op, inputs, error) from error
    if there:
        written(out)  # type: ignore[arg-type]
        return out
    if widened and final is compute:
        native = device.kernels["cast"](
            native if type(native) is device.array else device.as_native(native), dtype=final
        )
    made = new_tensor(native if type(native) is device.array else device.as_native(native), final, device)
    if op.grads and mode.enabled and any([isinstance(one, Tensor) and one.node is not None for one in inputs]):
        record(op, inputs, options, made)
    return made if out is None else store(op.name, made, out)


def _fits(op: Op, out: Tensor, device: Any, final: dtype, inputs: Sequence[Any]) -> bool:
    """Whether a kernel may write its result straight into ``out``, whose elements lie in places of their own."""
    shape = tuple(out.native.shape)
    return (
        op.kind == "elementwise"  # products come here too
        and out.device is device
        and out.dtype is final
        and out.origin is None
        and shape == rules.broadcast(op.name, *[tuple(one.native.shape) for one in inputs if isinstance(one, Tensor)])
    )


def _uniform(op: Op, first: Tensor, inputs: Sequence[Any], options: dict[str, Any] | None) -> Tensor | None:
    """The call where all tensors have the dtype and device of ``first`` and all numbers are plain; else None."""
    natives, recorded, device, same = [], False, first.device, first.dtype
    for one in inputs:
        kind = type(one)
        if kind is Tensor:
            if one.dtype is not same or one.device is not device:
                return None
            natives.append(one.native)
            if one.node is not None:
                recorded = True
        elif kind is float or kind is int:
            natives.append(one)
        else:
            return None
    try:
        native = device.kernels[op.kernel](*natives) if not options else device.kernels[op.kernel](*natives, **options)
    except MemoryError as error:
        native = again(device, op.kernel, natives, options or {}, error)
    except Exception as error:
        raise explain(op, inputs, error) from error
    made = new_tensor(native if type(native) is device.array else device.as_native(native), op.result or same, device)
    if recorded and op.grads and mode.enabled:
        record(op, inputs, options, made)
    return made


def explain(op: Op, inputs: Sequence[Any], error: Exception) -> Exception:
    """The frontend's own error for a kernel that failed, where the shapes are to blame; else the kernel's."""
    own = getattr(op, "explain", None)
    if own is not None:
        return own(inputs, error)  # type: ignore[no-any-return]
    shapes = [tuple(one.native.shape) for one in inputs if isinstance(one, Tensor)]
    try:
        rules.broadcast(op.name, *shapes)
    except ShapeError as clearer:
        return clearer
    return error
