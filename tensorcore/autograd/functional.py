"""Derivatives of a function at given inputs: Jacobians, Hessians, and their products with vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorcore.autograd.tangents import record_alias
from tensorcore.autograd.walks import grad, stack
from tensorcore.errors import ArgumentTypeError, GradientError, ShapeError
from tensorcore.tape.mode import enable_grad
from tensorcore.tensor import Tensor, new_tensor

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

Function = Callable[..., Any]
Tensors = tuple[Tensor, ...]


def vjp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """The results of ``func(*inputs)``, and the product of the vector ``v`` with its Jacobian.

    Args:
        inputs: a tensor or a tuple of them.
        v: as the results; may be left out for one result of one element.
        create_graph: keep both on the tape.
        strict: raise where a result does not depend on an input, instead of giving zeros.
    """
    with enable_grad():
        several, given = _inputs("vjp", inputs)
        given = _prepared(given, create_graph)
        several_out, outputs = _outputs("vjp", func(*given))
        _depends(outputs, strict)
        if v is None:
            if len(outputs) != 1 or outputs[0].numel() != 1:
                raise GradientError(
                    "vjp: The vector v can only be None if the user-provided function returns a single Tensor with a "
                    "single element, got another result; pass v"
                )
            vector: Tensors = (_filled(outputs[0], 1),)
        else:
            vector = _vector("vjp", v, outputs)
        found = _grads(outputs, given, vector, create_graph)
        product = _filled_in(found, given, strict, create_graph, "back")
    return _plain(outputs, several_out, create_graph), _plain(product, several, create_graph)


def jvp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """The results of ``func(*inputs)``, and the product of its Jacobian with the vector ``v``.

    Args:
        v: as the inputs; may be left out for one input of one element.

    The others are those of :func:`vjp`.
    """
    with enable_grad():
        _, given = _inputs("jvp", inputs)
        given = _prepared(given, create_graph)
        vector = _vector_of_inputs("jvp", v, given)
        several_out, outputs = _outputs("jvp", func(*given))
        _depends(outputs, strict)
        # The gradient is linear in what comes in: its own derivative by that is the product.
        blank = tuple([_filled(one, 0).requires_grad_() for one in outputs])
        first = _grads(outputs, given, blank, True)
        _filled_in(first, given, strict, True, "back")
        recorded = [(g, one) for g, one in zip(first, vector, strict=True) if g is not None and g.node is not None]
        found = (
            _grads(tuple([g for g, _ in recorded]), blank, tuple([one for _, one in recorded]), create_graph)
            if recorded
            else (None,) * len(blank)
        )
        product = _filled_in(found, outputs, strict, create_graph, "forward")
    return _plain(outputs, several_out, create_graph), _plain(product, several_out, create_graph)


def jacobian(
    func: Function,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The Jacobian of ``func`` at ``inputs``: for each result and each input a tensor of both their shapes.

    Args:
        create_graph: keep it on the tape.
        strict: raise where a result does not depend on an input, instead of giving zeros.
        vectorize: compute all rows (or columns) at once, by vmap.
        strategy: ``reverse-mode`` or ``forward-mode``, which needs ``vectorize``.
    """
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            f"jacobian: Expected strategy to be either 'forward-mode' or 'reverse-mode', got {strategy!r}. If your function "
            f"has more outputs than inputs, 'forward-mode' tends to be faster"
        )
    if strict and vectorize:
        raise GradientError(
            "jacobian: `strict=True` and `vectorized=True` are not supported together, got both. Please either set "
            "`strict=False` or `vectorize=False`."
        )
    if strategy == "forward-mode":
        if strict:
            raise GradientError(
                "jacobian: `strict=True` and `strategy='forward-mode'` are not supported together, got both"
            )
        if not vectorize:
            raise NotImplementedError(
                "jacobian: Computing Jacobian using forward-AD or forward-over-reverse Hessian is only implemented for "
                "`vectorize=True`, got False"
            )
        return _forward_jacobian(func, inputs, create_graph)
    with enable_grad():
        several, given = _inputs("jacobian", inputs)
        given = _prepared(given, create_graph)
        several_out, outputs = _outputs("jacobian", func(*given))
        _depends(outputs, strict)
        found = [_rows(i, one, given, create_graph, strict, vectorize) for i, one in enumerate(outputs)]
    found = [tuple([_off_tape(one) for one in each]) for each in found] if not create_graph else found
    made = [each if several else each[0] for each in found]
    return tuple(made) if several_out else made[0]


