"""The one node that stands on the tape for a compiled forward pass; its backward is a compiled program too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorcore.autograd.function import Function
from tensorcore.compiler.guards import Guards
from tensorcore.errors import UsageError
from tensorcore.tape.mode import mode
from tensorcore.tape.node import Node, Output, bare_node, freed, stale
from tensorcore.tensor import Tensor, new_tensor

__all__ = ["CompiledBackward", "Freed", "custom_of", "external_edges", "hooks_of", "node_of", "outermost", "reads_of"]

_HOOKS = ("tensor_hooks", "hooks", "prehooks", "retain", "post_accumulate")


class CompiledBackward:
    """The op of that node.

    Args:
        run: the backward pass: a function of the saved arrays and the arriving gradients, natives all of them, that
            answers with a gradient for each edge, or None.
        device, dtypes: of these gradients.

    Attributes:
        reads: guards of what the program's own functions read in it.
    """

    node_name = "CompiledFunctionBackward"

    def __init__(self, run: Callable[..., Any], device: Any, dtypes: list[Any]) -> None:
        self.run, self.device, self.dtypes = run, device, dtypes
        self.reads: list[Guards] = []

    def backward(self, node: Node, g: Any) -> tuple[Any, ...]:
        """Gradients for the edges."""
        if node.saved is None:
            raise freed(node)
        if mode.enabled:
            raise UsageError(
                "backward: expected create_graph=False behind a compiled function, got a backward that is recorded itself: "
                "torch.compile does not support double backward; call the function without compiling it"
            )
        for version, count in (node.options or {})["watched"]:
            if version.count != count:
                raise stale(node, "an argument or a result", version)
        for guards in self.reads:
            if not guards.check((), {}):
                raise UsageError(
                    "backward: expected what a custom Function reads behind a compiled function to be what it was in the forward "
                    f"pass, got a change: {next(guards.failing((), {}))}; change it before the forward pass, or call the function "
                    "without compiling it"
                )
        device = self.device
        if type(node.shape) is not list:
            shapes, kinds, g = [node.shape], [node.dtype], [g]
        else:
            shapes, kinds = node.shape, node.dtype
        seeds = []
        for one, shape, kind in zip(g, shapes, kinds, strict=True):
            if one is None:
                seeds.append(device.kernels["full"](shape, 0, dtype=kind))
            else:
                seeds.append(
                    one.native if device.is_contiguous(one.native) else device.kernels["contiguous"](one.native)
                )
        found = self.run(node.saved, seeds)
        return tuple(
            [
                None if one is None else new_tensor(one, kind, device)
                for one, kind in zip(found, self.dtypes, strict=True)
            ]
        )

    def saved_value(self, node: Node, name: str) -> Any:
        """Nothing is saved under a name."""
        raise AttributeError(name)


class Freed:
    """The op of a result whose backward pass ran inside the compiled function: a second one is refused as ever."""

    node_name = CompiledBackward.node_name

    def backward(self, node: Node, g: Any) -> tuple[Any, ...]:
        raise freed(node)


def node_of(op: Any, edges: tuple[Any, ...], saved: Any, versions: tuple[Any, ...], results: list[Any]) -> None:
    """Put results on the tape behind one node of ``op``.

    Args:
        saved: natives for the backward pass.
        versions: of the memories among them that the program can write to.
    """
    if len(results) == 1:
        node = bare_node(op, edges, results[0].native.shape, results[0].dtype)
        results[0].node = node
    else:
        node = bare_node(op, edges, [one.native.shape for one in results], [one.dtype for one in results])
        for i, one in enumerate(results):
            one.node = Output(node, i)
    node.saved = saved
    node.options = {"watched": [(one, one.count) for one in versions]}


def outermost(edge: Any) -> Any:
    """The node that an edge leads to."""
    return edge.node if type(edge) is Output else edge


def external_edges(roots: list[Any], start: int) -> tuple[list[Any], list[Node]]:
    """The edges at which the graph of a traced call meets what was there before, and the nodes of the call itself."""
    edges: dict[Any, Any] = {}
    nodes: dict[Node, None] = {}
    waiting = list(roots)
    while waiting:
        edge = waiting.pop()
        if edge is None:
            continue
        node = outermost(edge)
        if node.order > start:
            edges.setdefault((node, edge.index) if type(edge) is Output else node, edge)
        elif node not in nodes:
            nodes[node] = None
            waiting.extend(node.edges)
    return list(edges.values()), list(nodes)


def hooks_of(node: Any) -> list[Any]:
    """What a program hooked to a node, or to the gradients of its results, and those that it asked to be kept."""
    extra = getattr(node, "extra", None) or {}
    found = [one for name in _HOOKS for one in extra.get(name, {}).values()]
    return [one[1] if type(one) is tuple else one for one in found]  # beside which result it is of


def custom_of(nodes: list[Node]) -> list[tuple[Any, dict[str, Any]]]:
    """The backward functions that a program wrote itself, and what their forward left for each of them."""
    found = [(getattr(node.op, "cls", None), node.options or {}) for node in nodes]
    return [
        (kind.backward, dict(vars(options["ctx"])))
        for kind, options in found
        if isinstance(kind, type) and issubclass(kind, Function)
    ]


def reads_of(
    custom: list[tuple[Any, dict[str, Any]]], call: Guards, named: frozenset[str] | None, ran: frozenset[int]
) -> list[Guards]:
    """Guards of what these functions read that a program may change after the forward pass.

    Args:
        call: the guards of the call: what was there before it.
        named, ran: as for ``Guards``.
    """
    found = []
    for function, left in custom:
        guards = Guards(function, (), {}, named, call.states, ran)
        for key, value in left.items():
            if call.reaches(value) and not isinstance(value, Tensor):
                guards.walk(value, f"ctx.{key}")
        guards.settle()
        found.append(guards)
    return found
