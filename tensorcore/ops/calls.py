"""The hot path: what happens between a call in the user's program and the kernel.

The closures here are written out by arity so that an ordinary call is one Python frame: identity
checks on dtype and device, one lookup in the kernel table, one test of the nodes. Whatever is
unusual (numbers of another kind, two dtypes, ``out=``, hooks, a shape that does not fit) leaves for
a slow function. Measured on 8 floats, each of these steps costs 15 to 40 ns of about 700.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tensorcore import dtypes
from tensorcore.dtypes import PROMOTION, dtype, kind_of
from tensorcore.errors import ArgumentTypeError, DeviceError, DtypeError, GradientError, ShapeError
from tensorcore.ops import rules
from tensorcore.ops.define import Op
from tensorcore.tape.mode import mode, unusual
from tensorcore.tape.node import Node, Output, Packed, Version, next_order
from tensorcore.tensor import Tensor, new_tensor

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
__all__ = [
    "PLAIN_FLOATS", "apply", "binary", "check_number", "common_device", "elementwise", "foreign", "record", "reduction",
    "reflected", "result_type", "store", "unary",
]  # fmt: skip

new = object.__new__
_EMPTY: tuple[Any, ...] = ()
# The dtypes for which a kernel may be handed a Python number as it is. Narrower ones compute with
# numbers in single precision, and integers beyond 32 bits wrap: both are the slow path's.
PLAIN_FLOATS = frozenset([dtypes.float32, dtypes.float64])
_PLAIN_INTEGERS = frozenset([dtypes.int32, dtypes.int64])
_LOW, _HIGH = -(2**31), 2**31 - 1
_NARROW = frozenset([dtypes.float16, dtypes.bfloat16])


def unary(op: Op, accepts: frozenset[dtype] | None, result: dtype | None) -> Callable[..., Tensor]:
    """The call of an elementwise op of one tensor.

    Args:
        accepts: the dtypes for which the kernel computes in the input's own; None for all.
        result: the result's dtype where that is not the input's.
    """
    name, keeps, keeps_out, differentiable = op.name, op.keeps_inputs, op.keeps_out, bool(op.grads)

    def call(input: Tensor, *, out: Tensor | None = None) -> Tensor:
        if type(input) is not Tensor or out is not None or (accepts is not None and input.dtype not in accepts):
            return elementwise(op, (input,), out=out)
        device = input.device
        made = new(Tensor)
        native = device.kernels[name](input.native)
        if type(native) is not device.array:
            native = device.as_native(native)
        made.native = native
        made.dtype = result or input.dtype
        made.device = device
        made.node = made.version = made.origin = None
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
    integers = _PLAIN_INTEGERS if accepts is None else _PLAIN_INTEGERS & accepts
    if not numbers:
        floats = integers = frozenset()
    name, keeps, keeps_out, differentiable = op.name, op.keeps_inputs, op.keeps_out, bool(op.grads)
    # Whether the formula of the second name keeps the first.
    input_for_input, input_for_other = 0 in op.needed_for[0], 1 in op.needed_for[0]
    other_for_input, other_for_other = 0 in op.needed_for[1], 1 in op.needed_for[1]

    def call(input: Tensor, other: Any, *, out: Tensor | None = None) -> Tensor:
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
                or (type(other) is int and input.dtype in integers and _LOW <= other <= _HIGH)
            ):
                device = input.device
                native = device.kernels[name](input.native, other)
                other_edge = None
            else:
                return leave(op, (input, other), out=out)
        except Exception as error:
            if not isinstance(input, Tensor):
                return leave(op, (input, other), out=out)
            raise explain(op, (input, other), error) from None
        if type(native) is not device.array:
            native = device.as_native(native)
        made = new(Tensor)
        made.native = native
        made.dtype = result or input.dtype
        made.device = device
        made.node = made.version = made.origin = None
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
        if rest or type(input) is not Tensor or input.dtype not in accepts:
            if dim is not None:
                rest["dim"] = dim
            if keepdim:
                rest["keepdim"] = keepdim
            return slow(input, **rest)
        device = input.device
        native = input.native
        if dim is None and not keepdim:
            try:
                made_native = device.kernels[name](native)
            except ValueError:  # no elements: the slow path knows what to say
                return slow(input)
        elif type(dim) is int and dims and -len(native.shape) <= dim < len(native.shape):
            dim = (dim % len(native.shape),)
            made_native = device.kernels[name](native, dim=dim, keepdim=keepdim)
        else:
            return slow(input, dim, keepdim)
        if type(made_native) is not device.array:
            made_native = device.as_native(made_native)
        made = new(Tensor)
        made.native = made_native
        made.dtype = input.dtype
        made.device = device
        made.node = made.version = made.origin = None
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

    def call(input: Tensor, other: Any) -> Tensor:
        if (type(other) is not float and type(other) is not int) or input.dtype not in floats:
            return foreign(op, (other, input))
        device = input.device
        native = device.kernels[name](other, input.native)
        made = new_tensor(native if type(native) is device.array else device.as_native(native), result or input.dtype, device)
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


def apply(
    op: Op, inputs: Sequence[Tensor | None], options: dict[str, Any] | None = None, *, dtype: Any = None
) -> Any:
    """Run the kernel of ``op`` on tensors of one device whose shapes and dtypes are checked, and record it.

    Args:
        inputs: the tensors, None for an optional one that is not there.
        options: what the kernel takes by keyword.
        dtype: the result's dtype, a tuple of them for several results; the first input's where None.
    """
    device = common_device(op.name, inputs)
    natives = [one.native if isinstance(one, Tensor) else one for one in inputs]
    if op.variadic:
        native = device.kernels[op.kernel](natives, **(options or {}))
    else:
        native = device.kernels[op.kernel](*natives, **(options or {}))
    if dtype is None:
        dtype = next(one.dtype for one in inputs if one is not None)
    if type(native) is tuple or type(native) is list:
        made: Any = [
            new_tensor(one, dtype[i] if type(dtype) is tuple else dtype, device) for i, one in enumerate(native)
        ]
    else:
        made = new_tensor(native, dtype, device)
    if mode.enabled and op.grads:
        for one in inputs:
            if isinstance(one, Tensor) and one.node is not None:
                record(op, inputs, options, made)
                break
    return made if type(made) is Tensor else tuple(made)


def record(op: Op, inputs: Sequence[Any], options: dict[str, Any] | None, made: Any) -> None:
    """Put one call on the tape, with whatever hooks and traces this thread has switched on."""
    several = type(made) is list
    results = made if several else [made]
    if not any(one.dtype.is_floating_point or one.dtype.is_complex for one in results):
        return
    edges = tuple([one.node if isinstance(one, Tensor) else None for one in inputs])
    node = new(Node)
    node.op = op
    node.edges = edges
    if not op.keeps_inputs:
        node.saved = _EMPTY
    elif op.variadic:
        node.saved = tuple(inputs)
    else:
        node.saved = tuple(
            [
                one if any(edges[i] is not None for i in needed) else None
                for one, needed in zip(inputs, op.needed_for, strict=True)
            ]
        )
    if op.traits:
        options = dict(options or {})
        for key, i, trait in op.traits:
            values = [None if one is None else getattr(one, trait) for one in inputs]
            options[key] = values if op.variadic else values[i]
    node.options = options
    node.extra = None
    node.shape = [one.native.shape for one in results] if several else made.native.shape
    node.dtype = [one.dtype for one in results] if several else made.dtype
    node.out = node.version = None
    if op.keeps_out:
        version = node.version = results[0].version or Version()
        for one in results:
            one.version = one.version or version
        node.out = tuple(one.native for one in results) if several else made.native
    node.order = next_order()
    if several:
        for i, one in enumerate(results):
            if one.dtype.is_floating_point or one.dtype.is_complex:
                one.node = Output(node, i)
    else:
        made.node = node
    if not mode.plain:
        _unusual(node, results, several)


def _unusual(node: Node, results: list[Tensor], several: bool) -> None:
    """Saved-tensor hooks and the anomaly trace."""
    if mode.anomaly:
        node.extra = {"trace": user_trace()}
    if mode.packers:
        pair = mode.packers[-1]
        if node.saved:
            node.saved = Packed(tuple([pack(one, pair) if isinstance(one, Tensor) else one for one in node.saved]), pair[1])
        if node.out is not None and not several:
            # Off the tape: a hook that keeps what it is given would make a cycle of the result and its node.
            node.out = Packed((pack(new_tensor(node.out, node.dtype, results[0].device), pair),), pair[1])


def pack(tensor: Tensor, pair: tuple[Callable[[Any], Any], Callable[[Any], Any]]) -> tuple[Any, Any]:
    """What the user's pack hook makes of a tensor, and the edge that the unpacked one takes up again."""
    packers, enabled, count = mode.packers, mode.enabled, tensor._version
    mode.packers, mode.enabled = (), False
    mode.settle()
    try:
        value = pair[0](tensor)
    finally:
        mode.packers, mode.enabled = packers, enabled
        mode.settle()
    if tensor._version != count:
        raise GradientError(
            "saved_tensors_hooks: expected a pack hook that leaves its argument as it is, got one that wrote to it: A saved "
            "tensor pack hook is modifying its input in place; clone() it first"
        )
    return value, tensor.node


