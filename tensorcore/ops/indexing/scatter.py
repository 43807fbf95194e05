"""Reading and writing at the places that an index of the result's shape names along a dim."""

from __future__ import annotations

from math import prod
from typing import Any

from tensorcore import dtypes
from tensorcore.errors import ArgumentTypeError, ShapeError, UnsupportedDtype
from tensorcore.ops import rules
from tensorcore.ops.define import Op
from tensorcore.ops.indexing.index import nothing, number_of
from tensorcore.ops.indexing.parse import check_places, check_scattered, long
from tensorcore.ops.indexing.scatter_gradients import REDUCED, padded
from tensorcore.ops.indexing.writing import both, call, picked, renamed, same_dtype, scalar
from tensorcore.ops.kinds import BOOL, COMPLEX, FLOATING, INTEGER, operation
from tensorcore.ops.operands import check_tensors
from tensorcore.ops.output import store
from tensorcore.ops.samples import index as samples
from tensorcore.shortcuts import before
from tensorcore.tape.node import add_into
from tensorcore.tensor import Tensor, new_tensor

__all__ = ["gather", "scatter", "scatter_add", "scatter_reduce", "take_along_dim"]

# Primitives. An index is an input without a formula: it is saved, and checked for writes, like any other.

_gather = Op("gather", "input index", "Elements at an index along a dim.", register=False,
             grads=dict(input=lambda g, input_shape, index, dim, arrived: scatter_add(nothing(g, input_shape), dim, index, g)
                        if arrived is None else add_into(arrived, "scatter_reduce", index, g, dim=dim, reduce="sum")))  # fmt: skip
_scatter = Op(
    "scatter", "input index src", "Elements written at an index along a dim.", register=False,
    grads=dict(input=lambda g, index, dim: scatter(g, dim, index, 0), src=lambda g, index, dim, src_shape: padded(
        gather(g, dim, index), src_shape)),
)  # fmt: skip
_scatter_add = Op(
    "scatter_add", "input index src", "Elements added at an index along a dim.", kernel="scatter_reduce", register=False,
    grads=dict(input=lambda g: g, src=lambda g, index, dim, src_shape: padded(gather(g, dim, index), src_shape)),
)  # fmt: skip
_scatter_reduce = Op(
    "scatter_reduce", "input index src", "Elements combined at an index along a dim.", register=False,
    grads=REDUCED,
)  # fmt: skip
_scatter_value = renamed(_scatter, 1)


# How they are called

_MEANS = INTEGER | FLOATING
_KNOWN = {
    "sum": BOOL | COMPLEX | _MEANS, "prod": BOOL | COMPLEX | _MEANS, "mean": COMPLEX | _MEANS,
    "amax": BOOL | _MEANS, "amin": BOOL | _MEANS,
}  # fmt: skip


@before("usual_places", dtypes.int64)
def _usual(input: Any, dim: Any, index: Any, src: Any) -> int:
    """``dim`` from the front where a call meets every rule of ``gather`` (of ``input`` alone) or ``scatter``; else -1.

    In the place of five functions that look at one rule each, and know what to say.
    """
    if (
        type(input) is not Tensor
        or type(index) is not Tensor
        or type(src) is not Tensor
        or type(dim) is not int
        or index.dtype is not dtypes.int64
        or src.dtype is not input.dtype
        or src.device is not input.device
        or index.device is not input.device
    ):
        return -1
    shape, places, have = input.native.shape, index.native.shape, src.native.shape
    ndim = len(shape)
    if len(places) != ndim or len(have) != ndim or not -ndim <= dim < ndim:
        return -1
    at = dim % ndim
    same = src is input
    if places == shape and (same or have == shape) and 0 not in shape:
        return at
    for i, size in enumerate(places):
        if not size or (i != at and size > shape[i]) or (not same and size > have[i]):
            return -1
    return at


# Along a dim, at an index of the result's shape


@operation(samples=samples.gather)
def gather(input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False, out: Tensor | None = None) -> Tensor:
    """``input[index[i, j], j]`` for ``dim`` 0, and so on: the elements at ``index`` along ``dim``, in the index's shape."""
    at = _usual(input, dim, index, input)
    if at >= 0:
        made = picked(_gather, input, index, at, out)
        if made is not None:
            return made
    if type(input) is not Tensor:
        check_tensors("gather", input=input)
    index = long("gather", index, empty=True)
    at = check_places("gather", input, index, None, dim)
    if not index.numel():  # of any shape, along whichever dim
        input, at = input.reshape(-1)[:0].reshape(index.native.shape), 0  # type: ignore[attr-defined]
    made = call(_gather, (input, index), {"dim": at}, ShapeError, False)
    return made if out is None else store("gather", made, out, input, index, all_of_it=True)


