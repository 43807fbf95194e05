"""Sizes that vary: what differs between traces of inputs of several sizes becomes computed from the inputs' shapes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tensorcore.errors import UsageError
from tensorcore.onnx.kernels import number_of
from tensorcore.onnx.tracer import Node, Trace

__all__ = ["SizesInConstants", "Variable", "resolve"]


class SizesInConstants(UsageError):
    """An array that is no size depends on sizes."""


class Variable(NamedTuple):
    """A size that may vary.

    Attributes:
        word: its name in the file.
        places: pairs of an input's position and a dim: all of these have that size.
    """

    word: str
    places: tuple[tuple[int, int], ...]

    def size(self, inputs: list[np.ndarray]) -> int:
        """The size in the example inputs."""
        place, dim = self.places[0]
        return int(inputs[place].shape[dim])

    def other(self, inputs: list[np.ndarray]) -> int:
        """Another size to run with."""
        return self.size(inputs) + 3


def resolve(
    base: Trace, others: dict[Variable, Trace], names: list[str], inputs: list[np.ndarray]
) -> tuple[list[Node], dict[str, np.ndarray]]:
    """The nodes and constants of a file that holds for all sizes; what no result needs is left out.

    Args:
        base: the trace of the example inputs.
        others: for each size that varies, the trace with another one.
        names, inputs: of the input tensors.
    """
    for variable, trace in others.items():
        same = [(one.kind, one.inputs, one.outputs) for one in base.nodes] == [
            (one.kind, one.inputs, one.outputs) for one in trace.nodes
        ]
        if not same:
            raise UsageError(
                f"onnx.export: expected the same ops for every size of '{variable.word}', got others for another size; "
                f"let that dim be fixed"
            )
        for mine, its in zip(base.nodes, trace.nodes, strict=True):
            if repr(mine.attributes) != repr(its.attributes):
                raise UsageError(
                    f"onnx.export: expected options of {mine.kind} that are the same for every size of '{variable.word}', got "
                    f"{mine.attributes} and {its.attributes}; let that dim be fixed"
                )
    needed = _needed(base)
    made: list[Node] = []
    constants: dict[str, np.ndarray] = {}
    for name, value in base.constants.items():
        if name not in needed:
            continue
        differing = {
            one: trace.constants[name] for one, trace in others.items() if not _equal(value, trace.constants[name])
        }
        if not differing:
            constants[name] = value
        elif name in base.shapes:
            _Sizes(name, value, differing, names, inputs, made, constants).write()
        elif all([one.size == 1 and one == np.round(one) for one in (value, *differing.values())]):
            # A count, as what a mean divides by.
            whole = {one: other.reshape(1).astype(np.int64) for one, other in differing.items()}
            constants[f"{name}_shape"] = np.asarray(value.shape, np.int64)
            _Sizes(f"{name}_whole", value.reshape(1).astype(np.int64), whole, names, inputs, made, constants).write()
            made.append(Node("Cast", (f"{name}_whole",), (f"{name}_cast",), {"to": number_of(value.dtype)}))
            made.append(Node("Reshape", (f"{name}_cast", f"{name}_shape"), (name,), {}))
        else:
            raise SizesInConstants(
                f"onnx.export: expected constants that are the same for every size, got an array of shape {list(value.shape)} "
                f"that changes with {[one.word for one in differing]}; make it with arange() or full() in forward, or let that "
                f"dim be fixed"
            )
    nodes = [*made, *[one for one in base.nodes if needed.intersection(one.outputs)]]
    return _without_twins(nodes, constants, {*[name for name, _ in base.results], *base.known.values()})


def _without_twins(
    nodes: list[Node], constants: dict[str, np.ndarray], kept: set[str]
) -> tuple[list[Node], dict[str, np.ndarray]]:
    """Small constants that are equal as one."""
    first: dict[Any, str] = {}
    names: dict[str, str] = {}
    for name, value in constants.items():
        if value.size <= 16 and name not in kept:
            names[name] = first.setdefault((value.dtype.str, value.shape, value.tobytes()), name)
    left = {name: value for name, value in constants.items() if names.get(name, name) == name}
    return [one._replace(inputs=tuple([names.get(name, name) for name in one.inputs])) for one in nodes], left


def _needed(trace: Trace) -> set[str]:
    found = {name for name, _ in trace.results}
    for one in reversed(trace.nodes):
        if found.intersection(one.outputs):
            found.update(one.inputs)
    return found


def _equal(one: np.ndarray, other: np.ndarray) -> bool:
    return one.shape == other.shape and one.dtype == other.dtype and one.tobytes() == other.tobytes()


class _Sizes:
    """A vector of sizes that is computed from the shapes of inputs."""

    def __init__(
        self, name: str, value: np.ndarray, differing: dict[Variable, np.ndarray], names: list[str],
        inputs: list[np.ndarray], nodes: list[Node], constants: dict[str, np.ndarray],
    ) -> None:  # fmt: skip
        self.name, self.value, self.differing = name, value, differing
        self.names, self.inputs, self.nodes, self.constants = names, inputs, nodes, constants
        self.count = 0

    def write(self) -> None:
        """Write the nodes whose result has the vector's name."""
        parts = [self._entry(i) for i in range(len(self.value))]
        if len(parts) == 1:
            self._node("Identity", parts, self.name)
        else:
            self._node("Concat", parts, self.name, axis=0)

    def _entry(self, i: int) -> str:
        """One entry: fixed plus a sum over the sizes, or a product of what it is with each of them."""
        base = int(self.value[i])
        changes = {one: int(other[i]) for one, other in self.differing.items() if int(other[i]) != base}
        if not changes:
            return self._constant([base])
        if len(changes) > 1:
            # Of several sizes: a product, as where dims were put together.
            rest = base
            for one in changes:
                rest //= max(one.size(self.inputs), 1)
            grown = {one: base // max(one.size(self.inputs), 1) * one.other(self.inputs) for one in changes}
            if grown != changes:
                raise UsageError(
                    f"onnx.export: expected sizes that are products of those that vary, got {base}, which becomes "
                    f"{list(changes.values())}; let one of the dims be fixed"
                )
            made = self._constant([rest])
            for one in changes:
                made = self._node("Mul", [made, self._size(one)])
            return made
        (one, other), size = next(iter(changes.items())), next(iter(changes)).size(self.inputs)
        factor, left = divmod(other - base, one.other(self.inputs) - size)
        if left:
            raise UsageError(
                f"onnx.export: expected sizes that grow evenly with '{one.word}', got {base} for {size} and {other} for "
                f"{one.other(self.inputs)}; let that dim be fixed"
            )
        made = self._size(one)
        if factor != 1:
            made = self._node("Mul", [made, self._constant([factor])])
        fixed = base - factor * size
        return self._node("Add", [made, self._constant([fixed])]) if fixed else made

    def _size(self, one: Variable) -> str:
        place, dim = one.places[0]
        shape = self._node("Shape", [self.names[place]])
        return self._node("Gather", [shape, self._constant([dim])], axis=0)

    def _constant(self, values: list[int]) -> str:
        self.count += 1
        name = f"{self.name}_{self.count}"
        self.constants[name] = np.asarray(values, np.int64)
        return name

    def _node(self, kind: str, inputs: list[str], name: str | None = None, **attributes: Any) -> str:
        self.count += 1
        name = name or f"{self.name}_{self.count}"
        self.nodes.append(Node(kind, tuple(inputs), (name,), attributes))
        return name
