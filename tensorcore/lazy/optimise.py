"""Passes over programs: each answers with a program that makes the same bits in fewer or cheaper steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import numpy as np

from tensorcore import dtypes
from tensorcore.backend.program import Program, Spec, Step, Value
from tensorcore.lazy.kinds import ELEMENTWISE, STAYS, VIEWING, reads, roots, used
from tensorcore.lazy.views import broadcast, flatten, join

__all__ = ["fold", "frozen", "keep", "merge", "optimise", "prune", "simplify"]

_FLOATS = frozenset([dtypes.float32, dtypes.float64])


def optimise(program: Program) -> Program:
    """All passes: constants and views folded, steps that change nothing left out, equal ones merged, unused ones dropped."""
    return prune(join(keep(merge(simplify(broadcast(flatten(fold(program))))))))


def prune(program: Program) -> Program:
    """Without the steps whose results nobody needs; those that draw random numbers or check something stay."""
    needed = {one.number for one in program.outputs}
    kept = []
    number = len(program.inputs) + sum(len(step.makes) for step in program.steps)
    for step in reversed(program.steps):
        number -= len(step.makes)
        if step.kernel in STAYS or not needed.isdisjoint(range(number, number + len(step.makes))):
            needed.update(reads(step))
            kept.append((number, step))
    return _rebuilt(program, kept[::-1])


def merge(program: Program) -> Program:
    """With one step in the place of several that make the same of the same operands.

    What leaves the program keeps memory of its own: two outputs are never made one.
    """
    found = roots(program)
    leaving = {found[one.number] for one in program.outputs}
    seen: dict[Any, tuple[int, ...]] = {}

    def visit(step: Step, numbers: tuple[int, ...]) -> tuple[int, ...] | None:
        if step.kernel in STAYS or any(found[one] in leaving for one in numbers):
            return None
        return seen.setdefault(_key(step), numbers)

    return _replaced(program, visit)


def simplify(program: Program) -> Program:
    """Without steps that give one of their operands back: ``x * 1``, ``-(-x)``, a cast to its own dtype, an empty view.

    Only where no bit changes (``x + 0`` stays: it makes zeros of negative zeros), where the value does not leave the
    program, and, but for views, where the operand is no view itself: a step made dense memory of that.
    """
    specs, found = program.specs(), roots(program)
    leaving = {found[one.number] for one in program.outputs}
    makers: dict[int, Step] = {}
    inputs = len(program.inputs)

    def visit(step: Step, numbers: tuple[int, ...]) -> tuple[int, ...] | None:
        for one in numbers:
            makers[one] = step
        if len(numbers) != 1 or (step.kernel not in VIEWING and found[numbers[0]] in leaving):
            return None
        kept = _same(step, makers)
        if kept is None or specs[kept] != specs[numbers[0]]:
            return None
        if step.kernel not in VIEWING and (kept < inputs or found[kept] != kept or found[kept] in leaving):
            return None
        return (kept,)

    return _replaced(program, visit)


def keep(program: Program) -> Program:
    """Without copies of what a step made and nobody else holds: that itself leaves the program.

    An output is copied where it might share its memory with another one; here it is known whether it does.
    """
    specs, found = program.specs(), roots(program)
    outputs = Counter([one.number for one in program.outputs])
    taken = {found[one] for one in outputs}

    def visit(step: Step, numbers: tuple[int, ...]) -> tuple[int, ...] | None:
        source = step.operands[0] if step.kernel == "clone" else None
        if not isinstance(source, Value) or outputs[numbers[0]] != 1:
            return None
        root = found[source.number]
        if root < len(program.inputs) or root in taken or prod(specs[root].shape) != prod(specs[numbers[0]].shape):
            return None
        taken.add(root)
        return (source.number,)

    return _replaced(program, visit)


def fold(program: Program) -> Program:
    """With numbers in the place of arrays that hold one number throughout, and what is computed of these alone computed.

    An array is only replaced where the step has another one of its shape and dtype, and the number is exact in it.
    """
    specs = program.specs()
    number = len(program.inputs)
    full: dict[int, Any] = {}
    steps = []
    for step in program.steps:
        if step.kernel == "full" and type(step.operands[1]) in (int, float) and not list(used(step.operands)):
            spec = step.makes[0]
            if spec.dtype in _FLOATS and _exact(step.operands[1], spec.dtype):
                full[number] = float(step.operands[1])  # type: ignore[arg-type]
        elif step.kernel in ELEMENTWISE and len(step.makes) == 1 and full and not step.options:
            spec = step.makes[0]
            known = [full.get(one.number) if isinstance(one, Value) else one for one in step.operands]
            if all(one is not None for one in known) and _computes(step, specs):
                value = _computed(step.kernel, known, spec)
                step = Step("full", (spec.shape, value), {"dtype": spec.dtype}, step.makes)
                full[number] = value
            else:
                step = step._replace(operands=_with_numbers(step, full, specs))
        steps.append(step)
        number += len(step.makes)
    return program._replace(steps=tuple(steps))


# Folding


_NUMPY: dict[str, Callable[..., Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "neg": np.negative,
}  # fmt: skip


def _computes(step: Step, specs: list[Spec]) -> bool:
    kinds = {specs[one.number].dtype for one in step.operands if isinstance(one, Value)}
    return step.kernel in _NUMPY and kinds == {step.makes[0].dtype}


def _computed(kernel: str, known: list[Any], spec: Spec) -> float:
    kind = spec.dtype.numpy.type
    with np.errstate(all="ignore"):
        return float(_NUMPY[kernel](*[kind(one) for one in known]))


def _exact(value: Any, dtype: dtypes.dtype) -> bool:
    with np.errstate(all="ignore"):
        return bool(float(dtype.numpy.type(value)) == value)


def _with_numbers(step: Step, full: dict[int, Any], specs: list[Spec]) -> tuple[Any, ...]:
    spec = step.makes[0]
    if step.kernel not in ("add", "sub", "mul", "div", "maximum", "minimum") or spec.dtype not in _FLOATS:
        return step.operands
    values = [one for one in step.operands if isinstance(one, Value)]
    others = [one for one in values if one.number not in full]
    if not any(specs[one.number] == spec for one in others):
        return step.operands
    return tuple(
        [
            full[one.number]
            if isinstance(one, Value) and one.number in full and specs[one.number].dtype is spec.dtype
            else one
            for one in step.operands
        ]
    )


# Simplifying


def _same(step: Step, makers: Mapping[int, Step]) -> int | None:
    """The value that a step gives back as it is, by its number."""
    name, operands, options = step.kernel, step.operands, step.options
    first = operands[0] if operands else None
    if not isinstance(first, Value):
        return operands[1].number if name == "mul" and _is(first, 1) and isinstance(operands[1], Value) else None
    if name in ("mul", "div", "pow") and len(operands) == 2 and _is(operands[1], 1):
        return first.number
    if name == "sub" and _is(operands[1], 0):
        return first.number
    if name == "neg":
        inner = makers.get(first.number)
        if inner is not None and inner.kernel == "neg" and isinstance(inner.operands[0], Value):
            return inner.operands[0].number
    if name in ("expand", "view", "cast"):  # where the spec is the same too, which the caller sees to
        return first.number
    if name == "permute" and tuple(options["dims"]) == tuple(range(len(options["dims"]))):
        return first.number
    return None


def _is(operand: Any, number: int) -> bool:
    if type(operand) not in (int, float) or operand != number:
        return False
    return number != 0 or not str(operand).startswith("-")


# Rewriting


def _key(step: Step) -> Any:
    return step.kernel, frozen(step.operands), frozen(step.options), step.makes


def frozen(value: Any) -> Any:
    """Something to compare operands and options by; numbers of different types are different ones."""
    if isinstance(value, Value):
        return ("value", value.number)
    if isinstance(value, Mapping):
        return tuple(sorted((key, frozen(one)) for key, one in value.items())) if value else ()
    if isinstance(value, tuple | list):
        return tuple(map(frozen, value))
    if type(value) in (float, complex):
        return type(value).__name__, repr(value)  # -0.0 is not 0.0
    if isinstance(value, dtypes.dtype):
        return "dtype", value.name
    if value is None or type(value) in (bool, int, str):
        return type(value).__name__, repr(value)
    if isinstance(value, slice):
        return "slice", value.start, value.stop, value.step
    return "object", id(value)


def _replaced(program: Program, visit: Callable[[Step, tuple[int, ...]], tuple[int, ...] | None]) -> Program:
    """The program in which values are those that ``visit`` names, for each step in turn, in the place of its own."""
    stands: dict[int, int] = {}
    number = len(program.inputs)
    kept = []
    for step in program.steps:
        step = _renamed(step, stands)
        numbers = tuple(range(number, number + len(step.makes)))
        number += len(numbers)
        instead = visit(step, numbers)
        if instead is None or instead == numbers:
            kept.append((numbers[0] if numbers else number, step))
        else:
            stands.update(zip(numbers, instead, strict=True))
    outputs = tuple([Value(stands.get(one.number, one.number)) for one in program.outputs])
    return _rebuilt(program._replace(outputs=outputs), kept)


def _rebuilt(program: Program, kept: list[tuple[int, Step]]) -> Program:
    """The program of some of its steps, each with the number of its first value, numbered anew."""
    names = {i: i for i in range(len(program.inputs))}
    steps = []
    for number, step in kept:
        steps.append(_renamed(step, names))
        for i in range(len(step.makes)):
            names[number + i] = len(names)
    return Program(program.inputs, tuple(steps), tuple([Value(names[one.number]) for one in program.outputs]))


def _renamed(step: Step, names: Mapping[int, int]) -> Step:
    def name(value: Any) -> Any:
        if isinstance(value, Value):
            return Value(names.get(value.number, value.number))
        if isinstance(value, tuple):
            return tuple(map(name, value))
        if isinstance(value, list):
            return list(map(name, value))
        return value

    return step._replace(operands=name(step.operands), options={key: name(one) for key, one in step.options.items()})