def user_trace() -> str:
    """The stack without this package's own frames at its end: the last line is the user's."""
    frames = traceback.extract_stack()
    while frames and frames[-1].filename.startswith(_PACKAGE):
        frames.pop()
    return "".join(traceback.format_list(frames))


def elementwise(op: Op, inputs: Sequence[Any], *, out: Tensor | None = None, options: dict[str, Any] | None = None):
    """An elementwise call with numbers, several dtypes, or a result that has a place to go."""
    first = inputs[0]
    if out is None and type(first) is Tensor and first.dtype in op.quick:
        made = _uniform(op, first, inputs, options)
        if made is not None:
            return made
    if any(type(one) is np.ndarray for one in inputs):  # tensor * array, in PyTorch by way of NumPy
        from tensorcore.ops.create import from_numpy

        inputs = [from_numpy(one) if type(one) is np.ndarray else one for one in inputs]
    if not any([isinstance(one, Tensor) for one in inputs]):
        raise ArgumentTypeError(
            f"{op.name}: expected argument '{op.inputs[0]}' to be a Tensor, got {inputs[0]!r}; wrap it in torch.tensor(...)"
        )
    numbers = False
    for name, one in zip(op.inputs, inputs, strict=True):
        if not isinstance(one, Tensor):
            numbers = True
            if kind_of(one) is None:
                raise ArgumentTypeError(
                    f"{op.name}: expected argument '{name}' to be a Tensor or a number, got {type(one).__name__}; "
                    f"wrap it in torch.tensor(...)"
                )
    device, inputs = one_device(op.name, inputs)
    compute, final = op.dtypes(op, inputs)  # type: ignore[attr-defined]
    if out is not None:
        _check_out(op, inputs, out, final)
    # Numbers keep single precision beside narrow floats, as in PyTorch.
    widened = numbers and op.widens and compute in _NARROW
    wide = dtypes.float32 if widened else compute
    natives = [_as(device, one, wide) for one in inputs]
    try:
        native = device.kernels[op.kernel](*natives, **(options or {}))
    except Exception as error:
        raise explain(op, inputs, error) from error
    if widened:
        native = device.kernels["cast"](native if type(native) is device.array else device.as_native(native), dtype=final)
    made = new_tensor(native if type(native) is device.array else device.as_native(native), final, device)
    if op.grads and mode.enabled and any([isinstance(one, Tensor) and one.node is not None for one in inputs]):
        record(op, inputs, options, made)
    return made if out is None else store(op.name, made, out)


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
    except Exception as error:
        raise explain(op, inputs, error) from error
    made = new_tensor(native if type(native) is device.array else device.as_native(native), op.result or same, device)
    if recorded and op.grads and mode.enabled:
        record(op, inputs, options, made)
    return made


