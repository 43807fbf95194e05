"""Functions that give derivatives of functions: ``grad``, ``vjp``, ``jvp`` and ``linearize``, which compose."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from tensorcore.autograd.tangents import Alias, behind, push, reached
from tensorcore.errors import ArgumentError, GradientError, ShapeError
from tensorcore.func.levels import to_active
from tensorcore.func.trees import Spec, tree_flatten, tree_map, tree_unflatten
from tensorcore.ops.inplace import share_version
from tensorcore.tape.engine import walk
from tensorcore.tape.memory import next_order
from tensorcore.tape.mode import enable_grad, mode
from tensorcore.tape.node import FROZEN, Node, bare_node, is_leaf, leaf
from tensorcore.tensor import Tensor, new_tensor

__all__ = ["Linearized", "Pullback", "chosen", "grad", "grad_and_value", "jvp", "linearize", "vjp"]

Function = Callable[..., Any]
_PLACE = Alias()


class Trace:
    """One call of a function on twins of its inputs, and the part of the tape that it left.

    A twin shows an input's memory at a place of its own on the tape, so that a walk that asks for its gradient ends
    there. Inside vmap it is a twin of each example's input.
    """

    def __init__(self, primals: Sequence[Tensor], leaves: bool) -> None:
        self.outer = mode.enabled
        self.start = next_order()
        self.primals = [to_active(one) for one in primals]
        self.twins = [_twin(one, leaves) for one in self.primals]
        # A twin that is written to in place has another node afterwards.
        self.places = [one.node for one in self.twins]
        self.ends = set(self.places)

    def call(self, func: Function, *args: Any, **kwargs: Any) -> Any:
        """The results of the function, which is recorded even where the caller switched that off."""
        with enable_grad():
            made = func(*args, **kwargs)
        for node in self.places:
            if is_leaf(node):
                node.op = FROZEN  # walks from outside find nobody here
        return made

    def outside(self, *tensors: Tensor) -> bool:
        """Whether the tensors depend on anything else than the twins that could be differentiated by."""
        return self.outer and reached([one.node for one in tensors], self.ends, self.start)[1]

    def settled(self, value: Any) -> Any:
        """A result as the caller gets it: on the tape only where something outside could be differentiated by."""
        if not isinstance(value, Tensor) or value.node is None or self.outside(value):
            return value
        made = new_tensor(value.native, value.dtype, value.device)
        made.version = share_version(value)
        return made


def _twin(tensor: Tensor, leaf_wanted: bool) -> Tensor:
    made = new_tensor(tensor.native, tensor.dtype, tensor.device)
    made.version = share_version(tensor)
    if tensor.node is None and leaf_wanted:
        made.node = leaf(made)
    else:
        made.node = bare_node(_PLACE, (tensor.node,), tuple(tensor.native.shape), tensor.dtype)
    return made  # type: ignore[no-any-return]


def grad(func: Function, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Function:
    """The function that gives the gradient of ``func``, whose result is one number.

    Args:
        func: returns a 0-d tensor, or with ``has_aux`` a pair of it and of whatever else the caller wants back.
        argnums: which arguments to differentiate by; each is a tensor or a tree of tensors.

    Returns:
        A function of the same arguments that gives the gradient in the shape of the argument (a tuple of them for a
        tuple of ``argnums``), or with ``has_aux`` a pair of that and of the second result.
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        gradient, value = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return wrapper


