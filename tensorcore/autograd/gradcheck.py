"""Derivatives checked against finite differences: ``gradcheck`` and ``gradgradcheck``."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tensorcore.autograd.differences import GradcheckError, host_of, name_of, outputs_of, reals, units_of
from tensorcore.autograd.walks import grad
from tensorcore.errors import ArgumentError
from tensorcore.ops.creation.create import from_numpy
from tensorcore.tape.mode import no_grad
from tensorcore.tensor import Tensor

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


def gradcheck(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Any],
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Whether the backward of ``func`` agrees with central differences, for every pair of input and output elements.

    A complex number counts as its real and its imaginary part, so the whole real Jacobian is compared.

    Args:
        func: takes ``inputs`` and returns a tensor or a tuple of them.
        inputs: those that require grad are checked; of double precision, or the differences drown in rounding.
        eps: the step of the differences.
        atol, rtol: the largest difference allowed, absolute and relative.
        raise_exception: raise GradcheckError with the two matrices; with False return False.
        nondet_tol: how far two backward walks over the same graph may differ.
        check_undefined_grad: whether a result whose gradient is missing must leave the others' gradients as they are.
        check_grad_dtypes: whether gradients must have their inputs' dtypes.
        fast_mode: accepted; every element is checked all the same.
        check_batched_grad: whether the gradients for many units at once, by vmap, equal those for each.
        check_forward_ad: whether the tangents of forward mode agree with the differences too.
        check_batched_forward_grad: whether the tangents in many directions at once, by vmap, equal those in each.
        masked: accepted; it concerns sparse tensors.

    Raises:
        GradcheckError: naming the function, the output, the input and both matrices.
        ArgumentError: if no input requires grad.
    """
    given = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    checked = [i for i, one in enumerate(given) if isinstance(one, Tensor) and one.requires_grad]
    if not checked:
        raise ArgumentError(
            "gradcheck: gradcheck expects at least one input tensor to require gradient, got none; call "
            "requires_grad_()"
        )
    for i in checked:
        if given[i].dtype.name not in ("float64", "complex128"):
            warnings.warn(
                f"Input #{i} requires gradient and is not a double precision floating point or complex. This check "
                "will "
                f"likely fail if all the inputs are not of double precision floating point or complex.",
                stacklevel=2,
            )
        if given[i].numel() and 0 in [
            step for step, size in zip(given[i].stride(), given[i].shape, strict=True) if size > 1
        ]:
            raise GradcheckError(
                f"gradcheck: expected inputs whose elements have memory of their own, got input {i} with strides "
                f"{given[i].stride()}; clone() it"
            )
    try:
        if check_backward_ad:
            _check(func, given, checked, eps, atol, rtol, nondet_tol, check_undefined_grad, check_grad_dtypes)
        if check_batched_grad or check_forward_ad or check_batched_forward_grad:
            from tensorcore.autograd import gradcheck_func as extra

            if check_batched_grad:
                extra.check_batched(func, _copies(given), checked)
            if check_forward_ad:
                extra.check_forward(func, _copies(given), checked, _numerical(func, given, checked, eps), rtol, atol)
            if check_batched_forward_grad:
                extra.check_batched_forward(func, _copies(given), checked)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Any],
    grad_outputs: Tensor | Sequence[Any] | None = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Whether the second derivatives of ``func`` agree with central differences of the first.

    Args:
        grad_outputs: the gradients at which the backward is differentiated; random ones where None.
        gen_non_contig_grad_outputs: make the random ones with strides other than row-major.
        check_fwd_over_rev: whether forward mode over the backward agrees with the differences too.
        check_rev_over_rev: with False, only that is checked.

    The others are those of ``gradcheck``.
    """
    given = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    if grad_outputs is None:
        random = np.random.default_rng(8)
        grads = [_random_like(one, random, gen_non_contig_grad_outputs) for one in _differentiable(func, given)]
    else:
        grads = [grad_outputs] if isinstance(grad_outputs, Tensor) else list(grad_outputs)
    count = len(given)
    wanted = [i for i, one in enumerate(given) if isinstance(one, Tensor) and one.requires_grad]

    def first(*both: Any) -> tuple[Tensor, ...]:
        values, weights = both[:count], both[count:]
        outputs = _differentiable(func, values)
        found = grad(outputs, [values[i] for i in wanted], list(weights), create_graph=True, allow_unused=True)
        return tuple([one for one in found if one is not None])

    return gradcheck(
        first, (*given, *grads), eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception, nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad, check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad, check_forward_ad=check_fwd_over_rev, check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode, masked=masked,
    )  # fmt: skip


def _check(
    func: Any,
    given: Any,
    checked: Any,
    eps: float,
    atol: float,
    rtol: float,
    nondet: float,
    undefined: bool,
    dtypes: bool,
) -> None:
    analytical = _analytical(func, given, checked, dtypes)
    again = _analytical(func, given, checked, dtypes)
    numerical = _numerical(func, given, checked, eps)
    for o, rows in enumerate(analytical):
        for k, i in enumerate(checked):
            mine, other, numbers = rows[k], again[o][k], numerical[o][k]
            if mine.size and np.abs(mine - other).max() > nondet:
                raise GradcheckError(
                    "gradcheck: Backward is not reentrant, i.e., running backward with same input and grad_output "
                    "multiple "
                    f"times gives different values, got a difference of {np.abs(mine - other).max():g} for output {o} "
                    "of "
                    f"{name_of(func)} with respect to input {i}; raise nondet_tol if that is expected"
                )
            if not np.allclose(mine, numbers, rtol=rtol, atol=atol):
                raise GradcheckError(
                    f"gradcheck: Jacobian mismatch for output {o} of {name_of(func)} with respect to input {i},\n"
                    f"numerical:\n{numbers}\nanalytical:\n{mine}\n(rows are elements of the input, columns of the "
                    "output; a "
                    f"complex number takes two); correct the backward"
                )
    if undefined and len(analytical) > 1:
        _check_undefined(func, given, checked)


def _analytical(func: Any, given: Any, checked: list[int], dtypes: bool) -> list[list[np.ndarray]]:
    """For each output and input the real Jacobian from the backward, one walk for each element of the output."""
    values = _copies(given)
    outputs = outputs_of(func, values)
    targets = [values[i] for i in checked]
    result = []
    for output in outputs:
        columns: list[list[np.ndarray]] = [[] for _ in targets]
        for unit in units_of(output):
            if output.requires_grad:
                found = grad(output, targets, unit, retain_graph=True, allow_unused=True)
            else:
                found = (None,) * len(targets)
            for k, (g, target) in enumerate(zip(found, targets, strict=True)):
                if g is not None and dtypes and g.dtype is not target.dtype:
                    raise GradcheckError(
                        f"gradcheck: expected a gradient of {target.dtype} for input {checked[k]} of {name_of(func)}, "
                        f"got {g.dtype}; cast it in the backward"
                    )
                columns[k].append(reals(np.zeros(tuple(target.shape), target.dtype.numpy) if g is None else host_of(g)))
        sizes = [reals(host_of(target)).size for target in targets]
        result.append(
            [np.stack(each, 1) if each else np.zeros((size, 0)) for each, size in zip(columns, sizes, strict=True)]
        )
    return result


def _numerical(func: Any, given: Any, checked: list[int], eps: float) -> list[list[np.ndarray]]:
    """For each output and input the real Jacobian from central differences."""
    widths = [reals(host_of(one)).size for one in outputs_of(func, _copies(given))]
    count = len(widths)
    result: list[list[Any]] = [[] for _ in range(count)]
    for i in checked:
        rows: list[list[np.ndarray]] = [[] for _ in range(count)]
        host = host_of(given[i])
        parts = (1.0, 1.0j) if given[i].dtype.is_complex else (1.0,)
        for position in np.ndindex(host.shape):
            for part in parts:
                ends = []
                for step in (eps, -eps):
                    moved = host.copy()
                    moved[position] += step * part
                    values = list(_copies(given))
                    values[i] = _like(moved, given[i])
                    ends.append([reals(host_of(one)).astype(np.float64) for one in outputs_of(func, values)])
                for o, (high, low) in enumerate(zip(*ends, strict=True)):
                    rows[o].append((high - low) / (2 * eps))
        for o in range(count):
            result[o].append(rows[o])
    return [
        [np.stack(rows, 0) if rows else np.zeros((0, width)) for rows in per_input]
        for per_input, width in zip(result, widths, strict=True)
    ]


def _check_undefined(func: Any, given: Any, checked: list[int]) -> None:
    """A result that is left out of the backward must count as one whose gradient is zero."""
    values = _copies(given)
    outputs = _differentiable(func, values)
    targets = [values[i] for i in checked]
    for o, output in enumerate(outputs):
        one = _ones_like(output)
        alone = grad(output, targets, one, retain_graph=True, allow_unused=True)
        others = [_zeros_like(each) for each in outputs]
        others[o] = one
        together = grad(outputs, targets, others, retain_graph=True, allow_unused=True)
        for i, a, b in zip(checked, alone, together, strict=True):
            left = 0 if a is None else host_of(a)
            right = 0 if b is None else host_of(b)
            if not np.allclose(left, right, equal_nan=True):
                raise GradcheckError(
                    f"gradcheck: expected the same gradient of input {i} of {name_of(func)} whether the gradients of the "
                    "other "
                    f"outputs are undefined or zeros, got {left} and {right}; treat None as zeros in the backward"
                )


def _differentiable(func: Callable[..., Any], values: Sequence[Any]) -> list[Tensor]:
    return [one for one in outputs_of(func, values) if one.requires_grad]


def _copies(given: Any) -> tuple[Any, ...]:
    """The inputs with memory of their own, so that a function that writes to them does not spoil the next run."""
    return tuple([_like(host_of(one).copy(), one) if isinstance(one, Tensor) else one for one in given])


def _like(host: np.ndarray, tensor: Tensor) -> Tensor:
    """The values as a leaf of the dtype, device and strides of ``tensor``."""
    values = from_numpy(host).to(tensor.device)
    if not tensor.is_contiguous():
        made = tensor.new_empty_strided(tensor.shape, tensor.stride())
        with no_grad():
            made.copy_(values)
        values = made
    return values.requires_grad_() if tensor.requires_grad else values


def _random_like(output: Tensor, random: np.random.Generator, strided: bool) -> Tensor:
    shape = (*output.shape, 2) if strided else tuple(output.shape)
    host = random.standard_normal(shape)
    if output.dtype.is_complex:
        host = host + 1j * random.standard_normal(shape)
    made = from_numpy(np.asarray(host, output.dtype.numpy)).to(output.device)
    if strided:
        made = made.select(-1, 0)
    return made.requires_grad_()


def _ones_like(output: Tensor) -> Tensor:
    return from_numpy(np.ones(tuple(output.shape), output.dtype.numpy)).to(output.device)


def _zeros_like(output: Tensor) -> Tensor:
    return from_numpy(np.zeros(tuple(output.shape), output.dtype.numpy)).to(output.device)