def _as(device: Any, one: Any, compute: dtype) -> Any:
    """A kernel argument in the dtype that the op computes in."""
    if isinstance(one, Tensor):
        return one.native if one.dtype is compute else device.kernels["cast"](one.native, dtype=compute)
    return as_number(one, compute)


def as_number(number: Any, compute: dtype) -> Any:
    """A number as the Python number that a kernel of this dtype takes; integers wrap as PyTorch's do."""
    if compute.kind == "integer":
        if isinstance(number, int) and not -(2**63) <= number < 2**64:
            raise OverflowError(f"expected an int of 64 bits at most, got {number}; use a float")
        bits = 8 * compute.itemsize
        number = int(number) & ((1 << bits) - 1)
        return number - (1 << bits) if compute.is_signed and number >> (bits - 1) else number
    if compute.kind == "bool":
        return bool(number)
    return complex(number) if compute.kind == "complex" else float(number)


def check_number(op: str, number: Any, compute: dtype) -> None:
    """Raise where a number does not fit the dtype of its op; negative ones wrap into uint8, as in PyTorch."""
    if compute.kind == "integer":
        limits = dtypes.iinfo(compute)
        low = limits.min if compute.is_signed else -limits.max
        if not low <= number <= limits.max:
            raise DtypeError(
                f"{op}: value cannot be converted to type {compute.name} without overflow, got {number}; use one within "
                f"[{limits.min}, {limits.max}]"
            )


