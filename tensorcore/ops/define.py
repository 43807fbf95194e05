"""How an op is defined, once: its name, what it takes, its derivative formulas, and the registry of all of them.

A derivative formula is a function of the names it needs: ``g`` is the incoming gradient, ``out`` the
result, an input's or an option's name its value, ``input_shape`` or ``input_dtype`` that of an input
that need not be kept alive. What the formulas name is what is saved. A formula that can do without the
result names ``unwritten_out``: None where an in-place operation changed the result since. One whose
gradient is zeros but for a part names ``arrived``: the sum of what has come to its input so far, which it
may add the part to instead, or None.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tensorcore.dtypes import ALL, remembered
from tensorcore.errors import GradientError
from tensorcore.ops.shortage import again
from tensorcore.tape.mode import makers, mode
from tensorcore.tape.node import Node, Output, Packed, arrived, freed, stale, unpack
from tensorcore.tensor import Tensor

__all__ = [
    "OPS",
    "Op",
    "by_slope",
    "gradient_arguments",
    "kept_out",
    "named",
    "same",
    "unwritten_out",
    "without_derivative",
]

Formula = Callable[..., Any]

OPS: dict[str, Op] = {}
_DIFFERENTIABLE = ("floating", "complex")
_FLOATING = frozenset([one for one in ALL if one.is_floating_point])
new = object.__new__
makers.append(globals())


def same(g: Any) -> Any:
    """The formula of an input whose gradient is the result's own."""
    return g


def without_derivative(name: str) -> Formula:
    """The formula of an op that PyTorch records and cannot differentiate: the result requires grad, the walk raises."""

    def refuse(g: Any) -> Any:
        raise GradientError(
            f"{name}: derivative for aten::{name} is not implemented, got a backward walk through it; detach() its inputs"
        )

    return refuse


class Op:
    """One op: everything about it that is not its code on a device.

    Args:
        name: its name, also that of its kernel.
        inputs: the names of its tensor arguments, in the kernel's order.
        doc: one sentence.
        grads: a formula for each input that has a gradient.
        variadic: the inputs come as one list of any length, and so do the formula's results.
        samples: a function that yields calls to test it with, see ``samples/__init__.py``.
        kernel: the name of its kernel, where that is not the op's own.
        backward_name: what a printed ``grad_fn`` calls it, where PyTorch's name does not follow from ours.
    """

    # What elementwise ops have, see ``kinds.elementwise``; of any other op no dtype is quick.
    quick: frozenset[Any] = frozenset()
    result: Any = None
    widens = False
    # Whether a number may stand for the second operand only.
    tensor_first = False
    # Of ``add`` and ``sub``: what an in-place call with a factor goes to.
    scaled: Callable[..., Any] | None = None
    # Dtypes whose elements it gives as they are: in place there is nothing to do for them but to note the write.
    unchanged: frozenset[Any] = frozenset()
    # What makes usual in-place calls, see ``inplace.usual_write``.
    overwritten: Callable[..., bool] | None = None
    # Whether PyTorch keeps its results off the tape although they change with the inputs.
    off_tape = False

    def __init__(
        self,
        name: str,
        inputs: Sequence[str] | str,
        doc: str,
        *,
        grads: dict[str, Formula] | None = None,
        variadic: bool = False,
        samples: Callable[..., Iterable[Any]] | None = None,
        kernel: str | None = None,
        backward_name: str | None = None,
        kind: str = "primitive",
        register: bool = True,
    ) -> None:
        self.name = name
        self.kernel = kernel or name
        self.inputs = tuple(inputs.split()) if isinstance(inputs, str) else tuple(inputs)
        self.doc = doc
        self.grads = grads or {}
        self.variadic = variadic
        self.samples = samples
        self.kind = kind
        # Elementwise ops: by the dtypes of operands, the one they are computed in, the result's, and what numbers become.
        self.promoted: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        remembered.append(self.promoted)
        self.by_value = False  # whether its rule of dtypes looks at a number behind integers
        self.function: Callable[..., Any] | None = None
        camel = "".join(part[:1].upper() + part[1:] for part in name.strip("_").split("_"))
        self.node_name = backward_name or f"{camel}Backward0"
        named = [gradient_arguments(self.grads[key]) if key in self.grads else () for key in self.inputs]
        wanted = {argument for arguments in named for argument in arguments}
        # For each input, the positions of the inputs whose formulas name it.
        self.needed_for = tuple(
            [tuple([i for i, arguments in enumerate(named) if kept in arguments]) for kept in self.inputs]
        )
        self.keeps_inputs = any(self.needed_for)
        self.keeps_out = "out" in wanted or "unwritten_out" in wanted
        self.traits: tuple[tuple[str, int, str], ...] = ()
        for name_wanted in wanted:
            key, _, trait = name_wanted.rpartition("_")
            if trait in ("shape", "dtype") and key in self.inputs:
                self.traits += ((name_wanted, self.inputs.index(key), trait),)
        # Attributes and no methods: the walk reads the first from a cached slot. Compiled at the first call. An op that has
        # a shorter way for its usual case puts that into ``backward``, and leaves for ``formulas`` from there.
        self.backward: Callable[..., tuple[Any, ...]] = self._compile_and_run
        self.formulas = self.backward
        if register:
            OPS[name] = self

    def _compile_and_run(self, node: Node, g: Any, edges: Any = None) -> tuple[Any, ...]:
        if self.backward == self.formulas:
            self.backward = _compile(self)
            self.formulas = self.backward
        else:
            self.formulas = _compile(self)
        return self.formulas(node, g, edges)

    def saved_value(self, node: Node, name: str) -> Any:
        """What ``node`` saved under ``name``, for those who look at ``grad_fn._saved_...``."""
        if name == "out" and self.keeps_out:
            return kept_out(node, None)
        saved = unpack(node) if type(node.saved) is not tuple else node.saved
        values = dict(zip(self.inputs, saved, strict=False)) | (node.options or {})
        if name not in values:
            raise AttributeError(f"{node.name()} saved nothing named {name!r}; it has {sorted(values)}")
        return values[name]

    def __repr__(self) -> str:
        return f"<op {self.name}>"


