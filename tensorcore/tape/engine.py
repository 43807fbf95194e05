"""The walk over the tape: gradients flow from the youngest node to the leaves."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from heapq import heappop, heappush
from operator import attrgetter
from typing import Any, ClassVar

from tensorcore.errors import ArgumentTypeError, GradientError
from tensorcore.tape.mode import mode
from tensorcore.tape.node import Node, Output, is_leaf

__all__ = ["Eager", "walk"]


_OLDEST = 1 << 62  # no node is as old


class Eager:
    """The leaves that want to hear at once when their gradient is complete, not at the walk's end.

    Knowing that a leaf is complete takes a count of its uses, one more pass over the graph; the pass
    is made only while somebody listens (gradient buckets that overlap with backward, optimizers
    stepped inside backward).
    """

    listeners: ClassVar[dict[int, weakref.ref[Node]]] = {}  # by id, so that asking whether there are any is free

    @classmethod
    def listen(cls, leaf: Node) -> None:
        """Count the leaf in, until it dies or nobody hooks it any more."""
        key = id(leaf)
        cls.listeners[key] = weakref.ref(leaf, lambda _: cls.listeners.pop(key, None))


def walk(
    roots: Sequence[tuple[Any, Any]],
    *,
    retain: bool,
    create: bool,
    targets: set[Any] | None = None,
    accumulate: bool = False,
) -> dict[Any, Any]:
    """Send gradients from ``roots`` down the tape.

    A node is always younger than those its edges lead to, so the youngest of the pending ones is
    complete: a heap replaces the topological sort, and nothing recurses.

    Args:
        roots: pairs of an edge and the gradient that arrives there.
        retain: keep what the nodes saved, for another walk.
        create: record the walk itself, for derivatives of derivatives.
        targets: the keys (see ``key_of``) whose gradients are returned; leaves accumulate nothing then.
        accumulate: leaves among the targets add up their gradients too, as without targets.

    Returns:
        The gradients that arrived at the targets, by key; empty without targets.
    """
    wanted = None if targets is None else _ancestors([edge for edge, _ in roots], targets)
    if wanted is not None and accumulate:
        wanted |= {key for key in targets or () if is_leaf(key)}
    uses = _leaf_uses([edge for edge, _ in roots]) if targets is None and _listening() else None
    found: dict[Any, Any] = {}
    # node -> the gradient so far: a tensor; a list of one tensor where that is a sum of the walk's own, which the
    # next one is added to in place; of a node with several results a dict of tensors by index.
    pending: dict[Any, Any] = {}
    heap: list[tuple[int, Node]] = []
    watched = targets is not None or mode.anomaly or mode.around is not None
    # Of a walk to targets, where nothing else is to be watched: whose gradients are of use.
    goals: set[Any] = targets or set()
    leading = None if wanted is None or mode.anomaly or mode.around is not None else wanted | goals
    before, walks = mode.enabled, mode.walks
    try:  # from here on, for a Ctrl-C may come after any call
        mode.walks = (*walks, Walk(roots, wanted, targets, heap, pending if uses is None else None))
        mode.enabled = create
        mode.settle()
        for edge, g in roots:
            if targets is None or _leads(edge, wanted, targets):
                _arrive(edge, g, pending, heap)
        while pending:
            # Leaves are not in the heap: they wait for its end, and take their turns as their gradients came.
            node = heappop(heap)[1] if heap else next(iter(pending))
            g = pending.pop(node)
            if type(g) is list:
                g = g.pop()
            elif type(g) is dict:
                g = [g.get(i) for i in range(len(node.shape))]
            youngest = heap[0][0] if heap else _OLDEST
            while True:
                grads: Any
                edges = node.edges
                if leading is not None and wanted is not None and node.extra is None and type(g) is not list:
                    if node in goals:
                        found[node] = g
                    if node not in wanted:
                        break
                    for edge in edges:
                        if edge not in leading and edge is not None:
                            edges = _asked(edges, wanted, goals)
                            break
                    backward = node.op.backward
                    grads = backward(node, g) if edges is node.edges else backward(node, g, edges)
                elif watched or node.extra is not None:
                    g = _before(node, g, targets, found)
                    if wanted is not None and node not in wanted:
                        break
                    grads = _watched(node, _prehooked(node, g), wanted, targets)
                else:
                    backward = node.op.backward  # a read, not a method call: that one CPython does not cache here
                    grads = backward(node, g)
                if not retain:
                    node.saved = node.out = None
                # The first parent found stays out of the heap and the dict: on a chain that is every node.
                following: Any = None
                following_g: Any = None
                shape: Any = None
                checked: Any = None
                i = -1  # counted by hand: zip costs 0.05 us a node
                for edge in edges:
                    i += 1
                    g = grads[i]
                    if edge is None or g is None:
                        continue
                    if type(edge) is Output:
                        _arrive(edge, fit(g, edge, node), pending, heap)
                        youngest = heap[0][0] if heap else _OLDEST
                        continue
                    if g is not checked:
                        shape = g.native.shape
                        checked = g
                    if shape != edge.shape or g.dtype is not edge.dtype:
                        g = fit(g, edge, node)
                    held = pending.get(edge)
                    if held is None:
                        if edge is following:
                            following_g = following_g + g
                        elif following is None and edge.edges:
                            following, following_g = edge, g
                        else:
                            pending[edge] = g
                            if edge.edges:
                                heappush(heap, (edge.order, edge))
                                if edge.order < youngest:
                                    youngest = edge.order
                    elif type(held) is list and g.device is held[0].device and type(g.native) is g.device.array:
                        held = held[0]
                        held.device.kernels["add"](held.native, g.native, out=held.native)
                    else:
                        held = (held[0] if type(held) is list else held) + g
                        # A sum without an array of its own, as of sparse gradients, is not added to in place.
                        pending[edge] = held if create or type(held.native) is not held.device.array else [held]
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
                    following_g = None  # or the walk would hold it twice, and ``arrived`` take it for somebody else's
                    heappush(heap, (following.order, following))
                    break
                node, g = following, following_g
                following_g = None
    finally:
        mode.enabled, mode.walks = before, walks
        mode.settle()
    return found


class Walk:
    """A walk that is under way, for hooks that ask what it will still reach and formulas that ask what has arrived.

    Attributes:
        heap, pending: as in ``walk``; ``pending`` is None where each arrival is counted.
    """

    __slots__ = ("__weakref__", "heap", "pending", "roots", "targets", "wanted")

    def __init__(
        self,
        roots: Any,
        wanted: set[Any] | None,
        targets: set[Any] | None,
        heap: list[Any],
        pending: dict[Any, Any] | None,
    ) -> None:
        self.roots, self.wanted, self.targets, self.heap, self.pending = roots, wanted, targets, heap, pending

    def reachable(self) -> set[Any]:
        """The nodes and leaves that get a gradient, as far as the graph tells."""
        seen: set[Any] = set()
        stack = [edge for edge, _ in self.roots]
        while stack:
            edge = stack.pop()
            if edge is None or (self.targets is not None and not _leads(edge, self.wanted, self.targets)):
                continue
            node = edge.node if type(edge) is Output else edge
            if node not in seen:
                seen.add(node)
                stack.extend(getattr(node, "edges", ()))
        return seen


def key_of(edge: Any) -> Any:
    """What identifies the tensor behind an edge: its node, or node and index where there are several results."""
    return (edge.node, edge.index) if type(edge) is Output else edge


def fit(g: Any, edge: Any, node: Node) -> Any:
    """A gradient in the shape and dtype of the tensor it belongs to.

    Broadcasting and promotion happen in the forward call without a trace; here they are undone,
    once for all ops: summed to the shape, cast to the dtype (the real part where that is real).
    """
    have, wanted = g.native.shape, edge.shape
    if have != wanted:
        extra = len(have) - len(wanted)
        if extra == 1 and have[1:] == wanted:
            g = g.sum(0)  # as of the bias of a layer: a third of the time of what follows
        elif _came_from(wanted, have):
            g = g.sum_to_size(wanted)
        else:
            raise GradientError(
                f"{node.name()}: expected a gradient of a shape compatible with {list(wanted)}, "
                f"got {list(have)}; return one gradient of the input's shape for each input"
            )
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
        if node.edges:
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
    if leaf.extra is None and mode.around is None:
        leaf.op.backward(leaf, g)
    else:
        _watched(leaf, _prehooked(leaf, _before(leaf, g, None, {})), None, None)


def _replaced(hook: Any, changed: Any, g: Any) -> Any:
    """What a tensor hook made of the gradient."""
    if changed is None:
        return g
    if getattr(changed, "native", None) is None:
        raise ArgumentTypeError(
            f"hook {_called(hook)}: expected Variable, but hook returned {type(changed).__name__!r}; "
            f"return a tensor of the gradient's shape, or nothing"
        )
    if changed.native.shape != g.native.shape:
        raise GradientError(
            f"hook {_called(hook)}: expected a gradient of shape {list(g.native.shape)}, got "
            f"{list(changed.native.shape)}: the hook has changed the size of value; return one of the gradient's shape"
        )
    return changed


def _same_number(hook: Any, changed: Any, before: tuple[Any, ...]) -> tuple[Any, ...]:
    """What a node's hook made of the gradients."""
    changed = changed if isinstance(changed, (tuple, list)) else (changed,)
    if len(changed) != len(before):
        raise GradientError(
            f"hook {_called(hook)}: expected {len(before)} gradients, got {len(changed)}: the hook has returned an "
            f"incorrect number of values; return as many as it was given, or nothing"
        )
    return tuple(changed)


