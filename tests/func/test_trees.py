"""Trees come apart into leaves and go together again; named tuples, dicts and registered types among them."""

from __future__ import annotations

from collections import OrderedDict, namedtuple

import pytest

from tensorcore.formats import Size
from tensorcore.func.trees import broadcast_prefix, tree_flatten, tree_map, tree_unflatten
from tensorcore.utils import _pytree

Point = namedtuple("Point", "x y")


def test_tree_comes_apart_and_together() -> None:
    """Leaves stand from left to right; the structure puts them back into the same types."""
    tree = {"b": [1, (2, None)], "a": Point(3, OrderedDict(z=4))}
    leaves, spec = tree_flatten(tree)
    assert leaves == [1, 2, None, 3, 4]
    assert tree_unflatten(leaves, spec) == tree
    assert isinstance(tree_unflatten(leaves, spec)["a"], Point)


def test_other_number_of_leaves_is_refused() -> None:
    """A structure takes as many leaves as it has places."""
    with pytest.raises(ValueError, match="expected 2 leaves, got 1"):
        tree_unflatten([1], tree_flatten((1, 2))[1])


def test_prefix_is_repeated_for_what_is_beneath() -> None:
    """One leaf of the prefix stands for all leaves in its place; another structure does not fit."""
    spec = tree_flatten(([1, 2], {"a": 3}))[1]
    assert broadcast_prefix((0, None), spec) == [0, 0, None]
    assert broadcast_prefix(5, spec) == [5, 5, 5]
    assert broadcast_prefix((0, [1]), spec) is None


def test_registered_type_is_a_container() -> None:
    """A type of one's own comes apart by its own functions, under PyTorch's names; a second registration raises."""

    class Pair:
        def __init__(self, one: int, two: int) -> None:
            self.one, self.two = one, two

    _pytree.register_pytree_node(Pair, lambda pair: ([pair.one, pair.two], None), lambda given, _: Pair(*given))
    made = tree_map(lambda one: one + 1, Pair(1, 2))
    assert (made.one, made.two) == (2, 3)
    with pytest.raises(ValueError, match="already registered"):
        _pytree.register_pytree_node(Pair, lambda pair: ([], None), lambda given, _: Pair(0, 0))


def test_a_shape_is_a_container() -> None:
    """A shape comes apart into its sizes and goes together into a tuple, as in PyTorch; an int is a leaf, and what is said to be."""
    leaves, spec = tree_flatten([Size([2, 3]), 4])
    assert (leaves, spec.num_leaves) == ([2, 3, 4], 3)
    assert tree_map(str, Size([2, 3])) == ("2", "3")
    assert [_pytree.tree_is_leaf(one) for one in (1, Size([1]), Point(1, 2), [])] == [True, False, False, False]
    assert _pytree.tree_is_leaf([1], is_leaf=lambda one: isinstance(one, list))
