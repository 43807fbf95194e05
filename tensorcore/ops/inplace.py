"""In-place writes: who may be written to, and what a write does to the history of everyone who shares the memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensorcore import dtypes
from tensorcore.tape.mode import mode
from tensorcore.tape.engine import fit
from tensorcore.tape.node import Leaf, Node, Version, next_order, unpack
from tensorcore.errors import ArgumentTypeError, DtypeError, GradientError, ShapeError
from tensorcore.ops import rules
from tensorcore.ops.calls import _as, explain, one_device, record, written
from tensorcore.ops.define import Op
from tensorcore.tensor import Tensor, View, new_tensor

__all__ = ["attach", "check_writable", "elementwise_inplace", "inplace", "overwrite"]


def check_writable(op: str, tensor: Tensor) -> None:
    """Raise where an in-place write would lose a gradient or write one memory cell twice."""
    if not isinstance(tensor, Tensor):
        raise ArgumentTypeError(f"{op}: expected a Tensor to write to, got {tensor!r}; wrap it in torch.tensor(...)")
    if mode.enabled:
        if type(tensor.node) is Leaf:
            raise GradientError(
                f"{op}: a leaf Variable that requires grad is being used in an in-place operation, got one; "
                f"write inside torch.no_grad(), or to a result of it"
            )
        view = tensor.view
        if view is not None:
            if type(view.base.node) is Leaf:
                raise GradientError(
                    f"{op}: a view of a leaf Variable that requires grad is being used in an in-place operation, got one; "
                    f"write inside torch.no_grad()"
                )
            if view.kind != "plain" and view.base.node is not None:
                cause = (
                    "was created in no_grad mode and is being modified inplace with grad mode enabled"
                    if view.kind == "unrecorded"
                    else "is the output of a function that returns multiple views. Such functions do not allow the output "
                    "views to be modified inplace"
                )
                raise GradientError(f"{op}: expected a view that may be written, got one that {cause}; clone() it first")
    strides = tensor.device.strides(tensor.native)
    if 0 in strides and any(step == 0 and size > 1 for step, size in zip(strides, tensor.native.shape, strict=True)):
        raise GradientError(
            f"{op}: unsupported operation: more than one element of the written-to tensor refers to a single memory "
            f"location, got strides {strides}; Please clone() the tensor before performing the operation"
        )


def elementwise_inplace(op: Op) -> Callable[..., Tensor]:
    """The form with an underscore of an elementwise op: the result goes into the first input."""
    name = f"{op.name}_"

    def call(input: Tensor, *others: Any, **options: Any) -> Tensor:
        check_writable(name, input)
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
        recording = mode.enabled and bool(op.grads) and any(isinstance(one, Tensor) and one.node is not None for one in inputs)
        if recording:
            inputs = (_before(op, input, inputs), *inputs[1:])
        if input.device is not device:
            # A 0-d host tensor met one with dims elsewhere; broadcasting has ruled out that it could hold the result.
            raise ShapeError(f"{name}: expected all tensors on {input.device}, got one on {device}; move it with .to(...)")
        if compute is input.dtype and final is compute:
            device.kernels[op.kernel](*[_as(device, one, compute) for one in inputs], **options, out=input.native)
        else:
            result = device.kernels[op.kernel](*[_as(device, one, compute) for one in inputs], **options)
            device.kernels["copy"](input.native, result)
        written(input)
        if recording:
            _record(op, input, inputs, options or None)
        return input

    return call


def inplace(name: str, function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The form with an underscore of any other op: compute, then write over the first input."""

    def call(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        check_writable(name, input)
        # Formulas that keep the input must keep what it was before the write.
        before = new_tensor(input.native, input.dtype, input.device)
        before.node = input.node
        if input.node is not None and mode.enabled:
            before.native = input.device.kernels["clone"](input.native)
        return overwrite(name, input, function(before, *args, **kwargs))

    return call


def overwrite(name: str, input: Tensor, result: Tensor) -> Tensor:
    """Write ``result`` over ``input``, which takes over its history."""
    if tuple(result.native.shape) != tuple(input.native.shape):
        raise ShapeError(
            f"{name}: output with shape {list(input.native.shape)} doesn't match the broadcast shape "
            f"{list(result.native.shape)}, got an input that cannot hold the result; use the form without underscore"
        )
    if not dtypes.can_cast(result.dtype, input.dtype):
        raise DtypeError(
            f"{name}: result type {result.dtype.name} can't be cast to the desired output type {input.dtype.name}, got "
            f"{input.dtype.name} to write to; use the form without underscore"
        )
    input.device.kernels["copy"](input.native, result.native)
    written(input)
    if mode.enabled and (result.node is not None or input.node is not None):
        attach(input, result.node)
    return input


def attach(tensor: Tensor, node: Any) -> None:
    """Make ``node`` the history of the tensor's memory, and let every view of that memory follow.

    A tensor of its own simply takes the node. A write to a view happened to a part of its base:
    the base gets a node that puts the part's gradient in place, and all views, this one included,
    are derived anew from the base.
    """
    view = tensor.view
    if view is None:
        base = tensor
        _keep_retaining(tensor, node)
        tensor.node = node
    else:
        base = view.base
        copied = _copy_slices(base, view, node)
        _keep_retaining(base, copied)
        base.node = copied
    version = tensor.version
    if version is None or version.views is None:
        return
    for reference in list(version.views):
        one = reference()
        if one is not None and one.view is not None and one.view.base is base and one is not base:
            one.node = one.view.replay(one.view.steps, base).node


def _before(op: Op, input: Tensor, inputs: Sequence[Any]) -> Tensor:
    """The input as it was before the write, for the formulas that name it; a copy only if one does."""
    before = new_tensor(input.native, input.dtype, input.device)
    before.node = input.node
    needed = any(isinstance(inputs[i], Tensor) and inputs[i].node is not None for i in op.needed_for[0])
    if needed:
        before.native = input.device.kernels["clone"](input.native)
    return before


def _record(op: Op, input: Tensor, inputs: Sequence[Any], options: dict[str, Any] | None) -> None:
    result = new_tensor(input.native, input.dtype, input.device)
    result.version = input.version
    record(op, inputs, options, result)
    attach(input, result.node)


def _keep_retaining(tensor: Tensor, node: Any) -> None:
    """``retain_grad`` follows the tensor to its new node."""
    if tensor.node is not None and type(tensor.node) is not Leaf and tensor.retains_grad and type(node) is Node:
        notes = tensor.grad_fn.extra["retain"]
        reference = notes.pop(tensor.output_nr)
        node.extra = node.extra or {}
        node.extra.setdefault("retain", {})[0] = reference


class _CopySlices:
    """The op of a base whose view was written: the gradient of the part goes through the writing op."""

    node_name = "CopySlices"

    def backward(self, node: Node, g: Tensor) -> tuple[Any, ...]:
        inner, steps, strides = unpack(node)
        whole = g.new_empty_strided(g.shape, strides)
        whole.copy_(g)
        part = View.replay(steps, whole)
        grads = inner.op.backward(inner, part.clone())
        if grads[0] is None:
            part.zero_()
        else:
            mine = grads[0]
            if mine.native.shape != inner.shape or mine.dtype is not part.dtype:
                mine = fit(mine, part_of(inner, part), inner)
            part.copy_(mine)
        return (whole, *grads[1:])


class part_of:  # noqa: N801 - a small record: what ``fit`` reads of an edge
    """Shape and dtype of the written part."""

    __slots__ = ("dtype", "shape")

    def __init__(self, inner: Node, part: Tensor) -> None:
        self.shape = tuple(part.native.shape)
        self.dtype = part.dtype


_COPY_SLICES = _CopySlices()


def _copy_slices(base: Tensor, view: Any, inner: Any) -> Any:
    if inner is None:
        return base.node
    node = object.__new__(Node)
    node.op = _COPY_SLICES
    node.edges = (base.node, *inner.edges[1:])
    # The inner op computes a gradient for its first input only if that input has an edge.
    inner.edges = (base.node, *inner.edges[1:])
    # The view's base would hold the tensor whose node this is: a cycle. Its steps are enough.
    node.saved = (inner, view.steps, base.stride())
    node.options = node.extra = node.out = node.version = None
    node.shape = tuple(base.native.shape)
    node.dtype = base.dtype
    node.order = next_order()
    return node


def share_version(tensor: Tensor) -> Version:
    """The tensor's version, made on first need."""
    version = tensor.version
    if version is None:
        version = tensor.version = Version()
    return version
