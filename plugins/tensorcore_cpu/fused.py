"""Nests written down for the C extension: which steps run over a block, and where in the scratch space values lie."""

from __future__ import annotations

from math import prod
from typing import Any

from .nests import Nest, Node
from .steps import ARRAY, EXPAND, HELD, LOAD, LOADED, NUMBER_OF, REDUCE, SCRATCH, TABLE, Step, Value, chained, place
from .written import Source

__all__ = ["REDUCTIONS", "describe"]

REDUCTIONS = ("sum", "mean", "amax", "amin", "prod", "any", "all")  # in the order of native/fused.h

_LONG = 8192  # elements of a row from which on it is cut into blocks
_CACHE = 24 << 10  # bytes of the first cache that a block's values may take up
_LAST_CACHE = 32 << 20  # bytes of an array that the last cache does not keep until somebody reads it
_BLOCK = 2048  # elements that a block has at most, and a quarter of which it has at least
_GRAIN = 1 << 15  # elements of a cheap op that are worth a thread

Shape = tuple[int, ...]


def describe(
    inputs: list[Node],
    nests: list[Nest],
    outputs: list[Node],
    names: dict[int, str],
    codes: dict[str, int],
    written: bool = False,
) -> tuple[Any, ...]:
    """What ``fuse`` of the extension takes: inputs, made arrays, the arrays that are answered, nests.

    With ``written`` groups of steps are functions of a generated file, if that can be compiled.
    """
    arrays = {node: i for i, node in enumerate(inputs)}
    for nest in nests:
        for node in nest.nodes:
            if node.kept:
                arrays[node] = len(arrays)
    specs = [(NUMBER_OF[node.dtype], node.shape) for node in arrays]
    source = Source(names) if written else None
    described = [_Writer(nest, arrays).written(names, codes, source) for nest in nests]
    if source is not None and source.functions:
        from .library import addresses  # here: only then is there a compiler to start

        found = addresses(source.text(), len(source.functions))
        if found is None:
            return describe(inputs, nests, outputs, names, codes)
        described = [
            (
                *rest,
                tuple(
                    tuple(tuple(source.resolved(step, found) for step in steps) for steps in phase) for phase in phases
                ),
            )
            for *rest, phases in described
        ]
    return (
        tuple(specs[: len(inputs)]),
        tuple(specs[len(inputs) :]),
        tuple(arrays[node] for node in outputs),
        tuple(described),
    )