def _called(hook: Any) -> str:
    return repr(getattr(hook, "__name__", type(hook).__name__))


def _before(node: Node, g: Any, targets: set[Any] | None, found: dict[Any, Any]) -> Any:
    """Tensor hooks, retained gradients, captures for the targets."""
    several = isinstance(g, list)
    extra = node.extra or {}
    for index, hook in list(extra.get("tensor_hooks", {}).values()):
        if several and g[index] is not None:
            g[index] = _replaced(hook, hook(g[index]), g[index])
        elif not several:
            g = _replaced(hook, hook(g), g)
    for index, reference in list(extra.get("retain", {}).items()):
        tensor, mine = reference(), (g[index] if several else g)
        if tensor is not None and mine is not None:
            held = tensor.__dict__.get("_grad")
            tensor.__dict__["_grad"] = mine.clone() if held is None else held + mine
    if targets is not None:
        if several:
            found.update({(node, i): one for i, one in enumerate(g) if one is not None and (node, i) in targets})
        elif node in targets:
            found[node] = g
    return g


def _prehooked(node: Node, g: Any) -> Any:
    """The node's own pre-hooks."""
    several = isinstance(g, list)
    for hook in list((node.extra or {}).get("prehooks", {}).values()):
        given = tuple(g) if several else (g,)
        changed = hook(given)
        if changed is not None:
            changed = _same_number(hook, changed, given)
            g = list(changed) if several else changed[0]
    return g


