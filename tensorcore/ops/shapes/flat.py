"""Views of all elements in fewer or more dims: flatten, ravel, unflatten and atleast."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from tensorcore.errors import ArgumentTypeError, ShapeError
from tensorcore.ops import rules
from tensorcore.ops.kinds import operation
from tensorcore.ops.operands import check_tensors
from tensorcore.ops.samples import index as samples
from tensorcore.ops.shapes.shape import _show_view, _view, reshape, unsqueeze, view
from tensorcore.shortcuts import before
from tensorcore.tensor import Tensor

__all__ = ["atleast_1d", "atleast_2d", "atleast_3d", "flatten", "ravel", "unflatten"]


def _in_a_row(input: Tensor, count: int) -> Tensor | None:
    """All ``count`` elements in one dim, where they lie so."""
    native = input.device.kernels["view"](input.native, shape=(count,))
    return None if native is None else _view.view(input, {"shape": (count,)}, native)  # type: ignore[attr-defined]


@operation(samples=samples.flatten)
@before("flattened", _show_view, _view.kernel, False)
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """The dims from ``start_dim`` to ``end_dim`` as one; a tensor of no dims becomes one of a single element."""
    if type(input) is not Tensor:
        check_tensors("flatten", input=input)
    shape = input.native.shape
    if start_dim == 0 and end_dim == -1 and len(shape) != 1 and type(start_dim) is int is type(end_dim):
        made = _in_a_row(input, prod(shape))
        if made is not None:
            return made
    start = rules.wrap_dim("flatten", start_dim, len(shape))
    end = rules.wrap_dim("flatten", end_dim, len(shape))
    if start > end:
        raise ShapeError(
            f"flatten: flatten() has invalid args: start_dim cannot come after end_dim, got {start_dim} and {end_dim}"
        )
    if start == end and shape:
        return input
    return reshape(input, (*shape[:start], prod(shape[start : end + 1]), *shape[end + 1 :]))


@operation(samples=samples.unary)
@before("flattened", _show_view, _view.kernel, True)
def ravel(input: Tensor) -> Tensor:
    """The elements side by side in one dim: a view where they lie so, else a copy."""
    if type(input) is not Tensor:
        check_tensors("ravel", input=input)
    if not input.device.is_contiguous(input.native):
        input = input.contiguous()  # type: ignore[attr-defined]
    made = _in_a_row(input, prod(input.native.shape))
    return reshape(input, -1 if 0 not in input.native.shape else 0) if made is None else made


@operation(samples=samples.unflatten)
def unflatten(input: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    """One dim as several, of ``sizes``; one of them may be -1."""
    if type(input) is not Tensor:
        check_tensors("unflatten", input=input)
    shape = input.native.shape
    if not shape:
        raise ShapeError(
            "unflatten: Dimension specified as 0 but tensor has no dimensions, got a 0-d tensor; use reshape"
        )
    at = rules.wrap_dim("unflatten", dim, len(shape))
    if not len(sizes):
        raise ShapeError("unflatten: sizes must be non-empty, got (); give at least one size")
    full = rules.infer_size("unflatten", rules.as_shape("unflatten", (sizes,)), shape[at])
    sizes = (*shape[:at], *full, *shape[at + 1 :])
    native = input.device.kernels["view"](input.native, shape=sizes)
    return view(input, sizes) if native is None else _view.view(input, {"shape": sizes}, native)  # type: ignore[attr-defined]


_MISSING = {(1, 2): (0,), (1, 3): (0, 2), (2, 3): (2,)}  # the new dims of one of the first as one of the second


def grown(one: Tensor, n: int) -> Tensor:
    """A tensor with as many dims of size 1 as it lacks to have ``n``, where PyTorch puts them."""
    if not isinstance(one, Tensor):
        raise ArgumentTypeError(f"atleast_{n}d: expected tensors, got {one!r}; wrap it in torch.tensor(...)")
    ndim = len(one.native.shape)
    if ndim >= n:
        return one
    if not ndim:
        return reshape(one, (1,) * n)
    for dim in _MISSING[ndim, n]:
        one = unsqueeze(one, dim)
    return one


def _at_least(n: int, doc: str) -> Any:
    def call(*tensors: Any) -> Any:
        if len(tensors) == 1 and isinstance(tensors[0], Tensor):
            return grown(tensors[0], n)
        if len(tensors) == 1:
            if not isinstance(tensors[0], (tuple, list)):
                check_tensors(f"atleast_{n}d", tensors=tensors[0])
            tensors = tuple(tensors[0])
        return tuple([grown(one, n) for one in tensors])

    call.__name__ = call.__qualname__ = f"atleast_{n}d"
    call.__doc__ = doc
    return operation(method=False, samples=samples.few_dims)(call)


atleast_1d = _at_least(1, "Tensors of no dims as vectors of one element; others as they are.")
atleast_2d = _at_least(2, "Tensors of fewer than two dims with dims of size 1 in front.")
atleast_3d = _at_least(3, "Tensors of fewer than three dims with dims of size 1 around.")