def _rows(i: int, output: Tensor, given: Tensors, create: bool, strict: bool, vectorize: bool) -> tuple[Tensor, ...]:
    """The Jacobian of one result, by all inputs."""
    shape, count = tuple(output.native.shape), output.numel()
    if output.node is None or not count:
        return tuple([one.new_zeros((*shape, *one.shape)) for one in given])
    if vectorize:
        from tensorcore.func.jacobians import unit_directions

        every = grad(
            (output,), given, unit_directions([output]), True, create, allow_unused=True, is_grads_batched=True
        )
        columns: list[Any] = [
            one.new_zeros((count, *one.shape)) if g is None else g for g, one in zip(every, given, strict=True)
        ]
    else:
        flat = output.reshape(-1)
        lists: list[list[Tensor]] = [[] for _ in given]
        for j in range(count):
            found = grad((flat[j],), given, None, True, create, allow_unused=True)
            for k, (g, one, rows) in enumerate(zip(found, given, lists, strict=True)):
                if strict and create and g is not None and g.node is None:
                    raise GradientError(
                        f"jacobian: The jacobian of the user-provided function is independent of input {k}. This is not "
                        f"allowed in strict mode when create_graph=True, got such an input"
                    )
                if strict and g is None:
                    raise GradientError(
                        f"jacobian: Output {i} of the user-provided function is independent of input {k}. This is not "
                        f"allowed in strict mode, got such an input"
                    )
                rows.append(_filled(one, 0) if g is None else g)
        columns = [stack(rows) for rows in lists]
    return tuple([one.reshape((*shape, *one.shape[1:])) for one in columns])


def _forward_jacobian(func: Function, inputs: Any, create: bool) -> Any:
    from tensorcore.func.jacobians import jacfwd

    several, given = _inputs("jacobian", inputs)
    given = _prepared(given, create)
    several_out = False

    def checked(*values: Tensor) -> Any:
        nonlocal several_out
        several_out, outputs = _outputs("jacobian", func(*values))
        return outputs

    with enable_grad():
        found = jacfwd(checked, tuple(range(len(given))))(*given)
    found = tuple([tuple([one if create else _off_tape(one) for one in each]) for each in found])
    made = [each if several else each[0] for each in found]
    return tuple(made) if several_out else made[0]


