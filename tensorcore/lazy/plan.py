"""Plans: a program made into one Python function that runs it on a backend, in fused kernels and planned memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from math import prod
from typing import Any

from tensorcore.backend.base import Backend
from tensorcore.backend.program import Program, Step, Value
from tensorcore.errors import TensorcoreError
from tensorcore.lazy.groups import partition
from tensorcore.lazy.kinds import CHECKS, DRAWS, ELEMENTWISE, reads, used, written
from tensorcore.lazy.optimise import frozen, optimise, prune
from tensorcore.lazy.source import Writer
from tensorcore.lazy.views import hoist

__all__ = ["Broken", "prepare"]

Plan = Callable[..., tuple[Any, ...]]
KEPT = 256  # plans kept for programs of equal structure

_plans: dict[Any, Plan] = {}


class Broken(TensorcoreError):
    """A check that held when the program was written down does not hold for these values."""


def prepare(
    program: Program,
    backend: Backend,
    *,
    into: Mapping[int, int] | None = None,
    strides: Sequence[tuple[int, ...] | None] | None = None,
    compile: Callable[[Program], Any] | None = None,
) -> Plan:
    """A function of the program's inputs, natives by position, that answers with a tuple of its outputs.

    Steps are optimised, and groups of fusible ones are handed to ``backend.compile``; what that answers with None to runs
    kernel by kernel. Arrays that are no longer needed are written to again.

    Args:
        into: outputs that are written over inputs, by their positions; the input is what is answered then.
        strides: of the inputs; None where they lie in row-major order.
        compile: what stands in the place of ``backend.compile``.

    Returns:
        The function, with attributes: ``peak``, the most bytes that its own arrays take at one time; ``kernels``, how
        many calls it makes; ``fused``, how many of these do several steps; ``source``, its text.

    Raises:
        Broken: when called, before anything is written, by a step ``bounds`` or ``values`` that does not hold.
    """
    into = dict(into or {})
    layouts = tuple(strides) if strides is not None else None
    key = None
    structure = frozen((program.steps, program.outputs))
    if "object" not in _words(structure) and compile is None:
        key = id(backend), backend.codegen(), program.inputs, structure, tuple(sorted(into.items())), layouts
        found = _plans.get(key)
        if found is not None:
            return found
    made = _prepared(program, backend, into, layouts, compile or backend.compile)
    if key is not None:
        while len(_plans) >= KEPT:
            del _plans[next(iter(_plans))]
        _plans[key] = made
    return made


def _words(structure: Any) -> set[str]:
    if isinstance(structure, tuple):
        if len(structure) == 2 and structure[0] == "object":
            return {"object"}
        return set().union(*map(_words, structure)) if structure else set()
    return set()


def _prepared(
    program: Program, backend: Backend, into: dict[int, int], strides: Any, compile: Callable[[Program], Any]
) -> Plan:
    program = optimise(program)
    if any(step.kernel == "view" for step in program.steps):
        program = prune(hoist(program, _dense(program, strides)))
    program = _late(_checks_first(program))
    writer = Writer(program, backend, into, _dense(program, strides))
    known: dict[Any, bool] = {}

    def fits(i: int) -> bool:
        step = program.steps[i]
        key = step.kernel, [writer.specs[one] for one in reads(step)], step.makes, frozen(_numbers(step))
        if repr(key) not in known:
            known[repr(key)] = compile(_group(program, (i,), writer)[0]) is not None
        return known[repr(key)]

    units = partition(program)
    unfit = {i for unit in units if len(unit.steps) > 1 for i in unit.steps if not fits(i)}
    for unit in partition(program, lambda i: i not in unfit) if unfit else units:
        if len(unit.steps) > 1:
            group, inputs, outputs = _group(program, unit.steps, writer)
            kernel = compile(group) if writer.all_dense(outputs) else None
            if kernel is not None:
                writer.fused(kernel, unit.steps, inputs, outputs)
                continue
        for i in unit.steps:
            writer.single(i)
    return writer.finish(Broken)


def _checks_first(program: Program) -> Program:
    """The program with its checks, and what they need, before everything else; what is drawn stays in order."""
    makers: list[int | None] = [None] * len(program.inputs)
    for i, step in enumerate(program.steps):
        makers.extend([i] * len(step.makes))
    early: set[int] = set()

    def first(i: int) -> None:
        waiting = [i]
        while waiting:
            at = waiting.pop()
            if at not in early:
                early.add(at)
                found = [makers[one] for one in reads(program.steps[at])]
                waiting.extend([one for one in found if one is not None])

    for i, step in enumerate(program.steps):
        if step.kernel in CHECKS:
            first(i)
    drawn = [i for i, step in enumerate(program.steps) if step.kernel in DRAWS]
    for i in reversed(drawn):
        if any(one in early for one in drawn if one >= i):
            first(i)
    order = sorted(range(len(program.steps)), key=lambda i: (i not in early, i))
    return _reordered(program, order)


def _numbers(step: Step) -> tuple[Any, ...]:
    """What tells a step from others of its kernel and specs."""
    return tuple([None if isinstance(one, Value) else one for one in step.operands]), step.options


def _late(program: Program) -> Program:
    """The program with elementwise steps right before the first step that reads them, where that keeps fewer bytes.

    Such as a mask that the backward pass makes of what the forward pass keeps anyway.
    """
    specs = program.specs()
    readers: list[list[int]] = [[] for _ in specs]
    starts, number = [], len(program.inputs)
    for i, step in enumerate(program.steps):
        starts.append(number)
        number += len(step.makes)
        for one in reads(step):
            readers[one].append(i)
    leaving = {one.number for one in program.outputs}
    place = {i: (i, 0) for i in range(len(program.steps))}

    def size(value: int) -> int:
        return prod(specs[value].shape) * specs[value].dtype.itemsize

    for i in range(len(program.steps) - 1, -1, -1):
        step, made = program.steps[i], starts[i]
        if step.kernel not in ELEMENTWISE or made in leaving or not readers[made]:
            continue
        first = min(readers[made], key=lambda k: place[k])
        longer = 0
        for one in set(reads(step)):
            if one >= len(program.inputs):
                last = max([place[k][0] for k in readers[one] if k != i], default=i)
                longer += size(one) * max(0, place[first][0] - max(last, i))
        if size(made) * (place[first][0] - i) > longer:
            place[i] = (place[first][0], place[first][1] - 1)
    return _reordered(program, sorted(range(len(program.steps)), key=lambda i: (place[i], i)))


def _reordered(program: Program, order: list[int]) -> Program:
    starts, number = [], len(program.inputs)
    for step in program.steps:
        starts.append(number)
        number += len(step.makes)
    names = {i: i for i in range(len(program.inputs))}
    for i in order:
        for k in range(len(program.steps[i].makes)):
            names[starts[i] + k] = len(names)

    def renamed(value: Any) -> Any:
        if isinstance(value, Value):
            return Value(names[value.number])
        return type(value)(map(renamed, value)) if isinstance(value, tuple | list) else value

    steps = [
        one._replace(
            operands=renamed(one.operands), options={key: renamed(value) for key, value in one.options.items()}
        )
        for one in (program.steps[i] for i in order)
    ]
    return Program(program.inputs, tuple(steps), tuple([Value(names[one.number]) for one in program.outputs]))


def _group(program: Program, members: tuple[int, ...], writer: Writer) -> tuple[Program, list[int], list[int]]:
    """The program of some steps, and which values are its inputs and its outputs."""
    inside: dict[int, int] = {}
    inputs: list[int] = []
    own = {number for i in members for number in writer.results(i)}
    for i in members:
        for one in reads(program.steps[i]):
            if one not in own and one not in inside:
                inside[one] = len(inside)
                inputs.append(one)
    for i in members:
        for number in writer.results(i):
            inside[number] = len(inside)

    def renamed(value: Any) -> Any:
        if isinstance(value, Value):
            return Value(inside[value.number])
        return tuple(map(renamed, value)) if isinstance(value, tuple) else value

    steps = tuple([program.steps[i]._replace(operands=renamed(program.steps[i].operands)) for i in members])
    outputs = [number for i in members for number in writer.results(i) if writer.needed_outside(number, members)]
    specs = writer.specs
    made = Program(tuple([specs[one] for one in inputs]), steps, tuple([Value(inside[one]) for one in outputs]))
    return made, inputs, outputs


def _dense(program: Program, strides: Any) -> list[bool]:
    """Of each value whether it lies in row-major order, by the rules that say where kernels put their results."""
    from tensorcore.backend.kernels import LAYOUTS, RULES
    from tensorcore.backend.meta import MetaBackend

    meta = MetaBackend()
    values: list[Any] = []
    for i, spec in enumerate(program.inputs):
        array = meta.allocate(spec.shape, spec.dtype)
        if strides is not None and strides[i] is not None:
            array = meta.as_strided(array, spec.shape, strides[i], 0)
        values.append(array)

    def given(value: Any) -> Any:
        if isinstance(value, Value):
            return values[value.number]
        several = isinstance(value, tuple) and any(True for _ in used(value))
        return list(map(given, value)) if several else value

    for step in program.steps:
        made: Any = ()
        rule = RULES.get(step.kernel)
        if step.kernel in DRAWS or (rule is not None and step.kernel not in LAYOUTS and not rule.columns):
            made = tuple([meta.allocate(spec.shape, spec.dtype) for spec in step.makes])
        elif step.kernel == "place":
            made = given(step.operands[0])
        elif step.kernel == "update":
            made = tuple(map(given, written(step)))
        elif all(values[one] is not None for one in reads(step)):
            # Without a rule, or with one that asks for values, it is not known where the results lie.
            with suppress(Exception):
                made = meta.kernels[step.kernel](
                    *map(given, step.operands), **{key: given(one) for key, one in step.options.items()}
                )
        several = made if isinstance(made, tuple | list) else (made,)
        values.extend(several if len(several) == len(step.makes) else [None] * len(step.makes))
    return [one is not None and meta.is_contiguous(one) for one in values]
