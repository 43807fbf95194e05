"""In-place writes: who may be written to, and what a write does to the history of everyone who shares the memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from sys import getrefcount
from typing import Any

from tensorcore import dtypes
from tensorcore.errors import ArgumentTypeError, DeviceError, DtypeError, GradientError, ShapeError
from tensorcore.ops import rules
from tensorcore.ops.define import Op, named
from tensorcore.ops.mixed import remember
from tensorcore.ops.operands import HIGHEST, LOWEST, NARROW, PLAIN_FLOATS, PLAIN_INTEGERS, arguments, one_device
from tensorcore.ops.output import check_apart, check_once, written
from tensorcore.ops.record import record
from tensorcore.shortcuts import before
from tensorcore.tape.engine import fit
from tensorcore.tape.memory import Version
from tensorcore.tape.mode import mode, unusual
from tensorcore.tape.node import ALONE, Node, Output, bare_node, is_leaf, own_memory, unpack
from tensorcore.tensor import Tensor, new_tensor

__all__ = [
    "attach", "check_recordable", "check_same_device", "check_writable", "elementwise_inplace", "inplace", "is_free",
    "overwrite", "share_version",
]  # fmt: skip


@before("check_writable")
def check_writable(op: str, tensor: Tensor) -> None:
    """Raise where an in-place write would lose a gradient or write one memory cell twice."""
    if not isinstance(tensor, Tensor):
        raise ArgumentTypeError(f"{op}: expected a Tensor to write to, got {tensor!r}; wrap it in torch.tensor(...)")
    if mode.enabled:
        if is_leaf(tensor.node):
            raise GradientError(
                f"{op}: a leaf Variable that requires grad is being used in an in-place operation, got one; "
                f"write inside torch.no_grad(), or to a result of it"
            )
        view = tensor.origin
        if view is not None:
            # A base that requires no grad cannot take up the history of a view that was made a leaf.
            if is_leaf(view.base.node) or (view.base.node is None and tensor.node is not None):
                raise GradientError(
                    f"{op}: a view of a leaf Variable that requires grad is being used in an in-place operation, got one; "
                    f"write inside torch.no_grad()"
                )
            if view.kind != "plain" and (view.base.node is not None or tensor.node is not None):
                raise _unwritable_view(op, view)
    if not mode.inference and tensor.is_inference():
        raise GradientError(
            f"{op}: Inplace update to inference tensor outside InferenceMode is not allowed, got one; clone() it first"
        )
    check_once(op, tensor)


@before("is_free")
def is_free(tensor: Tensor) -> bool:
    """Whether a write to the tensor changes its values and nothing else: no history to keep, and no element in two places.

    What is said of the operands is up to the caller. False where that takes a closer look, as :func:`check_writable` takes.
    """
    if type(tensor) is not Tensor:
        return False
    node, trail = tensor.node, tensor.trail
    if (
        (node is not None or trail is not None)
        and mode.enabled
        and (node is not None or (trail[0] if type(trail) is tuple else trail.base).node is not None)
    ):
        return False
    return not (unusual.inferred and tensor.is_inference()) and 0 not in tensor.device.strides(tensor.native)


def check_same_device(op: str, tensor: Tensor, device: Any) -> None:
    """Raise where a tensor cannot hold a result of ``device``: it is elsewhere, or has one value where there are many."""
    if tensor.device is device:
        return
    if device.many:
        raise DeviceError(
            f"{op}: expected a tensor with room for each example, got one that all examples of a vmap share; vmap: "
            f"inplace arithmetic(self, *extra_args) is not possible on it, use the form without underscore"
        )
    raise DeviceError(f"{op}: expected a result on {tensor.device}, got one on {device}; move it with .to(device)")


def check_recordable(op: str, tensor: Tensor) -> None:
    """Raise where a write that will be recorded has a view to go to whose base cannot take up its history."""
    view = tensor.origin
    if view is not None and view.kind != "plain":
        raise _unwritable_view(op, view)


def _unwritable_view(op: str, view: Any) -> GradientError:
    causes = {
        "unrecorded": "was created in no_grad mode and is being modified inplace with grad mode enabled",
        "several": "is the output of a function that returns multiple views. Such functions do not allow the output views "
        "to be modified inplace",
        "custom": "was created inside a custom Function (or because an input was returned as-is); the write would bypass "
        "the backward of that Function",
    }
    return GradientError(
        f"{op}: expected a view that may be written, got one that {causes[view.kind]}; clone() it first"
    )


def usual_write(
    op: Op,
    accepts: frozenset[Any] | None,
    result: Any,
    numbers: bool = True,
    factors: frozenset[str] = frozenset(),
    last: bool = False,
) -> Callable[..., bool]:
    """What writes the result of an elementwise op into its first input, for the calls that most are; whether it did.

    Args:
        accepts, result: as for the op's own call, see ``calls.unary``.
        numbers: whether a number beside a tensor is usual.
        last: whether it may stand in the place of the last input alone.
        factors: names of options that the kernel takes where they are numbers.
    """
    kernel, count = op.kernel, len(op.inputs)
    first = count - 1 if last else 1  # where a number may stand
    floats = PLAIN_FLOATS if accepts is None else PLAIN_FLOATS & accepts
    integers = PLAIN_INTEGERS if accepts is None else PLAIN_INTEGERS & accepts
    if not numbers:
        floats = integers = frozenset()
    # Of one operand there is logical_not alone, which asks whether that is 0.
    comparison, absent = (kernel, ()) if count > 1 else ("eq", (0,))
    narrow = frozenset() if not numbers else NARROW if accepts is None else NARROW & accepts
    last_known = op if count > 1 else op.unchanged

    @before("overwritten", first, kernel, accepts, result, floats, integers, count, factors, narrow, last_known)
    def overwritten(input: Tensor, others: tuple[Any, ...], **options: Any) -> bool:
        """Whether the call was one of the usual ones, and is done."""
        known = [one in factors and type(value) in (float, int) for one, value in options.items()]
        if not is_free(input) or len(others) + 1 != count or not all(known):
            return False
        dtype, device, version, native = input.dtype, input.device, input.version, input.native
        if dtype in op.unchanged:
            written(input)
            return True
        if accepts is not None and dtype not in accepts:
            return False
        natives = [native]
        for other in others:
            if type(other) is Tensor:
                operand = other.native
                if (
                    other.dtype is not dtype
                    or other.device is not device
                    or (operand.shape != native.shape and operand.shape)
                    or (version is not None and other.version is version and other is not input)
                    or (other.node is not None and mode.enabled)
                ):
                    return False  # it has a history, shares the memory, or has to be converted
                natives.append(operand)
            elif len(natives) >= first and (
                ((type(other) is float or type(other) is int) and dtype in floats)
                or (type(other) is int and dtype in integers and LOWEST <= other <= HIGHEST)
            ):
                natives.append(other)
            else:
                return False
        run = device.kernels[kernel]
        if not run:
            return False  # the op is written in others there, or runs elsewhere
        if result is None or result is dtype:
            run(*natives, **options, out=native)
        elif over := device.kernels["compare_over"]:
            over(*natives, *absent, by=comparison)
        else:
            device.kernels["copy"](native, run(*natives))
        written(input)
        return True

    return overwritten


def elementwise_inplace(op: Op, overwritten: Callable[..., bool]) -> Callable[..., Tensor]:
    """The form with an underscore of an elementwise op, whose usual calls ``overwritten`` makes: into the first input."""
    name = f"{op.name}_"

    @named(name)
    def call(input: Tensor, *others: Any, **options: Any) -> Tensor:
        if not options and overwritten(input, others):
            return input
        if op.scaled is not None and (options or len(others) > 1):
            return op.scaled(input, *others, **options)
        check_writable(name, input)
        others += tuple([options.pop(one) for one in op.inputs[len(others) + 1 :] if one in options])
        if options or len(others) + 1 != len(op.inputs):
            given = f"the keyword '{next(iter(options))}'" if options else f"{len(others)}"
            raise ArgumentTypeError(
                f"{name}: expected after the tensor {', '.join(op.inputs[1:]) or 'no argument'}, got {given}; pass just that"
            )
        check_apart(name, input, others)
        device, inputs = one_device(name, (input, *others))
        compute, final = op.dtypes(op, inputs)  # type: ignore[attr-defined]
        if not dtypes.can_cast(final, input.dtype):
            raise DtypeError(
                f"{name}: result type {final.name} can't be cast to the desired output type {input.dtype.name}, got "
                f"{input.dtype.name} to write to; use the form without underscore"
            )
        shapes = [tuple(one.native.shape) for one in inputs if isinstance(one, Tensor)]
        shape = rules.broadcast(op.name, *shapes)
        if shape != shapes[0]:
            raise ShapeError(
                f"{name}: output with shape {list(shapes[0])} doesn't match the broadcast shape {list(shape)}, got an "
                f"input too small to hold the result; use the form without underscore"
            )
        if any([hasattr(type(one), "instead") for one in others]):  # a sparse tensor, which has no native array
            made = op.function(input, *others)
            return overwrite(name, input, made.to_dense() if hasattr(type(made), "instead") else made)
        recording = mode.enabled and any(isinstance(one, Tensor) and one.node is not None for one in inputs)
        erased = recording and not op.grads and input.dtype.kind in ("floating", "complex")
        if recording:
            check_recordable(name, input)
            if op.keeps_inputs:
                inputs = (inputs[0], *[_apart(one, input) for one in inputs[1:]])
            inputs = (_before(op, input, inputs), *inputs[1:])
        # A 0-d host tensor may have met one with dims elsewhere, which it cannot hold.
        check_same_device(name, input, device)
        natives, widened = arguments(op, device, inputs, compute)
        own = compute is input.dtype and not widened  # the kernel's first array is the input's
        if own and final is compute:
            device.kernels[op.kernel](*natives, out=input.native)
            remember(op, device, inputs, compute, final)
        elif own and op.result and len(natives) == 2 and (over := device.kernels["compare_over"]):
            over(*natives, by=op.kernel)
        else:
            device.kernels["copy"](input.native, device.kernels[op.kernel](*natives))
        written(input)
        if erased:
            edges = tuple([one.node if isinstance(one, Tensor) else None for one in inputs])
            attach(input, bare_node(_Erased(op.node_name), edges, tuple(input.native.shape), input.dtype))
        elif recording:
            _record(op, input, inputs, None)
        return input

    return call


@before("overwrite")
def overwrite(name: str, input: Tensor, result: Tensor) -> Tensor:
    """Write ``result`` over ``input``, which takes over its history."""
    shape, made = list(input.native.shape), list(result.native.shape)
    if made != shape:
        raise ShapeError(
            f"{name}: output with shape {shape} doesn't match the broadcast shape {made}, got an input that cannot hold the "
            f"result; use the form without underscore"
        )
    if result.dtype is not input.dtype and not dtypes.can_cast(result.dtype, input.dtype):
        raise DtypeError(
            f"{name}: result type {result.dtype.name} can't be cast to the desired output type {input.dtype.name}, got "
            f"{input.dtype.name} to write to; use the form without underscore"
        )
    check_same_device(name, input, result.device)
    if result.native is input.native and result.node is input.node:  # an op that gives such elements as they are
        written(input)
        return input
    if input.trail is not None:
        # The result may be the end of several calls; to the base it is one copy into the part.
        return input.copy_(result)  # type: ignore[attr-defined, no-any-return]
    input.device.kernels["copy"](input.native, result.native)
    written(input)
    if mode.enabled and (result.node is not None or input.node is not None):
        attach(input, result.node)
    return input


def inplace(
    name: str, function: Callable[..., Tensor], overwritten: Callable[..., bool] | None = None
) -> Callable[..., Tensor]:
    """The form with an underscore of any other op: compute, then write over the first input; usual calls as ``overwritten`` does."""

    @before("inplace", function, name, overwritten, overwrite)
    @named(name)
    def call(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if overwritten is not None and overwritten(input, args, **kwargs):
            return input
        check_writable(name, input)
        check_apart(name, input, args)
        earlier = new_tensor(input.native, input.dtype, input.device)
        earlier.node = input.node
        recorded = any([isinstance(one, Tensor) and one.node is not None for one in (input, *args, *kwargs.values())])
        if recorded and mode.enabled:  # formulas that keep the input must keep what it was before the write
            earlier.native = input.device.kernels["clone"](input.native)
        return overwrite(name, input, function(earlier, *args, **kwargs))

    return call


def attach(tensor: Tensor, node: Any, position: int = 0) -> None:
    """Make ``node`` the history of the tensor's memory, and let every view of that memory follow.

    A tensor of its own simply takes the node. A write to a view happened to a part of its base:
    the base gets a node that puts the part's gradient in place, and all views, this one included,
    are derived anew from the base.

    Args:
        position: of the written tensor among the inputs of the node's op.
    """
    view = tensor.origin
    if view is None:
        base = tensor
        _keep_retaining(tensor, node)
        tensor.node = node
    else:
        base = view.base
        copied = _copy_slices(base, view, node, position)
        _keep_retaining(base, copied)
        base.node = copied
    version = tensor.version
    if version is None or version.views is None:
        return
    for reference in list(version.views):
        one = reference()
        if one is not None and one.trail is not None and one.origin.base is base and one is not base:
            node = one.origin.replay(base).node if one.origin.kind != "custom" else _lost(one)
            _keep_retaining(one, node)
            one.node = node


def _before(op: Op, input: Tensor, inputs: Sequence[Any]) -> Tensor:
    """The input as it was before the write, for the formulas that name it; a copy only if one does."""
    before = new_tensor(input.native, input.dtype, input.device)
    before.node = input.node
    if any(isinstance(inputs[i], Tensor) and inputs[i].node is not None for i in op.needed_for[0]):
        before.native = input.device.kernels["clone"](input.native)
    return before


def _apart(one: Any, written: Tensor) -> Any:
    """An operand that shares the memory that is about to be written, as it is before that."""
    if not isinstance(one, Tensor) or not (
        one is written or (one.version is not None and one.version is written.version)
    ):
        return one
    apart = new_tensor(one.device.kernels["clone"](one.native), one.dtype, one.device)
    apart.node = one.node
    return apart


def _record(op: Op, input: Tensor, inputs: Sequence[Any], options: dict[str, Any] | None) -> None:
    result = new_tensor(input.native, input.dtype, input.device)
    result.version = input.version
    record(op, inputs, options, result)
    attach(input, result.node)


def _keep_retaining(tensor: Tensor, node: Any) -> None:
    """``retain_grad`` follows the tensor to its new node."""
    if tensor.node is None or is_leaf(tensor.node) or node is None or is_leaf(node) or not tensor.retains_grad:
        return
    reference = tensor.grad_fn.extra["retain"].pop(tensor.output_nr)
    index = 0 if type(node) is Node else node.index
    node = node if type(node) is Node else node.node
    node.extra = node.extra or {}
    node.extra.setdefault("retain", {})[index] = reference


class _Erased:
    """The op of a write without a derivative, such as ``gt_``: its inputs get gradients of zeros."""

    def __init__(self, node_name: str) -> None:
        self.node_name = node_name

    def backward(self, node: Node, g: Any, edges: Any = None) -> tuple[Any, ...]:
        return tuple([None if edge is None else g.new_zeros(edge.shape) for edge in edges or node.edges])


class _Lost:
    """The op of a custom Function's view whose base was written after: its backward no longer fits its values."""

    node_name = "LostViewBackward"

    def backward(self, node: Node, g: Any) -> tuple[Any, ...]:
        raise GradientError(
            "backward: expected a view as its custom Function made it, got one that is a view and its base or another view of "
            "its base has been modified inplace; clone() the result of the Function, or write before it is called"
        )


