"""From a trace to a replay: programs for the segments, and a Python function that runs them and puts everything in place."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from tensorcore.backend.base import Backend
from tensorcore.backend.program import Program, Step, Value
from tensorcore.compiler.memories import Memories, Segment
from tensorcore.compiler.objects import is_record
from tensorcore.dtypes import dtype
from tensorcore.lazy.kinds import STAYS, reads
from tensorcore.lazy.plan import prepare
from tensorcore.tape.node import is_leaf
from tensorcore.tensor import Tensor

__all__ = ["Result", "Script", "needed_steps", "program_of"]


class Result:
    """What a traced call answered with: how to write it as an expression.

    Args:
        known: expressions for tensors and containers that were there before the call, by ``id``.
        reaches: whether an object is one that the guards name, so that it is answered as it is.

    Attributes:
        tensors: those in it that the call made, in order.
        text: the expression, in which these are ``r0``, ``r1``, ...
        failed: why a replay cannot answer with it, None where it can.
    """

    def __init__(self, value: Any, known: dict[int, str], script: Script, reaches: Callable[[Any], bool]) -> None:
        self.tensors: list[Tensor] = []
        self.failed: str | None = None
        self._known, self._script, self._reaches = known, script, reaches
        self._places: dict[int, int] = {}
        self.text = self.expression(value)

    def expression(self, value: Any) -> str:
        """A value that the call made, or found, in terms of what a replay has."""
        if id(value) in self._known:
            return self._known[id(value)]
        if isinstance(value, Tensor):
            if (
                type(value) is not Tensor
                or value.__dict__.get("_is_param")
                or type(value.native) is not value.device.array
            ):
                self.failed = "answers with a new parameter, a sparse tensor or a subclass of Tensor"
            elif is_leaf(value.node):
                self.failed = "answers with a new leaf that requires grad"
            if id(value) not in self._places:
                self._places[id(value)] = len(self.tensors)
                self.tensors.append(value)
            return f"r{self._places[id(value)]}"
        if _constant(value) or ((isinstance(value, list | dict) or is_record(value)) and self._reaches(value)):
            return self._script.name(value)
        if isinstance(value, tuple) and (hasattr(value, "_fields") or type(value) is tuple):
            inside = "".join(f"{self.expression(one)}, " for one in value)
            return f"({inside})" if type(value) is tuple else f"{self._script.name(type(value))}({inside})"
        if type(value) is list:
            return f"[{''.join(f'{self.expression(one)}, ' for one in value)}]"
        if type(value) in (dict, OrderedDict):
            made = self._items(value)
            return made if type(value) is dict else f"{self._script.name(OrderedDict)}({made})"
        if is_record(value):
            return f"{self._script.name(_record)}({self._script.name(type(value))}, {self._items(vars(value))})"
        self.failed = f"answers with a {type(value).__name__}, which a replay cannot make"
        return self._script.name(value)

    def _items(self, items: dict[Any, Any]) -> str:
        return f"{{{''.join(f'{self._script.name(key)}: {self.expression(one)}, ' for key, one in items.items())}}}"


def _record(kind: type, state: dict[str, Any]) -> Any:
    """A dataclass with these attributes, whatever its ``__init__`` does."""
    made = object.__new__(kind)
    made.__dict__.update(state)
    return made


def _constant(value: Any) -> bool:
    """Whether a result is the same in each replay: it holds nothing that could be written to."""
    if isinstance(value, tuple):
        return all(map(_constant, value))
    return value is None or isinstance(value, int | float | complex | str | bytes | dtype | Backend)


class Script:
    """The text of a function that replays segments of a trace, and the names in it.

    Args:
        sources: where arrays from outside are found, by the number of their value, as expressions.
        compile: what stands in the place of the backend's ``compile``, or None.

    Attributes:
        plans: the plans that were made for it.
    """

    def __init__(self, tracer: Memories, sources: dict[int, str], compile: Any = None) -> None:
        self.tracer, self.sources, self.compile = tracer, sources, compile
        self.names: dict[str, Any] = {}
        self.plans: list[Any] = []
        self.read: dict[int, None] = {}  # arrays from outside that are used

    def name(self, value: Any) -> str:
        """A name for an object."""
        name = f"o{id(value)}"
        self.names[name] = value
        return name

    def calls(self, first: int, last: int, later: set[int], kept: dict[int, set[int]]) -> tuple[list[str], set[int]]:
        """The lines that run some segments, and which values they need from before.

        Args:
            later: the values needed after the last of them.
            kept: those that are needed right after one of them, by its position.
        """
        lines = []
        needed = set(later)
        for position in range(last - 1, first - 1, -1):
            needed |= kept.get(position, set())
            segment = self.tracer.segments[position]
            steps = needed_steps(segment, needed)
            own = {number for _, numbers in steps for number in numbers}
            program, inputs, outputs, into = program_of(segment, steps, sorted(own & needed), self.tracer)
            needed = (needed - own) | set(inputs)
            lines.append(self._call(program, inputs, outputs, into))
        return lines[::-1], needed

    def _call(self, program: Program, inputs: list[int], outputs: list[int], into: dict[int, int]) -> str:
        if not program.steps and not into:
            return ""
        device: Any = self.tracer.device
        strides = [self.tracer.strides.get(one) for one in inputs]
        plan = prepare(program, device, into=into, strides=strides, compile=self.compile)
        self.plans.append(plan)
        made = "".join("_, " if i in into else f"x{one}, " for i, one in enumerate(outputs))
        return f"{made}{'= ' if made else ''}{self.name(plan)}({', '.join(f'x{one}' for one in inputs)})"

    def function(self, head: str, body: list[str], needed: set[int]) -> Callable[..., Any]:
        """The function of a head and lines; arrays from outside that these need are read first."""
        first = [f"x{one} = {self.source(one)}" for one in sorted(needed)]
        source = f"def {head}:\n" + "".join(f"    {line}\n" for line in (*first, *body) if line)
        exec(compile(source, "<replay>", "exec"), self.names)
        made: Callable[..., Any] = self.names.pop(head.partition("(")[0])
        made.source = source  # type: ignore[attr-defined]
        return made

    def source(self, number: int) -> str:
        """Where an array from outside, or a constant, is found."""
        found = self.sources.get(number)
        return self.name(self.tracer.given.get(number, self.tracer.constants.get(number))) if found is None else found


def needed_steps(segment: Segment, later: set[int]) -> list[tuple[Step, tuple[int, ...]]]:
    """The steps of a segment whose results somebody needs."""
    needed = later | {value for value, _ in segment.writes}
    kept = []
    for step, numbers in reversed(segment.steps):
        if step.kernel in STAYS or not needed.isdisjoint(numbers):
            needed.update(reads(step))
            kept.append((step, numbers))
    return kept[::-1]


def program_of(
    segment: Segment, steps: list[tuple[Step, tuple[int, ...]]], outputs: list[int], tracer: Memories
) -> tuple[Program, list[int], list[int], dict[int, int]]:
    """Steps as a program; the numbers of its inputs and outputs, and which outputs go over which inputs."""
    own = {number for _, numbers in steps for number in numbers}
    inputs: dict[int, int] = {}
    for step, _ in steps:
        for one in reads(step):
            if one not in own:
                inputs.setdefault(one, len(inputs))
    into = {}
    for value, base in segment.writes:
        for one in (base, value):
            if one not in own:
                inputs.setdefault(one, len(inputs))
        into[len(outputs)] = inputs[base]
        outputs.append(value)
    names = dict(inputs)
    for _, numbers in steps:
        for number in numbers:
            names[number] = len(names)

    def renamed(value: Any) -> Any:
        if isinstance(value, Value):
            return Value(names[value.number])
        return type(value)(map(renamed, value)) if isinstance(value, tuple | list) else value

    made = [
        Step(step.kernel, renamed(step.operands), {key: renamed(one) for key, one in step.options.items()}, step.makes)
        for step, _ in steps
    ]
    specs = tuple([tracer.specs[one] for one in inputs])
    return Program(specs, tuple(made), tuple([Value(names[one]) for one in outputs])), list(inputs), outputs, into
