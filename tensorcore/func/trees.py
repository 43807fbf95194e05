"""Trees: nested lists, tuples and dicts whose leaves are whatever else there is, taken apart and put together again."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from tensorcore.formats import Size

__all__ = [
    "KINDS", "LEAF", "Spec", "broadcast_prefix", "node_type", "register_pytree_node", "tree_all", "tree_any", "tree_flatten",
    "tree_is_leaf", "tree_leaves", "tree_map", "tree_map_only", "tree_structure", "tree_unflatten",
]  # fmt: skip

Flatten = Callable[[Any], tuple[list[Any], Any]]
Unflatten = Callable[[Iterable[Any], Any], Any]


class _Kind(NamedTuple):
    """How containers of one type come apart: into children and a context, and back."""

    flatten_fn: Flatten
    unflatten_fn: Unflatten


def _of_dict(one: Any) -> tuple[list[Any], Any]:
    return list(one.values()), list(one)


KINDS: dict[Any, _Kind] = {
    list: _Kind(lambda one: (list(one), None), lambda children, _: list(children)),
    tuple: _Kind(lambda one: (list(one), None), lambda children, _: tuple(children)),
    Size: _Kind(lambda one: (list(one), None), lambda children, _: tuple(children)),  # of leaves that may be no numbers
    dict: _Kind(_of_dict, lambda children, keys: dict(zip(keys, children, strict=True))),
    OrderedDict: _Kind(_of_dict, lambda children, keys: OrderedDict(zip(keys, children, strict=True))),
    defaultdict: _Kind(
        lambda one: (list(one.values()), (one.default_factory, list(one))),
        lambda children, context: defaultdict(context[0], zip(context[1], children, strict=True)),
    ),
    deque: _Kind(lambda one: (list(one), one.maxlen), lambda children, length: deque(children, length)),
}
# A named tuple has its fields from a plain tuple: all of them are one kind, by the function that makes them.
KINDS[namedtuple] = _Kind(lambda one: (list(one), type(one)), lambda children, kind: kind(*children))


class Spec:
    """The structure of a tree: what its containers are, without the leaves.

    Attributes:
        type: of the container; None for a leaf.
        context: what the container's type keeps beside its children, such as a dict's keys.
        children: the structures within.
        num_leaves: how many leaves there are.
    """

    __slots__ = ("children", "context", "num_leaves", "type")

    def __init__(self, type: Any, context: Any, children: list[Spec]) -> None:
        self.type = type
        self.context = context
        self.children = children
        self.num_leaves = 1 if type is None else sum(one.num_leaves for one in children)

    def is_leaf(self) -> bool:
        """Whether there is no container at all."""
        return self.type is None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Spec):
            return NotImplemented
        return (self.type, self.context, self.children) == (other.type, other.context, other.children)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        if self.type is None:
            return "*"
        return f"TreeSpec({self.type.__name__}, {self.context}, {self.children})"


LEAF = Spec(None, None, [])


def register_pytree_node(cls: type, flatten_fn: Flatten, unflatten_fn: Unflatten, **names: Any) -> None:
    """Let containers of a type of your own be taken apart.

    Args:
        flatten_fn: gives the children of a container and its context.
        unflatten_fn: makes a container of children and a context.
        names: accepted; they concern files.
    """
    if cls in KINDS:
        raise ValueError(f"register_pytree_node: {cls} is already registered as pytree node, got it again; do it once")
    KINDS[cls] = _Kind(flatten_fn, unflatten_fn)


def tree_flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], Spec]:
    """The leaves from left to right, and the structure around them."""
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves, is_leaf)


def _flatten(tree: Any, leaves: list[Any], is_leaf: Callable[[Any], bool] | None) -> Spec:
    key = node_type(tree)
    kind = None if is_leaf is not None and is_leaf(tree) else KINDS.get(key)
    if kind is None:
        leaves.append(tree)
        return LEAF
    children, context = kind.flatten_fn(tree)
    return Spec(key, context, [_flatten(one, leaves, is_leaf) for one in children])


def node_type(tree: Any) -> Any:
    """The key of a container's kind: its type, or ``namedtuple`` for all of those; for a leaf, its type."""
    cls = type(tree)
    named = cls not in KINDS and issubclass(cls, tuple) and hasattr(cls, "_fields")
    return namedtuple if named else cls


def tree_is_leaf(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Whether that is no container, or one that ``is_leaf`` takes for a leaf."""
    return (is_leaf is not None and is_leaf(tree)) or node_type(tree) not in KINDS


def tree_unflatten(leaves: Iterable[Any], treespec: Spec) -> Any:
    """The tree of a structure with these leaves."""
    found = list(leaves)
    if len(found) != treespec.num_leaves:
        raise ValueError(
            f"tree_unflatten: expected {treespec.num_leaves} leaves, got {len(found)}; the structure is {treespec}"
        )
    return _unflatten(iter(found), treespec)


def _unflatten(leaves: Any, spec: Spec) -> Any:
    if spec.type is None:
        return next(leaves)
    return KINDS[spec.type].unflatten_fn([_unflatten(leaves, one) for one in spec.children], spec.context)


def tree_map(func: Callable[..., Any], tree: Any, *rests: Any) -> Any:
    """The tree with ``func`` of each leaf, and of those in the same place of other trees."""
    leaves, spec = tree_flatten(tree)
    others = [tree_flatten(one)[0] for one in rests]
    return tree_unflatten([func(*each) for each in zip(leaves, *others, strict=True)], spec)


def tree_map_only(kind: Any, func: Callable[[Any], Any], tree: Any) -> Any:
    """The tree with ``func`` of each leaf of a type (or of several); other leaves stay."""
    return tree_map(lambda one: func(one) if isinstance(one, kind) else one, tree)


def tree_leaves(tree: Any) -> list[Any]:
    """The leaves from left to right."""
    return tree_flatten(tree)[0]


def tree_structure(tree: Any) -> Spec:
    """The structure alone."""
    return tree_flatten(tree)[1]


def tree_all(pred: Callable[[Any], bool], tree: Any) -> bool:
    """Whether ``pred`` holds of every leaf."""
    return all(map(pred, tree_leaves(tree)))


def tree_any(pred: Callable[[Any], bool], tree: Any) -> bool:
    """Whether ``pred`` holds of some leaf."""
    return any(map(pred, tree_leaves(tree)))


def broadcast_prefix(tree: Any, spec: Spec) -> list[Any] | None:
    """The leaves of ``tree``, each repeated for all leaves that ``spec`` has in its place; None where they do not fit."""
    key = node_type(tree)
    kind = KINDS.get(key)
    if kind is None:
        return [tree] * spec.num_leaves
    children, context = kind.flatten_fn(tree)
    if key is not spec.type or len(children) != len(spec.children) or context != spec.context:
        return None
    found: list[Any] = []
    for one, inner in zip(children, spec.children, strict=True):
        part = broadcast_prefix(one, inner)
        if part is None:
            return None
        found.extend(part)
    return found
