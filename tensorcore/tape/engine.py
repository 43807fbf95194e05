"""The walk over the tape: gradients flow from the youngest node to the leaves."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush
from typing import Any

from tensorcore.tape.mode import mode
from tensorcore.tape.node import Node, Output, is_leaf
from tensorcore.errors import GradientError

__all__ = ["Eager", "walk"]


_OLDEST = 1 << 62  # no node is as old


class Eager:
    """How many leaves want to hear at once when their gradient is complete, not at the walk's end.

    Knowing that a leaf is complete takes a count of its uses, one more pass over the graph; the pass
    is made only while somebody listens (gradient buckets that overlap with backward, optimizers
    stepped inside backward).
    """

    listeners = 0


def walk(
    roots: Iterable[tuple[Any, Any]],
    *,
    retain: bool,
    create: bool,
    targets: set[Any] | None = None,
) -> dict[Any, Any]:
    """Send gradients from ``roots`` down the tape.

    A node is always younger than those its edges lead to, so the youngest of the pending ones is
    complete: a heap replaces the topological sort, and nothing recurses.

    Args:
        roots: pairs of an edge and the gradient that arrives there.
        retain: keep what the nodes saved, for another walk.
        create: record the walk itself, for derivatives of derivatives.
        targets: the keys (see ``key_of``) whose gradients are returned; leaves accumulate nothing then.

    Returns:
        The gradients that arrived at the targets, by key; empty without targets.
    """
    wanted = None if targets is None else _ancestors([edge for edge, _ in roots], targets)
    uses = _leaf_uses([edge for edge, _ in roots]) if targets is None and Eager.listeners else None
    found: dict[Any, Any] = {}
    # node -> the gradient so far: a tensor; a list of one tensor where that is a sum of the walk's own, which the
    # next one is added to in place; of a node with several results a dict of tensors by index.
    pending: dict[Any, Any] = {}
    heap: list[tuple[int, Node]] = []
    watched = targets is not None or mode.anomaly
    before = mode.enabled
    mode.enabled = create
    mode.settle()
    try:
        for edge, g in roots:
            _arrive(edge, g, pending, heap)
        while heap:
            node = heappop(heap)[1]
            g = pending.pop(node, None)
            if type(g) is list:
                g = g.pop()
            elif type(g) is dict:
                g = [g.get(i) for i in range(len(node.shape))]
            elif g is None:
                continue  # a leaf that was complete earlier
            youngest = heap[0][0] if heap else _OLDEST
            while True:
                if watched or node.extra is not None:
                    g = _before(node, g, targets, found)
                    if wanted is not None and node not in wanted:
                        break
                    grads = _after(node, node.op.backward(node, g), g)
                else:
                    backward = node.op.backward  # a read, not a method call: that one CPython does not cache here
                    grads = backward(node, g)
                if not retain:
                    node.saved = node.out = None
                # The first parent found stays out of the heap and the dict: on a chain that is every node.
                following: Any = None
                shape: Any = None
                checked: Any = None
                i = -1  # counted by hand: zip costs 0.05 us a node
                for edge in node.edges:
                    i += 1
                    g = grads[i]
                    if edge is None or g is None:
                        continue
                    if type(edge) is Output:
                        _arrive(edge, fit(g, edge, node), pending, heap)
                        youngest = heap[0][0]
                        continue
                    if g is not checked:
                        shape = g.native.shape
                        checked = g
                    if shape != edge.shape or g.dtype is not edge.dtype:
                        g = fit(g, edge, node)
                    held = pending.get(edge)
                    if held is None:
                        if edge is following:
                            following_g = following_g + g  # noqa: F821 - set together with following
                        elif following is None and edge.edges:
                            following, following_g = edge, g
                        else:
                            pending[edge] = g
                            heappush(heap, (edge.order, edge))
                            if edge.order < youngest:
                                youngest = edge.order
                    elif type(held) is list:
                        held = held[0]
                        held.device.kernels["add"](held.native, g.native, held.native)
                    else:
                        pending[edge] = held + g if create else [held + g]
                    if uses is not None and edge in uses:
                        uses[edge] -= 1
                        if not uses[edge]:
                            g = checked = held = None
                            _complete(edge, pending)
                grads = g = checked = held = None
                if following is None:
                    break
                if youngest < following.order:
                    pending[following] = following_g
                    heappush(heap, (following.order, following))
                    break
                node, g = following, following_g
                following_g = None
    finally:
        mode.enabled = before
        mode.settle()
    return found


def key_of(edge: Any) -> Any:
    """What identifies the tensor behind an edge: its node, or node and index where there are several results."""
    return (edge.node, edge.index) if type(edge) is Output else edge


def fit(g: Any, edge: Any, node: Node) -> Any:
    """A gradient in the shape and dtype of the tensor it belongs to.

    Broadcasting and promotion happen in the forward call without a trace; here they are undone,
    once for all ops: summed to the shape, cast to the dtype (the real part where that is real).
    """
    if g.native.shape != edge.shape:
        if not _came_from(edge.shape, g.native.shape):
            raise GradientError(
                f"{node.name()}: expected a gradient of a shape compatible with {list(edge.shape)}, "
                f"got {list(g.native.shape)}; return one gradient of the input's shape for each input"
            )
        g = g.sum_to_size(edge.shape)
    if g.dtype is not edge.dtype:
        if g.dtype.is_complex and not edge.dtype.is_complex:
            g = g.real
        g = g.to(edge.dtype)
    return g


def _came_from(small: tuple[int, ...], large: tuple[int, ...]) -> bool:
    """Whether ``small`` broadcasts to ``large``."""
    extra = len(large) - len(small)
    return extra >= 0 and all(a in (1, b) for a, b in zip(small, large[extra:], strict=True))


def _arrive(edge: Any, g: Any, pending: dict[Any, Any], heap: list[Any]) -> None:
    """Note a gradient at an edge, off the hot path: at the roots, and at nodes with several results."""
    node = edge.node if type(edge) is Output else edge
    held = pending.get(node)
    if held is None:
        pending[node] = {edge.index: g} if type(edge) is Output else g
        heappush(heap, (node.order, node))
    elif type(edge) is Output:
        held[edge.index] = held[edge.index] + g if edge.index in held else g
    else:
        pending[node] = (held[0] if type(held) is list else held) + g


def _complete(leaf: Node, pending: dict[Any, Any]) -> None:
    """Settle a leaf whose gradient is complete before the walk ends."""
    g = pending.pop(leaf)
    if type(g) is list:
        g = g.pop()
    if leaf.extra is None:
        leaf.op.backward(leaf, g)
    else:
        g = _before(leaf, g, None, {})
        _after(leaf, leaf.op.backward(leaf, g), g)


def _replaced(changed: Any, g: Any) -> Any:
    if changed is None:
        return g
    if getattr(changed, "native", None) is None or changed.native.shape != g.native.shape:
        raise GradientError(
            f"hook: expected None or a gradient of shape {list(g.native.shape)}, got {changed!r}; "
            f"return a tensor of the gradient's shape, or nothing"
        )
    return changed


def _before(node: Node, g: Any, targets: set[Any] | None, found: dict[Any, Any]) -> Any:
    """Tensor hooks, retained gradients, captures for the targets, then the node's own pre-hooks."""
    several = isinstance(g, list)
    extra = node.extra or {}
    for index, hook in list(extra.get("tensor_hooks", {}).values()):
        if several and g[index] is not None:
            g[index] = _replaced(hook(g[index]), g[index])
        elif not several:
            g = _replaced(hook(g), g)
    for index, reference in extra.get("retain", {}).items():
        tensor, mine = reference(), (g[index] if several else g)
        if tensor is not None and mine is not None:
            held = tensor.__dict__.get("_grad")
            tensor.__dict__["_grad"] = mine.clone() if held is None else held + mine
    if targets is not None:
        if several:
            found.update({(node, i): one for i, one in enumerate(g) if one is not None and (node, i) in targets})
        elif node in targets:
            found[node] = g
    for hook in list(extra.get("prehooks", {}).values()):
        changed = hook(tuple(g) if several else (g,))
        if changed is not None:
            g = list(changed) if several else changed[0]
    return g


