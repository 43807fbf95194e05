"""Derivatives on request: ``backward`` and ``grad``."""

from __future__ import annotations

from math import prod
from typing import Any

from tensorcore.errors import ArgumentTypeError, DtypeError, GradientError, ShapeError
from tensorcore.ops.kinds import method
from tensorcore.tape.engine import key_of, walk
from tensorcore.tape.mode import set_grad_enabled
from tensorcore.tape.node import is_leaf
from tensorcore.tensor import Tensor, new_tensor

__all__ = ["backward", "grad"]


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Add the derivatives of ``tensors`` to the ``grad`` of the leaves they were computed from.

    Args:
        tensors: one tensor or several; each of one element, or with its gradient in ``grad_tensors``.
        grad_tensors: the gradients that arrive at ``tensors``, of their shapes.
        retain_graph: keep the saved values for another walk; ``create_graph`` where None.
        create_graph: record the walk, for derivatives of derivatives.
        inputs: add up gradients only here (leaves or not) instead of in every leaf.
    """
    roots = _roots("backward", tensors, grad_tensors)
    retain = create_graph if retain_graph is None else retain_graph
    if inputs is None:
        walk(roots, retain=retain, create=create_graph)
        return
    inputs = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    if not inputs:
        raise GradientError("backward: 'inputs' argument to backward() cannot be empty, got []; leave it out for all leaves")
    targets = {key_of(_edge("backward", one)): one for one in inputs}
    found = walk(roots, retain=retain, create=create_graph, targets=set(targets))
    for key, g in found.items():
        tensor = targets[key]
        if is_leaf(key):
            with set_grad_enabled(create_graph):
                key.op.backward(key, g)
        else:
            tensor.grad = g if tensor.grad is None else tensor.grad + g


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:
    """The sum of gradients of ``outputs`` with respect to each of ``inputs``.

    Args:
        allow_unused: give None for an input that was not used, instead of raising.
        materialize_grads: give zeros for it.
    """
    if is_grads_batched:
        raise NotImplementedError("grad: expected is_grads_batched=False, got True; map over the gradients in a loop")
    roots = _roots("grad", outputs, grad_outputs)
    inputs = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    retain = create_graph if retain_graph is None else retain_graph
    if allow_unused is None:
        allow_unused = materialize_grads
    keys = [key_of(_edge("grad", one)) for one in inputs]
    found = walk(roots, retain=retain, create=create_graph, targets=set(keys))
    results = []
    for key, tensor in zip(keys, inputs, strict=True):
        g = found.get(key)
        if g is None and materialize_grads:
            g = new_tensor(tensor.device.kernels["full"](tuple(tensor.native.shape), 0, dtype=tensor.dtype), tensor.dtype, tensor.device)
        if g is None and not allow_unused:
            raise GradientError(
                "grad: One of the differentiated Tensors appears to not have been used in the graph, got no gradient "
                "for it; set allow_unused=True if this is the desired behavior"
            )
        results.append(g)
    return tuple(results)


def _edge(op: str, tensor: Tensor) -> Any:
    if not isinstance(tensor, Tensor):
        raise ArgumentTypeError(f"{op}: expected tensors, got {tensor!r}; pass the tensors to differentiate by")
    if tensor.node is None:
        raise GradientError(f"{op}: One of the differentiated Tensors does not require grad; call requires_grad_() on it")
    return tensor.node


def _roots(op: str, tensors: Any, grads: Any) -> list[tuple[Any, Tensor]]:
    tensors = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    grads = [grads] if isinstance(grads, Tensor) or grads is None else list(grads)
    if len(grads) == 1 and grads[0] is None:
        grads = grads * len(tensors)
    if len(grads) != len(tensors):
        raise GradientError(
            f"{op}: expected one gradient for each of {len(tensors)} tensors, got {len(grads)}; pass None where it is 1"
        )
    roots = []
    for tensor, g in zip(tensors, grads, strict=True):
        if not isinstance(tensor, Tensor):
            raise ArgumentTypeError(f"{op}: expected tensors, got {tensor!r}; pass the result of tensor operations")
        if tensor.node is None:
            raise GradientError(
                f"{op}: element 0 of tensors does not require grad and does not have a grad_fn, got a constant; "
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
            g = new_tensor(native, tensor.dtype, tensor.device)
        elif tuple(g.native.shape) != shape:
            raise ShapeError(
                f"{op}: Mismatch in shape: grad_output[0] has a shape of {list(g.shape)} and output[0] has a shape of "
                f"{list(shape)}; pass a gradient of the output's shape"
            )
        elif g.dtype is not tensor.dtype and g.dtype.is_complex != tensor.dtype.is_complex:
            raise DtypeError(
                f"{op}: For complex Tensors, both grad_output and output are required to have the same dtype, got "
                f"{g.dtype} and {tensor.dtype}; convert the gradient with .to(...)"
            )
        roots.append((tensor.node, g))
    return roots


def _backward(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Add the derivatives of this tensor to the ``grad`` of the leaves it was computed from."""
    backward(self, gradient, retain_graph, create_graph, inputs)


method(_backward, "backward")