class _Writer:
    """Writes one nest down."""

    def __init__(self, nest: Nest, arrays: dict[Node, int]) -> None:
        self.nest = nest
        self.arrays = arrays
        self.values: list[Value] = []
        self.loads: list[tuple[int, int]] = []
        self.numbers: dict[tuple[Any, bytes], int] = {}
        self.rows: dict[Node, int] = {}  # row values by node, for the whole nest
        self.here: dict[tuple[Node, bool], int] = {}  # what the current phase has
        self.row_ndim = len(nest.shape) if nest.row_ndim is None else nest.row_ndim
        self.reduces = nest.row_ndim is not None
        self.long = self.reduces and nest.width > _LONG
        self.table = 0
        self.steps: list[Step] = []
        self.row_steps: list[Step] = []

    def written(self, names: dict[int, str], codes: dict[str, int], source: Source | None) -> tuple[Any, ...]:
        """The nest as ``fuse`` takes it."""
        phases = []
        ends = self._phases()
        for phase in range(max(ends.values(), default=0) + 1):
            self.here = {}
            self.steps = []
            self.row_steps = self.steps if not self.long else []
            needed = self._needed(phase, ends)
            for node in self.nest.nodes:
                if node in needed:
                    self._write(node)
            streams = prod(self.nest.shape) * 4 >= _LAST_CACHE
            if source is not None:
                self.steps = source.grouped(self.steps, self.values, streams)
            steps = chained(self.steps, self.values, names, codes, streams)
            phases.append((steps, self.row_steps if self.long else []))
        most = _BLOCK
        scratch = self._places(phases, most)
        # As many elements as fit the first cache beside the arrays that go past.
        each = scratch // most + sum(value.dtype.itemsize for value in self.values if value.place == ARRAY)
        block = (
            max(most // 4, min(most, 1 << (_CACHE // max(each, 1)).bit_length() - 1)) if each * most > _CACHE else most
        )
        if self.reduces and not self.long:
            block = max(block // self.nest.width, 1) * self.nest.width
        scratch = self._places(phases, block)
        cost = sum(len(steps) for steps, _ in phases)
        return (
            self.nest.shape, self.row_ndim, block, max(_GRAIN // max(cost, 1), 2048), scratch, self.table, self.long,
            tuple(value.written() for value in self.values), tuple(self.loads),
            tuple((tuple(steps), tuple(row_steps)) for steps, row_steps in phases),
        )  # fmt: skip

    def _phases(self) -> dict[Node, int]:
        """In which phase each node of a nest of long rows is first made; all in one where rows are short."""
        made: dict[Node, int] = {}
        for node in self.nest.nodes:
            mine = [source for source in node.sources if source.nest is self.nest]
            after = 0 if node.row else 1
            made[node] = max((made[one] + after * one.row for one in mine), default=0) if self.long else 0
        return made

    def _needed(self, phase: int, ends: dict[Node, int]) -> set[Node]:
        """What the phase computes: what ends in it, and once more what that is made of and no array holds."""
        needed: set[Node] = set()
        for node in reversed(self.nest.nodes):
            if ends[node] == phase and (node.kept or node.kind == "reduce" or node.row):
                needed.add(node)
            if node in needed:
                for source in node.sources:
                    if source.nest is self.nest and (ends[source] == phase or not (source.row or source.kept)):
                        needed.add(source)
        return needed

    def _write(self, node: Node) -> None:
        row = node.row and node.kind != "reduce"
        sources = tuple([self._source(source, row, node.shape) for source in node.sources])
        if node.row:
            place, at = (ARRAY, self.arrays[node]) if node.kept else (TABLE if self.long else SCRATCH, 0)
            if place == TABLE:
                at = self.table
                self.table += prod(self.nest.shape[: self.row_ndim]) * 8
            made = self.rows[node] = self._value(Value(place, node.dtype, True, at))
        else:
            made = self.here[node, False] = self._value(
                Value(ARRAY, node.dtype, False, self.arrays[node]) if node.kept else Value(SCRATCH, node.dtype)
            )
        kind, op, extra = node.op if node.kind == "map" else (REDUCE, REDUCTIONS.index(node.op[0]), None)
        step = Step(kind, NUMBER_OF[node.sources[-1].dtype], row, op, made, sources, extra)
        (self.row_steps if row else self.steps).append(step)

    def _source(self, node: Node, row: bool, shape: Shape) -> int:
        """The value that a step reads, loaded or expanded if it has to be."""
        if node.kind == "number":
            number = node.number.tobytes()
            key = (node.dtype, number)
            if key not in self.numbers:
                self.numbers[key] = self._value(Value(HELD, node.dtype, False, 0, number))
            return self.numbers[key]
        if node.nest is self.nest and node.row:
            if row:
                return self.rows[node]
            if (node, False) not in self.here:
                made = self.here[node, False] = self._value(Value(SCRATCH, node.dtype))
                self.steps.append(Step(EXPAND, NUMBER_OF[node.dtype], False, 0, made, (self.rows[node],), None))
            return self.here[node, False]
        if (node, row) not in self.here:
            made = self.here[node, row] = self._value(Value(LOADED, node.dtype, row))
            aligned = len(self.nest.shape) if not row or self.nest.keeps_dims(shape) else self.row_ndim
            steps = self.row_steps if row else self.steps
            steps.append(Step(LOAD, NUMBER_OF[node.dtype], row, len(self.loads), made, (), None))
            self.loads.append((self.arrays[node], aligned))
        return self.here[node, row]

    def _value(self, value: Value) -> int:
        self.values.append(value)
        return len(self.values) - 1

    def _places(self, phases: list[tuple[list[Step], list[Step]]], block: int) -> int:
        """Gives each value in scratch space its place for blocks of so many elements; the bytes that takes in all."""
        rows = 1 if self.long else max(block // max(self.nest.width, 1), 1)
        most = 0
        for steps, row_steps in phases:
            # Row steps of long rows run by themselves after the others, and find the space free.
            for some in (steps, row_steps) if self.long else (steps,):
                most = max(most, place(some, self.values, block, rows))
        return most