def by_slope(
    op: Op, name: str | None = None, options: Callable[[dict[str, Any]], dict[str, Any]] | None = None
) -> None:
    """Let the kernel ``name``, the op's with ``_backward``, make its gradients: ``kernel(g, x, **options)``.

    ``x`` is what the formula keeps, the result or the input. The formula, in other ops, stays for walks that are recorded
    themselves, for backends without the kernel, and for whatever else is unusual.

    Args:
        options: the kernel's of the op's own; the same where None.
    """
    of_result, plain = op.keeps_out, op.kind == "elementwise"  # without options
    name = name or f"{op.name}_backward"

    def backward(node: Node, g: Any, edges: Any = None) -> tuple[Any, ...]:
        if mode.enabled or type(g) is not Tensor:
            return op.formulas(node, g)
        dtype, device = g.dtype, g.device
        kernel = device.kernels[name] if dtype in _FLOATING and dtype is node.dtype else None
        if not kernel:
            return op.formulas(node, g)
        if of_result:
            x, version, given = node.out, node.version, {} if plain else node.options or {}
            if device.wraps is not None or type(x) is not device.array:  # perhaps of another level; packed; freed
                x, version = kept_out(node, g).native, None
        else:
            saved = node.saved
            if type(saved) is not tuple or saved[0].device is not device or saved[0].dtype is not dtype:
                return op.formulas(node, g)
            x, version = saved[0].native, saved[0].version
            given = node.options or {}
            if options is not None:
                given = options(given)
        if version is not None and version.stamp < node.order:
            return op.formulas(node, g)  # which says what was written
        try:
            native = kernel(g.native, x, **given)
        except MemoryError as error:
            native = again(device, name, (g.native, x), given, error)
        made = new(Tensor)
        made.native = native if type(native) is device.array else device.as_native(native)
        made.dtype = dtype
        made.device = device
        made.node = made.version = made.trail = None
        return (made,)

    op.backward = backward


def named(name: str) -> Callable[[Any], Any]:
    """The name of a method with an underscore, and what its documentation says, on a function."""

    def named(function: Any) -> Any:
        function.__name__ = function.__qualname__ = name
        function.__doc__ = f"In-place form of :func:`{name[:-1]}`."
        return function

    return named


def gradient_arguments(formula: Formula) -> tuple[str, ...]:
    """The names that a formula takes."""
    # Not inspect.signature, which is slow to import and is called for every formula.
    return formula.__code__.co_varnames[: formula.__code__.co_argcount]


