"""The tape of a tensor as a drawing: which nodes its gradient passes on the way to the leaves, as text, dot or a picture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tensorcore.boxes import Box, Drawing
from tensorcore.errors import ArgumentTypeError, UsageError
from tensorcore.tape.node import FROZEN, Node, Output, is_leaf
from tensorcore.tensor import Tensor

__all__ = ["TapeGraph", "make_dot", "tape_graph"]


class TapeGraph(Drawing):
    """The drawing of a tape."""


def tape_graph(outputs: Any, params: Any = None, *, show_saved: bool = False) -> TapeGraph:
    """What the gradient of a tensor passes on its way to the leaves.

    Args:
        outputs: a tensor on the tape, for instance a loss, or several in a list or tuple.
        params: names for leaves: a Module, or a dict or pairs of names and tensors.
        show_saved: also the tensors that nodes keep for the backward walk.

    Raises ArgumentTypeError for what is no tensor, UsageError for tensors that are not on the tape.
    """
    given = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
    for one in given:
        if not isinstance(one, Tensor):
            raise ArgumentTypeError(f"tape_graph: expected a tensor, got {type(one).__name__}; pass a loss")
        if one.node is None:
            raise UsageError("tape_graph: expected a tensor on the tape, got one that requires no grad; pass a loss")
    names = {id(tensor.node): name for name, tensor in _named(params) if tensor.node is not None}
    boxes = [Box("result", names.get(id(one.node), "result"), _detail(one.native.shape, one.dtype)) for one in given]
    arrows: list[tuple[int, int]] = []
    places: dict[int, int] = {}
    stack: list[tuple[Any, int]] = [(one.node, i) for i, one in reversed(list(enumerate(given)))]
    while stack:
        edge, target = stack.pop()
        node: Node = edge.node if type(edge) is Output else edge
        at = places.get(id(node))
        if at is None:
            at = places[id(node)] = len(boxes)
            if is_leaf(node) or node.op is FROZEN:
                boxes.append(Box("leaf", names.get(id(node), "leaf"), _detail(node.shape, node.dtype)))
            else:
                several = type(node.shape) is list
                detail = ", ".join([_detail(*pair) for pair in zip(node.shape, node.dtype, strict=True)]) if several else (
                    _detail(node.shape, node.dtype)
                )  # fmt: skip
                boxes.append(Box("op", node.name().rpartition(":")[2], detail))
            stack.extend([(one, at) for one in reversed(node.edges) if one is not None])
            if show_saved and type(node.saved) is tuple:
                for one in node.saved:
                    if isinstance(one, Tensor):
                        arrows.append((len(boxes), at))
                        boxes.append(Box("saved", "saved", _detail(one.native.shape, one.dtype)))
        arrows.append((at, target))
    return TapeGraph(boxes, arrows)


def make_dot(var: Any, params: Any = None, show_attrs: bool = False, show_saved: bool = False) -> TapeGraph:
    """:func:`tape_graph` under the name that programs drawing PyTorch's graphs call; ``show_attrs`` is not needed."""
    return tape_graph(var, params, show_saved=show_saved)


def _named(params: Any) -> list[tuple[str, Tensor]]:
    if params is None:
        return []
    if hasattr(params, "named_parameters"):
        return list(params.named_parameters())
    return list(params.items() if isinstance(params, Mapping) else params)


def _detail(shape: Any, dtype: Any) -> str:
    return f"{dtype.name} [{', '.join(map(str, shape))}]"
