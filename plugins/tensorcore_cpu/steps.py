"""What a description for the C extension is made of: values and steps, cheap steps joined to chains, places in memory."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tensorcore.plugin import dtypes

__all__ = [
    "ACTIVATE", "ARRAY", "CAST", "COMPUTE", "EXPAND", "HALVES", "HELD", "LOAD", "LOADED", "NUMBER_OF", "REALS", "REDUCE",
    "SCRATCH", "TABLE", "UFUNC", "WRITTEN", "Step", "Value", "chained", "place",
]  # fmt: skip

# In the order of native/types.h.
TYPES = ("float32", "float64", "bfloat16", "float16", "int8", "int16", "int32", "int64", "uint8", "bool")
NUMBER_OF = {one.numpy: TYPES.index(one.name) for one in dtypes.ALL if one.name in TYPES}
REALS = frozenset([dtypes.float32.numpy, dtypes.float64.numpy])
HALVES = frozenset([dtypes.float16.numpy, dtypes.bfloat16.numpy])

# In the order of native/fused.h: where a value lies, and what a step does.
LOADED, SCRATCH, TABLE, ARRAY, HELD = range(5)
LOAD, COMPUTE, CAST, ACTIVATE, UFUNC, EXPAND, REDUCE, CHAIN, WRITTEN = range(9)

_CHAIN_OPS, _CHAIN_OPERANDS = 30, 16
_LINE = 64


class Value:
    """One value of a nest, as long as it lies in one place."""

    __slots__ = ("at", "dtype", "number", "place", "row", "until")

    def __init__(self, place: int, dtype: np.dtype, row: bool = False, at: int = 0, number: bytes = b"\0") -> None:
        self.place = place
        self.dtype = dtype
        self.row = row
        self.at = at
        self.number = number
        self.until = -1

    def is_nan(self) -> bool:
        """Whether it is a number, and that is none."""
        return self.place == HELD and math.isnan(np.frombuffer(self.number, self.dtype)[0])

    def written(self) -> tuple[int, int, bool, int, bytes]:
        """As the extension takes it."""
        return self.place, NUMBER_OF[self.dtype], self.row, self.at, self.number


class Step(NamedTuple):
    """What runs over a block. ``op`` is what the kind makes of it.

    ``extra`` of a chain names its places and ops, that of a written step its places and the function's address.
    """

    kind: int
    type: int
    row: bool
    op: int
    made: int
    sources: tuple[int, ...]
    extra: Any

    @property
    def makes(self) -> tuple[int, ...]:
        """The values it makes, the last one last."""
        made: tuple[int, ...] = self.extra[0] if self.kind in (CHAIN, WRITTEN) else (self.made,)
        return made


# Chains


def chained(
    steps: list[Step], values: list[Value], names: dict[int, str], codes: dict[str, int], streams: bool = False
) -> list[Step]:
    """The steps with runs of cheap ops on one value joined, so that it stays in registers.

    ``names`` are those of the elementwise ops by number, ``codes`` the numbers of what a chain can do by name. ``streams``
    says that arrays are too large for the caches: what no later step reads is stored past them.
    """
    uses: dict[int, int] = {}
    for step in steps:
        for source in step.sources:
            uses[source] = uses.get(source, 0) + 1
    made: list[Step] = []
    chain = _Chain(values, codes, uses, streams)
    for step in steps:
        ops = _ops(step, values, names, codes)
        if ops and chain.takes(step, ops):
            continue
        if not ops and not chain.makes(step.sources):
            made.append(step)  # it can as well run before the chain, which goes on
            continue
        chain.end(made)
        if not ops:
            made.append(step)
        elif not chain.takes(step, ops):
            raise AssertionError("a chain of one step")
    chain.end(made)
    return made


Ops = list[tuple[str, int | None]]  # names of a chain's ops and the value beside, if there is one

_TURNED = {"add": "add", "mul": "mul", "sub": "rsub", "div": "rdiv", "maximum": "rmaximum", "minimum": "rminimum"}


def _ops(step: Step, values: list[Value], names: dict[int, str], codes: dict[str, int]) -> dict[int, Ops]:
    """What the step is as a part of a chain, by the operand that the chain begins with or goes on from."""
    if step.kind != COMPUTE or step.type > 1:
        return {}
    name = names[step.op]
    first, *rest = step.sources
    if name == "clamp" and all(values[one].place == HELD and not values[one].is_nan() for one in rest):
        return {first: [("raise", rest[0]), ("lower", rest[1])]}
    if name not in codes or len(rest) > 1:
        return {}
    if not rest:
        return {first: [(name, None)]}
    second = rest[0]
    if first == second:
        same = {"mul": "square", "add": "twice"}.get(name)
        return {first: [(same, None)]} if same else {}
    found: dict[int, Ops] = {first: [(name, second)]}
    if name in _TURNED:
        found[second] = [(_TURNED[name], first)]
        if values[first].place == HELD:
            del found[first]
    return found


class _Chain:
    """A chain that is being made."""

    def __init__(self, values: list[Value], codes: dict[str, int], uses: dict[int, int], streams: bool) -> None:
        self.values = values
        self.streams = streams
        self.codes = codes
        self.uses = uses
        self.steps: list[Step] = []
        self.parts: list[tuple[Ops, int]] = []  # of each step, and how often the next one reads what it makes
        self.made: set[int] = set()
        self.operands: dict[int, int] = {}

    def makes(self, sources: tuple[int, ...]) -> bool:
        """Whether one of the values is made by the chain."""
        return not self.made.isdisjoint(sources)

    def takes(self, step: Step, ops: dict[int, Ops]) -> bool:
        """Puts the step at the end of the chain, if it can go on from there."""
        before = self.steps[-1] if self.steps else None
        if before is None:
            at = next(iter(ops))
            self.operands = {at: 0}
        else:
            at = before.made
            others = [one for one in step.sources if one != at]
            room = len(self.operands) + len(others) <= _CHAIN_OPERANDS and len(self.steps) < _CHAIN_OPERANDS
            length = sum(len(part) for part, _ in self.parts) + len(self.steps)
            fits = (step.type, step.row) == (before.type, before.row) and room and length + 4 <= _CHAIN_OPS
            if not fits or at not in ops or self.makes(tuple(others)):
                return False
            self.parts[-1] = (self.parts[-1][0], step.sources.count(at))
        for _, other in ops[at]:
            if other is not None:
                self.operands.setdefault(other, len(self.operands))
        self.steps.append(step)
        self.made.add(step.made)
        self.parts.append((ops[at], 0))
        return True

    def end(self, into: list[Step]) -> None:
        """Writes the chain down and begins another one."""
        if len(self.steps) == 1 and not self._streamed(self.steps[0], 0):
            into.append(self.steps[0])
        elif self.steps:
            into.append(self._written())
        self.steps, self.parts, self.operands, self.made = [], [], {}, set()

    def _streamed(self, step: Step, read: int) -> bool:
        """Whether what a step makes goes past the caches; ``read`` is how often the next one of the chain reads it."""
        whole = self.values[step.made].place == ARRAY and not step.row
        return self.streams and whole and self.uses.get(step.made, 0) == read

    def _written(self) -> Step:
        places: list[int] = []
        text = bytearray()
        for step, (ops, read) in zip(self.steps, self.parts, strict=True):
            for name, other in ops:
                text += bytes([self.codes[name], 0 if other is None else self.operands[other]])
            if self.values[step.made].place == ARRAY or self.uses.get(step.made, 0) > read or step is self.steps[-1]:
                text += bytes([self.codes["stream" if self._streamed(step, read) else "store"], len(places)])
                places.append(step.made)
        last = self.steps[-1]
        return Step(CHAIN, last.type, last.row, 0, last.made, tuple(self.operands), (tuple(places), bytes(text)))


# Places


def place(steps: list[Step], values: list[Value], block: int, rows: int) -> int:
    """Gives values in scratch space their places for blocks of so many elements and rows; the bytes of all of it."""
    for i, step in enumerate(steps):
        for number in (*step.sources, *step.makes):
            values[number].until = i
    for step in steps:  # what is expanded is read where it lies as long as there is one row
        if step.kind == EXPAND:
            source = values[step.sources[0]]
            source.until = max(source.until, values[step.made].until)
    free: dict[int, list[int]] = {}
    end = 0

    def size(value: Value) -> int:
        return -(-(rows if value.row else block) * value.dtype.itemsize // _LINE) * _LINE

    def release(numbers: tuple[int, ...] | list[int], now: int) -> None:
        for number in dict.fromkeys(numbers):
            value = values[number]
            if value.until == now and value.place in (SCRATCH, LOADED):
                value.until = -1
                free.setdefault(size(value), []).append(value.at)

    for i, step in enumerate(steps):
        for number in step.makes:
            value = values[number]
            if number == step.made and step.kind in (COMPUTE, CAST, ACTIVATE, UFUNC, CHAIN, WRITTEN):
                # It may take the place of an operand of its size that is not needed any more, element by element.
                same = [one for one in step.sources if _alike(values[one], value)]
                release(same, i)
            if value.place in (SCRATCH, LOADED):
                if free.get(size(value)):
                    value.at = free[size(value)].pop()
                else:
                    value.at = end
                    end += size(value) + _LINE  # so that they do not lie a whole number of pages apart
        release([*step.sources, *step.makes], i)
    return end


def _alike(one: Value, other: Value) -> bool:
    return one.dtype.itemsize == other.dtype.itemsize and one.row == other.row
