"""Places on the tape that outlive the tensors they belong to."""

from __future__ import annotations

from typing import Any, NamedTuple

from tensorcore.errors import ArgumentTypeError, GradientError
from tensorcore.tape.node import Output, is_leaf
from tensorcore.tensor import Tensor

__all__ = ["GradientEdge", "edge_of", "get_gradient_edge"]


class GradientEdge(NamedTuple):
    """The result ``output_nr`` of ``node``: ``grad`` takes it in the place of the tensor itself."""

    node: Any
    output_nr: int
    ownership_token: Any = None


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The edge of a tensor that requires grad."""
    if not isinstance(tensor, Tensor):
        raise ArgumentTypeError(
            f"get_gradient_edge: expected a Tensor, got {tensor!r}; pass a tensor that requires grad"
        )
    if tensor.node is None:
        raise GradientError(
            "get_gradient_edge: It is not possible to get the gradient edge for a Tensor that does not require "
            "gradients, "
            "got one; call requires_grad_() first"
        )
    if is_leaf(tensor.node):
        return GradientEdge(tensor.node, 0)
    return GradientEdge(tensor.grad_fn, tensor.output_nr)


def edge_of(edge: GradientEdge) -> Any:
    """The tape's own form of it."""
    node = edge.node
    return Output(node, edge.output_nr) if isinstance(node.shape, list) else node
