"""Groups of elementwise steps written down as C, in which every value between them stays in a register.

A group is what ``chained`` of ``steps.py`` makes a chain of, but with ops that read each other's results in any order, comparisons,
choices and conversions. What its text is written in is ``native/loops/written.h``; ``library.py`` has it compiled.
"""

from __future__ import annotations

import numpy as np

from .steps import ARRAY, CAST, COMPUTE, HALVES, HELD, REALS, WRITTEN, Step, Value

__all__ = ["Source"]

_OPERANDS = 16  # as many as CHAIN_OPERANDS of native/chain.h
_STEPS = 64

# Ops under the name that written.h has for them.
_OF_REALS = frozenset([
    "neg", "abs", "square", "cube", "relu", "sqrt", "rsqrt", "reciprocal", "reciprocal_square", "sign",
    "add", "sub", "mul", "div", "maximum", "minimum", "leaky_relu", "where",
])  # fmt: skip
_TESTS = frozenset([
    "isnan", "isinf", "isfinite", "logical_not", "eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor",
])  # fmt: skip
_FUNCTIONS = frozenset([
    "exp", "log", "tanh", "sigmoid", "silu", "gelu", "gelu_tanh", "expm1", "log1p", "erf", "floor", "ceil", "trunc", "round",
])  # fmt: skip
# Of masks, which have all bits of a lane or none.
_OF_MASKS = {
    "bitwise_and": "{0}[k] & {1}[k]", "logical_and": "{0}[k] & {1}[k]",
    "bitwise_or": "{0}[k] | {1}[k]", "logical_or": "{0}[k] | {1}[k]",
    "bitwise_xor": "{0}[k] ^ {1}[k]", "logical_xor": "{0}[k] ^ {1}[k]", "ne": "{0}[k] ^ {1}[k]",
    "bitwise_not": "~{0}[k]", "logical_not": "~{0}[k]", "eq": "~({0}[k] ^ {1}[k])",
    "where": "({0}[k] & {1}[k]) | (~{0}[k] & {2}[k])",
}  # fmt: skip

_BOOL = np.dtype(bool)
_SUFFIX = {"float32": "f32", "float64": "f64", "bfloat16": "bf16", "float16": "f16", "bool": "bool"}
_VECTORS = {"f32": ("vf", "vi"), "f64": ("vd", "vl")}


class Source:
    """Finds the groups of a nest's steps and writes them down; ``text`` says what all that were found are in C.

    Args:
        names: the elementwise ops by number.
    """

    def __init__(self, names: dict[int, str]) -> None:
        self.names = names
        self.functions: dict[str, int] = {}  # bodies, with their number

    def grouped(self, steps: list[Step], values: list[Value], streams: bool = False) -> list[Step]:
        """The steps with groups of them as one each. ``streams`` is as in ``chained``."""
        uses: dict[int, int] = {}
        for step in steps:
            for source in step.sources:
                uses[source] = uses.get(source, 0) + 1
        made: list[Step] = []
        group = _Group(values, self.names)
        for step in steps:
            if group.takes(step):
                continue
            if group.made.isdisjoint(step.sources) and not _lane(step, values, self.names):
                made.append(step)  # it can as well run before the group, which goes on
                continue
            self._end(group, uses, streams, made)
            group = _Group(values, self.names)
            if not group.takes(step):
                made.append(step)
        self._end(group, uses, streams, made)
        return made

    def resolved(self, step: Step, addresses: tuple[int, ...]) -> Step:
        """The step with the address of the function that it is."""
        return step if step.kind != WRITTEN else step._replace(extra=(step.extra[0], addresses[step.op]))

    def text(self) -> str:
        """A file with all functions, ``written_0`` and so on."""
        functions = [body.replace("NAME", f"written_{number}") for body, number in self.functions.items()]
        return "\n".join(['#include "loops/written.h"\n', *functions])

    def _end(self, group: _Group, uses: dict[int, int], streams: bool, into: list[Step]) -> None:
        if len(group.steps) < 2:
            into.extend(group.steps)
            return
        places, body = group.written(uses, streams)
        if len(places) > _OPERANDS:
            into.extend(group.steps)
            return
        number = self.functions.setdefault(body, len(self.functions))
        first, last = group.steps[0], group.steps[-1]
        into.append(Step(WRITTEN, first.type, last.row, number, last.made, tuple(group.operands), (places, None)))


def _lane(step: Step, values: list[Value], names: dict[int, str]) -> str | None:
    """Of which type the lanes are that the step needs; "" if any will do, None if none does."""
    kinds = [values[one].dtype for one in (*step.sources, step.made)]
    reals = {kind for kind in kinds if kind in REALS}
    halves = any(kind in HALVES for kind in kinds)
    others = [kind for kind in kinds if kind not in REALS and kind not in HALVES and kind != _BOOL]
    if others or len(reals) > 1 or (halves and np.dtype(np.float64) in reals):
        return None
    if step.kind == CAST:
        (source,) = step.sources
        copies = values[source].dtype == values[step.made].dtype
        if copies and halves:
            return None  # bits of a NaN
    elif step.kind == COMPUTE:
        name = names[step.op]
        if name == "clamp":
            if not all(values[one].place == HELD and not values[one].is_nan() for one in step.sources[1:]) or halves:
                return None
        elif values[step.sources[-1]].dtype == _BOOL:
            if name not in _OF_MASKS:
                return None
        elif (name not in _OF_REALS and name not in _TESTS and name not in _FUNCTIONS) or (halves and name != "where"):
            return None
    else:
        return None
    return "f64" if np.dtype(np.float64) in reals else "f32" if reals or halves else ""


