"""Steps of programs as nodes of what the C extension computes: one rule for each kind of kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorcore.plugin import Program, Step, Value, dtypes

from . import native
from .fused import REDUCTIONS
from .nests import Node, Unfit
from .steps import ACTIVATE, CAST, COMPUTE, HALVES, NUMBER_OF, REALS, UFUNC

if TYPE_CHECKING:
    from tensorcore.plugin import Backend

__all__ = ["Lowering"]

# Kernels under the name of the op that computes them.
_SAME = {"clamp_min": "maximum", "clamp_max": "minimum"}
# Exponents for which a product or a root is exact; the last ones for floats alone.
_POWERS = {2: "square", 3: "cube", 0.5: "sqrt", -1: "reciprocal", -0.5: "rsqrt", -2: "reciprocal_square"}
# Kernels that look at their arguments and then call one function of NumPy's, where those are floats.
_FUNCTIONS = {"remainder": "remainder", "fmod": "fmod", "floor_divide": "floor_divide", "exp2": "exp2", "pow": "power"}
# Kernels that compute in another way than NumPy's loop for the type: single precision in double, angles in vectors.
_OWN = {
    "f": frozenset([
        "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cosh", "exp2", "log10", "log2", "sinh", "tan",
    ]),
    "d": frozenset(["cos", "sin"]),
}  # fmt: skip


class Lowering:
    """Steps as nodes of what the C extension computes."""

    def __init__(self, program: Program, backend: Backend) -> None:
        self.backend = backend
        self.ops, self.activations, self.codes = native.fusible()
        self.inputs = [Node("input", None, _known(spec.dtype), tuple(spec.shape)) for spec in program.inputs]
        self.values: list[Node] = [*self.inputs]
        self.nodes: list[Node] = []

    def lower(self, step: Step) -> Node:
        """The node of the step's result."""
        if len(step.makes) != 1:
            raise Unfit(f"{step.kernel} has several results")
        shape, before = tuple(step.makes[0].shape), len(self.nodes)
        try:
            made = _LOWERED.get(step.kernel, Lowering.elementwise)(self, step, shape)
            if made.dtype != _known(step.makes[0].dtype) or made.shape != shape:
                raise Unfit(f"{step.kernel} makes {made.dtype}{made.shape}, not {step.makes[0]}")
        except Unfit:
            del self.nodes[before:]
            return self.whole(step, shape)
        return made

    def names(self) -> dict[int, str]:
        """The elementwise ops by number."""
        return {op: name for name, (op, *_) in self.ops.items()}

    def output(self, node: Node) -> Node:
        return node if node.kind != "number" else self._map((CAST, 0, None), node.dtype, node.shape, node)

    def elementwise(self, step: Step, shape: tuple[int, ...]) -> Node:
        """Ops with a loop in C, activations, and functions of NumPy's own."""
        name, options = _SAME.get(step.kernel, step.kernel), dict(step.options)
        if name in self.ops and not options:
            return self._compute(name, self._operands(step.operands), shape)
        if name in self.activations and len(step.operands) == self.activations[name]:
            arrays = tuple(map(self._array, step.operands))
            if len({one.dtype for one in arrays}) == 1 and arrays[0].dtype in REALS:
                if any(one.shape != shape for one in arrays):
                    raise Unfit(f"{name} of several shapes")
                return self._map((ACTIVATE, 0, (name, options)), arrays[0].dtype, shape, *arrays)
        elif not options:
            return self._function(step, shape)
        raise Unfit(f"{name} has no loop")

    def _compute(self, name: str, sources: tuple[Node, ...], shape: tuple[int, ...]) -> Node:
        op, inputs, gives_bool, types = self.ops[name]
        kind = sources[-1].dtype
        if len(sources) != inputs:
            raise Unfit(f"{name} of {len(sources)} operands")
        half = kind in HALVES
        if not types >> (0 if half else NUMBER_OF[kind]) & 1:
            raise Unfit(f"{name} of {kind}")
        if half and name != "where":  # computed in single precision, rounded once
            sources = tuple([self._cast(one, np.dtype(np.float32)) for one in sources])
        made = self._map((COMPUTE, op, None), np.dtype(bool) if gives_bool else sources[-1].dtype, shape, *sources)
        return made if gives_bool else self._cast(made, kind)

    def _function(self, step: Step, shape: tuple[int, ...]) -> Node:
        function = getattr(self.backend.kernels[step.kernel], "fallback", self.backend.kernels[step.kernel])
        sources = self._operands(step.operands)
        if step.kernel in _FUNCTIONS and sources[0].dtype in REALS:
            function = getattr(np, _FUNCTIONS[step.kernel])
        kind = sources[0].dtype
        if step.kernel in _OWN.get(kind.char, ()):
            raise Unfit(f"{step.kernel} of {kind} has a kernel of its own")
        if not isinstance(function, np.ufunc) or function.nin != len(sources) or kind in HALVES:
            raise Unfit(f"{step.kernel} has no loop")
        for result in (kind, np.dtype(bool)):
            form = f"{kind.char * function.nin}->{result.char}"
            if form in function.types:
                return self._map((UFUNC, function.types.index(form), function), result, shape, *sources)
        raise Unfit(f"{step.kernel} of {kind}")

    def pow(self, step: Step, shape: tuple[int, ...]) -> Node:
        exponent = step.operands[-1]
        if type(exponent) not in (int, float):
            return self._power(step, shape)
        x = self._array(step.operands[0])
        name, floating = _POWERS.get(exponent), x.dtype in REALS  # type: ignore[arg-type]
        if name is not None and (floating or (type(exponent) is int and exponent in (2, 3))):
            return self._compute(name, (x,), shape)
        return self._power(step, shape)

    def _power(self, step: Step, shape: tuple[int, ...]) -> Node:
        operands = self._operands(step.operands)
        if operands[0].dtype != np.float32:
            return self._function(step, shape)
        return self._compute("power", operands, shape)

    def gelu(self, step: Step, shape: tuple[int, ...]) -> Node:
        name = "gelu_tanh" if _option(step, "approximate", "none") == "tanh" else "gelu"
        return self._compute(name, (self._array(*step.operands),), shape)

    def leaky_relu(self, step: Step, shape: tuple[int, ...]) -> Node:
        x = self._array(*step.operands)
        slope = self._number(_option(step, "negative_slope", 0.01), x.dtype)
        if x.dtype not in REALS:
            raise Unfit(f"leaky_relu of {x.dtype}")
        return self._compute("leaky_relu", (x, slope), shape)

    def where(self, step: Step, shape: tuple[int, ...]) -> Node:
        choice = self._array(*step.operands[:1])
        if choice.dtype != np.bool_ or step.options:
            raise Unfit("where of other than bools")
        return self._compute("where", (choice, *self._operands(step.operands[1:])), shape)

    def cast(self, step: Step, shape: tuple[int, ...]) -> Node:
        return self._cast(self._array(*step.operands), _known(_option(step, "dtype", None)), always=True)

    def copy(self, step: Step, shape: tuple[int, ...]) -> Node:
        """A clone: the value itself, in an array of its own."""
        if step.options:
            raise Unfit(f"{step.kernel} with options")
        x = self._array(*step.operands)
        return self._cast(x, x.dtype, always=True)

    def reduce(self, step: Step, shape: tuple[int, ...]) -> Node:
        x = self._array(*step.operands)
        options = dict(step.options)
        dim, keepdim, dtype = options.pop("dim", None), options.pop("keepdim", False), options.pop("dtype", None)
        dims = range(len(x.shape)) if dim is None else sorted(dim if isinstance(dim, tuple) else (dim,))
        first = len(x.shape) - len(dims)
        if options or not dims or list(dims) != list(range(first, len(x.shape))) or 0 in x.shape[first:]:
            raise Unfit(f"{step.kernel} over dims {dim} of {x.shape}")
        if dtype is not None:
            x = self._cast(x, _known(dtype))
        kind, made = x.dtype, shape
        if step.kernel in ("any", "all"):
            if kind != np.bool_:
                raise Unfit(f"{step.kernel} of {kind}")
        elif kind not in REALS:
            if kind not in HALVES or step.kernel in ("amax", "amin"):
                raise Unfit(f"{step.kernel} of {kind}")
            x = self._cast(x, np.dtype(np.float32))
        if made != x.shape[:first] + ((1,) * len(dims) if keepdim else ()):
            raise Unfit(f"{step.kernel} of {x.shape} to {shape}")
        return self._cast(self._reduce(step.kernel, x, first, shape), kind)

    def softmax(self, step: Step, shape: tuple[int, ...]) -> Node:
        """softmax, its logarithm and their gradients in parts, along the last dim."""
        arrays = tuple(map(self._array, step.operands))
        options = dict(step.options)
        if len(arrays) != 1 + step.kernel.endswith("_backward"):
            raise Unfit(f"{step.kernel} of {len(arrays)} operands")
        last, kind = len(shape) - 1, arrays[0].dtype
        if options.pop("dim", None) != last or options or not shape or not shape[-1] or kind not in REALS:
            raise Unfit(f"{step.kernel} of {kind}{shape}")
        if any(one.shape != shape or one.dtype != kind for one in arrays):
            raise Unfit(f"{step.kernel} of several shapes")
        rows = (*shape[:-1], 1)

        def full(name: str, *sources: Node) -> Node:
            return self._compute(name, sources, shape)

        def add(x: Node) -> Node:
            return self._reduce("sum", x, last, rows)

        if step.kernel == "softmax_backward":
            g, y = arrays
            return full("mul", y, full("sub", g, add(full("mul", g, y))))
        if step.kernel == "log_softmax_backward":
            g, y = arrays
            return full("sub", g, full("mul", full("exp", y), add(g)))
        (x,) = arrays
        less = full("sub", x, self._reduce("amax", x, last, rows))
        power = full("exp", less)
        if step.kernel == "softmax":
            return full("mul", power, self._compute("reciprocal", (add(power),), rows))
        return full("sub", less, self._compute("log", (add(power),), rows))

    def whole(self, step: Step, shape: tuple[int, ...]) -> Node:
        """A kernel that is called for whole arrays between two passes."""
        kernel: Any = self.backend.kernels[step.kernel]
        if not kernel or any(type(one) is tuple for one in step.operands):
            raise Unfit(f"{step.kernel} is nothing for one loop")
        options = dict(step.options)
        sources = tuple([self.values[one.number] for one in step.operands if isinstance(one, Value)])
        if any(one.kind == "number" for one in sources):
            raise Unfit(f"{step.kernel} of a number")

        def run(*arrays: np.ndarray) -> np.ndarray:
            given = iter(arrays)
            operands = [next(given) if isinstance(one, Value) else one for one in step.operands]
            return np.ascontiguousarray(self.backend.as_native(kernel(*operands, **options))).reshape(shape)

        node = Node("whole", run, _known(step.makes[0].dtype), shape, sources)
        self.nodes.append(node)
        return node

    # Nodes

    def _map(self, op: tuple[int, int, Any], dtype: np.dtype, shape: tuple[int, ...], *sources: Node) -> Node:
        node = Node("map", op, dtype, shape, sources)
        self.nodes.append(node)
        return node

    def _reduce(self, name: str, x: Node, first: int, shape: tuple[int, ...]) -> Node:
        assert name in REDUCTIONS
        node = Node("reduce", (name, first), x.dtype, shape, (x,))
        self.nodes.append(node)
        return node

    def _cast(self, node: Node, dtype: np.dtype, always: bool = False) -> Node:
        if node.dtype == dtype and not always:
            return node
        half = node.dtype in HALVES or dtype in HALVES
        if half and node.dtype != dtype and np.float32 not in (node.dtype, dtype):
            if node.dtype == np.float64:
                raise Unfit("a double rounded once")
            node = self._cast(node, np.dtype(np.float32))
        if node.kind == "number":
            return self._number(node.number.item(), dtype)
        return self._map((CAST, 0, None), dtype, node.shape, node)

    def _array(self, *operands: Any) -> Node:
        """The one operand, which has to be an array."""
        if len(operands) != 1 or not isinstance(operands[0], Value):
            raise Unfit(f"{operands!r} in the place of an array")
        return self.values[operands[0].number]

    def _operands(self, operands: Sequence[Any]) -> tuple[Node, ...]:
        """Arrays of one dtype, and numbers beside them."""
        kinds = {self._array(one).dtype for one in operands if isinstance(one, Value)}
        if len(kinds) != 1:
            raise Unfit("operands of several dtypes, or of none")
        (kind,) = kinds
        return tuple([self._array(one) if isinstance(one, Value) else self._number(one, kind) for one in operands])

    def _number(self, number: Any, dtype: np.dtype) -> Node:
        node = Node("number", None, dtype, ())
        if type(number) is bool and dtype == np.bool_:
            value = np.array(number)
        elif type(number) not in (int, float) or dtype == np.bool_:
            raise Unfit(f"{number!r} beside {dtype}")
        elif dtype.kind in "iu":
            limits = np.iinfo(dtype)
            if type(number) is not int or not limits.min <= number <= limits.max:
                raise Unfit(f"{number!r} beside {dtype}")
            value = np.array(number, dtype)
        else:
            try:
                with np.errstate(over="ignore"):
                    value = np.array(float(number)).astype(dtype)
            except OverflowError:
                raise Unfit(f"{number!r} beside {dtype}") from None
        node.number = value
        return node


_LOWERED: dict[str, Callable[[Lowering, Step, tuple[int, ...]], Node]] = {
    "pow": Lowering.pow, "gelu": Lowering.gelu, "leaky_relu": Lowering.leaky_relu, "where": Lowering.where,
    "cast": Lowering.cast, "clone": Lowering.copy, "contiguous": Lowering.copy, "positive": Lowering.copy,
    **dict.fromkeys(REDUCTIONS, Lowering.reduce),
    **dict.fromkeys(("softmax", "log_softmax", "softmax_backward", "log_softmax_backward"), Lowering.softmax),
}  # fmt: skip


def _option(step: Step, name: str, default: Any) -> Any:
    """The step's one option."""
    if step.options.keys() - {name}:
        raise Unfit(f"{step.kernel} with {', '.join(step.options)}")
    return step.options.get(name, default)


def _known(dtype: dtypes.dtype | None) -> np.dtype:
    """The NumPy dtype of one that the loops know."""
    if dtype is None or dtype.numpy not in NUMBER_OF:
        raise Unfit(f"{dtype} has no loops")
    found: np.dtype = dtype.numpy
    return found