_LOST = _Lost()


def _lost(view: Tensor) -> Any:
    return None if view.node is None else bare_node(_LOST, (view.node,), tuple(view.native.shape), view.dtype)


class _CopySlices:
    """The op of a base whose view was written: the gradient of the part goes through the writing op."""

    node_name = "torch::autograd::CopySlices"

    def backward(self, node: Node, g: Tensor, edges: Any = None) -> tuple[Any, ...]:
        inner, view, strides, position = unpack(node)
        # A gradient that only the walk holds is written where it lies: of n writes to n parts, a copy for each were n times the work.
        if (
            getrefcount(g) <= ALONE
            and not mode.enabled
            and node.extra is None
            and own_memory(g)
            and g.stride() == strides
        ):
            whole = g
        else:
            whole = g.new_empty_strided(g.shape, strides)
            whole.copy_(g)
        part = view.replay(whole)
        if edges is None:
            grads = inner.op.backward(inner, part.clone())
        else:  # those that are asked for, of the ones that the write has
            asked = tuple([None if one is None else own for one, own in zip(edges, inner.edges, strict=True)])
            grads = inner.op.backward(inner, part.clone(), asked)
        mine = grads[position]
        if mine is None:
            part.zero_()
        else:
            if mine.native.shape != inner.shape or mine.dtype is not part.dtype:
                mine = fit(mine, _PartOf(inner, part), inner)
            part.copy_(mine)
        if not mode.enabled:
            whole.version = None  # it was the part's too, which is gone
        return (*grads[:position], whole, *grads[position + 1 :])


class _PartOf:
    """Shape and dtype of the written part."""

    __slots__ = ("dtype", "shape")

    def __init__(self, inner: Node, part: Tensor) -> None:
        self.shape = tuple(part.native.shape)
        self.dtype = part.dtype


_COPY_SLICES = _CopySlices()


def _copy_slices(base: Tensor, view: Any, inner: Any, position: int) -> Any:
    if inner is None:
        return base.node
    inner = inner.node if type(inner) is Output else inner
    edges = (*inner.edges[:position], base.node, *inner.edges[position + 1 :])
    node = bare_node(_COPY_SLICES, edges, tuple(base.native.shape), base.dtype)
    # The view's base would hold the tensor whose node this is: a cycle. Its steps are enough.
    node.saved = (inner, type(view)(None, view.steps, view.kind), base.stride(), position)
    return node


def share_version(tensor: Tensor) -> Version:
    """The tensor's version, made on first need."""
    version = tensor.version
    if version is None:
        version = tensor.version = Version()
    return version
