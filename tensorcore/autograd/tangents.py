"""Forward mode over the tape: tangents pushed from the oldest recorded call to the youngest.

What a call does to a tangent follows from its kind and from the formulas that it has anyway. A view of the tangent is
the tangent of the view. A formula that works element by element gives the tangent where the gradient would stand. Of
any other call the backward is a linear function of the incoming gradient, whose transpose is the derivative itself:
run the backward on a gradient that is on the tape, and walk back from its results to that gradient.
"""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from typing import Any

from tensorcore.ops.calls import apply
from tensorcore.ops.define import Op, gradient_arguments, kept_out, unwritten_out
from tensorcore.ops.operands import common_device
from tensorcore.tape.engine import fit, key_of, walk
from tensorcore.tape.mode import enable_grad, mode
from tensorcore.tape.node import FROZEN, Node, Output, bare_node, leaf, stale, unpack
from tensorcore.tensor import Tensor, new_tensor

__all__ = ["SILENT", "Alias", "behind", "constant", "push", "reached", "record_alias"]

# Views whose kernel takes a tensor of any strides.
_SHOWS = frozenset(["permute", "expand", "index", "unsqueeze", "diagonal", "windows"])
# Linear in each input by itself: the op with the tangent in that input's place. What the formulas keep suffices for it.
# An embedding has exceptions in its gradient that its derivative lacks.
_MULTILINEAR = frozenset(["embedding", "matmul"])


class Alias:
    """The op of a tensor that is another one's values at a place of its own on the tape."""

    node_name = "AliasBackward0"

    def backward(self, node: Node, g: Any) -> tuple[Any, ...]:
        """The gradient as it is."""
        return (g,)

    def tangents(self, node: Node, given: list[Any]) -> Any:
        """The tangent as it is."""
        return given[0]


_ALIAS = Alias()
SILENT = Alias()  # of a node where tangents end


def record_alias(tensor: Tensor, op: Any = _ALIAS) -> Tensor:
    """The tensor, in the same memory, behind a node of its own."""
    made = new_tensor(tensor.native, tensor.dtype, tensor.device)
    made.version, made.trail = tensor.version, tensor.trail
    made.node = bare_node(op, (tensor.node,), tuple(tensor.native.shape), tensor.dtype)
    return made  # type: ignore[no-any-return]


def constant(tensor: Tensor) -> Tensor:
    """The tensor off the tape, in the same memory."""
    return new_tensor(tensor.native, tensor.dtype, tensor.device) if tensor.node is not None else tensor


def reached(edges: Sequence[Any], ends: Any, start: int) -> tuple[list[Node], bool]:
    """What the edges were computed from since ``start``.

    Args:
        edges: places on the tape; None is none.
        ends: the nodes where the search stops.
        start: a number of the tape's clock.

    Returns:
        The nodes, oldest first, and whether any edge, or any that comes before an end, leads to what is older or to
        a leaf that is no end: whether there is something else to differentiate by.
    """
    found: list[Node] = []
    seen: set[int] = set()
    outside = False
    stack = [edge for edge in edges if edge is not None]
    while stack:
        edge = stack.pop()
        node = edge.node if type(edge) is Output else edge
        if id(node) in seen:
            continue
        seen.add(id(node))
        if node in ends:
            outside = outside or any(one is not None for one in node.edges)
        elif node.order >= start:
            outside = outside or node.op is not FROZEN
        else:
            found.append(node)
            stack.extend(one for one in node.edges if one is not None)
    found.sort(key=lambda node: -node.order)
    return found, outside


def push(nodes: Sequence[Node], known: MutableMapping[Node, Any], create: bool) -> None:
    """Add the tangents of ``nodes``, oldest first, to those that are known.

    Args:
        known: by node the tangent, a dict of them by index for a node of several results, or None where there is none.
        create: whether the tangents themselves are recorded.
    """
    enabled, packers, anomaly = mode.enabled, mode.packers, mode.anomaly
    mode.enabled, mode.packers, mode.anomaly = create, (), False
    mode.settle()
    try:
        for node in nodes:
            if node in known:
                continue
            given = [behind(edge, known) for edge in node.edges]
            known[node] = None
            if any(one is not None for one in given):
                known[node] = _tangents(node, given, create)
    finally:
        mode.enabled, mode.packers, mode.anomaly = enabled, packers, anomaly
        mode.settle()


def behind(edge: Any, known: MutableMapping[Node, Any]) -> Any:
    """The tangent that is known at an edge, or None."""
    if edge is None:
        return None
    if type(edge) is not Output:
        return known.get(edge)
    found = known.get(edge.node)
    return None if found is None else found.get(edge.index)


