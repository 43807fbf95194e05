"""What the steps of a program are, by the name of their kernel: which are views, which may be fused, which must stay.

Beside the kernels of a backend a program may hold steps that a plan itself knows how to run (``OWN``):

    random    numbers of ``Backend.random``; its options are ``kind``, ``shape``, ``dtype``, ``generator``, ``options``
    draw      what ``Backend.draw`` gives for the operands; ``op`` and ``function`` are its options
    place     the first operand with the second in the part that the views in the option ``chain`` lead to; further operands
              are the ints of their indices, which have ``GIVEN`` in their place
    update    the kernel named by the option ``kernel``, which writes to operands: it makes their new values
    bounds    the kernel ``index_bounds``, whose two numbers ``holds`` must accept; it makes no value
    values    the operand on the host, which ``holds`` must accept; it makes no value
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tensorcore.backend.kernels import POINTWISE, RULES
from tensorcore.backend.program import Program, Step, Value
from tensorcore.backend.shapes import VIEWS, same

__all__ = [
    "ACTIVATIONS",
    "CHECKS",
    "DRAWS",
    "ELEMENTWISE",
    "GIVEN",
    "IN_PLACE",
    "OWN",
    "REDUCTIONS",
    "ROWS",
    "STAYS",
    "VIEWING",
    "indexed",
    "reads",
    "roots",
    "used",
    "written",
]

CHECKS = frozenset(["bounds", "values"])
OWN = frozenset(["random", "draw", "place", "update"]) | CHECKS
GIVEN = "given"
DRAWS = frozenset(["random", "draw"])
STAYS = DRAWS | CHECKS  # run whether or not anybody needs what they make, and never merged
VIEWING = frozenset(VIEWS)
ELEMENTWISE = frozenset([name for name in POINTWISE if RULES[name].shape is not same])
# Elementwise ones whose result is of the first array's shape, with options.
ACTIVATIONS = POINTWISE - ELEMENTWISE
REDUCTIONS = frozenset(["sum", "mean", "amax", "amin", "prod"])
ROWS = frozenset(["softmax", "log_softmax", "softmax_backward", "log_softmax_backward"])
# Elementwise kernels that read each element once, before they write it: the result may lie where an operand does.
IN_PLACE = frozenset(
    ["abs", "add", "cos", "div", "exp", "log", "maximum", "minimum", "mul", "neg", "relu", "sin", "sqrt", "sub", "tanh"]
)


def used(value: Any) -> Iterator[int]:
    """The numbers of the values in operands or options, however deep."""
    if isinstance(value, Value):
        yield value.number
    elif isinstance(value, tuple | list):
        for one in value:
            yield from used(one)
    elif isinstance(value, dict):
        yield from used(list(value.values()))


def indexed(options: Any, numbers: Iterator[Any]) -> dict[str, Any]:
    """The options of a view in a ``chain``, with the numbers that were put aside where they belong."""
    made = dict(options)
    if "key" in made:
        made["key"] = tuple([_given(one, numbers) for one in made["key"]])
    return made


def _given(one: Any, numbers: Iterator[Any]) -> Any:
    if type(one) is slice:
        return slice(*[_given(each, numbers) for each in (one.start, one.stop, one.step)])
    return next(numbers) if type(one) is str else one


def roots(program: Program) -> list[int]:
    """For each value the one whose memory it shows: its own number, or for a view that of what it was taken of."""
    found = list(range(len(program.inputs)))
    for step in program.steps:
        first = step.operands[0] if step.operands else None
        shown = found[first.number] if step.kernel in VIEWING and isinstance(first, Value) else None
        for _ in step.makes:
            found.append(len(found) if shown is None else shown)
    return found


def reads(step: Step) -> Iterator[int]:
    """The numbers of the values that a step reads."""
    yield from used(step.operands)
    yield from used(list(step.options.values()))


def written(step: Step) -> list[Any]:
    """The operands that a step ``update`` makes new values of; some stand in a list of arrays."""
    return [
        step.operands[one] if type(one) is int else step.operands[one[0]][one[1]] for one in step.options["targets"]
    ]
