"""Reading and writing the slices that a vector of indices names along a dim."""

from __future__ import annotations

from math import prod
from typing import Any

from tensorcore import dtypes
from tensorcore.errors import ArgumentTypeError, DimensionError, ShapeError
from tensorcore.ops import rules
from tensorcore.ops.define import Op
from tensorcore.ops.indexing.index import nothing
from tensorcore.ops.indexing.parse import long
from tensorcore.ops.indexing.scatter_gradients import REDUCED
from tensorcore.ops.indexing.writing import both, call, picked, renamed, same_dtype, scalar
from tensorcore.ops.kinds import operation
from tensorcore.ops.operands import check_tensors, plain
from tensorcore.ops.output import store
from tensorcore.ops.samples import index as samples
from tensorcore.tape.node import add_into
from tensorcore.tensor import Tensor

__all__ = ["index_add", "index_copy", "index_fill", "index_reduce", "index_select"]

_index_select = Op(
    "index_select", "input index", "Slices at indices along a dim.", register=False,
    grads=dict(input=lambda g, input_shape, index, dim, arrived: index_add(nothing(g, input_shape), dim, index, g)
               if arrived is None else add_into(arrived, "index_add", index, g, dim=dim)),
)  # fmt: skip
_index_add = Op(
    "index_add", "input index source", "Slices added at indices along a dim.", register=False,
    grads=dict(input=lambda g: g, source=lambda g, index, source_shape, dim, alpha: _times(
        _slices(g, dim, index, source_shape), alpha)),
)  # fmt: skip
_index_copy = Op(
    "index_copy", "input index source", "Slices written at indices along a dim.", register=False,
    grads=dict(input=lambda g, index, dim: index_fill(g, dim, index, 0),
               source=lambda g, index, source_shape, dim: _slices(g, dim, index, source_shape)),
)  # fmt: skip
_index_fill = Op(
    "index_fill", "input index value", "One value at indices along a dim.", register=False,
    grads=dict(input=lambda g, index, dim: index_fill(g, dim, index, 0),
               value=lambda g, index, dim: (g * index_fill(g.new_zeros(g.shape), dim, index, 1)).sum()),
)  # fmt: skip
_index_fill_tensor = renamed(_index_fill, 1)
_index_reduce = Op("index_reduce", "input index src", "Slices combined at indices along a dim.", kernel="scatter_reduce",
                   grads=REDUCED, register=False)  # fmt: skip


def _vector(op: str, index: Tensor) -> None:
    if len(index.native.shape) > 1:
        raise DimensionError(f"{op}: Index is supposed to be a vector, got {len(index.native.shape)} dims; flatten it")