def _tangents(node: Node, given: list[Any], create: bool) -> Any:
    op = node.op
    own = getattr(op, "tangents", None)
    if own is not None:
        return own(node, given)
    if type(op) is Op and type(node.shape) is not list:
        options = {key: one for key, one in (node.options or {}).items() if not key.endswith(("_shape", "_dtype"))}
        if op.kind == "view" and op.kernel in _SHOWS:
            options.pop("step" if op.kernel == "unsqueeze" else "", None)  # of the memory of the input
            return op.view(given[0], options)  # type: ignore[attr-defined]
        if op.kind == "elementwise" and node.dtype.is_floating_point and _real(node):
            return _elementwise(op, node, given)
        if op.name in _MULTILINEAR:
            return _multilinear(op, node, given, options)
        if op.name == "move":
            return given[0].to(options["target"])
    return _transposed(node, given, create)


def _real(node: Node) -> bool:
    return all(edge is None or edge.dtype.is_floating_point for edge in node.edges)


def _kept(op: Op, node: Node, device_of: Tensor) -> dict[str, Any]:
    """What the formulas may name, apart from the gradient and the shape of the input itself."""
    values = dict(node.options or {})
    if op.keeps_inputs:
        for name, one in zip(op.inputs, unpack(node), strict=True):
            version = getattr(one, "version", None)
            if version is not None and version.stamp < node.order:
                raise stale(node, name, version)
            values[name] = one
    if op.keeps_out:
        values["unwritten_out"] = unwritten_out(node, device_of)
        if any("out" in gradient_arguments(one) for one in op.grads.values()):
            values["out"] = kept_out(node, device_of)
    return values


def _elementwise(op: Op, node: Node, given: list[Any]) -> Any:
    """The sum over the inputs of what their formulas make of the tangent in the gradient's place."""
    values: dict[str, Any] | None = None
    total: Any = None
    for name, edge, tangent in zip(op.inputs, node.edges, given, strict=True):
        if tangent is None or name not in op.grads:
            continue
        if tangent.dtype is not node.dtype:
            tangent = tangent.to(node.dtype)
        if tangent.native.shape != node.shape:
            tangent = tangent.expand(node.shape)
        if values is None:
            values = _kept(op, node, tangent)
        formula = op.grads[name]
        traits = {f"{name}_shape": edge.shape, f"{name}_dtype": edge.dtype}
        part = formula(*[tangent if one == "g" else traits[one] if one in traits else values[one]
                         for one in gradient_arguments(formula)])  # fmt: skip
        total = part if total is None else total + part
    return _fitted(total, node.shape, node.dtype)


def _fitted(tangent: Any, shape: Any, dtype: Any) -> Any:
    if tangent is None:
        return None
    tangent = tangent if tangent.dtype is dtype else tangent.to(dtype)
    return tangent if tangent.native.shape == shape else tangent.expand(shape)


def _multilinear(op: Op, node: Node, given: list[Any], options: dict[str, Any]) -> Any:
    """The sum over the inputs of the op with the tangent in that input's place."""
    values = _kept(op, node, next(one for one in given if one is not None))
    inputs = [values.get(name) for name in op.inputs]
    total: Any = None
    for i, tangent in enumerate(given):
        if tangent is not None:
            part = apply(op, [*inputs[:i], tangent, *inputs[i + 1 :]], options, dtype=node.dtype)
            total = part if total is None else total + part
    return total


def _transposed(node: Node, given: list[Any], create: bool) -> Any:
    """The transpose of the node's backward, at the tangents."""
    device = common_device(node.op.node_name, [one for one in given if one is not None])
    several = type(node.shape) is list
    shapes, kinds = (node.shape, node.dtype) if several else ([node.shape], [node.dtype])
    grads = [_blank(shape, dtype, device) for shape, dtype in zip(shapes, kinds, strict=True)]
    with enable_grad():
        back = node.op.backward(node, grads if several else grads[0])
        roots = []
        for g, edge, tangent in zip(back, node.edges, given, strict=False):
            if g is not None and edge is not None and tangent is not None:
                g = fit(g, edge, node)
                if g.node is not None:
                    roots.append((g.node, tangent if tangent.dtype is g.dtype else tangent.to(g.dtype)))
    targets = {key_of(one.node) for one in grads if one is not None}
    found = walk(roots, retain=False, create=create, targets=targets) if roots else {}
    if not several:
        return found.get(grads[0].node)
    return {i: found[one.node] for i, one in enumerate(grads) if one is not None and one.node in found}


def _blank(shape: Any, dtype: Any, device: Any) -> Any:
    """A gradient to differentiate by; None for a result that has none."""
    if dtype is None or dtype.kind not in ("floating", "complex"):
        return None
    made = new_tensor(device.kernels["full"](tuple(shape), 0, dtype=dtype), dtype, device)
    made.node = leaf(made)
    made.node.op = FROZEN
    return made
