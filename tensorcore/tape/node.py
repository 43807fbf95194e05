"""The entries of the tape: what an op leaves behind when it is recorded."""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable
from contextlib import nullcontext
from sys import getrefcount
from typing import Any

from tensorcore.backend.turns import renewed
from tensorcore.errors import ArgumentTypeError, GradientError
from tensorcore.formats import contiguous_format
from tensorcore.tape.memory import Version, next_order
from tensorcore.tape.mode import mode

__all__ = [
    "ACCUMULATE", "ALONE", "FROZEN", "Handle", "Node", "Output", "Packed", "add_into", "adding", "arrived", "bare_node", "freed",
    "is_leaf", "leaf", "own_memory", "stale", "unpack",
]  # fmt: skip


class Node:
    """One recorded call.

    Attributes:
        op: has ``backward(node, g)``, which gives a gradient for each edge, and ``node_name``. Where there are several
            edges it takes those that are asked for too, with None in the place of the others.
        edges: where each input came from: a Node, an Output of one, or None.
        saved: what the formulas name; None once a backward walk has freed it.
        options: the call's options by name.
        out, version: the native result and its version, where a formula names ``out``.
        order: the call's place in time; younger is smaller.
        shape, dtype: of the result, so that a gradient can be fitted to it. Of a call with
            several results, a list of them.
        extra: hooks and notes, None until there are any.
        grad: of a leaf's node, the gradient so far.
    """

    __slots__ = (
        "__weakref__",
        "dtype",
        "edges",
        "extra",
        "grad",
        "op",
        "options",
        "order",
        "out",
        "saved",
        "shape",
        "version",
    )

    op: Any
    edges: tuple[Any, ...]
    saved: Any
    options: dict[str, Any] | None
    out: Any
    version: Version | None
    order: int
    shape: Any
    dtype: Any
    extra: dict[str, Any] | None
    grad: Any

    def name(self) -> str:
        """PyTorch's name for it, e.g. ``MulBackward0``."""
        return str(self.op.node_name)

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """Where the gradient goes next, as pairs of node and output index."""
        return tuple((_node_of(edge), getattr(edge, "index", 0)) for edge in self.edges)

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dict for the user's own notes."""
        found: dict[Any, Any] = _extra(self).setdefault("metadata", {})
        return found

    @property
    def variable(self) -> Any:
        """The tensor of a leaf's node, None once it is gone."""
        return self.options["tensor"]() if self.op is ACCUMULATE and self.options else None

    def register_hook(self, hook: Callable[..., Any]) -> Handle:
        """Call ``hook(grad_inputs, grad_outputs)`` after this node's formulas; it may return new grad_inputs."""
        return Handle(_extra(self).setdefault("hooks", {}), hook)

    def register_prehook(self, hook: Callable[..., Any]) -> Handle:
        """Call ``hook(grad_outputs)`` before this node's formulas; it may return new grad_outputs."""
        return Handle(_extra(self).setdefault("prehooks", {}), hook)

    def __getattr__(self, name: str) -> Any:
        # ``node._saved_self`` and the like: what PyTorch shows of saved values.
        if name in ("options", "out", "version"):
            return None  # slots that the hot path leaves unset where the op keeps nothing there
        if name.startswith("_saved_"):
            wanted = {"self": "input", "result": "out"}.get(name[7:], name[7:])
            return self.op.saved_value(self, wanted)
        # A custom Function's node shows what its ``forward`` noted on ``ctx``.
        context = (self.options or {}).get("ctx")
        if context is not None:
            return getattr(context, name)
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def __repr__(self) -> str:
        return f"<{self.name().rpartition(':')[2]} object at {id(self):#x}>"


class Output:
    """The edge to one result of a node that has several."""

    __slots__ = ("dtype", "index", "node", "shape")

    def __init__(self, node: Node, index: int) -> None:
        self.node = node
        self.index = index
        self.shape = node.shape[index]
        self.dtype = node.dtype[index]


class Accumulate:
    """The op at the end of the tape: it adds what arrives to the leaf's gradient."""

    node_name = "torch::autograd::AccumulateGrad"

    def backward(self, node: Node, g: Any) -> tuple[Any, ...]:
        """Add ``g`` to the gradient: in place where nobody can notice, as a recorded sum under ``create_graph``."""
        with _accumulating:
            held = node.grad
            if held is None:
                # Stolen if nobody but the walk holds it (its own reference, this frame's and getrefcount's), nor
                # its memory; a shared or expanded one is copied, or two leaves would write into one memory.
                alone = getrefcount(g) <= ALONE and g.version is None and getrefcount(g.native) <= _ALONE_IN_SLOT
                tensor = node.options["tensor"]()  # type: ignore[index]
                if tensor is None or tensor.device.is_contiguous(tensor.native) or mode.enabled:
                    # Asked of the device: a frame less for each leaf.
                    native, device = g.native, g.device
                    dense = device.is_contiguous(native) if type(native) is device.array else g.is_contiguous()
                    if dense:
                        node.grad = g if alone else g.clone()
                    else:
                        node.grad = g.clone(memory_format=contiguous_format)  # as the leaf lies
                else:
                    node.grad = _like(tensor, g)
            elif mode.enabled or g.dtype is not held.dtype or g.device is not held.device:
                node.grad = held + g
            elif type(g.native) is not type(held.native) or not hasattr(g.native, "ndim"):
                node.grad = held + g  # sparse
            elif held.is_contiguous():
                held.device.kernels["add"](held.native, g.native, out=held.native)
                if held.version is None:
                    held.version = Version()
                held.version.bump()
            elif 0 in held.stride():
                node.grad = held + g  # an expanded gradient that the user assigned cannot be written
            else:
                held.add_(g)
        if node.extra is not None:
            tensor = node.variable
            for hook in list(node.extra.get("post_accumulate", {}).values()):
                if tensor is not None:
                    hook(tensor)
        return ()


