"""Whole derivatives: ``jacrev`` row by row, ``jacfwd`` column by column, and ``hessian`` as one of the other."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tensorcore.errors import ArgumentError, GradientError
from tensorcore.func.transforms import Linearized, Pullback, chosen
from tensorcore.func.trees import tree_unflatten
from tensorcore.func.vmapping import vmap
from tensorcore.ops.creation.grids import eye
from tensorcore.ops.shapes.join import cat
from tensorcore.tensor import Tensor

__all__ = ["hessian", "jacfwd", "jacrev", "unit_directions"]

Function = Callable[..., Any]


def jacrev(
    func: Function,
    argnums: int | tuple[int, ...] = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Function:
    """The function that gives the Jacobian of ``func`` by one backward walk for all rows together.

    Args:
        func: returns a tensor or a tree of them, with ``has_aux`` a pair of that and of whatever else.
        argnums: which arguments to differentiate by.
        chunk_size: how many rows are computed at once, all where None.

    Returns:
        A function of the same arguments. Its result has the structure of the output, with that of the arguments in
        the place of each tensor; a Jacobian has the shape of the result followed by that of the argument.
    """
    if chunk_size is not None and chunk_size <= 0:
        raise ArgumentError(
            f"jacrev: `chunk_size` should be greater than 0, got {chunk_size}; leave it out for all rows"
        )

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        primals, spec, rebuilt = chosen("jacrev", args, argnums)
        pull = Pullback("jacrev", lambda *given: func(*given, **kwargs), primals, rebuilt, has_aux)
        rows = unit_directions(pull.flat)
        sizes = [one.numel() for one in pull.flat]
        run = vmap(lambda *cotangents: tuple(pull(list(cotangents))), chunk_size=chunk_size)
        grads = run(*rows) if sum(sizes) else [one.new_zeros((0, *one.shape)) for one in pull.trace.primals]
        parts = [g.split(sizes, 0) for g in grads]
        made = []
        for i, one in enumerate(pull.flat):
            mine = [g[i].reshape((*one.shape, *g[i].shape[1:])) for g in parts]
            made.append(tree_unflatten(mine, spec))
        found = tree_unflatten(made, pull.spec)
        return (found, pull.aux) if has_aux else found

    return wrapper


def jacfwd(
    func: Function,
    argnums: int | tuple[int, ...] = 0,
    has_aux: bool = False,
    *,
    randomness: str = "error",
) -> Function:
    """The function that gives the Jacobian of ``func`` by one forward walk for all columns together.

    Args:
        randomness: accepted: the function itself runs once, so that all columns see the same random numbers.

    The others, and the result, are those of :func:`jacrev`.
    """

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        primals, spec, rebuilt = chosen("jacfwd", args, argnums)
        line = Linearized("jacfwd", lambda *given: func(*given, **kwargs), primals, rebuilt, has_aux)
        sizes = [one.numel() for one in line.trace.primals]
        run = vmap(lambda *tangents: tuple(line(tangents)), out_dims=-1, randomness="same")
        if sum(sizes):
            columns = run(*unit_directions(line.trace.primals))
        else:
            columns = [one.new_zeros((*one.shape, 0)) for one in line.flat]
        made = []
        for column in columns:
            parts = column.split(sizes, -1)
            mine = [
                part.reshape((*part.shape[:-1], *one.shape))
                for part, one in zip(parts, line.trace.primals, strict=True)
            ]
            made.append(tree_unflatten(mine, spec))
        found = tree_unflatten(made, line.spec)
        return (found, line.aux) if has_aux else found

    return wrapper


def hessian(func: Function, argnums: int | tuple[int, ...] = 0) -> Function:
    """The function that gives the matrix of second derivatives of ``func``: forward mode over reverse mode."""
    return jacfwd(jacrev(func, argnums), argnums)


def unit_directions(tensors: list[Tensor]) -> list[Tensor]:
    """For each tensor its part of the directions that change one element each, those of all tensors after one another."""
    sizes = [one.numel() for one in tensors]
    total, start, found = sum(sizes), 0, []
    for one, size in zip(tensors, sizes, strict=True):
        if one.dtype.kind not in ("floating", "complex"):
            raise GradientError(f"jacobian: expected floating tensors, got {one.dtype}; convert it with .float()")
        rows = eye(size, dtype=one.dtype, device=one.device)
        blank = [one.new_zeros((count, size)) for count in (start, total - start - size) if count]  # type: ignore[attr-defined]
        parts = [*blank[:1], rows, *blank[1:]] if start else [rows, *blank]
        found.append((cat(parts) if blank else rows).reshape((total, *one.shape)))
        start += size
    return found
