"""The hot path: what happens between a call in the user's program and the kernel.

The closures here are written out by arity so that an ordinary call is one Python frame: identity
checks on dtype and device, one lookup in the kernel table, one test of the nodes. Whatever is
unusual (numbers of another kind, two dtypes, ``out=``, hooks, a shape that does not fit) leaves for
a slow function. Measured on 8 floats, each of these steps costs 15 to 40 ns of about 700.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensorcore.dtypes import dtype, kind_of
from tensorcore.formats import Size
from tensorcore.ops import mixed
from tensorcore.ops.define import Op
from tensorcore.ops.mixed import elementwise, explain, foreign
from tensorcore.ops.operands import HIGHEST, LOWEST, NARROW, PLAIN_FLOATS, PLAIN_INTEGERS, common_device
from tensorcore.ops.output import store
from tensorcore.ops.record import record
from tensorcore.ops.shortage import again
from tensorcore.shortcuts import before, elementwise_way, learn, placed_way
from tensorcore.tape.memory import Version, next_order
from tensorcore.tape.mode import makers, mode, unusual
from tensorcore.tape.node import Node
from tensorcore.tensor import Tensor, new_tensor

__all__ = [
    "HIGHEST", "LOWEST", "PLAIN_FLOATS", "PLAIN_INTEGERS", "apply", "apply_into", "binary", "naming", "reduction", "reflected", "unary",
]  # fmt: skip

new = object.__new__
makers.append(globals())
learn(Tensor, Size, Version, Node, unusual, mode, next_order)
_EMPTY: tuple[Any, ...] = ()


def unary(op: Op, accepts: frozenset[dtype] | None, result: dtype | None) -> Callable[..., Tensor]:
    """The call of an elementwise op of one tensor.

    Args:
        accepts: the dtypes for which the kernel computes in the input's own; None for all.
        result: the result's dtype where that is not the input's.
    """
    name, keeps, keeps_out, differentiable = op.name, op.keeps_inputs, op.keeps_out, bool(op.grads)

    @elementwise_way(op, again, accepts, result)
    def call(input: Tensor, *, out: Tensor | None = None) -> Tensor:
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
    second: str = "other",
) -> Callable[..., Tensor]:
    """The call of an elementwise op (or matmul) of two tensors, or of a tensor and a number.

    Args:
        leave: what whatever is unusual goes to; :func:`elementwise` unless told otherwise.
        numbers: whether a number beside a tensor is usual.
        second: what the second operand is called.
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

    @elementwise_way(op, again, accepts, result, *numbered)
    @naming(second)
    def call(input: Tensor, other: Any, *, out: Tensor | None = None) -> Tensor:
        if out is not None and into is not None and (done := into(out, input, other)) is not None:
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
    into = None if op.kind == "elementwise" else placed_way(call, op.name, store)
    return call


def naming(second: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: the call with its second parameter under the op's own name for it, such as ``exponent``: no frame around it."""

    def enter(call: Callable[..., Any]) -> Callable[..., Any]:
        if second != "other":
            names = tuple([second if one == "other" else one for one in call.__code__.co_varnames])
            call.__code__ = call.__code__.replace(co_varnames=names)
        return call

    return enter


def reduction(op: Op, accepts: frozenset[dtype], slow: Callable[..., Tensor], dims: bool = True) -> Callable[..., Any]:
    """The call of a reduction: over everything, or over one dim.

    Args:
        accepts: the dtypes whose result has the same dtype.
        slow: takes every other call, with the same parameters and ``dtype=``, ``out=`` and whatever else it knows.
        dims: whether a call with an int as ``dim`` runs here too, else only the one without arguments.

    The short way of such calls stands before it, see ``reduced_way``.
    """
    name, keeps, keeps_out, differentiable = op.kernel, op.keeps_inputs, op.keeps_out, bool(op.grads)

    def call(input: Tensor, dim: Any = None, keepdim: bool = False, **rest: Any) -> Any:
        if rest or type(input) is not Tensor or input.dtype not in accepts:
            if hasattr(type(input), "instead"):
                return input.instead(op.name, (input, dim), rest | {"keepdim": keepdim})
            if dim is not None:
                rest["dim"] = dim
            if keepdim is not False:
                rest["keepdim"] = keepdim
            if not isinstance(input, Tensor) and (made := mixed.strangers(op.name, (input,), rest)) is not None:
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

    return call


def reflected(op: Op, accepts: frozenset[dtype] | None, result: dtype | None) -> Callable[..., Tensor]:
    """The call of the operator ``number op tensor``, as a method of the tensor."""
    floats = PLAIN_FLOATS if accepts is None else PLAIN_FLOATS & accepts
    name, differentiable = op.name, bool(op.grads)

    # Of powers of a number PyTorch rounds it first.
    halves = frozenset() if op.name == "pow" else NARROW if accepts is None else NARROW & accepts

    def call(input: Tensor, other: Any) -> Tensor:
        device, kind = input.device, input.dtype
        plain = kind in floats or (kind in halves and name in device.narrow_numbers)
        if (type(other) is not float and type(other) is not int) or not plain:
            return foreign(op, (other, input))
        native = device.kernels[name](other, input.native)
        made = new_tensor(native if type(native) is device.array else device.as_native(native), result or kind, device)
        if input.node is not None and differentiable and mode.enabled:
            record(op, (other, input), None, made)
        return made

    return call


@before("apply", record, again)
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


@before("apply_into", store)
def apply_into(op: Op, inputs: tuple[Tensor, ...], options: dict[str, Any], dtype: Any, out: Any) -> Any:
    """``apply`` whose result of that dtype goes into ``out``, which is the answer, or several of a tuple of dtypes into as many,
    where that is a short way; None for all other calls."""
    return None
