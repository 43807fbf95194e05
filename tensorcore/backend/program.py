"""A program: kernel calls in a row, written down instead of run.

It is what laziness records, what ``compile`` optimises and replays, and what a backend gets when it is asked for
one kernel that does several ops (``Backend.compile``). It is pure: every step makes new values, none is changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tensorcore.dtypes import dtype

__all__ = ["Operand", "Program", "Spec", "Step", "Value", "filled"]


class Value(NamedTuple):
    """An operand that is a value of the program: its inputs come first, then what each step makes, counted through."""

    number: int


class Spec(NamedTuple):
    """What is known of a value before it is there."""

    shape: tuple[int, ...]
    dtype: dtype


Operand = Value | int | float | complex | bool | None | tuple["Operand", ...]  # a tuple where a kernel takes a sequence


class Step(NamedTuple):
    """One call of a kernel.

    Attributes:
        kernel: its name in the table of the backend.
        operands: what it takes by position, in order.
        options: what it takes by keyword: plain Python values, and values of the program where a kernel takes arrays so.
        makes: the specs of its results; most kernels have one. Each result is a value, numbered in order.
    """

    kernel: str
    operands: tuple[Operand, ...]
    options: Mapping[str, Any]
    makes: tuple[Spec, ...]


class Program(NamedTuple):
    """Steps in an order in which they can run.

    Attributes:
        inputs: the specs of what it is called with.
        steps: the kernel calls.
        outputs: which values it answers with; an input may be among them.
    """

    inputs: tuple[Spec, ...]
    steps: tuple[Step, ...]
    outputs: tuple[Value, ...]

    def specs(self) -> list[Spec]:
        """The spec of each value, in the order of their numbers."""
        return [*self.inputs, *(spec for step in self.steps for spec in step.makes)]

    def run(self, kernels: Mapping[str, Any], natives: Sequence[Any]) -> tuple[Any, ...]:
        """Run it step by step on a kernel table: the reference for whatever runs it faster."""
        values = list(natives)
        for step in self.steps:
            options = {key: filled(one, values) for key, one in step.options.items()}
            made = kernels[step.kernel](*[filled(one, values) for one in step.operands], **options)
            values.extend(made if isinstance(made, tuple | list) else (made,))
        return tuple(values[one.number] for one in self.outputs)


def filled(operand: Any, values: Any) -> Any:
    """An operand or option with what its values are by their numbers; tuples that hold some become lists of arrays."""
    kind = type(operand)
    if kind is Value:
        return values[operand.number]
    if kind is not tuple:
        return operand
    made = [filled(one, values) for one in operand]
    return made if any(new is not old for new, old in zip(made, operand, strict=True)) else operand