def _like(tensor: Any, g: Any) -> Any:
    """A copy of a gradient that lies in memory as its leaf does, where that lies there without gaps; else row-major."""
    if type(g.native) is not type(tensor.native):
        return g.clone()  # sparse
    made = tensor.detach().clone()
    if made.stride() != tensor.stride() or made.dtype is not g.dtype:
        return g.clone()
    return made.copy_(g)


class Frozen:
    """The op of a leaf whose ``requires_grad`` was switched off after graphs came to lead to it."""

    node_name = Accumulate.node_name

    def backward(self, node: Node, g: Any) -> tuple[Any, ...]:
        """Drop the gradient."""
        return ()


FROZEN = Frozen()
ACCUMULATE = Accumulate()
_leaf_order = itertools.count(1).__next__


def leaf(tensor: Any) -> Node:
    """The node of a tensor that requires grad without having been computed: the end of the tape.

    It holds the gradient and not the tensor, so that no cycle keeps either alive. It is a Node like
    any other because the walk reads attributes of every edge: of two classes they would miss CPython's
    inline caches. It is older than every recorded call.
    """
    node = object.__new__(Node)
    node.op = ACCUMULATE
    node.edges = ()
    node.saved = ()
    node.options = {"tensor": weakref.ref(tensor)}
    node.out = node.version = node.extra = node.grad = None
    node.shape = tuple(tensor.native.shape)
    node.dtype = tensor.dtype
    node.order = _leaf_order()
    return node


def bare_node(op: Any, edges: tuple[Any, ...], shape: Any, dtype: Any) -> Node:
    """A node of an op that is not in the registry, and that saves nothing yet."""
    node = object.__new__(Node)
    node.op = op
    node.edges = edges
    node.saved = ()
    node.options = node.extra = node.out = node.version = None
    node.shape = shape
    node.dtype = dtype
    node.order = next_order()
    return node


def is_leaf(node: Any) -> bool:
    """Whether ``node`` is the end of the tape at a tensor that requires grad."""
    return type(node) is Node and node.op is ACCUMULATE


def arrived(node: Node, edge: Any, g: Any) -> Any:
    """The sum of what has come to ``edge`` so far, for a formula of ``node`` to add to in place; None where it must not.

    The gradient of a slice is zeros but for the slice. Of a loop over n slices, each of those would be made as large as all
    of them and added to the others: n times the work.

    It must not where there is none yet; where somebody else may hold it, or looks at what the formula gives (hooks, anomaly
    mode); where what the formula does is recorded; and where ``g`` is of another dtype or device. A formula that adds to it
    gives None. To the walk's last formula the gradient that a leaf has from earlier walks is such a sum.
    """
    if mode.enabled or node.extra is not None or mode.anomaly or not mode.walks:
        return None
    walk = mode.walks[-1]
    pending = walk.pending
    held = None if pending is None else pending.get(edge)
    if held is None:
        total = None if walk.heap or pending is None or walk.targets is not None else _leaf_sum(node, edge)
    elif type(held) is dict:
        return None
    elif type(held) is list:
        total = held[0]
    else:
        count = getrefcount(held)
        if count > _ALONE_PENDING or not own_memory(held):
            return None
        total = held
    if total is None:
        return None
    device = total.device
    if (
        total.dtype is not edge.dtype
        or g.dtype is not total.dtype
        or g.device is not device
        or not device.capabilities.views
        or not type(total.native) is type(g.native) is device.array
        or total.native.shape != edge.shape
    ):
        return None
    if held is None:
        if (
            device.wraps is not None
            or not device.is_contiguous(total.native)
            or device.storage_key(total.native) == device.storage_key(g.native)
        ):
            return None
        if total.version is None:
            total.version = Version()
        total.version.bump()
    return total


