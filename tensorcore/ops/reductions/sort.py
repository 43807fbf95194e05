"""Sorting and order statistics: sort, topk, median, kthvalue, unique values."""

from __future__ import annotations

from math import prod
from typing import Any

from tensorcore import dtypes
from tensorcore.errors import DimensionError, DtypeError, ShapeError
from tensorcore.ops import rules, samples
from tensorcore.ops.define import Op
from tensorcore.ops.kinds import BOOL, REAL, operation
from tensorcore.ops.operands import check_tensors
from tensorcore.ops.output import store
from tensorcore.ops.record import record
from tensorcore.ops.reductions.extreme import filled, picking, put_back, ties_gradient, values_and_places
from tensorcore.ops.reductions.reduce import check_real, over_dims, return_type, stored, way_along
from tensorcore.ops.shapes.shape import in_shape
from tensorcore.tape.mode import mode as thread
from tensorcore.tensor import Tensor, new_tensor

__all__ = [
    "argsort", "kthvalue", "median", "mode", "msort", "nanmedian", "sort", "topk", "unique",
    "unique_consecutive",
]  # fmt: skip


def _along(name: str, kernel: str | None = None) -> Op:
    return Op(
        name,
        "input",
        "Elements picked along a dim, and where they are.",
        kernel=kernel,
        register=False,
        grads=dict(input=lambda g, at, dim, input_shape: put_back(g, at, dim, True, input_shape)),
    )


def _reducing(name: str, kernel: str | None = None) -> Op:
    return Op(
        name,
        "input",
        "An element picked along a dim, and where it is.",
        kernel=kernel,
        register=False,
        grads=dict(input=lambda g, at, dim, keepdim, input_shape: put_back(g, at, dim, keepdim, input_shape)),
    )


_sort, _topk = _along("sort"), _along("topk")
_kthvalue, _median_dim, _mode_dim = (
    _reducing("kthvalue"),
    _reducing("median", "median_dim"),
    _reducing("mode", "mode_dim"),
)
_nanmedian_dim = _reducing("nanmedian", "median_dim")
_Sort, _Topk, _Kthvalue, _Mode = return_type("sort"), return_type("topk"), return_type("kthvalue"), return_type("mode")
_Median, _Nanmedian = return_type("median"), return_type("nanmedian")
_median = Op("median", "input", "The median of all elements.", register=False, grads=dict(
    input=lambda g, input, out: ties_gradient(g, input, out)))  # fmt: skip
_nanmedian = Op("nanmedian", "input", "The median of all elements but NaN.", register=False, grads=_median.grads)


@over_dims(
    samples=samples.along_dim, way=way_along(_sort, REAL, {"dim": -1, "descending": False, "stable": False}, _Sort)
)
def sort(
    input: Tensor, dim: int = -1, descending: bool = False, stable: bool | None = False, *, out: Any = None
) -> Any:
    """The elements in order along ``dim`` and where they came from, as ``(values, indices)``; NaN counts as largest.

    Equal elements keep their order, with ``stable`` or without.
    """
    if type(input) is not Tensor:
        check_tensors("sort", input=input)
    check_real("sort", input)
    at = rules.wrap_dim("sort", dim, len(input.native.shape))
    options = {"dim": at, "descending": descending, "stable": bool(stable)}
    return values_and_places("sort", _Sort, _sort, input, options, out, input)


@over_dims(samples=samples.along_dim)
def argsort(input: Tensor, dim: int = -1, descending: bool = False, *, stable: bool = False) -> Tensor:
    """Where the elements in order along ``dim`` come from."""
    if type(input) is not Tensor:
        check_tensors("argsort", input=input)
    check_real("argsort", input)
    at = rules.wrap_dim("argsort", dim, len(input.native.shape))
    input = input if input.node is None else input.detach()
    return picking(_sort, input, {"dim": at, "descending": descending, "stable": stable})[1]