def _watched(node: Node, g: Any, wanted: set[Any] | None, targets: set[Any] | None) -> Any:
    """The node's formulas with all that may be around them: anomaly mode, post-hooks, a choice of edges."""
    extra = node.extra or {}
    asked = None
    if wanted is not None and targets is not None:
        edges = _asked(node.edges, wanted, targets)
        asked = None if edges is node.edges else edges
    try:
        if mode.around is not None:
            grads = mode.around(node, g, asked)
        else:
            grads = node.op.backward(node, g) if asked is None else node.op.backward(node, g, asked)
    except Exception as error:
        if mode.anomaly:
            error.add_note(f"Error detected in {node.name()}. {_trace(extra)}")
        raise
    hooks = list(extra.get("hooks", {}).values())
    if hooks:
        # Hooks see gradients of the inputs' shapes, as users know them, not what broadcasting made of them.
        grads = tuple(
            [
                one if one is None or edge is None else fit(one, edge, node)
                for one, edge in zip(grads, node.edges, strict=True)
            ]
        )
        outer = tuple(g) if isinstance(g, list) else (g,)
        for hook in hooks:
            changed = hook(grads, outer)
            if changed is not None:
                grads = _same_number(hook, changed, grads)
    if mode.anomaly and mode.check_nan:
        for i, one in enumerate(grads):
            if one is not None and one.dtype.kind in ("floating", "complex") and bool((one != one).sum().item()):
                raise GradientError(
                    f"backward: expected numbers, got NaN: Function '{node.name()}' returned nan values in its "
                    f"{i}th output. {_trace(extra)}"
                )
    if wanted is not None and targets is not None:
        grads = [
            one if edge is not None and _leads(edge, wanted, targets) else None
            for one, edge in zip(grads, node.edges, strict=True)
        ]
    return grads


def _trace(extra: dict[str, Any]) -> str:
    trace = extra.get("trace")
    if trace is None:
        return "No forward pass information available; enable detect_anomaly() during the forward pass too."
    return f"Traceback of forward call that caused the error:\n{trace}"


def _asked(edges: tuple[Any, ...], wanted: set[Any], targets: set[Any]) -> tuple[Any, ...]:
    """The edges that lead to a target, None in the place of each other; as they are where all do."""
    asked = tuple([edge if edge is not None and _leads(edge, wanted, targets) else None for edge in edges])
    return edges if asked == edges else asked


def _leads(edge: Any, wanted: set[Any] | None, targets: set[Any]) -> bool:
    """Whether a gradient that goes along the edge arrives at a target."""
    if key_of(edge) in targets:
        return True
    return (edge.node if type(edge) is Output else edge) in (wanted or ())


def _listening() -> bool:
    """Whether a living leaf still has a hook that wants its gradient at once."""
    listeners = Eager.listeners
    # A copy in one step: other threads, and the end of leaves, change it meanwhile.
    for key, reference in listeners.copy().items():
        leaf = reference()
        if leaf is None or not (leaf.extra or {}).get("post_accumulate"):
            listeners.pop(key, None)
    return bool(listeners)


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
        for edge in node.edges:
            if edge is not None:
                stack.append(edge.node if type(edge) is Output else edge)
    wanted: set[Any] = set()
    # Oldest first: by then it is known which of a node's parents lead to a target.
    order.sort(key=attrgetter("order"), reverse=True)
    for node in order:
        for edge in node.edges:
            if edge is not None and (
                edge in wanted or edge in targets or (type(edge) is Output and _leads(edge, wanted, targets))
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