@operation(samples=samples.take_along_dim)
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None, *, out: Tensor | None = None) -> Tensor:
    """``gather`` with an index that broadcasts with the input; of all elements in a row without ``dim``."""
    if type(input) is not Tensor:
        check_tensors("take_along_dim", input=input)
    long("take_along_dim", indices, names=("int64",))
    if dim is None:
        made = gather(input.reshape(-1), 0, indices.reshape(-1))  # type: ignore[attr-defined]
        return made if out is None else store("take_along_dim", made, out)
    if input.ndim != indices.ndim:
        raise ShapeError(
            f"take_along_dim: torch.take_along_dim(): input and indices should have the same "
            f"number of dimensions, but got "
            f"{input.ndim} dimensions for input, and {indices.ndim} dimensions for indices; unsqueeze one"
        )
    at = rules.wrap_dim("take_along_dim", dim, input.ndim)
    shape, places = tuple(input.native.shape), tuple(indices.native.shape)
    common = rules.broadcast("take_along_dim", (*shape[:at], 1, *shape[at + 1 :]), (*places[:at], 1, *places[at + 1 :]))
    if prod(places):
        indices = (indices + shape[at]).where(indices < 0, indices)  # type: ignore[operator]
    wide, wanted = (*common[:at], shape[at], *common[at + 1 :]), (*common[:at], places[at], *common[at + 1 :])
    made = gather(
        input if wide == shape else input.expand(wide),  # type: ignore[attr-defined]
        at,
        indices if wanted == places else indices.expand(wanted),  # type: ignore[attr-defined]
    )
    return made if out is None else store("take_along_dim", made, out)


@both("scatter")
def scatter(name: str, write: bool, input: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None,
            reduce: str | None = None) -> Tensor:  # fmt: skip
    """``input`` with ``src[i, j]`` (or one number) written at ``[index[i, j], j]`` for ``dim`` 0, and so on.

    Args:
        reduce: ``"add"`` or ``"multiply"`` with what is there, instead of replacing it.
    """
    if src is None:
        src = value
    at = _usual(input, dim, index, src) if reduce is None else -1
    if at >= 0:
        return call(_scatter, (input, index, src), {"dim": at}, ShapeError, write)
    given = isinstance(src, Tensor)
    if not given and reduce is None and (at := _usual(input, dim, index, input)) >= 0:
        if type(src) is float or type(src) is int:
            src = number_of(input, src, tuple(index.native.shape))
        else:
            src = scalar(name, input, src)
            src = new_tensor(src.device.kernels["expand"](src.native, shape=index.native.shape), src.dtype, src.device)
        return call(_scatter_value, (input, index, src), {"dim": at}, ShapeError, write)
    index = long(name, index, empty=True)
    if given:
        same_dtype(name, input, src, "src")
        at, index, src = check_scattered(name, input, index, src, dim)
    else:
        src = scalar(name, input, src)
        at, index, _ = check_scattered(name, input, index, None, dim)
        src = src.expand(index.native.shape)  # type: ignore[attr-defined]
    if reduce is None:
        return call(_scatter if given else _scatter_value, (input, index, src), {"dim": at}, ShapeError, write)
    if reduce not in ("add", "multiply"):
        raise ShapeError(f"{name}: reduce argument must be either add or multiply, got {reduce!r}; pass one of those")
    options = {"dim": at, "reduce": {"add": "sum", "multiply": "prod"}[reduce], "include_self": True}
    return call(_scatter_reduce, (input, index, src), options, ShapeError, write)


@both("scatter_add")
def scatter_add(name: str, write: bool, input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """``input`` with ``src[i, j]`` added at ``[index[i, j], j]`` for ``dim`` 0, and so on; equal indices all count."""
    at = _usual(input, dim, index, src)
    if at >= 0:
        return call(_scatter_add, (input, index, src), {"dim": at}, ShapeError, write)
    index = long(name, index, empty=True)
    if not isinstance(src, Tensor):
        raise ArgumentTypeError(f"{name}: expected src to be a Tensor, got {src!r}; use scatter(..., reduce='add')")
    same_dtype(name, input, src, "src")
    at, index, src = check_scattered(name, input, index, src, dim)
    return call(_scatter_add, (input, index, src), {"dim": at}, ShapeError, write)


@both("scatter_reduce")
def scatter_reduce(name: str, write: bool, input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *,
                   include_self: bool = True) -> Tensor:  # fmt: skip
    """``input`` combined with ``src[i, j]`` at ``[index[i, j], j]`` for ``dim`` 0, and so on.

    Args:
        reduce: ``sum``, ``prod``, ``mean``, ``amax`` or ``amin``.
        include_self: whether what is in ``input`` counts in places that ``index`` names.
    """
    complete = input.dtype.is_complex and (
        input.node is not None or src.node is not None
    )  # which has something to say then
    if reduce in _KNOWN and input.dtype in _KNOWN[reduce] and not complete:
        at = _usual(input, dim, index, src)
        if at >= 0:
            options = {"dim": at, "reduce": reduce, "include_self": include_self}
            return call(_scatter_reduce, (input, index, src), options, ShapeError, write)
    index = long(name, index, empty=True)
    if reduce not in ("sum", "prod", "mean", "amax", "amin"):
        raise ShapeError(
            f"{name}: reduce argument must be either sum, prod, mean, amax or amin, got {reduce}; pass one of those"
        )
    if not isinstance(src, Tensor):
        raise ArgumentTypeError(f"{name}: expected src to be a Tensor, got {src!r}; wrap it in torch.tensor(...)")
    same_dtype(name, input, src, "src")
    if (reduce == "mean" and input.dtype is dtypes.bool_) or (reduce in ("amax", "amin") and input.dtype.is_complex):
        raise UnsupportedDtype(
            f'{name}: "{reduce}" not implemented for {input.dtype.name}, got tensors of it; use another reduce'
        )
    at, index, src = check_scattered(name, input, index, src, dim)
    options = {"dim": at, "reduce": reduce, "include_self": include_self}
    return call(_scatter_reduce, (input, index, src), options, ShapeError, write)
