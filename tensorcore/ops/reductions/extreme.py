"""Extremes: the largest and the smallest elements, and where they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorcore import dtypes
from tensorcore.errors import DimensionError, DtypeError, ShapeError
from tensorcore.ops import rules, samples
from tensorcore.ops.calls import apply, apply_into
from tensorcore.ops.define import Op
from tensorcore.ops.kinds import FLOATING, REAL
from tensorcore.ops.operands import check_tensors
from tensorcore.ops.output import store
from tensorcore.ops.record import record
from tensorcore.ops.reductions.reduce import (
    Dims,
    applied,
    check_real,
    closure,
    dims_of,
    kept,
    over_dims,
    return_type,
    stored,
    way_along,
)  # fmt: skip
from tensorcore.ops.shortage import again
from tensorcore.shortcuts import before, place_way
from tensorcore.tape.mode import mode
from tensorcore.tensor import Tensor, new_tensor

__all__ = ["amax", "amin", "aminmax", "argmax", "argmin", "max", "min"]


def picking(op: Op, input: Tensor, options: dict[str, Any]) -> tuple[Tensor, Tensor]:
    """Run a kernel that picks elements and says where they are; the formulas of ``op`` know the places as ``at``."""
    try:
        native, places = input.device.kernels[op.kernel](input.native, **options)
    except MemoryError as error:
        native, places = again(input.device, op.kernel, (input.native,), options, error)
    values, at = new_tensor(native, input.dtype, input.device), new_tensor(places, dtypes.int64, input.device)
    if mode.enabled and input.node is not None:
        # The formulas see a tensor of their own: the values alone are an output of the node.
        record(op, (input,), options | {"at": new_tensor(places, dtypes.int64, input.device)}, values)
    return values, at


def values_and_places(
    title: str, answer: Callable[..., Any], op: Op, input: Tensor, options: dict[str, Any], out: Any, *inputs: Tensor
) -> Any:
    """The same as a named tuple, and in the two tensors of ``out`` where that is given, which share no memory with ``inputs``."""
    if out is not None:
        made = apply_into(op, (input,), options, (input.dtype, dtypes.int64), out)
    else:
        made = None if input.node is not None else apply(op, (input,), options, dtype=(input.dtype, dtypes.int64))
    return stored(title, answer(*picking(op, input, options)), out, *inputs) if made is None else answer(*made)


def put_back(g: Tensor, at: Tensor, dim: int, keepdim: bool, shape: tuple[int, ...], unique: bool = True) -> Tensor:
    """The gradient of picked elements: each in the place it was picked from."""
    if not shape:
        return g.reshape(())
    if not keepdim:
        g, at = g.unsqueeze(dim), at.unsqueeze(dim)
    return apply(_put_picked, (g, at), {"dim": dim, "size": shape[dim], "unique": unique})


_put_picked = Op("put_picked", "input at", "Zeros with elements put in along a dim.", register=False,
                grads=dict(input=lambda g, at, dim: apply(_pick, (g, at), {"dim": dim})))  # fmt: skip
_pick = Op(
    "pick", "input at", "Elements picked along a dim.", register=False,
    grads=dict(input=lambda g, at, dim, input_shape: apply(
        _put_picked, (g, at), {"dim": dim, "size": input_shape[dim] if input_shape else 1, "unique": False})),
)  # fmt: skip
ties = Op("ties", "input top", "The weight of each element in an extreme.", register=False)


def _extreme(g: Tensor, input: Tensor, out: Tensor, dim: Any, keepdim: bool, nan: bool) -> Tensor:
    """The gradient of an extreme: shared evenly among the elements that equal it."""
    weights = apply(ties, (input.detach(), out.detach()), {"dim": dim, "keepdim": keepdim, "nan": nan})
    return kept(g, tuple(input.native.shape), dim, keepdim) * weights


def ties_gradient(g: Tensor, input: Tensor, out: Tensor) -> Tensor:
    """The gradient of an element chosen among all: shared evenly among those that equal it, or among NaNs."""
    return _extreme(g, input, out, None, False, True)


def _extreme_op(name: str, kernel: str, nan: bool) -> Op:
    return Op(name, "input", "The extreme over dims.", kernel=kernel, register=False, grads=dict(
        input=lambda g, input, out, dim, keepdim: _extreme(g, input, out, dim, keepdim, nan)))  # fmt: skip


def _picked_op(name: str, kernel: str) -> Op:
    return Op(name, "input", "The extreme along a dim, and where it is.", kernel=kernel, register=False, grads=dict(
        input=lambda g, at, dim, keepdim, input_shape: put_back(g, at, dim, keepdim, input_shape)))  # fmt: skip


_amax, _amin = _extreme_op("amax", "amax", False), _extreme_op("amin", "amin", False)
_max, _min = _extreme_op("max", "amax", True), _extreme_op("min", "amin", True)
_max_dim, _min_dim = _picked_op("max", "max_dim"), _picked_op("min", "min_dim")


def filled(op: str, input: Tensor, dims: tuple[int, ...] | None, whole: type[Exception] = ShapeError) -> None:
    """Raise where an extreme would be taken of no elements."""
    shape = input.native.shape
    if 0 not in shape:
        return
    if dims is None:
        raise whole(
            f"{op}: Expected reduction dim to be specified for input.numel() == 0, got shape {list(shape)}; Specify "
            "the reduction dim with the 'dim' argument"
        )
    for i in dims:
        if shape and shape[i] == 0:
            raise DimensionError(
                f"{op}: Expected reduction dim {i} to have non-zero size, got shape {list(shape)}; pad the input, or "
                "skip it"
            )


def _extreme_call(op: Op, input: Tensor, dim: Dims, keepdim: bool, out: Any) -> Tensor:
    check_tensors(op.name, input=input)
    check_real(op.name, input)
    dims = dims_of(op.name, input, dim)
    filled(op.name, input, dims)
    return applied(op, (input,), {"dim": dims, "keepdim": keepdim}, out)  # type: ignore[no-any-return]


def _amax_slow(input: Tensor, dim: Dims = (), keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """The largest element, of all or along ``dim``; its gradient is shared evenly among equal ones."""
    return _extreme_call(_amax, input, dim, keepdim, out)


def _amin_slow(input: Tensor, dim: Dims = (), keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """The smallest element, of all or along ``dim``; its gradient is shared evenly among equal ones."""
    return _extreme_call(_amin, input, dim, keepdim, out)


amax = closure(_amax, REAL, _amax_slow, samples.reduction)
amin = closure(_amin, REAL, _amin_slow, samples.reduction)


_Aminmax = return_type("aminmax", "min max")
_least_into, _largest_into = (place_way(op, REAL, None, store=store) for op in (_amin, _amax))


@over_dims(samples=samples.extremes, way=before("both", _least_into, _largest_into, _Aminmax))
def aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False, out: Any = None) -> Any:
    """The smallest and the largest element, of all or along ``dim``, as a named tuple ``(min, max)``."""
    return stored("aminmax", _Aminmax(amin(input, dim, keepdim), amax(input, dim, keepdim)), out)


def _extreme_forms(whole: Op, along: Op, pairwise: str, answer: Any) -> Callable[..., Any]:

    def call(input: Tensor, dim: Any = None, keepdim: bool = False, *, other: Any = None, out: Any = None) -> Any:
        if isinstance(dim, Tensor) and not keepdim:
            other = dim
        if other is not None:
            return (
                getattr(input, pairwise)(other)
                if out is None
                else store(pairwise, getattr(input, pairwise)(other), out)
            )
        if dim is None:
            return _extreme_call(whole, input, None, False, out)
        check_tensors(whole.name, input=input)
        check_real(whole.name, input)
        at = rules.wrap_dim(whole.name, dim, len(input.native.shape))
        filled(whole.name, input, (at,) if input.native.shape else ())
        return values_and_places(whole.name, answer, along, input, {"dim": at, "keepdim": keepdim}, out)

    call.__name__ = call.__qualname__ = whole.name
    word = "largest" if whole.name == "max" else "smallest"
    call.__doc__ = (
        f"The {word} element of all; with ``dim``, the {word} along it as ``(values, indices)``; with another tensor, "
        f"the {word} of each pair. NaN wins."
    )
    return call


def _extreme_of(whole: Op, along: Op, pairwise: str) -> Callable[..., Any]:
    answer = return_type(whole.name)
    usual = way_along(along, REAL, {"dim": ..., "keepdim": False}, answer)(_not_along)
    return closure(whole, REAL, _extreme_forms(whole, along, pairwise, answer), samples.one_dim_reduction, usual)


def _not_along(*given: Any, **options: Any) -> None:
    """In the place of a call that is not along a dim, or not a usual one."""


max, min = _extreme_of(_max, _max_dim, "maximum"), _extreme_of(_min, _min_dim, "minimum")

_argmax = Op("argmax", "input", "Where the largest element is.", register=False)
_argmin = Op("argmin", "input", "Where the smallest element is.", register=False)


def _places_way(op: Op) -> Callable[..., Any]:
    return way_along(op, FLOATING, {"dim": ..., "keepdim": False}, result=dtypes.int64)


def _where_extreme(op: Op, input: Tensor, dim: int | None, keepdim: bool, out: Any) -> Tensor:
    if type(input) is not Tensor:
        check_tensors(op.name, input=input)
    if input.dtype.is_complex:
        raise DtypeError(f"{op.name}: does not support complex input, got {input.dtype}; use .abs() or .real")
    if input.dtype.kind == "bool":
        raise DtypeError(f"{op.name}: does not support bool input, got {input.dtype}; convert it with .int()")
    at = None if dim is None else rules.wrap_dim(op.name, dim, len(input.native.shape))
    filled(op.name, input, None if at is None else (at,) if input.native.shape else (), DimensionError)
    at = at if input.native.shape else None
    return applied(op, (input,), {"dim": at, "keepdim": keepdim}, out, dtypes.int64)


@over_dims(samples=samples.one_dim_reduction, kind="reduction", way=_places_way(_argmax))
def argmax(input: Tensor, dim: int | None = None, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """Where the largest element is: in the flattened tensor, or along ``dim``. The first NaN counts as largest."""
    return _where_extreme(_argmax, input, dim, keepdim, out)


@over_dims(samples=samples.one_dim_reduction, kind="reduction", way=_places_way(_argmin))
def argmin(input: Tensor, dim: int | None = None, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """Where the smallest element is: in the flattened tensor, or along ``dim``. The first NaN counts as smallest."""
    return _where_extreme(_argmin, input, dim, keepdim, out)
