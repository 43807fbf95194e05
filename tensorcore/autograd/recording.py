"""How one call of a custom Function goes on the tape: its node, its results, and what it saved."""

from __future__ import annotations

import warnings
import weakref
from typing import Any

from tensorcore.errors import GradientError
from tensorcore.ops.inplace import attach
from tensorcore.ops.output import written
from tensorcore.ops.record import pack, user_trace
from tensorcore.tape.memory import Version
from tensorcore.tape.mode import mode, no_grad
from tensorcore.tape.node import Node, Output, Packed, bare_node, freed, is_leaf, stale
from tensorcore.tensor import Tensor, new_tensor

__all__ = ["Results", "plain", "saved"]


def plain(op: Any, ctx: Any, args: tuple[Any, ...], output: Any) -> bool:
    """Record the usual call at half the price: one new tensor came out, nothing was marked, nothing is switched on."""
    if (
        type(output) is not Tensor
        or output.node is not None
        or output.origin is not None
        or ctx._dirty
        or ctx._constant
        or mode.packers
        or mode.anomaly
        or output.dtype.kind not in ("floating", "complex")
    ):
        return False
    saving = ctx._saving
    for one in saving:
        if one is output:
            return False
    edges, tensors = [], []
    for one in args:
        if one is output:
            return False
        there = isinstance(one, Tensor)
        tensors.append(there)
        if there:
            edges.append(one.node)
    shape, dtype = output.native.shape, output.dtype
    output.node = node = bare_node(op, tuple(edges), shape, dtype)
    node.saved, ctx._keeps, ctx._saving = saving, bool(saving), ()
    node.options = {"ctx": ctx}
    ctx._node = weakref.ref(node)
    ctx._tensors = tensors
    ctx._traits = ((shape, dtype, output.device),)
    ctx._only = 0
    return True


class Results:
    """The results of one call, and how they go on the tape."""

    def __init__(self, op: Any, ctx: Any, args: tuple[Any, ...], output: Any, recording: bool) -> None:
        self.op, self.ctx, self.args, self.output, self.recording = op, ctx, args, output, recording
        self.several = isinstance(output, tuple)
        self.outputs = list(output) if self.several else [output]
        self.inputs = {id(one): i for i, one in enumerate(args) if isinstance(one, Tensor)}
        self.dirty = {id(one) for one in ctx._dirty}
        self.constant = {id(one) for one in ctx._constant}
        tensors = [one for one in self.outputs if isinstance(one, Tensor)]
        if not self.dirty <= {id(one) for one in tensors}:
            raise GradientError(
                f"{op.name}: expected every tensor given to mark_dirty to be returned, got others: Some elements "
                "marked as "
                f"dirty during the forward method were not returned as output; return them"
            )
        for one in ctx._dirty:
            written(one)
            if id(one) not in self.inputs:
                warnings.warn(
                    "ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that have been "
                    "mutated "
                    "should be passed to ctx.mark_dirty()",
                    UserWarning,
                    stacklevel=4,
                )
            elif recording and is_leaf(one.node):
                raise GradientError(
                    f"{op.name}: a leaf Variable that requires grad has been used in an in-place operation, got one; "
                    f"give the function a clone() of it"
                )
            elif recording and one.origin is not None and len(tensors) > 1:
                raise GradientError(
                    f"{op.name}: expected one result, got {len(tensors)}: If your Function modifies inplace an input "
                    "that is a "
                    f"view of another Tensor, your Function cannot return more than one Tensor; give it a clone()"
                )

    def recorded(self) -> Any:
        """The results as the caller gets them."""
        node = self._node() if self.recording else None
        made = [self._placed(one, i, node) for i, one in enumerate(self.outputs)]
        ctx = self.ctx
        if node is None:
            ctx._saving = ctx._for_forward = ()
        else:
            self._save(node, made)
        ctx._dirty = ctx._constant = ()
        return tuple(made) if self.several else made[0]

    def _node(self) -> Node:
        edges = tuple([one.node for one in self.args if isinstance(one, Tensor)])
        node = bare_node(self.op, edges, None, None)
        shapes = [tuple(one.native.shape) if isinstance(one, Tensor) else None for one in self.outputs]
        kinds = [one.dtype if isinstance(one, Tensor) else None for one in self.outputs]
        node.shape, node.dtype = (shapes, kinds) if self.several else (shapes[0], kinds[0])
        ctx: Any = self.ctx
        node.options = {"ctx": ctx}
        ctx._node = weakref.ref(node)
        ctx._tensors = [isinstance(one, Tensor) for one in self.args]
        ctx._traits = [
            (tuple(one.native.shape), one.dtype, one.device) if isinstance(one, Tensor) else None
            for one in self.outputs
        ]
        ctx._only = next((i for i, one in enumerate(self.outputs) if isinstance(one, Tensor)), 0)
        return node

    def _placed(self, one: Any, i: int, node: Node | None) -> Any:
        """One result with its history."""
        if not isinstance(one, Tensor):
            return one
        is_input, is_dirty = id(one) in self.inputs, id(one) in self.dirty
        if node is None or id(one) in self.constant or one.dtype.kind not in ("floating", "complex"):
            if is_input and is_dirty and node is None:
                return one
            if is_input:
                return _alias(one)
            if one.node is not None:
                one = one.detach()
            return one
        edge = Output(node, i) if self.several else node
        if is_dirty and is_input:
            attach(one, edge, sum(isinstance(each, Tensor) for each in self.args[: self.inputs[id(one)]]))
            return one
        if is_input or is_leaf(one.node):
            one = _alias(one)
        elif one.origin is not None:
            one.origin.kind = "custom"
            one.version.watch(one)
        one.node = edge
        return one

    def _save(self, node: Node, made: list[Any]) -> None:
        """Put what ``save_for_backward`` was given on the node."""
        ctx = self.ctx
        own = {id(one): i for i, one in enumerate(made) if isinstance(one, Tensor) and one.node is not None}
        kept: list[Any] = []
        for one in ctx._saving:
            if one is not None and id(one) in own:
                kept.append(_Own(one, own[id(one)] if self.several else None))
            else:
                kept.append(one)
        ctx._saving = ()
        ctx._keeps = bool(kept)
        if mode.anomaly:
            node.extra = {"trace": user_trace()}
        if mode.packers and kept:
            pair = mode.packers[-1]
            node.saved = Packed(tuple([_packed(one, pair) for one in kept]), pair[1])
        else:
            node.saved = tuple(kept)


