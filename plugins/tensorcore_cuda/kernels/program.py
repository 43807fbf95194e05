"""Fused programs: elementwise steps in a row as one generated kernel, what ``Backend.compile`` answers with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensorcore_cuda.kernels.elementwise import KINDS, cast_of, into, like, number_of
from tensorcore_cuda.kernels.expressions import EXPRESSIONS
from tensorcore_cuda.kernels.launch import C_TYPES
from tensorcore_cuda.kernels.pointwise import Body, Pointwise

__all__ = ["compiled"]

Native = Any

_BOOL = np.dtype(np.bool_)
_ARRAYS = 24  # inputs and outputs: what fits into a launch's 4 KB of parameters with six dims


def compiled(program: Any, pointwise: Pointwise) -> Callable[..., tuple[Native, ...]] | None:
    """A kernel for a program of elementwise steps whose outputs have one shape; None for any other program.

    What half types hold in between stays in float32; only a cast rounds.
    """
    specs = program.specs()
    inputs = len(program.inputs)
    made = [one.number for one in program.outputs if one.number >= inputs]
    if not made or any([spec.dtype.numpy not in C_TYPES for spec in specs]):
        return None
    shape = tuple(specs[made[0]].shape)
    writer = _Writer(specs, inputs)
    if any([tuple(specs[one].shape) != shape for one in made]) or not all(map(writer.step, program.steps)):
        return None
    if not all([_reaches(spec.shape, shape) for spec in specs]):
        return None
    distinct = list(dict.fromkeys(made))
    used = sorted(writer.used)
    if len(used) + len(distinct) > _ARRAYS or not used:
        return None
    names = [f"const auto v{number} = x{i};" for i, number in enumerate(used)]
    results = [f"y{i} = v{number};" for i, number in enumerate(distinct)]
    body = Body(
        tuple([C_TYPES[specs[one].dtype.numpy] for one in used]),
        tuple(writer.number_types),
        tuple([C_TYPES[specs[one].dtype.numpy] for one in distinct]),
        " ".join([*names, *writer.lines, *results]),
    )
    numbers, dtypes = writer.numbers, [specs[one].dtype.numpy for one in distinct]
    empty = pointwise.driver.empty

    def kernel(*natives: Native, out: tuple[Native | None, ...] | None = None) -> tuple[Native, ...]:
        """All outputs of the program, given its inputs."""
        arrays = [natives[one] for one in used]
        wanted = dict(zip([one.number for one in program.outputs], out or [None] * len(program.outputs), strict=True))
        given = [wanted[one] for one in distinct]
        if any([one is not None for one in given]):
            # What the steps read may lie in what they write.
            outputs = [empty(shape, dtype) for dtype in dtypes]
        else:
            outputs = [like(shape, dtype, arrays, empty) for dtype in dtypes]
        pointwise.run(body, shape, arrays, numbers, outputs)
        values = dict(zip(distinct, outputs, strict=True))
        for number in wanted:
            target, value = wanted[number], natives[number] if number < inputs else values[number]
            if target is not None:
                into(pointwise, cast_of(value.dtype, target.dtype), [value], [], target)
            values[number] = value if target is None else target
        return tuple([values[one.number] for one in program.outputs])

    return kernel


class _Writer:
    """Writes the statements of a body: value i of the program is the variable ``vi``.

    Attributes:
        used: the inputs that the steps read.
        numbers, number_types: what goes along with them.
    """

    def __init__(self, specs: list[Any], inputs: int) -> None:
        self.specs, self.inputs = specs, inputs
        self.lines: list[str] = []
        self.used: set[int] = set()
        self.numbers: list[float] = []
        self.number_types: list[str] = []
        self.next = inputs

    def step(self, step: Any) -> bool:
        """Write one step; False where it is none that a body can do."""
        if len(step.makes) != 1:
            return False
        made, self.next = self.next, self.next + 1
        answer = step.makes[0].dtype.numpy
        operands, options = list(step.operands), dict(step.options)
        if step.kernel == "cast" and options.keys() == {"dtype"}:
            return self.cast(made, operands[0], answer)
        if any([type(one) not in (bool, int, float, str) for one in options.values()]):
            return False
        name = step.kernel
        if name.startswith("gelu") and options.pop("approximate", "none") == "tanh":
            name = name.replace("gelu", "gelu_tanh")
        if name == "pow" and not hasattr(operands[-1], "number"):
            name = "pow_by_number"
        if name == "masked_fill" and len(operands) == 3:
            name, operands = "where", [operands[1], operands[2], operands[0]]
        expression = EXPRESSIONS.get(name)
        if (
            expression is None
            or len(operands) != expression.operands
            or not options.keys() <= dict(expression.options).keys()
        ):
            return False
        kinds = [self.specs[one.number].dtype.numpy if hasattr(one, "number") else None for one in operands]
        rest = [one for one in (kinds[1:] if expression.condition else kinds) if one is not None]
        if not rest or len(set(rest)) > 1 or KINDS[rest[0]] not in expression.kinds:
            return False
        if (expression.condition and kinds[0] != _BOOL) or answer != (
            _BOOL if expression.result == "bool" else rest[0]
        ):
            return False
        lines = [f"typedef wide<{C_TYPES[rest[0]]}> W;"]
        for letter, operand in zip("abc", operands, strict=False):
            text = self.operand(operand, rest[0])
            if text is None:
                return False
            lines.append(f"const auto {letter} = {text};")
        for option, default in expression.options:
            lines.append(f"const W {option} = {self.number(options.get(option, default), rest[0])};")
        self.lines.append(f"wide<{C_TYPES[answer]}> v{made}; {{ {' '.join(lines)} v{made} = {expression.text}; }}")
        return True

    def cast(self, made: int, operand: Any, answer: np.dtype[Any]) -> bool:
        if not hasattr(operand, "number"):
            return False
        source, target = self.specs[operand.number].dtype.numpy, C_TYPES[answer]
        text = self.operand(operand, source)
        value = f"{text} != 0" if answer == _BOOL else f"(wide<{target}>){text}"
        if answer.itemsize == 2 and KINDS[answer] == "f":
            value = f"widen(narrow<{target}>({value}))"
        self.lines.append(f"const wide<{target}> v{made} = {value};")
        return True

    def operand(self, operand: Any, dtype: np.dtype[Any]) -> str | None:
        """The text of an operand: a value, or a number that goes along; None where it is neither."""
        if hasattr(operand, "number"):
            if operand.number < self.inputs:
                self.used.add(operand.number)
            return f"v{operand.number}"
        takes = (bool,) if KINDS[dtype] == "b" else (bool, int) if KINDS[dtype] == "i" else (bool, int, float)
        return self.number(operand, dtype) if type(operand) in takes else None

    def number(self, value: float, dtype: np.dtype[Any]) -> str:
        self.numbers.append(value)
        self.number_types.append(number_of(dtype))
        return f"(W)n{len(self.numbers) - 1}"


def _reaches(shape: Any, wanted: tuple[int, ...]) -> bool:
    """Whether a shape broadcasts to the one wanted."""
    extra = len(wanted) - len(shape)
    return extra >= 0 and all([one in (1, size) for one, size in zip(shape, wanted[extra:], strict=True)])