class _Group:
    """A group that is being made."""

    def __init__(self, values: list[Value], names: dict[int, str]) -> None:
        self.values = values
        self.names = names
        self.lane = ""
        self.steps: list[Step] = []
        self.made: set[int] = set()
        self.operands: dict[int, int] = {}

    def takes(self, step: Step) -> bool:
        """Puts the step at the end, if it fits."""
        lane = _lane(step, self.values, self.names)
        if lane is None or (self.steps and (step.row != self.steps[0].row or lane not in ("", self.lane))):
            return False
        if not self.steps and not lane:
            return False
        new = {one for one in step.sources if one not in self.made and one not in self.operands}
        if len(self.operands) + len(new) > _OPERANDS or len(self.steps) == _STEPS:
            return False
        if sum(self.values[one.made].place == ARRAY for one in self.steps) == _OPERANDS:
            return False
        self.lane = self.lane or lane
        for one in step.sources:
            if one not in self.made:
                self.operands.setdefault(one, len(self.operands))
        self.steps.append(step)
        self.made.add(step.made)
        return True

    def written(self, uses: dict[int, int], streams: bool) -> tuple[tuple[int, ...], str]:
        """The values that are stored, and the function's text."""
        inside: dict[int, int] = {}
        for step in self.steps:
            for one in step.sources:
                inside[one] = inside.get(one, 0) + 1
        vector, mask = _VECTORS[self.lane]
        lines = [self._load(number, k) for number, k in self.operands.items()]
        variables = {number: f"v{k}" for number, k in self.operands.items()}
        stores: list[str] = []
        places: list[int] = []
        for n, step in enumerate(self.steps):
            name = variables[step.made] = f"w{n}"
            kind = self.values[step.made].dtype
            lines.append(f"{mask if kind == _BOOL else vector} {name}[WRITTEN_TILE];")
            lines += self._op(step, name, [variables[one] for one in step.sources])
            outside = uses.get(step.made, 0) - inside.get(step.made, 0)
            array = self.values[step.made].place == ARRAY
            if array or outside or step is self.steps[-1]:
                past = streams and array and not step.row and not outside and kind in REALS
                stores.append(self._store(len(places), name, kind, past))
                places.append(step.made)
        sizes = [
            "0" if self.values[one].place == HELD else str(self.values[one].dtype.itemsize) for one in self.operands
        ]
        made = [str(self.values[one].dtype.itemsize) for one in places]
        body = "\n".join(f"    {line}" for line in [*lines, *stores])
        head = "ALWAYS_INLINE void NAME_part(const char *const *at, const ptrdiff_t *moves, char *const *into, ptrdiff_t i, int vectors) {"
        tail = f"WRITTEN(NAME, LANES_{self.lane.upper()}, {len(sizes)}, LIST({', '.join(sizes)}), {len(made)}, LIST({', '.join(made)}))"
        return tuple(places), f"{head}\n{body}\n}}\n{tail}\n"

    def _function(self, verb: str, kind: np.dtype) -> str:
        """Load, store or number of a kind of element: beside lanes of another type that one's suffix follows."""
        suffix = _SUFFIX[kind.name]
        return f"{verb}_{self.lane}" if suffix == self.lane else f"{verb}_{suffix}_{self.lane}"

    def _load(self, number: int, k: int) -> str:
        value = self.values[number]
        kind = _VECTORS[self.lane][value.dtype == _BOOL]
        if value.place == HELD:
            one = f"{self._function('number', value.dtype)}(at[{k}])"
            return f"{kind} v{k}[WRITTEN_TILE]; TILED v{k}[k] = {one};"
        at = f"at[{k}] + (i & moves[{k}]) * {value.dtype.itemsize}"
        return f"{kind} v{k}[WRITTEN_TILE]; TILED v{k}[k] = {self._function('load', value.dtype)}({at}, k);"

    def _store(self, place: int, name: str, kind: np.dtype, past: bool) -> str:
        at = f"into[{place}] + i * {kind.itemsize}"
        return f"TILED {self._function('stream' if past else 'store', kind)}({at}, k, {name}[k]);"

    def _op(self, step: Step, made: str, sources: list[str]) -> list[str]:
        """The lines that compute ``made``."""
        if step.kind == CAST:
            return [f"TILED {made}[k] = {self._cast(step, sources[0])};"]
        name = self.names[step.op]
        if name == "clamp":
            x, low, high = sources
            return [f"TILED {made}[k] = lower_{self.lane}(raise_{self.lane}({x}[k], {low}[k]), {high}[k]);"]
        if self.values[step.sources[-1]].dtype == _BOOL:
            return [f"TILED {made}[k] = {_OF_MASKS[name].format(*sources)};"]
        if name in _FUNCTIONS:
            return [f"TILED {made}[k] = {sources[0]}[k];", f"{name}_{self.lane}({made}, vectors);"]
        return [f"TILED {made}[k] = {name}_{self.lane}({', '.join(f'{one}[k]' for one in sources)});"]

    def _cast(self, step: Step, x: str) -> str:
        source, made = self.values[step.sources[0]].dtype, self.values[step.made].dtype
        if source == made or (source in HALVES and made not in HALVES and made != _BOOL):
            return f"{x}[k]"
        if made == _BOOL:
            return f"to_bool_{self.lane}({x}[k])"
        number = f"from_bool_{self.lane}({x}[k])" if source == _BOOL else f"{x}[k]"
        return f"{self._function('to', made)}({number})" if made in HALVES else number