def hessian(
    func: Function,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The second derivatives of ``func``, whose result is one number: for each two inputs a tensor of both their shapes.

    Args:
        outer_jacobian_strategy: of the derivative of the derivative; the inner one is always ``reverse-mode``.

    The others are those of :func:`jacobian`.
    """
    several, given = _inputs("hessian", inputs)
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            f"hessian: Expected strategy to be either 'forward-mode' or 'reverse-mode', got {outer_jacobian_strategy!r}"
        )

    def single(*values: Tensor) -> Tensor:
        return _single("hessian", func(*values), strict)

    def first(*values: Tensor) -> Any:
        if outer_jacobian_strategy == "forward-mode":
            values = tuple([one if one.requires_grad else one.detach().requires_grad_() for one in values])
        made = jacobian(single, values, create_graph=True)
        if strict:
            _check_jacobian("hessian", made)
        return made

    found = jacobian(
        first, given, create_graph=create_graph, strict=strict, vectorize=vectorize, strategy=outer_jacobian_strategy
    )
    return found if several else found[0][0]


def vhp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """The result of ``func(*inputs)``, one number, and the product of the vector ``v`` with its Hessian.

    The arguments are those of :func:`jvp`. Half the price of :func:`hvp`, and equal to it where the Hessian is symmetric.
    """
    with enable_grad():
        several, given = _inputs("vhp", inputs)
        given = _prepared(given, create_graph)
        vector = _vector_of_inputs("vhp", v, given)
        output = _single("vhp", func(*given), strict)
        first = _filled_in(_grads((output,), given, None, True), given, strict, True, "back")
        if strict:
            _check_jacobian("vhp", first)
        found = _grads(first, given, vector, create_graph)
        product = _filled_in(found, given, strict, create_graph, "double")
    return _plain((output,), False, create_graph), _plain(product, several, create_graph)


def hvp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """The result of ``func(*inputs)``, one number, and the product of its Hessian with the vector ``v``.

    The arguments are those of :func:`jvp`.
    """
    with enable_grad():
        several, given = _inputs("hvp", inputs)
        given = _prepared(given, create_graph)
        vector = _vector_of_inputs("hvp", v, given)
        output = _single("hvp", func(*given), strict)
        first = _filled_in(_grads((output,), given, None, True), given, strict, True, "back")
        if strict:
            _check_jacobian("hvp", first)
        blank = tuple([_filled(one, 0).requires_grad_() for one in given])
        second = _grads(first, given, blank, True)
        recorded = [(g, one) for g, one in zip(second, vector, strict=True) if g is not None and g.node is not None]
        found = (
            _grads(tuple([g for g, _ in recorded]), blank, tuple([one for _, one in recorded]), create_graph)
            if recorded
            else (None,) * len(blank)
        )
        product = _filled_in(found, given, strict, create_graph, "double")
    return _plain((output,), False, create_graph), _plain(product, several, create_graph)


# Arguments and results


def _tuple(name: str, what: str, value: Any) -> tuple[bool, Tensors]:
    several = isinstance(value, tuple)
    found = value if several else (value,)
    for i, one in enumerate(found):
        if not isinstance(one, Tensor):
            if several:
                raise ArgumentTypeError(
                    f"{name}: The {what} given to {name} must be either a Tensor or a tuple of Tensors but the value at index "
                    f"{i} has type {type(one)}, got that; pass tensors"
                )
            raise ArgumentTypeError(
                f"{name}: The {what} given to {name} must be either a Tensor or a tuple of Tensors but the given {what} has "
                f"type {type(one)}, got that; pass tensors"
            )
    return several, found


def _inputs(name: str, inputs: Any) -> tuple[bool, Tensors]:
    several, found = _tuple(name, "inputs", inputs)
    if not found:
        raise IndexError(f"{name}: tuple index out of range, got no inputs; pass a tensor")
    return several, found


def _outputs(name: str, outputs: Any) -> tuple[bool, Tensors]:
    return _tuple(name, "outputs of the user-provided function", outputs)


def _prepared(inputs: Tensors, create: bool) -> Tensors:
    """The inputs to differentiate by: behind nodes of their own if the caller may differentiate further."""
    found = []
    for one in inputs:
        if create and one.requires_grad:
            found.append(record_alias(one))
        else:
            found.append(one.detach().requires_grad_())
    return tuple(found)


def _single(name: str, value: Any, strict: bool) -> Tensor:
    several, outputs = _outputs(name, value)
    _depends(outputs, strict)
    if several:
        raise GradientError(f"{name}: The function given to {name} should return a single Tensor, got a tuple")
    if outputs[0].numel() != 1:
        raise GradientError(
            f"{name}: The Tensor returned by the function given to {name} should contain a single element, got shape "
            f"{list(outputs[0].shape)}"
        )
    return outputs[0].squeeze()


def _vector(name: str, v: Any, like: Tensors) -> Tensors:
    _, vector = _tuple(name, "v", v)
    if len(vector) != len(like):
        raise GradientError(
            f"{name}: v is a tuple of invalid length: should be {len(like)} but got {len(vector)}; give one for each"
        )
    for i, (one, other) in enumerate(zip(vector, like, strict=True)):
        if tuple(one.native.shape) != tuple(other.native.shape):
            entry = f"Entry {i} in v" if len(like) > 1 else "v"
            raise ShapeError(
                f"{name}: {entry} has invalid size: should be {other.shape} but got {one.shape}; give it that shape"
            )
    return vector


def _vector_of_inputs(name: str, v: Any, given: Tensors) -> Tensors:
    if v is not None:
        return _vector(name, v, given)
    if len(given) != 1 or given[0].numel() != 1:
        raise GradientError(
            f"{name}: The vector v can only be None if the input to the user-provided function is a single Tensor with a "
            f"single element, got another one; pass v"
        )
    return (_filled(given[0], 1),)


def _depends(outputs: Tensors, strict: bool) -> None:
    for i, one in enumerate(outputs):
        if strict and one.node is None:
            raise GradientError(
                f"functional: Output {i} of the user-provided function does not require gradients. The outputs must be "
                f"computed in a differentiable manner from the input when running in strict mode, got a constant"
            )


def _check_jacobian(name: str, found: Any) -> None:
    for i, one in enumerate(found if isinstance(found, tuple) else (found,)):
        if one.node is None:
            raise GradientError(
                f"{name}: While computing the hessian, found that the jacobian of the user-provided function with respect to "
                f"input {i} is independent of the input. This is not allowed in strict mode, got such an input. You should "
                f"ensure that your function is twice differentiable and that the jacobian depends on the inputs (this would "
                f"be violated by a linear function for example)."
            )


def _grads(outputs: Tensors, inputs: Tensors, vector: Tensors | None, create: bool) -> tuple[Tensor | None, ...]:
    """The gradients of those outputs that have any."""
    weights = vector or (None,) * len(outputs)
    recorded = [(one, w) for one, w in zip(outputs, weights, strict=True) if one.node is not None]
    if not recorded:
        return (None,) * len(inputs)
    roots, given = [one for one, _ in recorded], [w for _, w in recorded]
    return grad(roots, inputs, given, True, create, allow_unused=True)  # type: ignore[no-any-return]


_MISSING = {
    "back": "The output of the user-provided function is independent of input {}",
    "forward": "The user-provided function has an output {} that is independent of the inputs",
    "double": "The hessian of the user-provided function is independent of input {}",
}


def _filled_in(
    found: tuple[Tensor | None, ...], like: Tensors, strict: bool, create: bool, stage: str
) -> tuple[Tensor, ...]:
    """Derivatives with zeros for those that are not there; in strict mode an error."""
    made = []
    for i, (one, other) in enumerate(zip(found, like, strict=True)):
        if strict and (one is None or (create and one.node is None and stage != "back")):
            raise GradientError(
                f"functional: {_MISSING[stage].format(i)}. This is not allowed in strict mode, got such a one; leave "
                f"strict=True out"
            )
        made.append(_filled(other, 0) if one is None else one)
    return tuple(made)


def _filled(tensor: Tensor, value: int) -> Tensor:
    native = tensor.device.kernels["full"](tuple(tensor.native.shape), value, dtype=tensor.dtype)
    return new_tensor(native, tensor.dtype, tensor.device)  # type: ignore[no-any-return]


def _off_tape(tensor: Tensor) -> Tensor:
    return tensor.detach() if tensor.node is not None else tensor


def _plain(tensors: Any, several: bool, create: bool) -> Any:
    made = tuple([one if create else _off_tape(one) for one in tensors])
    return made if several else made[0]