def grad_and_value(func: Function, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Function:
    """As :func:`grad`, and the function's own result: ``(gradient, value)``, or ``(gradient, (value, aux))``."""

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        primals, spec, rebuilt = chosen("grad_and_value", args, argnums)
        trace = Trace(primals, True)
        output = trace.call(func, *rebuilt(trace.twins), **kwargs)
        aux = None
        if has_aux:
            if not (isinstance(output, tuple) and len(output) == 2):
                raise GradientError(
                    f"grad_and_value(f)(*args): output of function f should be a tuple: (output, aux) if has_aux is True, "
                    f"got {type(output).__name__}; return a pair"
                )
            output, aux = output
        if not isinstance(output, Tensor):
            raise GradientError(
                f"grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got {type(output)}; return a 0-d tensor"
            )
        if output.ndim:
            raise GradientError(
                f"grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor with {output.ndim} "
                f"dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
            )
        if output.dtype.is_complex:
            raise GradientError(
                f"grad: grad can be implicitly created only for real scalar outputs but got {output.dtype}; take abs() or real"
            )
        create = trace.outside(output)
        ones = new_tensor(output.device.kernels["full"]((), 1, dtype=output.dtype), output.dtype, output.device)
        grads = _pulled(trace, [output], [ones], create, create)
        value = trace.settled(output)
        return tree_unflatten(grads, spec), (value, tree_map(trace.settled, aux)) if has_aux else value

    return wrapper


def _pulled(trace: Trace, outputs: list[Tensor], cotangents: list[Tensor], create: bool, retain: bool) -> list[Tensor]:
    """The gradient of each twin, zeros where the outputs do not depend on it."""
    roots = [(one.node, g) for one, g in zip(outputs, cotangents, strict=True) if one.node is not None]
    found = walk(roots, retain=retain, create=create, targets=trace.ends) if roots else {}
    taken = {id(g.native) for g in cotangents}
    grads = []
    for key, one in zip(trace.places, trace.twins, strict=True):
        g = found.get(key)
        if g is None:
            g = zeros_like(one)
        elif id(g.native) in taken:
            g = g.clone()  # a sum hands the same gradient to all its terms; each result is memory of its own
        taken.add(id(g.native))
        grads.append(g)
    return grads


def zeros_like(tensor: Tensor) -> Tensor:
    """Zeros of the tensor's shape, off the tape."""
    native = tensor.device.kernels["full"](tuple(tensor.native.shape), 0, dtype=tensor.dtype)
    return new_tensor(native, tensor.dtype, tensor.device)  # type: ignore[no-any-return]


class Pullback:
    """A call of a function, kept for gradients of its inputs from gradients of its results."""

    def __init__(self, name: str, func: Function, primals: Sequence[Tensor], call: Any, has_aux: bool) -> None:
        self.trace = Trace(primals, True)
        output = self.trace.call(func, *call(self.trace.twins))
        self.aux = None
        if has_aux:
            output, self.aux = _with_aux(name, output)
        self.flat, self.spec = tree_flatten(output)
        _check_results(name, self.flat)
        self.output = tree_unflatten([self.trace.settled(one) for one in self.flat], self.spec)
        self.aux = tree_map(self.trace.settled, self.aux) if has_aux else None
        self.open = self.trace.outside(*self.flat)

    def __call__(self, cotangents: list[Tensor], create: bool | None = None, retain: bool = True) -> list[Tensor]:
        """The gradient of each input."""
        if create is None:
            create = mode.enabled and (self.open or any(one.node is not None for one in cotangents))
        return _pulled(self.trace, self.flat, cotangents, create, retain)


def vjp(func: Function, *primals: Any, has_aux: bool = False) -> Any:
    """The results of ``func(*primals)``, and the function that pulls gradients of them back to the primals.

    Returns:
        ``(output, vjp_fn)``, with ``has_aux`` ``(output, vjp_fn, aux)``. ``vjp_fn`` takes gradients in the structure
        of the output and gives a tuple of gradients in the structure of the primals.
    """
    flat, spec = tree_flatten(primals)
    _check_inputs(flat)
    pull = Pullback("vjp", func, flat, lambda twins: tree_unflatten(twins, spec), has_aux)

    def vjp_fn(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        given, structure = tree_flatten(cotangents)
        if structure != pull.spec:
            raise GradientError(
                f"vjp: Expected pytree structure of cotangents to be the same as pytree structure of outputs to the "
                f"function. cotangents: {structure}, primal output: {pull.spec}"
            )
        for i, (g, one) in enumerate(zip(given, pull.flat, strict=True)):
            if not isinstance(g, Tensor) or g.native.shape != one.native.shape:
                raise ShapeError(
                    f"vjp: Mismatch in shape: grad_output[{i}] has a shape of {getattr(g, 'shape', None)} and "
                    f"output[{i}] has a shape of {one.shape}; pass a cotangent of the output's shape"
                )
        given = [g if g.dtype is one.dtype else g.to(one.dtype) for g, one in zip(given, pull.flat, strict=True)]
        return tree_unflatten(pull(given, create_graph, retain_graph), spec)

    return (pull.output, vjp_fn, pull.aux) if has_aux else (pull.output, vjp_fn)


class Linearized:
    """A call of a function, kept for tangents of its results from tangents of its inputs."""

    def __init__(self, name: str, func: Function, primals: Sequence[Tensor], call: Any, has_aux: bool = False) -> None:
        self.trace = trace = Trace(primals, False)
        output = trace.call(func, *call(trace.twins))
        self.aux = None
        if has_aux:
            output, aux = _with_aux(name, output)
            self.aux = tree_map(trace.settled, aux)
        self.flat, self.spec = tree_flatten(output)
        _check_results(name, self.flat)
        self.nodes, outside = reached([one.node for one in self.flat], trace.ends, trace.start)
        self.open = outside and trace.outer
        self.output = tree_unflatten([trace.settled(one) for one in self.flat], self.spec)

    def __call__(self, tangents: Sequence[Tensor], strict: str = "") -> list[Tensor]:
        """The tangent of each result; zeros where it does not depend on the inputs, an error naming ``strict``."""
        known: dict[Node, Any] = {}
        for node, tangent in zip(self.trace.places, tangents, strict=True):
            known[node] = tangent if tangent.dtype is node.dtype else tangent.to(node.dtype)  # type: ignore[attr-defined]
        create = mode.enabled and (self.open or any(one.node is not None for one in tangents))
        push(self.nodes, known, create)
        found = [behind(one.node, known) for one in self.flat]
        if strict and any(one is None for one in found):
            raise GradientError(
                f"{strict}: The output of f is independent of the inputs. This is not allowed with strict=True, got "
                f"strict=True; leave it out for zeros"
            )
        return [zeros_like(one) if made is None else made for one, made in zip(self.flat, found, strict=True)]


def jvp(func: Function, primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    """The results of ``func(*primals)`` and their derivative in the direction of ``tangents``.

    Args:
        primals: a tuple of the arguments.
        tangents: of the same structure and shapes.
        strict: raise where a result does not depend on the primals, instead of giving zeros.

    Tangents follow the tape: what ``func`` computes inside ``no_grad`` is a constant, as in reverse mode, where PyTorch's
    forward mode would see through it.

    Returns:
        ``(output, tangent)``, with ``has_aux`` ``(output, tangent, aux)``.
    """
    if not isinstance(primals, tuple):
        raise GradientError(
            f"jvp(f, primals, tangents): Expected primals to be a tuple. E.g. it should be valid to call f(*primals), got "
            f"{type(primals).__name__}; pass (x,)"
        )
    flat, spec = tree_flatten(primals)
    directions, structure = tree_flatten(tangents)
    if structure != spec:
        raise GradientError(
            f"jvp(f, primals, tangents): Expected primals and tangents to have the same python structure. For example, if "
            f"primals is a tuple of 3 tensors, tangents also must be. Got primals with structure {spec} and tangents with "
            f"structure {structure}"
        )
    if not flat or not all(isinstance(one, Tensor) for one in (*flat, *directions)):
        raise GradientError(
            "jvp(f, primals, tangents): Expected primals and tangents to be non-empty and to contain only tensors, got "
            "others; wrap numbers in torch.tensor(...)"
        )
    for one, direction in zip(flat, directions, strict=True):
        check_direction(one, direction)
    line = Linearized("jvp", func, flat, lambda twins: tree_unflatten(twins, spec), has_aux)
    made = line([to_active(one) for one in directions], "jvp(f, primals, tangents, strict=True)" if strict else "")
    tangent = tree_unflatten(made, line.spec)
    return (line.output, tangent, line.aux) if has_aux else (line.output, tangent)


def check_direction(tensor: Tensor, direction: Tensor) -> None:
    """Raise for a tangent of another shape than its tensor."""
    if tuple(tensor.native.shape) != tuple(direction.native.shape):
        raise ShapeError(
            f"jvp: Trying to set a forward gradient that has a different size than that of the original Tensor, this is "
            f"not supported. Tensor is of size {list(tensor.shape)} while the given forward gradient is of size "
            f"{list(direction.shape)}"
        )


def linearize(func: Function, *primals: Any) -> tuple[Any, Function]:
    """The results of ``func(*primals)``, and the function that gives their derivative in any direction.

    The function runs once; each call of the second result costs the derivative alone.
    """
    flat, spec = tree_flatten(primals)
    _check_inputs(flat)
    line = Linearized("linearize", func, flat, lambda twins: tree_unflatten(twins, spec))

    def jvp_fn(*tangents: Any) -> Any:
        directions, structure = tree_flatten(tangents)
        if structure != spec:
            raise GradientError(
                f"linearize: Expected the tangents {structure} to have the same structure as the primals {spec}, got "
                f"another one; pass a tangent for each primal"
            )
        for i, (one, direction) in enumerate(zip(line.trace.primals, directions, strict=True)):
            if tuple(one.native.shape) != tuple(direction.native.shape):
                raise ShapeError(
                    f"linearize: tangent:{i} with shape {direction.shape} in flattened pytree doesn't match the shape "
                    f"{one.shape} of the corresponding primal; pass one of that shape"
                )
            if one.dtype is not direction.dtype:
                raise GradientError(
                    f"linearize: tangent:{i} with dtype {direction.dtype} in flattened pytree doesn't match the dtype "
                    f"{one.dtype} of the corresponding primal; convert it with .to(...)"
                )
        return tree_unflatten(line([to_active(one) for one in directions]), line.spec)

    return line.output, jvp_fn


def chosen(
    name: str, args: tuple[Any, ...], argnums: Any
) -> tuple[list[Tensor], Spec, Callable[[Sequence[Any]], list[Any]]]:
    """The tensors of the arguments that ``argnums`` names, their structure, and how to put others in their place."""
    if isinstance(argnums, bool) or not isinstance(argnums, (int, tuple)):
        raise GradientError(
            f"{name}: argnums must be int or Tuple[int, ...], got: {type(argnums)}; name arguments by position"
        )
    several = isinstance(argnums, tuple)
    numbers = list(argnums) if isinstance(argnums, tuple) else [argnums]
    if not numbers:
        raise GradientError(f"{name}: argnums must be non-empty, got (); name an argument by position")
    for one in numbers:
        if not isinstance(one, int):
            raise GradientError(f"{name}: argnums elements must be int, got {type(one)}; name arguments by position")
        if not -len(args) <= one < len(args):
            raise GradientError(f"{name}: Got argnum={one}, but only {len(args)} positional inputs; count from 0")
    numbers = [one % len(args) for one in numbers]
    if len(set(numbers)) != len(numbers):
        raise GradientError(f"{name}: argnums elements must be unique, got {argnums}; name each argument once")
    picked = tuple([args[one] for one in numbers])
    flat, spec = tree_flatten(picked if several else picked[0])
    _check_inputs(flat)

    def rebuilt(leaves: Sequence[Any]) -> list[Any]:
        made = tree_unflatten(leaves, spec)
        given = list(args)
        for place, one in zip(numbers, made if several else (made,), strict=True):
            given[place] = one
        return given

    return flat, spec, rebuilt


def _check_inputs(flat: list[Any]) -> None:
    for one in flat:
        if not isinstance(one, Tensor):
            raise ArgumentError(
                f"grad: Thing passed to transform API must be Tensor, got {type(one)}; wrap it in torch.tensor(...)"
            )
        if one.dtype.kind not in ("floating", "complex"):
            raise GradientError(
                f"grad: only Tensors of floating point dtype can require gradients, got {one.dtype}; convert it with .float()"
            )


def _with_aux(name: str, output: Any) -> tuple[Any, Any]:
    if not (isinstance(output, tuple) and len(output) == 2):
        raise GradientError(
            f"{name}(f, *primals): output of function f should be a tuple: (output, aux) if has_aux is True, got "
            f"{type(output).__name__}; return a pair"
        )
    return output


def _check_results(name: str, flat: list[Any]) -> None:
    if not flat:
        raise GradientError(f"{name}(f, *primals): Expected f to be a function that has non-empty output, got none")
    for one in flat:
        if not isinstance(one, Tensor):
            raise GradientError(
                f"{name}(f, *primals): expected f(*primals) to return only tensors, got unsupported type {type(one)}; "
                f"return numbers as has_aux"
            )
