"""Which ops can share one loop: nodes of a program, laid into nests over one shape each."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

__all__ = ["Nest", "Node", "Unfit", "lay"]

Shape = tuple[int, ...]


class Unfit(Exception):
    """The program, or a part of it, is nothing for one loop."""


class Node:
    """A value and the op that makes it.

    Attributes:
        kind: ``input``, ``number`` (the same in every place), ``map`` (element by element), ``reduce`` (the last dims of
            its one source), or ``whole`` (of whole arrays, in a nest of its own).
        op: what the engine that runs it makes of it.
        nest: where it is computed; None for inputs and numbers.
        row: whether it has one element for each row of its nest.
        kept: whether it is needed outside of its nest, and so is an array.
    """

    __slots__ = ("dtype", "kept", "kind", "nest", "number", "op", "row", "shape", "sources", "used")

    def __init__(self, kind: str, op: Any, dtype: np.dtype, shape: Shape, sources: tuple[Node, ...] = ()) -> None:
        self.kind = kind
        self.op = op
        self.dtype = dtype
        self.shape = shape
        self.sources = sources
        self.nest: Nest | None = None
        self.row = self.kept = self.used = False
        self.number: Any = None


class Nest:
    """Loops over one shape. Where there are reductions, its last dims, from ``row_ndim`` on, are what they reduce."""

    def __init__(self, index: int, shape: Shape) -> None:
        self.index = index
        self.shape = shape
        self.row_ndim: int | None = None
        self.nodes: list[Node] = []
        self.closed = False

    @property
    def width(self) -> int:
        """The elements of a row; of all where nothing is reduced."""
        return prod(self.shape[self.row_ndim or 0 :])

    def takes(self, node: Node) -> bool:
        """Whether the node can be computed in here; if so it is."""
        if self.closed or (node.kind == "whole" and self.nodes):
            return False
        if node.kind == "whole":
            self.closed = True
        elif node.kind == "reduce":
            at = _first_reduced(node)
            if (
                self.row_ndim not in (None, at)
                or node.sources[0].shape != self.shape
                or not self._reads(node.sources[0])
            ):
                return False
            self.row_ndim, node.row = at, True
        elif node.shape == self.shape and all(map(self._reads, node.sources)):
            node.row = False
        elif self._as_rows(node):
            node.row = True
        else:
            return False
        node.nest = self
        self.nodes.append(node)
        return True

    def keeps_dims(self, shape: Shape) -> bool:
        """Whether a row value of that shape has dims of size 1 in the place of those that are reduced."""
        return len(shape) == len(self.shape)

    def _row_shapes(self) -> tuple[Shape, Shape]:
        front = self.shape[: self.row_ndim]
        return front, front + (1,) * (len(self.shape) - len(front))

    def _reads(self, source: Node) -> bool:
        """Whether the source has a value for each element of the space."""
        if source.nest is not self or not source.row:
            return True
        return source.shape == self._row_shapes()[1] or not self.row_ndim

    def _as_rows(self, node: Node) -> bool:
        if self.row_ndim is None or node.shape not in self._row_shapes():
            return False
        mine = [source for source in node.sources if source.nest is self]
        return bool(mine) and all(one.row and (one.shape == node.shape or not self.row_ndim) for one in mine)


def lay(nodes: list[Node], outputs: list[Node]) -> list[Nest]:
    """The nests of the nodes that the outputs need, in an order in which they can run.

    Unfit where all of them are kernels of whole arrays.
    """
    waiting = list(outputs)
    while waiting:
        node = waiting.pop()
        if not node.used:
            node.used = True
            waiting.extend(node.sources)
    nests: list[Nest] = []
    for node in nodes:
        if not node.used or node.kind in ("input", "number"):
            continue
        first = max([source.nest.index for source in node.sources if source.nest is not None], default=0)
        if not any(nest.takes(node) for nest in nests[first:]):
            nests.append(Nest(len(nests), node.sources[0].shape if node.kind == "reduce" else node.shape))
            if not nests[-1].takes(node):
                raise Unfit("a reduction of other than the last dims")
        for source in node.sources:
            source.kept |= source.nest not in (None, node.nest)
        node.kept |= node.kind == "whole"
    for node in outputs:
        node.kept = True
    if nests and all(nest.closed for nest in nests):
        raise Unfit("no step that can be fused")
    return nests


def _first_reduced(node: Node) -> int:
    """From which dim on the source is reduced."""
    first: int = node.op[1]
    return first