def result_type(*values: Any) -> dtype:
    """The dtype that an op of these tensors and numbers computes in.

    A tensor with dims outranks one without, which outranks a number, unless the lower one is of a
    higher kind (bool, integer, floating, complex).
    """
    dims = zero = None
    number = None
    for one in values:
        if isinstance(one, Tensor):
            if one.native.shape:
                dims = one.dtype if dims is None else PROMOTION[dims, one.dtype]
            else:
                zero = one.dtype if zero is None else PROMOTION[zero, one.dtype]
        elif isinstance(one, dtype):
            dims = one if dims is None else PROMOTION[dims, one]
        else:
            mine = dtypes.default_for(kind_of(one) or "floating")
            number = mine if number is None else PROMOTION[number, mine]
    result = _outranked(_outranked(dims, zero), number)
    if result is None:
        raise ArgumentTypeError("result_type: expected tensors, dtypes or numbers, got nothing; pass at least one")
    return result


def _outranked(higher: dtype | None, lower: dtype | None) -> dtype | None:
    """What two ranks of operands become: the lower one changes the kind, never the precision within it."""
    if higher is None or lower is None:
        return higher or lower
    if higher.is_complex or (higher.is_floating_point and not lower.is_complex):
        return higher
    if higher.is_floating_point:
        return higher.to_complex()
    if higher.kind == "bool" or lower.kind != "integer" and lower.kind != "bool":
        return PROMOTION[higher, lower]
    return higher


def common_device(op: str, inputs: Sequence[Any]) -> Any:
    """The one device that all tensors among ``inputs`` are on."""
    device = None
    for one in inputs:
        if isinstance(one, Tensor):
            if device is None:
                device = one.device
            elif one.device is not device:
                raise DeviceError(
                    f"{op}: Expected all tensors to be on the same device, got {device} and {one.device}; "
                    f"move one with .to(device)"
                )
        elif one is not None and kind_of(one) is None:
            raise ArgumentTypeError(f"{op}: expected a Tensor, got {one!r}; wrap it in torch.tensor(...)")
    return device


def one_device(op: str, inputs: Sequence[Any]) -> tuple[Any, Sequence[Any]]:
    """The device of an elementwise call; a 0-d tensor in host memory comes along to any other device."""
    tensors = [one for one in inputs if isinstance(one, Tensor)]
    device = next((one.device for one in tensors if one.native.shape), tensors[0].device)
    if all(one.device is device for one in tensors):
        return device, inputs
    moved = [
        one.to(device)
        if isinstance(one, Tensor) and one.device is not device and not one.native.shape and one.device.capabilities.host
        else one
        for one in inputs
    ]
    return common_device(op, moved), moved


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


def _check_out(op: Op, inputs: Sequence[Any], out: Any, final: dtype) -> None:
    if not isinstance(out, Tensor):
        raise ArgumentTypeError(f"{op.name}: expected out to be a Tensor, got {out!r}; pass torch.empty(...)")
    if mode.enabled and (out.node is not None or any(isinstance(one, Tensor) and one.node is not None for one in inputs)):
        raise GradientError(
            f"{op.name}: functions with out=... arguments don't support automatic differentiation, got one of the "
            f"arguments that requires grad; call it without out=, or inside torch.no_grad()"
        )
    if not dtypes.can_cast(final, out.dtype):
        raise DtypeError(
            f"{op.name}: result type {final.name} can't be cast to the desired output type, got out of dtype "
            f"{out.dtype.name}; pass an out of a wider dtype"
        )


def store(op: str, made: Tensor, out: Tensor) -> Tensor:
    """Write a result into ``out``, which takes the result's shape where it has another, and return ``out``."""
    if not isinstance(out, Tensor):
        raise ArgumentTypeError(f"{op}: expected out to be a Tensor, got {out!r}; pass torch.empty(...)")
    if made.node is not None or (out.node is not None and mode.enabled):
        raise GradientError(
            f"{op}: functions with out=... arguments don't support automatic differentiation, got one of the "
            f"arguments that requires grad; call it without out=, or inside torch.no_grad()"
        )
    if out.device is not made.device:
        raise DeviceError(f"{op}: expected out on device {made.device}, got {out.device}; make it on that device")
    if not dtypes.can_cast(made.dtype, out.dtype):
        raise DtypeError(
            f"{op}: result type {made.dtype.name} can't be cast to the desired output type, got out of dtype "
            f"{out.dtype.name}; pass an out of a wider dtype"
        )
    device = out.device
    shape = tuple(made.native.shape)
    if tuple(out.native.shape) != shape:
        if out.origin is not None and out.numel():
            raise ShapeError(
                f"{op}: expected out of shape {list(shape)}, got a view of shape {list(out.native.shape)}; "
                f"pass an out of that shape"
            )
        out.native = device.allocate(shape, out.dtype)
    device.kernels["copy"](out.native, made.native)
    written(out)
    return out


def written(tensor: Tensor) -> None:
    """Note a write to the tensor's memory."""
    version = tensor.version
    if version is None:
        version = tensor.version = Version()
    version.bump()