def _leaf_sum(node: Node, edge: Any) -> Any:
    """The gradient of a leaf that nothing but what ``node`` sends is still to be added to, and that nobody watches.

    Not of a half type: one addend after the other would be rounded to it.
    """
    if not is_leaf(edge) or edge.extra is not None or edge.dtype.itemsize < 4 or mode.around is not None:
        return None
    edges = node.edges
    alone = edges.count(edge) == 1 and all([one is None or is_leaf(one) for one in edges])
    return edge.grad if alone else None


def adding(total: Any) -> Any:
    """What is held while a formula adds to the sum that has arrived: other threads may add to that of a leaf."""
    return _ALONE_ON_THREAD if total.version is None else _accumulating


def add_into(total: Any, kernel: str, *operands: Any, **options: Any) -> None:
    """Let a kernel add to the sum that has arrived: ``kernel(total, *operands, **options)``, written there."""
    with adding(total):
        total.device.kernels[kernel](total.native, *[one.native for one in operands], **options, out=total.native)


def own_memory(g: Any) -> bool:
    """Whether nobody else holds the memory of a gradient, each element of which has a place of its own."""
    if g.version is not None or getrefcount(g.native) > _ALONE_IN_SLOT:
        return False
    return type(g.native) is g.device.array and g.device.is_contiguous(g.native)


class Handle:
    """Takes its hook out again: by ``remove()``, or at the end of a ``with``."""

    _ids = itertools.count()

    def __init__(self, hooks: dict[int, Any], hook: Any) -> None:
        self.id = next(self._ids)
        self.hooks = hooks
        hooks[self.id] = hook

    def remove(self) -> None:
        """Take the hook out; a second call does nothing."""
        self.hooks.pop(self.id, None)

    def __enter__(self) -> Handle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


class Packed:
    """Saved values that went through a user's pack hook: pairs of what it gave and the tensor's edge, or None."""

    __slots__ = ("items", "unpack")

    def __init__(self, items: tuple[Any, ...], unpack: Callable[[Any], Any]) -> None:
        self.items = items
        self.unpack = unpack

    def get(self, item: Any) -> Any:
        """The tensor behind an item, in its old place on the tape."""
        if type(item) is not tuple:
            return item
        value, edge = item
        found = self.unpack(value)
        if getattr(found, "native", None) is None:
            raise ArgumentTypeError(
                f"saved_tensors_hooks: Output of saved tensor unpack_hook expected to be a Tensor but got result of "
                f"type {type(found).__name__}; return the tensor that was packed"
            )
        found = found.detach()
        found.node = edge
        found.version = None  # what happened to it in the hooks' hands is theirs to know
        return found


def unpack(node: Node) -> tuple[Any, ...]:
    """What ``node`` saved, where it is no longer (or not yet) a plain tuple."""
    saved = node.saved
    if saved is None:
        raise freed(node)
    if isinstance(saved, Packed):
        return tuple([saved.get(item) for item in saved.items])
    return saved  # type: ignore[no-any-return]


def freed(node: Node) -> GradientError:
    """The error for a second walk over a node whose saved values are gone."""
    return GradientError(
        f"backward: expected the saved values of {node.name()}, got a graph whose values were freed: Trying to "
        "backward "
        f"through the graph a second time (or to read them after that); specify retain_graph=True at the first backward"
    )


def stale(node: Node, name: str, version: Version) -> GradientError:
    """The error for a saved tensor that was written after it was saved."""
    where = (node.extra or {}).get("trace")
    hint = f"; it was recorded here:\n{where}" if where else "; detect_anomaly() shows the line that recorded it"
    return GradientError(
        f"backward: expected {name!r}, saved for {node.name()}, as it was at the forward call, got one of the "
        "variables "
        f"needed for gradient computation modified by an inplace operation (it is at version {version.count} now)"
        f"{hint}; write it out of place, or after the backward"
    )


def _node_of(edge: Any) -> Any:
    return edge.node if type(edge) is Output else edge


def _extra(node: Any) -> dict[str, Any]:
    if node.extra is None:
        node.extra = {}
    found: dict[str, Any] = node.extra
    return found


class _Slot:
    __slots__ = ("native",)

    native: object


def _count_alone(held: list[Any]) -> int:
    """The references to an object that a caller took out of a list and passes on, in this Python."""

    def callee(g: Any) -> int:
        return getrefcount(g)

    g = held.pop()
    return callee(g)


def _count_alone_pending(pending: dict[int, object]) -> int:
    """The same of one that a caller read from a dict."""
    held = pending.get(0)
    count = getrefcount(held)
    return count


def _count_alone_in_slot() -> int:
    slot = _Slot()
    slot.native = object()
    return getrefcount(slot.native)


# Measured, as Python 3.14 no longer counts the references of local variables.
ALONE = _count_alone([object()])
_ALONE_PENDING = _count_alone_pending({0: object()})
_ALONE_IN_SLOT = _count_alone_in_slot()
# NumPy lets other threads run while it adds, so two walks could lose a sum to one another.
_accumulating = renewed(threading.RLock())
# For sums of a walk's own: on a mesh an addition may wait for other ranks, which may be threads.
_ALONE_ON_THREAD = nullcontext()