@operation(samples=samples.index_select)
def index_select(input: Tensor, dim: int, index: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The slices at ``index``, a vector, along ``dim``, as a copy."""
    if type(input) is Tensor and type(index) is Tensor and index.dtype is dtypes.int64 and type(dim) is int:
        ndim = len(input.native.shape)
        if -ndim <= dim < ndim and len(index.native.shape) == 1 and input.device is index.device:
            made = picked(_index_select, input, index, dim % ndim, out)
            if made is not None:
                return made
    if type(input) is not Tensor:
        check_tensors("index_select", input=input)
    long("index_select", index)
    _vector("index_select", index)
    at = rules.wrap_dim("index_select", dim, len(input.native.shape))
    if not input.native.shape and index.numel() != 1:
        raise DimensionError(
            f"index_select: Index to scalar can have only 1 value, got {index.numel()} value(s); unsqueeze the input"
        )
    made = call(_index_select, (input, index), {"dim": at}, DimensionError, False)
    return made if out is None else store("index_select", made, out, input, index, all_of_it=True)


def _places(name: str, input: Tensor, dim: int, index: Tensor, source: Any, names: tuple[str, ...]) -> int:
    """The dim, counted from the front, along which slices of ``source`` fit at the places of an index of those dtypes."""
    if type(input) is type(index) is type(source) is Tensor and type(dim) is int:
        shape, places, have = input.native.shape, index.native.shape, source.native.shape
        ndim = len(shape)
        if (
            -ndim <= dim < ndim
            and len(places) == 1
            and index.dtype is dtypes.int64
            and source.dtype is input.dtype
            and len(have) == ndim
        ):
            at = dim % ndim
            if have[at] == places[0] and have[:at] == shape[:at] and have[at + 1 :] == shape[at + 1 :]:
                return at  # in the place of six functions that look at one rule each, and know what to say
    long(name, index, names=names)
    _vector(name, index)
    if not isinstance(source, Tensor):
        raise ArgumentTypeError(f"{name}: expected source to be a Tensor, got {source!r}; use index_fill")
    same_dtype(name, input, source, "source")
    at = rules.wrap_dim(name, dim, len(input.native.shape))
    check_source(name, input, at, index, source)
    return at


def check_source(name: str, input: Tensor, at: int, index: Tensor, source: Tensor) -> None:
    shape, have = input.native.shape, source.native.shape
    if len(have) > 1 or len(shape) > 1 or have:
        expected = (*shape[:at], index.numel(), *shape[at + 1 :])
        if tuple(have) != expected and not (len(shape) == 0 and prod(have) == 1):
            apart = not have or len(have) != len(shape) or have[at] != index.numel()
            kind = DimensionError if name.startswith("index_copy") and apart else ShapeError
            raise kind(
                f"{name}: expected source of shape {list(expected)} (Number of indices should be "
                f"equal to source.size(dim)), got "
                f"{list(have)}; give it that shape"
            )
    elif index.numel() != 1:
        raise ShapeError(f"{name}: expected a single index for a 0-d source, got {index.numel()}; unsqueeze the source")


@both("index_add")
def index_add(
    name: str, write: bool, input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1
) -> Tensor:
    """``input`` with the slices of ``alpha * source`` added at ``index``, a vector, along ``dim``; equal indices all count."""
    at = _places(name, input, dim, index, source, ("int64", "int32"))
    return call(_index_add, (input, index, source), {"dim": at, "alpha": plain(alpha)}, ShapeError, write)


@both("index_copy")
def index_copy(name: str, write: bool, input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """``input`` with the slices of ``source`` written at ``index``, a vector, along ``dim``."""
    at = _places(name, input, dim, index, source, ("int64",))
    return call(_index_copy, (input, index, source), {"dim": at}, DimensionError, write)


@both("index_fill")
def index_fill(name: str, write: bool, input: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """``input`` with one value (a number or a 0-d tensor) in the slices at ``index``, a vector, along ``dim``."""
    check_tensors(name, input=input, index=index)
    if index.dtype.name != "int64":
        raise DimensionError(
            f"{name}: index_fill_(): Expected dtype int64 for index, got {index!r}; convert it with .long()"
        )
    _vector(name, index)
    at = rules.wrap_dim(name, dim, len(input.native.shape))
    op = _index_fill_tensor if isinstance(value, Tensor) else _index_fill
    return call(op, (input, index, scalar(name, input, value)), {"dim": at}, DimensionError, write)


@both("index_reduce")
def index_reduce(name: str, write: bool, input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *,
                 include_self: bool = True) -> Tensor:  # fmt: skip
    """``input`` combined with the slices of ``source`` at ``index``: ``prod``, ``mean``, ``amax`` or ``amin``."""
    long(name, index)
    _vector(name, index)
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise ShapeError(
            f"{name}: reduce argument must be either prod, mean, amax or amin, got {reduce}; pass one of those"
        )
    same_dtype(name, input, source, "source")
    at = rules.wrap_dim(name, dim, len(input.native.shape))
    check_source(name, input, at, index, source)
    shape = [1] * max(len(source.native.shape), 1)
    shape[at] = -1
    places = index.reshape(shape[: len(source.native.shape)]).expand(source.native.shape)  # type: ignore[attr-defined]
    options = {"dim": at, "reduce": reduce, "include_self": include_self}
    return call(_index_reduce, (input, places, source), options, DimensionError, write)


# Parts of formulas


def _times(g: Tensor, alpha: Any) -> Tensor:
    return g if alpha == 1 else g * alpha


def _slices(g: Tensor, dim: int, index: Tensor, shape: tuple[int, ...]) -> Tensor:
    return index_select(g, dim, index).reshape(shape)
