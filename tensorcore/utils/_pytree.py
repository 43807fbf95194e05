"""Trees under the name that PyTorch's programs import them by."""

from tensorcore.func.trees import Spec as TreeSpec
from tensorcore.func.trees import (
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

__all__ = [
    "TreeSpec", "register_pytree_node", "tree_all", "tree_any", "tree_flatten", "tree_leaves", "tree_map", "tree_map_only",
    "tree_structure", "tree_unflatten",
]  # fmt: skip
