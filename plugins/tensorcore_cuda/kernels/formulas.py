"""Formulas of optimizers as C text: called once with symbols in the place of arrays, they write down what they compute."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

from tensorcore_cuda.kernels.launch import source_of

__all__ = ["Traced", "traced"]


class Traced(NamedTuple):
    """What a formula computes of one element of each of its arrays.

    Attributes:
        arrays: how many there are: a parameter, its gradient, and what else belongs to it.
        statements: C, in which ``x0`` is the parameter's element, widened, and ``*values[0]`` the place for the new one.
        numbers: how many the statements take, as ``n0``, ``n1`` and so on.
    """

    arrays: int
    statements: str
    numbers: int

    def source(self) -> str:
        """A kernel template ``formula_step<element type, elements of a pack>`` over a group of arrays."""
        numbers = [f", const double given{i}" for i in range(self.numbers)]
        wide = [f"const W n{i} = W(given{i});" for i in range(self.numbers)]
        return "\n".join([
            source_of("many.cuh"), source_of("functions.cuh"),
            "template <class T, int V>",
            f"__global__ void __launch_bounds__(256) formula_step(const group<{self.arrays}> all{''.join(numbers)}) {{",
            "  typedef wide<T> W;",
            "  int64 start;",
            "  const int at = mine(all, &start);",
            f"  {' '.join(wide)}",
            f"  each<T, {self.arrays}, V>(all, at, start, false, [=](T *const *values) {{ {self.statements} }});",
            "}", "",
        ])  # fmt: skip


def traced(formula: Callable[..., None], arrays: int, numbers: dict[str, Any]) -> tuple[Traced, list[float]]:
    """What a formula computes with these numbers, and the values of those that it meets arrays with, in their order.

    The numbers are combined with one another in Python, in double precision; a branch that they decide is taken here.
    """
    writer = _Writer()
    symbols = [_Symbol(writer, f"x{i}") for i in range(arrays)]
    formula(_functions(writer), *symbols, **numbers)
    changed = [(i, one) for i, one in enumerate(symbols) if one.text != f"x{i}" and i != 1]
    read = [f"const W x{i} = widen(*values[{i}]);" for i in range(arrays) if f"x{i}" in writer.used]
    stored = [f"*values[{i}] = narrow<T>({one.text});" for i, one in changed]
    return Traced(arrays, " ".join([*read, *writer.lines, *stored]), len(writer.numbers)), writer.numbers


class _Writer:
    """The statements so far: each gives a value a name, so that no later write can change what was read."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.numbers: list[float] = []
        self.used: set[str] = set()

    def text(self, value: Any) -> str:
        """A symbol's name, or that of a number."""
        if isinstance(value, _Symbol):
            self.used.add(value.text)
            return value.text
        self.numbers.append(float(value))
        return f"n{len(self.numbers) - 1}"

    def write(self, template: str, *operands: Any, kind: str = "W") -> _Symbol:
        """A new value: the template with the operands in their places."""
        name = f"v{len(self.lines)}"
        self.lines.append(f"const {kind} {name} = {template.format(*map(self.text, operands))};")
        return _Symbol(self, name)


def _binary(template: str, *, turned: bool = False, kind: str = "W") -> Any:
    def operator(self: _Symbol, other: Any) -> _Symbol:
        return self.writer.write(template, *((other, self) if turned else (self, other)), kind=kind)

    return operator


def _in_place(template: str) -> Any:
    def operator(self: _Symbol, other: Any) -> _Symbol:
        self.text = self.writer.write(template, self, other).text
        return self

    return operator


class _Symbol:
    """An array in a formula; an operator on it writes a statement.

    Attributes:
        text: the name of its value, another one after each write in place.
    """

    __slots__ = ("text", "writer")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, writer: _Writer, text: str) -> None:
        self.writer, self.text = writer, text

    __add__, __radd__, __iadd__ = _binary("{} + {}"), _binary("{} + {}", turned=True), _in_place("{} + {}")
    __sub__, __rsub__, __isub__ = _binary("{} - {}"), _binary("{} - {}", turned=True), _in_place("{} - {}")
    __mul__, __rmul__, __imul__ = _binary("{} * {}"), _binary("{} * {}", turned=True), _in_place("{} * {}")
    __truediv__, __rtruediv__, __itruediv__ = _binary("{} / {}"), _binary("{} / {}", turned=True), _in_place("{} / {}")
    __lt__, __gt__ = _binary("{} < {}", kind="bool"), _binary("{} > {}", kind="bool")
    __le__, __ge__ = _binary("{} <= {}", kind="bool"), _binary("{} >= {}", kind="bool")

    def __neg__(self) -> _Symbol:
        return self.writer.write("-{}", self)

    def __setitem__(self, key: Any, value: Any) -> None:
        assert key is ..., key
        self.text = self.writer.text(value)

    def __bool__(self) -> bool:
        raise TypeError(
            "step: expected a formula whose branches are decided by numbers, got one that looks at an array"
        )


def _functions(writer: _Writer) -> SimpleNamespace:
    """What a formula finds in its first argument."""
    return SimpleNamespace(
        abs=lambda x: writer.write("absolute({})", x),
        clip=lambda x, low, high: writer.write("smaller_of(larger_of({}, {}), {})", x, low, high),
        maximum=lambda x, y: writer.write("larger_of({}, {})", x, y),
        sign=lambda x: writer.write("sign_or_nan({})", x),
        sqrt=lambda x: writer.write("sqrt({})", x),
        where=lambda condition, x, y: writer.write("{} ? {} : {}", condition, x, y),
    )