def _after(node: Node, grads: Any, g: Any) -> Any:
    """The node's post-hooks, and anomaly mode's search for NaN."""
    extra = node.extra or {}
    for hook in list(extra.get("hooks", {}).values()):
        changed = hook(tuple(grads), tuple(g) if isinstance(g, list) else (g,))
        if changed is not None:
            grads = changed if isinstance(changed, tuple) else (changed,)
    if mode.anomaly and mode.check_nan:
        for i, one in enumerate(grads):
            if one is not None and one.dtype.kind in ("floating", "complex") and bool((one != one).any()):
                raise GradientError(
                    f"backward: expected numbers, got NaN: Function '{node.name()}' returned nan values in its "
                    f"{i}th output; it was recorded here:\n{extra.get('trace', '(outside detect_anomaly)')}"
                )
    return grads


def _ancestors(roots: list[Any], targets: set[Any]) -> set[Any]:
    """The nodes whose edges lead to a target: the only ones whose formulas have to run."""
    order: list[Any] = []
    seen: set[Any] = set()
    stack = [edge.node if type(edge) is Output else edge for edge in roots]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        order.append(node)
        stack.extend(edge.node if type(edge) is Output else edge for edge in node.edges if edge is not None)
    wanted: set[Any] = set()
    # Oldest first: by then it is known which of a node's parents lead to a target.
    for node in sorted(order, key=lambda node: -node.order):
        for edge in node.edges:
            if edge is not None and (
                key_of(edge) in targets or (edge.node if type(edge) is Output else edge) in wanted
            ):
                wanted.add(node)
                break
    return wanted


def _leaf_uses(roots: list[Any]) -> dict[Node, int]:
    """How many edges of the graph lead to each leaf."""
    uses: dict[Node, int] = {}
    seen: set[Any] = set()
    stack = [edge.node if type(edge) is Output else edge for edge in roots]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        for edge in node.edges:
            if is_leaf(edge):
                uses[edge] = uses.get(edge, 0) + 1
            elif edge is not None:
                stack.append(edge.node if type(edge) is Output else edge)
    return uses
