"""Trees under the name that PyTorch's programs import them by."""

from typing import Any, NamedTuple

from tensorcore.func.trees import KINDS as SUPPORTED_NODES
from tensorcore.func.trees import (
    LEAF,
    register_pytree_node,
    tree_all,
    tree_any,
    tree_flatten,
    tree_is_leaf,
    tree_leaves,
    tree_map,
    tree_map_only,
    tree_structure,
    tree_unflatten,
)  # fmt: skip
from tensorcore.func.trees import Spec as TreeSpec
from tensorcore.func.trees import node_type as _get_node_type

__all__ = [
    "SUPPORTED_NODES", "LeafSpec", "MappingKey", "PyTree", "TreeSpec", "_get_node_type", "register_pytree_node", "tree_all", "tree_any",
    "tree_flatten", "tree_is_leaf", "tree_leaves", "tree_map", "tree_map_only", "tree_structure", "tree_unflatten",
]  # fmt: skip

PyTree = Any
_register_pytree_node = register_pytree_node
_dict_flatten, _dict_unflatten = SUPPORTED_NODES[dict]


def LeafSpec() -> TreeSpec:
    """The structure of a leaf."""
    return LEAF


class MappingKey(NamedTuple):
    """Where in a mapping a leaf is."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        """What is there."""
        return mapping[self.key]


def _dict_flatten_with_keys(d: dict[Any, Any]) -> tuple[list[tuple[MappingKey, Any]], Any]:
    """The values of a dict, each behind its place, and what the dict is made of again."""
    values, context = _dict_flatten(d)
    return [(MappingKey(key), value) for key, value in zip(context, values, strict=True)], context