def _packed(one: Any, pair: Any) -> Any:
    if one is None:
        return None
    if type(one) is _Own:
        detached = new_tensor(one.native, one.dtype, one.device)
        return pack(detached, pair)[0], one
    return pack(one, pair)


def saved(node: Node) -> tuple[Any, ...]:
    """What the node saved as tensors in their places on the tape, unless one was written since."""
    saved = node.saved
    if saved is None:
        if not node.options["ctx"]._keeps:  # type: ignore[index]
            return ()
        raise freed(node)
    found: list[Any] = []
    packed = type(saved) is Packed
    for i, item in enumerate(saved.items if packed else saved):
        one = saved.get(item) if packed else item
        if packed and one is not None and type(one.node) is _Own:
            one.node = node if one.node.index is None else Output(node, one.node.index)
        elif type(one) is _Own:
            one = one.tensor(node)
        if one is not None and one.version is not None and one.version.stamp < node.order:
            raise stale(node, f"saved tensor {i}", one.version)
        found.append(one)
    return tuple(found)


def _alias(tensor: Tensor) -> Tensor:
    """A view of the whole tensor with a history of its own."""
    with no_grad():
        made: Tensor = tensor.expand(tensor.native.shape)
    made.origin.kind = "custom"
    made.version.watch(made)
    return made


class _Own:
    """A saved tensor that is a result of the node itself: without its place on the tape, which would be a cycle."""

    __slots__ = ("device", "dtype", "index", "native", "version")

    def __init__(self, tensor: Tensor, index: int | None) -> None:
        self.native, self.dtype, self.device = tensor.native, tensor.dtype, tensor.device
        if tensor.version is None:
            tensor.version = Version()
        self.version, self.index = tensor.version, index

    def tensor(self, node: Node) -> Tensor:
        made = new_tensor(self.native, self.dtype, self.device)
        made.version = self.version
        made.node = node if self.index is None else Output(node, self.index)
        return made  # type: ignore[no-any-return]
