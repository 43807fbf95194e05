"""Passes over the views of a program: chains of them made one, and copies left out that only another copy reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tensorcore.backend.program import Program, Spec, Step, Value
from tensorcore.lazy.kinds import ACTIVATIONS, ELEMENTWISE, REDUCTIONS, ROWS, reads, used

__all__ = ["broadcast", "flatten", "hoist", "join"]

_EACH = ELEMENTWISE | ACTIVATIONS
_FUSIBLE = _EACH | REDUCTIONS | ROWS


def flatten(program: Program) -> Program:
    """With views taken of what other views were taken of, and reductions without the dims that the view behind them drops."""
    makers = _makers(program)
    readers = _readers(program)
    steps = []
    number = len(program.inputs)
    for step in program.steps:
        if step.kernel == "view":
            step = _flat(step, makers, readers)
            makers[number] = step
        steps.append(step)
        number += len(step.makes)
    return program._replace(steps=tuple(steps))


def join(program: Program) -> Program:
    """With ``cat`` of arrays as they lie, where it was of copies in row-major order that merge its dim with those behind.

    What ``reshape`` makes of the heads of attention: a copy of each part, and one more into the whole.
    """
    specs, makers, readers = program.specs(), _makers(program), _readers(program)

    def write(step: Step, number: int, emit: Callable[[Step], Value]) -> Step:
        whole = None if Value(number) in program.outputs else _whole(step, specs, makers, readers)
        return step if whole is None else Step("view", (emit(whole),), {"shape": step.makes[0].shape}, step.makes)

    return _rewritten(program, write)


def broadcast(program: Program) -> Program:
    """With what ``expand`` was taken of, where an elementwise step gives its other operands' shape to it anyway."""
    specs, makers = program.specs(), _makers(program)

    def shown(one: Any) -> Any:
        maker = makers.get(one.number) if isinstance(one, Value) else None
        return one if maker is None or maker.kernel != "expand" else maker.operands[0]

    def write(step: Step, number: int, emit: Callable[[Step], Value]) -> Step:
        if step.kernel not in ELEMENTWISE:
            return step
        operands = list(step.operands)
        for i, one in enumerate(operands):
            some = [*operands[:i], shown(one), *operands[i + 1 :]]
            if (
                np.broadcast_shapes(*[specs[v.number].shape for v in some if isinstance(v, Value)])
                == step.makes[0].shape
            ):
                operands = some
        return step._replace(operands=tuple(operands))

    return _rewritten(program, write)


def hoist(program: Program, dense: Sequence[bool]) -> Program:
    """With views of what elementwise steps take in the place of a view of what they make, so that no view parts a group.

    Only of arrays that lie in row-major order, where a view costs no copy; ``dense`` says which do.
    """
    specs, makers, readers = program.specs(), _makers(program), _readers(program)
    fused = {one for step in program.steps if step.kernel in _FUSIBLE for one in reads(step)}

    def each(number: int) -> Step | None:
        """The elementwise step behind a value that only one step reads, where all its arrays have the value's shape."""
        step = makers.get(number)
        if step is None or step.kernel not in _EACH or len(step.makes) != 1 or readers[number] != 1:
            return None
        values = [one for one in step.operands if isinstance(one, Value)]
        alike = all(specs[one.number].shape == specs[number].shape for one in values)
        nested = any(type(one) is tuple for one in step.operands) or any(
            True for _ in used(list(step.options.values()))
        )
        return step if values and alike and not nested else None

    def lies(number: int) -> bool:
        step = each(number)
        return dense[number] if step is None else all(lies(one) for one in reads(step))

    def write(step: Step, number: int, emit: Callable[[Step], Value]) -> Step:
        source = step.operands[0] if step.kernel == "view" else None
        if (
            not isinstance(source, Value)
            or number not in fused
            or each(source.number) is None
            or not lies(source.number)
        ):
            return step
        shape = step.makes[0].shape

        def shaped(one: Any) -> Any:
            return emit(made(one.number)) if isinstance(one, Value) else one

        def made(number: int) -> Step:
            step = each(number)
            spec = Spec(shape, specs[number].dtype)
            if step is None:
                return Step("view", (Value(number),), {"shape": shape}, (spec,))
            return step._replace(operands=tuple(map(shaped, step.operands)), makes=(spec,))

        return made(source.number)

    return _rewritten(program, write)


