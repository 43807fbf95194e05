"""Nests in plain NumPy: the kernels run over tiles that stay in the second cache, into a few buffers of their own."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorcore.plugin import POINTWISE, Program, Step, Value

from .nests import Nest, Node, Unfit, lay

if TYPE_CHECKING:
    from tensorcore.plugin import Backend

__all__ = ["tiled"]

_TILE = 1 << 14  # elements
# Kernels that are elementwise, not a function of NumPy's itself, and take ``out``; other elementwise ones may not.
_WITH_OUT = {
    "relu", "sigmoid", "rsqrt", "reciprocal", "exp2", "sign", "round", "floor_divide", "trunc_divide", "remainder", "fmod",
    "where", "clamp", "clamp_min", "clamp_max", "pow", "bitwise_right_shift",
}  # fmt: skip
_COPIES = frozenset(["cast", "clone", "contiguous", "positive"])
_REDUCTIONS = frozenset(["sum", "mean", "amax", "amin", "prod", "any", "all"])

_INTO, _COPIED, _NEW = range(3)  # where the result of a call goes: ``out``, an array of the nest, or nowhere

Shape = tuple[int, ...]
Run = Callable[..., Any]


def tiled(program: Program, backend: Backend, stepwise: Run) -> Run:
    """The program as one kernel; raises Unfit where a step is nothing for tiles. ``stepwise`` takes other shapes."""
    inputs = [Node("input", None, spec.dtype.numpy, tuple(spec.shape)) for spec in program.inputs]
    values = [*inputs]
    for step in program.steps:
        values.append(_node(step, values, backend))
    outputs = [values[one.number] for one in program.outputs]
    nests = [_Tiles(nest) for nest in lay(values, outputs)]
    kept = [node for node in values if node.kept and node.kind != "input"]

    def run(natives: Sequence[np.ndarray], out: Sequence[np.ndarray | None]) -> tuple[np.ndarray, ...]:
        arrays = dict(zip(inputs, natives, strict=True))
        for node, place in zip(outputs, out, strict=True):
            if place is not None and node.kind != "input" and not any(np.may_share_memory(place, x) for x in natives):
                arrays.setdefault(node, place)
        for node in kept:
            if node not in arrays and node.kind != "whole":
                arrays[node] = np.empty(node.shape, node.dtype)
        for nest in nests:
            nest.run(arrays)
        for node, place in zip(outputs, out, strict=True):
            if place is not None and arrays[node] is not place:
                place[...] = arrays[node]
        return tuple([arrays[node] if place is None else place for node, place in zip(outputs, out, strict=True)])

    def kernel(*natives: np.ndarray, out: Sequence[np.ndarray | None] | None = None) -> Any:
        if len(natives) != len(inputs) or any(
            type(x) is not np.ndarray or x.shape != node.shape for x, node in zip(natives, inputs, strict=True)
        ):
            return stepwise(*natives, out=out)
        return run(natives, [None] * len(outputs) if out is None else out)

    return kernel


def _node(step: Step, values: list[Node], backend: Backend) -> Node:
    if len(step.makes) != 1 or not any(isinstance(one, Value) for one in step.operands):
        raise Unfit(f"{step.kernel} has several results, or no operand")
    shape, dtype = tuple(step.makes[0].shape), step.makes[0].dtype.numpy
    sources, options = [], dict(step.options)
    for one in step.operands:
        if isinstance(one, Value):
            sources.append(values[one.number])
        elif one is None or isinstance(one, tuple):
            raise Unfit(f"{step.kernel} of {one!r}")
        else:
            number = Node("number", None, dtype, ())
            number.number = one
            sources.append(number)
    kernel: Any = backend.kernels[step.kernel]
    if step.kernel in _REDUCTIONS and set(options) <= {"dim", "keepdim"}:
        return _reduction(step, kernel, sources[0], shape, dtype)
    if step.kernel in _COPIES:
        run: tuple[Any, bool] = (_copy, True)
    elif kernel and not options and (isinstance(kernel, np.ufunc) or step.kernel in _WITH_OUT):
        run = (kernel, True)
    elif step.kernel in POINTWISE and kernel:
        run = ((lambda *natives: kernel(*natives, **options)) if options else kernel, False)
    elif kernel:
        arrays = tuple([one for one in sources if one.kind != "number"])
        return Node("whole", _called(kernel, sources, options), dtype, shape, arrays)
    else:
        raise Unfit(f"{step.kernel} is no kernel")
    return Node("map", run, dtype, shape, tuple(sources))


def _reduction(step: Step, kernel: Any, x: Node, shape: Shape, dtype: np.dtype) -> Node:
    dim, keepdim = step.options.get("dim"), step.options.get("keepdim", False)
    dims = range(len(x.shape)) if dim is None else sorted(dim if isinstance(dim, tuple) else (dim,))
    first = len(x.shape) - len(dims)
    if list(dims) != list(range(first, len(x.shape))) or not 0 < prod(x.shape[first:]) <= _TILE or not dims:
        return Node("whole", lambda x: np.asarray(kernel(x, **step.options)), dtype, shape, (x,))

    def run(tile: np.ndarray, dims: tuple[int, ...]) -> np.ndarray:
        # All dims go by None where they do so in eager calls: of few elements a kernel sums then in another order.
        return np.asarray(kernel(tile, dim=None if dim is None else dims, keepdim=keepdim))

    return Node("reduce", (run, first), dtype, shape, (x,))


def _called(kernel: Run, sources: Sequence[Node], options: dict[str, Any]) -> Run:
    def run(*arrays: np.ndarray) -> np.ndarray:
        given = iter(arrays)
        return np.asarray(kernel(*[one.number if one.kind == "number" else next(given) for one in sources], **options))

    return run


def _copy(x: np.ndarray, out: np.ndarray) -> np.ndarray:
    np.copyto(out, x, casting="unsafe")
    return out


class _Tiles:
    """One nest, tile by tile: some of one dim and all of those behind it, for each index of those before.

    What a tile computes with lies in registers, a list of arrays and numbers: first those that are read, then one for
    each node.
    """

    def __init__(self, nest: Nest) -> None:
        self.nest = nest
        shape = nest.shape
        self.row_ndim = len(shape) if nest.row_ndim is None else nest.row_ndim
        self.cut, inner = len(shape), 1
        while self.cut and inner * shape[self.cut - 1] <= _TILE:
            self.cut -= 1
            inner *= shape[self.cut]
        self.step = max(_TILE // max(inner, 1), 1)
        self.front = max(self.cut - 1, 0)  # dims that are gone within a tile
        self.registers: list[Any] = []
        self.read: list[tuple[int, Node, int]] = []
        self.written: list[tuple[int, Node, int]] = []
        self.buffered: list[tuple[int, int]] = []
        self.buffers: list[np.dtype] = []
        self.calls: list[tuple[Run, tuple[int, ...], int, int]] = []
        if not nest.closed:
            self._plan()

    def _plan(self) -> None:
        known: dict[tuple[Node, int], int] = {}
        ends = {source: i for i, node in enumerate(self.nest.nodes) for source in node.sources}
        free: dict[np.dtype, list[int]] = {}
        lies: dict[Node, int] = {}
        for i, node in enumerate(self.nest.nodes):
            aligned = self._aligned(node) if node.kind != "reduce" else len(self.nest.shape)
            sources = tuple([self._register(source, aligned, known) for source in node.sources])
            for source in dict.fromkeys(node.sources):
                if ends[source] == i and source in lies:
                    free.setdefault(source.dtype, []).append(lies.pop(source))
            made = self._new(known, node)
            function, takes_out = node.op if node.kind == "map" else (self._over_rows(node), False)
            if node.kept:
                self.written.append((made, node, self._aligned(node)))
            elif takes_out and not node.row:
                some = free.get(node.dtype)
                if not some:
                    self.buffers.append(node.dtype)
                lies[node] = some.pop() if some else len(self.buffers) - 1
                self.buffered.append((made, lies[node]))
            elif takes_out:
                function = _without_out(function, node.dtype)
                takes_out = False
            self.calls.append((function, sources, made, _INTO if takes_out else _COPIED if node.kept else _NEW))

    def _register(self, source: Node, aligned: int, known: dict[tuple[Node, int], int]) -> int:
        if source.nest is self.nest:
            return known[source, -1]
        if source.kind == "number":
            self.registers.append(source.number)
            return len(self.registers) - 1
        if (source, aligned) not in known:
            known[source, aligned] = len(self.registers)
            self.read.append((len(self.registers), source, aligned))
            self.registers.append(None)
        return known[source, aligned]

    def _new(self, known: dict[tuple[Node, int], int], node: Node) -> int:
        known[node, -1] = len(self.registers)
        self.registers.append(None)
        return known[node, -1]

    def _over_rows(self, node: Node) -> Run:
        dims = tuple(range(self.row_ndim - self.front, len(self.nest.shape) - self.front))
        run: Run = node.op[0]
        return lambda tile: run(tile, dims)

    def run(self, arrays: dict[Node, np.ndarray]) -> None:
        """Computes the nest's nodes; those that are kept have their arrays already."""
        if self.nest.closed:
            (node,) = self.nest.nodes
            made = node.op(*[arrays[source] for source in node.sources])
            if node in arrays:
                arrays[node][...] = made
            else:
                arrays[node] = made
            return
        if 0 in self.nest.shape:
            return
        registers = list(self.registers)
        whole = (self.step, *self.nest.shape[self.cut :]) if self.cut else self.nest.shape
        buffers = [np.empty(whole, kind) for kind in self.buffers]
        for index, part in self._tiles():
            for at, source, aligned in self.read:
                # In a row: faster, and some functions of NumPy's have other bits on other strides.
                some = self._cut(arrays[source], aligned, index, part)
                registers[at] = np.ascontiguousarray(some) if some.ndim else some
            for at, node, aligned in self.written:
                registers[at] = self._cut(arrays[node], aligned, index, part)
            count = part.stop - part.start if self.cut else 0
            for at, buffer in self.buffered:
                registers[at] = buffers[buffer][:count] if self.cut and count < self.step else buffers[buffer]
            for function, sources, made, how in self.calls:
                operands = [registers[one] for one in sources]
                if how == _INTO:
                    function(*operands, out=registers[made])
                elif how == _COPIED:
                    registers[made][...] = function(*operands)
                else:
                    registers[made] = np.asarray(function(*operands))

    def _tiles(self) -> Iterator[tuple[Shape, slice]]:
        if not self.cut:
            yield (), slice(0, 0)
            return
        size = self.nest.shape[self.cut - 1]
        for index in itertools.product(*map(range, self.nest.shape[: self.front])):
            for begin in range(0, size, self.step):
                yield index, slice(begin, min(begin + self.step, size))

    def _aligned(self, node: Node) -> int:
        """The dim of the space before which the node's last dim is."""
        if node.row and not self.nest.keeps_dims(node.shape):
            return self.row_ndim
        return len(self.nest.shape)

    def _cut(self, array: np.ndarray, aligned: int, index: Shape, part: slice) -> np.ndarray:
        """What the tile has of the array."""
        if not self.cut:
            return array
        key: list[Any] = []
        for dim, size in zip(range(aligned - array.ndim, aligned), array.shape, strict=True):
            if dim < self.front:
                key.append(index[dim] if size > 1 else 0)
            elif dim == self.front:
                key.append(part if size > 1 else slice(None))
        return array[(*key, ...)]


def _without_out(function: Run, dtype: np.dtype) -> Run:
    """The function on what has one element for each row, which is little."""
    return lambda *operands: function(*operands, out=np.empty(np.broadcast_shapes(*map(np.shape, operands)), dtype))
