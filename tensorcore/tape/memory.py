"""The memory that tensors share: when it was written, and how each view of it came about."""

from __future__ import annotations

import itertools
import weakref
from typing import Any

__all__ = ["NEVER", "Version", "View", "next_order", "own_trail", "writes"]

# Counts down, so that a heap of nodes pops the youngest first. Writes to tensors take their
# numbers from the same clock, which tells whether a saved tensor was written after it was saved.
next_order = itertools.count(0, -1).__next__
NEVER = 1


class Version:
    """When the memory that some tensors share was last written, and how often.

    Attributes:
        count: the number of writes, what ``tensor._version`` shows.
        stamp: the order of the last write; a node with a greater order saved the values before it.
        views: weak references to the views whose history follows the base's.
    """

    __slots__ = ("count", "limit", "stamp", "views")

    def __init__(self) -> None:
        self.count = 0
        self.stamp = NEVER
        self.views: list[weakref.ref[Any]] | None = None
        self.limit = 8

    def bump(self) -> None:
        """Note a write."""
        self.count += 1
        self.stamp = next_order()

    def watch(self, *shown: Any) -> None:
        """Remember some views; the dead ones are dropped whenever the list has doubled."""
        views = self.views
        if views is None:
            views = self.views = []
        elif len(views) >= self.limit:
            views = self.views = [ref for ref in views if ref() is not None]
            self.limit = max(8, 2 * len(views))
        for view in shown:
            views.append(weakref.ref(view))


def writes(version: Version | None) -> int:
    """How often the memory was written; a memory that nobody shared or wrote has no version yet."""
    return 0 if version is None else version.count


def own_trail(trail: tuple[Any, ...], native: Any) -> tuple[Any, ...]:
    """What a View is taken by, of one of many parts of a tensor: they share a trail, and the memory of each says which it is.

    In the place of options stand the address of the first element of what was cut, the bytes from one element along the dim to
    the next, that dim, and whether each part is one slice without it.
    """
    base, parent, op, options, kind = trail
    if type(options) is not tuple:
        return trail
    address, stride, dim, single = options
    at = (native.__array_interface__["data"][0] - address) // stride
    part = at if single else slice(at, at + native.shape[dim], 1)
    return base, parent, op, {"key": (*(slice(None),) * dim, part)}, kind


class View:
    """Where a view comes from: its base, and the step that makes it from the tensor it was taken of.

    Attributes:
        base: the tensor that owns the history of the memory, never a view itself.
        kind: ``plain``, ``several`` (one of many results, as of ``split``), ``unrecorded`` (made under
            ``no_grad``) or ``custom`` (by a Function); all but the first refuse in-place writes that
            would be recorded.
        parent: the View of the tensor that this one was taken of, None where that is the base.
        op, options: the view op that was called on that tensor. Without an op, ``options`` are all steps.
    """

    __slots__ = ("base", "kind", "op", "options", "parent")

    parent: View | None

    def __init__(self, base: Any, steps: Any, kind: str) -> None:
        self.base = base
        self.kind = kind
        self.op = self.parent = None
        self.options = steps

    @classmethod
    def taken(cls, base: Any, parent: Any, op: Any, options: dict[str, Any], kind: str) -> View:
        """The View of one step, which a view op took. A parent that nobody asked for yet is a tuple of the same five."""
        first = view = cls(base, options, kind)
        view.op = op
        while type(parent) is tuple:  # no recursion: views of views may go on for long
            base, above, op, options, kind = parent
            view.parent = cls(base, options, kind)
            view = view.parent
            view.op = op
            parent = above
        view.parent = parent
        return first

    @property
    def steps(self) -> tuple[tuple[Any, dict[str, Any]], ...]:
        """Pairs of a view op and its options, from the base to the view."""
        steps: list[Any] = []
        one: View | None = self
        while one is not None:
            if one.op is None:
                steps.extend(reversed(one.options))
            else:
                steps.append((one.op, one.options))
            one = one.parent
        return tuple(reversed(steps))

    def replay(self, base: Any) -> Any:
        """The same view of another tensor of the base's shape and strides."""
        view = base
        for op, options in self.steps:
            view = op.view(view, options)
        return view
