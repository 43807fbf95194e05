"""Derivatives on request: ``backward`` and ``grad``."""

from __future__ import annotations

import warnings
from math import prod
from typing import Any

from tensorcore.autograd.edges import GradientEdge, edge_of
from tensorcore.errors import ArgumentError, ArgumentTypeError, DtypeError, GradientError, ShapeError
from tensorcore.ops.kinds import method
from tensorcore.tape.engine import key_of, walk
from tensorcore.tape.mode import mode
from tensorcore.tensor import Tensor, new_tensor

__all__ = ["backward", "grad"]


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Add the derivatives of ``tensors`` to the ``grad`` of the leaves they were computed from.

    Args:
        tensors: one tensor or several; each of one element, or with its gradient in ``grad_tensors``.
        grad_tensors: the gradients that arrive at ``tensors``, of their shapes.
        retain_graph: keep the saved values for another walk; ``create_graph`` where None.
        create_graph: record the walk, for derivatives of derivatives.
        grad_variables: the older name of ``grad_tensors``.
        inputs: add up gradients only here (leaves or not) instead of in every leaf.
    """
    if grad_variables is not None:
        warnings.warn(
            "backward: `grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning, stacklevel=2
        )
        if grad_tensors is not None:
            raise GradientError(
                "backward: `grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`, got both; "
                "Please only use `grad_tensors`."
            )
        grad_tensors = grad_variables
    if mode.levels:
        raise GradientError(
            "backward: backward() called inside a functorch transform. This is not supported, got one inside vmap; please "
            "use func.grad or func.vjp instead, or call backward() outside of functorch transforms"
        )
    roots = _roots("backward", tensors, grad_tensors)
    retain = create_graph if retain_graph is None else retain_graph
    if inputs is None:
        walk(roots, retain=retain, create=create_graph)
        return
    inputs = inputs.values() if type(inputs) is dict else inputs
    inputs = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    if not inputs:
        raise GradientError(
            "backward: 'inputs' argument to backward() cannot be empty, got []; leave it out for all leaves"
        )
    targets = {key_of(_edge("backward", one)) for one in inputs}
    for one in inputs:
        one.retain_grad()
    walk(roots, retain=retain, create=create_graph, targets=targets, accumulate=True)


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> Any:
    """The sum of gradients of ``outputs`` with respect to each of ``inputs``.

    Args:
        outputs, inputs: one tensor or several; for a dict of inputs the result is a dict.
        grad_outputs: the gradients that arrive at ``outputs``, of their shapes; 1 where None.
        retain_graph: keep the saved values for another walk; ``create_graph`` where None.
        create_graph: record the walk, for derivatives of derivatives.
        only_inputs: True; the gradients of other leaves are left alone whatever it is.
        allow_unused: give None for an input that was not used, instead of raising.
        is_grads_batched: the first dim of ``grad_outputs`` counts gradients, and so does that of the results.
        materialize_grads: give zeros for an input that was not used.
    """
    if allow_unused is False and materialize_grads:
        raise ArgumentError(
            "grad: Expected allow_unused to be True or not passed when materialize_grads=True, got allow_unused=False; "
            "leave it out"
        )
    if type(inputs) is dict:
        found_ones = grad(outputs, tuple(inputs.values()), grad_outputs, retain_graph, create_graph, only_inputs,
                          allow_unused, is_grads_batched, materialize_grads)  # fmt: skip
        return dict(zip(inputs, found_ones, strict=True))
    if not only_inputs:
        warnings.warn(
            "grad: only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate gradient for "
            "other parts of the graph, please use torch.autograd.backward.",
            FutureWarning,
            stacklevel=2,
        )
    inputs = [inputs] if isinstance(inputs, (Tensor, GradientEdge)) else list(inputs)
    if not inputs:
        raise GradientError(
            "grad: `inputs` argument to `grad()` cannot be empty, got []; name what to differentiate by"
        )
    if is_grads_batched:
        found_rows: tuple[Tensor | None, ...] = _batched(
            outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused, materialize_grads
        )
        return found_rows
    roots = _roots("grad", outputs, grad_outputs)
    retain = create_graph if retain_graph is None else retain_graph
    if allow_unused is None:
        allow_unused = materialize_grads
    keys = [key_of(_edge("grad", one)) for one in inputs]
    found = walk(roots, retain=retain, create=create_graph, targets=set(keys))
    results: list[Tensor | None] = []
    # A sum hands the same gradient to all its terms; each result is memory of its own.
    taken = {id(g.native) for _, g in roots}
    for key, tensor in zip(keys, inputs, strict=True):
        g = found.get(key)
        if g is not None:
            if id(g.native) in taken:
                g = g.clone()
            taken.add(id(g.native))
        if g is None and materialize_grads:
            native = tensor.device.kernels["full"](tuple(tensor.native.shape), 0, dtype=tensor.dtype)
            g = new_tensor(native, tensor.dtype, tensor.device)
        if g is None and not allow_unused:
            raise GradientError(
                "grad: One of the differentiated Tensors appears to not have been used in the graph, got no gradient "
                "for it; set allow_unused=True if this is the desired behavior"
            )
        results.append(g)
    return tuple(results)


def _batched(
    outputs: Any,
    inputs: Any,
    grads: Any,
    retain: bool | None,
    create: bool,
    allow_unused: bool | None,
    materialize: bool,
) -> Any:
    """One walk for all gradients of the batch together."""
    from tensorcore.func.vmapping import vmap

    outputs = [outputs] if isinstance(outputs, Tensor) else list(outputs)
    grads = [grads] if isinstance(grads, Tensor) else list(grads)
    there: list[bool] = []

    def walk_once(*one: Tensor) -> tuple[Tensor, ...]:
        found = grad(outputs, inputs, one, retain, create, True, allow_unused, False, materialize)
        there.extend(g is not None for g in found)
        return tuple([g for g in found if g is not None])

    rows = iter(vmap(walk_once, randomness="same")(*grads))
    return tuple([next(rows) if one else None for one in there])


def stack(tensors: Any) -> Tensor:
    """The tensors along a new first dim."""
    from tensorcore.ops.shapes.join import stack as join

    made: Tensor = join(list(tensors))
    return made


def _edge(op: str, tensor: Any) -> Any:
    if isinstance(tensor, GradientEdge):
        return edge_of(tensor)
    if not isinstance(tensor, Tensor):
        raise ArgumentTypeError(f"{op}: expected tensors, got {tensor!r}; pass the tensors to differentiate by")
    if tensor.node is None:
        raise GradientError(
            f"{op}: One of the differentiated Tensors does not require grad; call requires_grad_() on it"
        )
    return tensor.node


def _roots(op: str, tensors: Any, grads: Any) -> list[tuple[Any, Tensor]]:
    tensors = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    if grads is None:
        grads = [None] * len(tensors)
    grads = [grads] if isinstance(grads, Tensor) else list(grads)
    if len(grads) != len(tensors):
        raise GradientError(
            f"{op}: expected a gradient for each tensor, got {len(tensors)} tensors and {len(grads)} gradients; "
            f"pass None where it is 1"
        )
    return [(tensor.node, _root(op, i, tensor, g)) for i, (tensor, g) in enumerate(zip(tensors, grads, strict=True))]


def _root(op: str, i: int, tensor: Any, g: Any) -> Tensor:
    """The gradient that arrives at the ``i``-th of the tensors."""
    if not isinstance(tensor, Tensor):
        raise ArgumentTypeError(f"{op}: expected tensors, got {tensor!r}; pass the result of tensor operations")
    if tensor.node is None:
        raise GradientError(
            f"{op}: element {i} of tensors does not require grad and does not have a grad_fn, got a constant; "
            f"call requires_grad_() on what it is computed from"
        )
    shape = tuple(tensor.native.shape)
    if g is None:
        if prod(shape) != 1:
            raise GradientError(
                f"{op}: grad can be implicitly created only for scalar outputs, got shape {list(shape)}; "
                f"pass the gradient, or sum() first"
            )
        if tensor.dtype.is_complex:
            raise GradientError(
                f"{op}: grad can be implicitly created only for real scalar outputs but got {tensor.dtype}; "
                f"pass the gradient"
            )
        native = tensor.device.kernels["full"](shape, 1, dtype=tensor.dtype)
        return new_tensor(native, tensor.dtype, tensor.device)  # type: ignore[no-any-return]
    if not isinstance(g, Tensor):
        raise ArgumentTypeError(
            f"{op}: gradients can be either Tensors or None, got {type(g).__name__}; wrap it in tensor(...)"
        )
    if tuple(g.native.shape) != shape:
        raise ShapeError(
            f"{op}: Mismatch in shape: grad_output[{i}] has a shape of {list(g.shape)} and output[{i}] has a shape of "
            f"{list(shape)}; pass a gradient of the output's shape"
        )
    if g.dtype.is_complex != tensor.dtype.is_complex:
        raise DtypeError(
            f"{op}: For complex Tensors, both grad_output and output are required to have the same dtype, got "
            f"{g.dtype} and {tensor.dtype}; convert the gradient with .to(...)"
        )
    return g if g.dtype is tensor.dtype else g.to(tensor.dtype)


def _backward(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Add the derivatives of this tensor to the ``grad`` of the leaves it was computed from."""
    backward(self, gradient, retain_graph, create_graph, inputs=inputs)


method(_backward, "backward")
