"""Two tensors that change places, so that everyone who holds one of them holds the other from then on."""

from __future__ import annotations

import weakref
from typing import Any

from tensorcore.errors import ArgumentTypeError, UsageError
from tensorcore.tape.node import is_leaf
from tensorcore.tensor import Tensor

__all__ = ["swap_tensors"]

_CONTENTS = [name for name in Tensor.__slots__ if name not in ("__dict__", "__weakref__")]


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Exchange two tensors' values, classes, attributes, gradients and places on the tape, in place.

    A graph recorded before keeps its leaves: their gradients appear at the object that the leaf has gone to.

    Raises RuntimeError where one of them has weak references, as a view of others has, or is of a class laid out
    differently; neither is changed then.
    """
    for name, one in (("t1", t1), ("t2", t2)):
        if not isinstance(one, Tensor):
            raise ArgumentTypeError(
                f"swap_tensors: expected {name} to be a Tensor, got {one!r}; wrap it in torch.tensor(...)"
            )
        own = one.node.options["tensor"] if is_leaf(one.node) else None
        if any([reference is not own for reference in weakref.getweakrefs(one)]):
            raise UsageError(
                f"swap_tensors: Cannot swap {name} because it has weakref associated with it, got one; drop it"
            )
    try:
        t1.__class__, t2.__class__ = t2.__class__, t1.__class__
    except TypeError as error:
        raise UsageError(f"swap_tensors: Cannot swap t1 and t2 if they have different slots, got {error}") from None
    t1.__dict__, t2.__dict__ = t2.__dict__, t1.__dict__
    for name in _CONTENTS:
        first, second = _taken(t1, name), _taken(t2, name)
        _given(t1, name, second)
        _given(t2, name, first)
    for one in (t1, t2):
        if is_leaf(one.node):
            one.node.options["tensor"] = weakref.ref(one)


def _taken(one: Tensor, name: str) -> Any:
    """What is in a slot, as a tuple; an empty one where nothing is."""
    try:
        value = getattr(one, name)
        delattr(one, name)
    except AttributeError:
        return ()
    return (value,)


def _given(one: Tensor, name: str, value: Any) -> None:
    if value:
        setattr(one, name, value[0])