class _New(int):
    """The number of a value of the program that is being written."""


def _rewritten(program: Program, write: Callable[[Step, int, Callable[[Step], Value]], Step]) -> Program:
    """The program with each step as ``write`` has it, which may emit others before; all read the values of ``program``.

    ``write`` is given a step and the number of its first value, and what puts a further step before it: that answers with
    a value for the steps to come.
    """
    stands: dict[int, int] = {i: i for i in range(len(program.inputs))}
    steps: list[Step] = []
    made = old = len(program.inputs)

    def renamed(value: Any) -> Any:
        if isinstance(value, Value):
            return Value(int(value.number) if type(value.number) is _New else stands[value.number])
        return type(value)(map(renamed, value)) if isinstance(value, tuple | list) else value

    def emit(step: Step) -> Value:
        nonlocal made
        options = {key: renamed(one) for key, one in step.options.items()}
        steps.append(step._replace(operands=renamed(step.operands), options=options))
        made += len(step.makes)
        return Value(_New(made - len(step.makes)))

    for step in program.steps:
        first = emit(write(step, old, emit)).number
        for i in range(len(step.makes)):
            stands[old + i] = first + i
        old += len(step.makes)
    return Program(program.inputs, tuple(steps), tuple([Value(stands[one.number]) for one in program.outputs]))


def _flat(step: Step, makers: dict[int, Step], readers: list[int]) -> Step:
    """A view of what another view was taken of; or the reduction itself where the view drops the dims of size 1 it kept."""
    source = step.operands[0]
    inner = makers.get(source.number) if isinstance(source, Value) else None
    if inner is None:
        return step
    if inner.kernel == "view":
        return step._replace(operands=inner.operands)
    if inner.kernel in REDUCTIONS and inner.options.get("keepdim") and readers[source.number] == 1:  # type: ignore[union-attr]
        shape, dims = inner.makes[0].shape, inner.options.get("dim")
        dims = tuple(range(len(shape))) if dims is None else dims if isinstance(dims, tuple | list) else (dims,)
        left = tuple([size for i, size in enumerate(shape) if i not in {dim % len(shape) for dim in dims}])
        if left == step.makes[0].shape:
            return Step(inner.kernel, inner.operands, {**inner.options, "keepdim": False}, step.makes)
    return step


def _whole(step: Step, specs: list[Spec], makers: dict[int, Step], readers: list[int]) -> Step | None:
    """The ``cat`` of the arrays that the parts of one are copies of, in more dims; None where they are none."""
    if step.kernel != "cat" or not isinstance(step.operands[0], tuple):
        return None
    dim, after = step.options["dim"], len(step.makes[0].shape) - step.options["dim"] - 1
    sources: list[Value] = []
    for part in step.operands[0]:
        shown = makers.get(part.number)  # type: ignore[union-attr]
        copied = makers.get(shown.operands[0].number) if shown is not None and shown.kernel == "view" else None  # type: ignore[union-attr]
        if copied is None or copied.kernel != "contiguous" or readers[part.number] != 1:  # type: ignore[union-attr]
            return None
        source = copied.operands[0]
        have, want = specs[source.number].shape, specs[part.number].shape  # type: ignore[union-attr]
        if have[:dim] != want[:dim] or have[len(have) - after :] != want[dim + 1 :] or len(have) <= len(want):
            return None
        sources.append(source)  # type: ignore[arg-type]
    shapes = [specs[one.number].shape for one in sources]
    if len({(shape[:dim], shape[dim + 1 :]) for shape in shapes}) != 1 or 0 in shapes[0]:
        return None
    whole = (*shapes[0][:dim], sum(shape[dim] for shape in shapes), *shapes[0][dim + 1 :])
    spec = Spec(whole, step.makes[0].dtype)
    return Step("cat", (tuple(sources),), {"dim": dim, "shape": whole}, (spec,))


def _makers(program: Program) -> dict[int, Step]:
    """The step that makes each value, by its number."""
    numbers = range(len(program.inputs), len(program.specs()))
    made = [step for step in program.steps for _ in step.makes]
    return dict(zip(numbers, made, strict=True))


def _readers(program: Program) -> list[int]:
    """How often each value is read, or leaves the program."""
    count = [0] * len(program.specs())
    for one in [*[one for step in program.steps for one in reads(step)], *[one.number for one in program.outputs]]:
        count[one] += 1
    return count