@operation(samples=samples.unary)
def msort(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The elements in order along the first dim."""
    if type(input) is not Tensor:
        check_tensors("msort", input=input)
    check_real("msort", input)
    made = picking(_sort, input, {"dim": 0, "descending": False, "stable": False})[0]
    return made if out is None else store("msort", made, out)


@over_dims(
    samples=samples.top,
    way=way_along(_topk, REAL - BOOL, {"k": ..., "dim": -1, "largest": True, "sorted": True}, _Topk),
)
def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True, *, out: Any = None) -> Any:
    """The ``k`` largest (or smallest) elements along ``dim`` in order, as ``(values, indices)``; NaN counts as
    largest."""
    if type(input) is not Tensor:
        check_tensors("topk", input=input)
    check_real("topk", input)
    if input.dtype.kind == "bool":
        raise DtypeError("topk: topk does not support bool dtypes, got a tensor of bools; convert it with .int()")
    shape = input.native.shape
    at = rules.wrap_dim("topk", dim, len(shape))
    k = rules.whole("topk", "k", k)
    if not 0 <= k <= (shape[at] if shape else 1):
        raise ShapeError(
            f"topk: selected index k out of range, got k={k} for a dim of size {shape[at] if shape else 1}; take fewer"
        )
    options = {"k": k, "dim": at, "largest": largest, "sorted": sorted}
    return values_and_places("topk", _Topk, _topk, input, options, out, input)


@over_dims(samples=samples.top, way=way_along(_kthvalue, REAL, {"k": ..., "dim": -1, "keepdim": False}, _Kthvalue))
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False, *, out: Any = None) -> Any:
    """The ``k``-th smallest element along ``dim``, counted from 1, and where it is, as ``(values, indices)``."""
    if type(input) is not Tensor:
        check_tensors("kthvalue", input=input)
    check_real("kthvalue", input)
    shape = input.native.shape
    at = rules.wrap_dim("kthvalue", dim, len(shape))
    filled("kthvalue", input, (at,) if shape else ())
    if not 1 <= k <= (shape[at] if shape else 1):
        raise ShapeError(
            f"kthvalue: selected number k out of range for dimension {at}, got k={k}; count from 1 to the dim's size"
        )
    return values_and_places(
        "kthvalue", _Kthvalue, _kthvalue, input, {"k": int(k), "dim": at, "keepdim": keepdim}, out, input
    )


def _middle(
    whole: Op, along: Op, answer: Any, nan: bool, input: Tensor, dim: int | None, keepdim: bool, out: Any
) -> Any:
    name = whole.name
    check_real(name, input)
    if input.dtype.kind == "bool":
        raise DtypeError(f"{name}: expected numbers, got bool: not implemented for it; convert it with .int()")
    shape = input.native.shape
    if dim is not None:
        at = rules.wrap_dim(name, dim, len(shape))
        if shape and shape[at] == 0:
            raise DimensionError(
                f"{name}: Expected reduction dim {at} to have non-zero size, got shape {list(shape)}; pad the input, "
                "or skip it"
            )
        native, places = input.device.kernels["median_dim"](input.native, dim=at, keepdim=keepdim, nan=nan)
        values, found = new_tensor(native, input.dtype, input.device), new_tensor(places, dtypes.int64, input.device)
        if thread.enabled and input.node is not None:
            record(along, (input,), {"dim": at, "keepdim": keepdim, "at": found.detach()}, values)
        return stored(name, answer(values, found), out)
    if 0 in shape:  # of integers what a cast makes of NaN
        made = input.new_full((), float("nan"), dtype=dtypes.float32).to(input.dtype)  # type: ignore[attr-defined]
    else:
        flat = in_shape(input.device, input.native, (prod(shape),))
        made = new_tensor(input.device.kernels["median_dim"](flat, dim=0, nan=nan)[0], input.dtype, input.device)
    if input.node is not None and thread.enabled:
        record(whole, (input,), None, made)
    return stored(name, made, out)


@over_dims(samples=samples.one_dim_reduction)
def median(input: Tensor, dim: int | None = None, keepdim: bool = False, *, out: Any = None) -> Any:
    """The lower of the middle elements: of all, or along ``dim`` as ``(values, indices)``. NaN wins."""
    if type(input) is not Tensor:
        check_tensors("median", input=input)
    return _middle(_median, _median_dim, _Median, True, input, dim, keepdim, out)


@over_dims(samples=samples.one_dim_reduction)
def nanmedian(input: Tensor, dim: int | None = None, keepdim: bool = False, *, out: Any = None) -> Any:
    """The lower of the middle elements that are not NaN: of all, or along ``dim`` as ``(values, indices)``."""
    if type(input) is not Tensor:
        check_tensors("nanmedian", input=input)
    return _middle(_nanmedian, _nanmedian_dim, _Nanmedian, False, input, dim, keepdim, out)


@over_dims(samples=samples.along_dim, way=way_along(_mode_dim, REAL, {"dim": -1, "keepdim": False}, _Mode))
def mode(input: Tensor, dim: int = -1, keepdim: bool = False, *, out: Any = None) -> Any:
    """The smallest of the most frequent elements along ``dim`` and its last position, as ``(values, indices)``."""
    if type(input) is not Tensor:
        check_tensors("mode", input=input)
    check_real("mode", input)
    at = rules.wrap_dim("mode", dim, len(input.native.shape))
    filled("mode", input, (at,) if input.native.shape else ())
    return values_and_places("mode", _Mode, _mode_dim, input, {"dim": at, "keepdim": keepdim}, out)


@operation(samples=samples.repeated)
def unique(input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False,
           dim: int | None = None) -> Any:  # fmt: skip
    """The distinct elements in order (or slices along ``dim``), with inverse indices and counts where asked for."""
    if type(input) is not Tensor:
        check_tensors("unique", input=input)
    check_real("unique", input)
    at = None if dim is None else rules.wrap_dim("unique", dim, len(input.native.shape))
    if at is None and not return_inverse and not return_counts and (kernel := input.device.kernels["distinct"]):
        return new_tensor(kernel(input.native), input.dtype, input.device)
    natives = input.device.kernels["unique"](input.native, dim=at)
    return _chosen(input, natives, return_inverse, return_counts)


@operation(samples=samples.repeated)
def unique_consecutive(input: Tensor, return_inverse: bool = False, return_counts: bool = False,
                       dim: int | None = None) -> Any:  # fmt: skip
    """The first of every run of equal elements (or of slices along ``dim``), with inverse indices and counts."""
    if type(input) is not Tensor:
        check_tensors("unique_consecutive", input=input)
    check_real("unique_consecutive", input)
    at = None if dim is None else rules.wrap_dim("unique_consecutive", dim, len(input.native.shape))
    if at is None and not return_inverse and not return_counts and (kernel := input.device.kernels["distinct"]):
        return new_tensor(kernel(input.native, consecutive=True), input.dtype, input.device)
    natives = input.device.kernels["unique_consecutive"](input.native, dim=at)
    return _chosen(input, natives, return_inverse, return_counts)


def _chosen(input: Tensor, natives: Any, return_inverse: bool, return_counts: bool) -> Any:
    values = new_tensor(natives[0], input.dtype, input.device)
    answer = [values]
    if return_inverse:
        answer.append(new_tensor(natives[1], dtypes.int64, input.device))
    if return_counts:
        answer.append(new_tensor(natives[2], dtypes.int64, input.device))
    return values if len(answer) == 1 else tuple(answer)
