"""Trees under the name that PyTorch's programs import them by."""

from typing import Any

from tensorcore.func.trees import KINDS as SUPPORTED_NODES
from tensorcore.func.trees import (
    LEAF,
    register_pytree_node,
    tree_all,
    tree_any,
    tree_flatten,
    tree_leaves,
    tree_map,
    tree_map_only,
    tree_structure,
    tree_unflatten,
)  # fmt: skip
from tensorcore.func.trees import Spec as TreeSpec
from tensorcore.func.trees import node_type as _get_node_type

__all__ = [
    "SUPPORTED_NODES", "LeafSpec", "PyTree", "TreeSpec", "_get_node_type", "register_pytree_node", "tree_all", "tree_any",
    "tree_flatten", "tree_leaves", "tree_map", "tree_map_only", "tree_structure", "tree_unflatten",
]  # fmt: skip

PyTree = Any
_register_pytree_node = register_pytree_node
_dict_flatten, _dict_unflatten = SUPPORTED_NODES[dict]


def LeafSpec() -> TreeSpec:
    """The structure of a leaf."""
    return LEAF
