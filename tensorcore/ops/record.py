"""How a call gets on the tape off the hot path, with whatever hooks and traces this thread has switched on."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Sequence
from typing import Any

from tensorcore.errors import GradientError
from tensorcore.ops.define import Op
from tensorcore.shortcuts import before
from tensorcore.tape.memory import Version, next_order, writes
from tensorcore.tape.mode import mode
from tensorcore.tape.node import Node, Output, Packed
from tensorcore.tensor import Tensor, new_tensor

__all__ = ["pack", "record", "user_trace"]

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_EMPTY: tuple[Any, ...] = ()
new = object.__new__


@before("record")
def record(op: Op, inputs: Sequence[Any], options: dict[str, Any] | None, made: Any) -> None:
    """Put one call on the tape, with whatever hooks and traces this thread has switched on."""
    several = type(made) is list
    results = made if several else [made]
    if not any([one.dtype.is_floating_point or one.dtype.is_complex for one in results]):
        return
    device = results[0].device
    if device.wraps is not None:
        # Tensors of the wrapped backend come in by an op of their own, whose gradient finds the way back.
        inputs = [device.lift(one) if isinstance(one, Tensor) else one for one in inputs]
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
                one if any([edges[i] is not None for i in needed]) else None
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
            node.saved = Packed(
                tuple([pack(one, pair) if isinstance(one, Tensor) else one for one in node.saved]), pair[1]
            )
        if node.out is not None and not several:
            # Off the tape: a hook that keeps what it is given would make a cycle of the result and its node.
            node.out = Packed((pack(new_tensor(node.out, node.dtype, results[0].device), pair),), pair[1])


def pack(tensor: Tensor, pair: tuple[Callable[[Any], Any], Callable[[Any], Any]]) -> tuple[Any, Any]:
    """What the user's pack hook makes of a tensor, and the edge that the unpacked one takes up again."""
    packers, enabled, count = mode.packers, mode.enabled, writes(tensor.version)
    mode.packers, mode.enabled = (), False
    mode.settle()
    try:
        value = pair[0](tensor)
    finally:
        mode.packers, mode.enabled = packers, enabled
        mode.settle()
    if writes(tensor.version) != count:
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