def kept_out(node: Node, g: Any) -> Any:
    """The saved result of ``node`` as a tensor again: on the tape only while the walk itself is recorded."""
    native = node.out
    if native is None:
        raise freed(node)
    if type(native) is Packed:
        found = native.get(native.items[0])
        found.node = node if mode.enabled else None
        return found
    version = node.version
    if version is not None and version.stamp < node.order:
        raise stale(node, "out", version)
    device = node.extra["device"] if g is None else _device_of(g) if type(g) is list else g.device
    home = getattr(device, "home", None)  # below the level of vmap that differentiates a call made outside of it
    if type(native) is tuple:
        made = [
            _kept(one, node.dtype[i], device if home is None else home(one), version) for i, one in enumerate(native)
        ]
        if mode.enabled:
            for i, one in enumerate(made):
                one.node = Output(node, i) if one.dtype.kind in _DIFFERENTIABLE else None
        return tuple(made)
    out = _kept(native, node.dtype, device if home is None else home(native), version)
    if mode.enabled and out.dtype.kind in _DIFFERENTIABLE:
        out.node = node
    return out


def _kept(native: Any, dtype: Any, device: Any, version: Any) -> Tensor:
    out = object.__new__(Tensor)
    out.native = native
    out.dtype = dtype
    out.device = device
    out.node = out.trail = None
    out.version = version
    return out


def unwritten_out(node: Node, g: Any) -> Any:
    """As ``kept_out``, but None where the result was changed in place since."""
    version = node.version
    return None if version is not None and version.stamp < node.order else kept_out(node, g)


def _device_of(g: list[Any]) -> Any:
    return next(one.device for one in g if one is not None)


def _compile(op: Op) -> Callable[..., tuple[Any, ...]]:
    """The op's backward as one function: unpack what was saved, check it, call each formula whose input asks.

    A walk to a few targets says which inputs lead there: their edges, None in the place of each other.

    Written out as text because one frame with exact arguments is what keeps a walk short: no
    keyword calls and no lookups by name for each node.
    """
    lines = ["def backward(node, g, edges=None):"]
    add = lines.append
    if op.keeps_inputs:
        add("    saved = node.saved")
        add("    if type(saved) is not tuple: saved = unpack(node)")
        add(f"    {'inputs' if op.variadic else ', '.join(op.inputs) + ','} = saved")
        add("    order = node.order")
        for i, name in enumerate(op.inputs):
            if op.variadic:
                add("    for one in inputs:")
                add("        if one is not None and one.version is not None and one.version.stamp < order:")
                add(f"            raise stale(node, '{name}', one.version)")
            elif op.needed_for[i]:
                add(f"    version = getattr({name}, 'version', None)")
                add("    if version is not None and version.stamp < order:")
                add(f"        raise stale(node, '{name}', version)")
    wanted = {argument for formula in op.grads.values() for argument in gradient_arguments(formula)}
    if "out" in wanted:
        add("    out = kept_out(node, g)")
    if "unwritten_out" in wanted:
        add("    unwritten_out = find_unwritten(node, g)")
    known = {"g", "out", "unwritten_out", "arrived", *op.inputs}
    # An input's own shape and dtype are its edge's, which costs nothing at the forward call.
    own = {} if op.variadic else {name: {f"{name}_shape": f"edge_{i}.shape", f"{name}_dtype": f"edge_{i}.dtype"}
                                  for i, name in enumerate(op.inputs)}  # fmt: skip
    for i, name in enumerate(op.inputs):
        own.setdefault(name, {})["arrived"] = f"arrived(node, edge_{i}, g)"
    options = {
        argument
        for name, formula in op.grads.items()
        for argument in gradient_arguments(formula)
        if argument not in own.get(name, ())
    } - known
    if options:
        add("    options = node.options")
        lines.extend(f"    {name} = options['{name}']" for name in sorted(options))
    if op.variadic:
        name = op.inputs[0]
        arguments = ["inputs" if one == name else one for one in gradient_arguments(op.grads[name])]
        add(f"    return formula_0({', '.join(arguments)})")
    else:
        if any(op.grads.get(name) is not same for name in op.inputs):
            add("    if edges is None: edges = node.edges")
            add(f"    {', '.join(f'edge_{i}' for i in range(len(op.inputs)))}, = edges")
        add("    return (")
        for i, name in enumerate(op.inputs):
            if op.grads.get(name) is same:
                add("        g,")
            elif name in op.grads:
                arguments = ", ".join(own[name].get(one, one) for one in gradient_arguments(op.grads[name]))
                add(f"        formula_{i}({arguments}) if edge_{i} is not None else None,")
            else:
                add("        None,")
        add("    )")
    scope = {f"formula_{i}": op.grads[name] for i, name in enumerate(op.inputs) if name in op.grads}
    scope.update(unpack=unpack, stale=stale, kept_out=kept_out, find_unwritten=unwritten_out, arrived=arrived)
    exec(compile("\n".join(lines), f"<backward of {op.name}>", "exec"), scope)
    return scope["backward"]  # type: ignore[return-value]
