"""Programs as one kernel: fused in C or in NumPy, with kernels that cannot be fused called in between."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorcore.plugin import Program

from . import fused, native
from .lower import Lowering
from .nests import Nest, Node, Unfit, lay
from .tiles import tiled

if TYPE_CHECKING:
    from tensorcore.plugin import Backend

__all__ = ["compile"]

Kernel = Callable[..., Any]


def compile(program: Program, backend: Backend) -> Kernel | None:
    """One kernel for the program, None where nothing is won over its steps."""
    stepwise = _stepwise(program, backend)
    try:
        return _in_c(program, backend, stepwise) if native.available() else tiled(program, backend, stepwise)
    except Unfit:
        return None


def _in_c(program: Program, backend: Backend, stepwise: Kernel) -> Kernel:
    lowering = Lowering(program, backend)
    for step in program.steps:
        lowering.values.append(lowering.lower(step))
    outputs = [lowering.output(lowering.values[one.number]) for one in program.outputs]
    nests = lay(lowering.nodes, outputs)
    writes = backend.codegen() and len(program.steps) > 1  # one alone is only asked for to see whether it fits

    def fuse(inputs: list[Node], some: list[Nest], answers: list[Node], fallback: Kernel) -> Kernel:
        try:
            description = fused.describe(inputs, some, answers, lowering.names(), lowering.codes, writes)
            kernel: Kernel = native.fuse(*description, fallback)
        except ValueError as error:
            raise Unfit(str(error)) from None
        return kernel

    if not any(nest.closed for nest in nests):
        return fuse(lowering.inputs, nests, outputs, stepwise)
    return _Parts(lowering.inputs, nests, outputs, fuse, stepwise)


class _Misfit(Exception):
    """A fused kernel between others was called with what it does not take."""


def _refuse(*natives: Any, out: Any = None) -> Any:
    raise _Misfit


class _Parts:
    """Fused kernels and kernels of whole arrays, one after the other."""

    def __init__(
        self, inputs: list[Node], nests: list[Nest], outputs: list[Node], fuse: Kernel, stepwise: Kernel
    ) -> None:
        self.inputs = inputs
        self.outputs = outputs
        self.stepwise = stepwise
        self.calls: list[tuple[Kernel, list[Node], list[Node]]] = []
        for closed, group in groupby(nests, lambda nest: nest.closed):
            some = list(group)
            if closed:
                self.calls += [(node.op, list(node.sources), [node]) for nest in some for node in nest.nodes]
                continue
            nodes = [node for nest in some for node in nest.nodes]
            within = set(nodes)
            read = [one for node in nodes for one in node.sources if one not in within and one.kind != "number"]
            later = {one for nest in nests if nest not in some for node in nest.nodes for one in node.sources}
            reads = list(dict.fromkeys(read))
            makes = [node for node in nodes if node.kept and (node in later or node in outputs)]
            self.calls.append((fuse(reads, some, makes, _refuse), reads, makes))

    def __call__(self, *natives: Any, out: Sequence[Any] | None = None) -> tuple[Any, ...]:
        if len(natives) != len(self.inputs) or any(
            type(x) is not np.ndarray or x.shape != node.shape or x.dtype != node.dtype
            for x, node in zip(natives, self.inputs, strict=True)
        ):
            return self.stepwise(*natives, out=out)  # type: ignore[no-any-return]
        arrays: dict[Node, Any] = dict(zip(self.inputs, natives, strict=True))
        try:
            for kernel, reads, makes in self.calls:
                made = kernel(*[arrays[one] for one in reads])
                arrays.update(zip(makes, made if type(made) is tuple else (made,), strict=True))
        except _Misfit:
            return self.stepwise(*natives, out=out)  # type: ignore[no-any-return]
        answers = tuple([arrays[one] for one in self.outputs])
        return answers if out is None else _put(answers, out)


def _stepwise(program: Program, backend: Backend) -> Kernel:
    """The program step by step: for arguments that the fused kernel does not take."""

    def run(*natives: Any, out: Sequence[Any] | None = None) -> tuple[Any, ...]:
        if len(natives) != len(program.inputs):
            raise TypeError(
                f"compile: expected {len(program.inputs)} arrays, got {len(natives)}; the program says which"
            )
        made = tuple(map(backend.as_native, program.run(backend.kernels, natives)))
        return made if out is None else _put(made, out)

    return run


def _put(made: tuple[Any, ...], out: Sequence[Any]) -> tuple[Any, ...]:
    """The results in the places that there are for them."""
    for place, value in zip(out, made, strict=True):
        if place is not None:
            place[...] = value
    return tuple(value if place is None else place for place, value in zip(out, made, strict=True))
