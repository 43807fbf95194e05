"""Views of all elements with the dims in another order."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import permutations
from typing import Any

from tensorcore.errors import ShapeError
from tensorcore.ops import rules
from tensorcore.ops.define import Op
from tensorcore.ops.kinds import operation
from tensorcore.ops.kinds import view as view_op
from tensorcore.ops.operands import check_tensors
from tensorcore.ops.samples import index as samples
from tensorcore.ops.shapes.shape import _alias, _reshaping
from tensorcore.shortcuts import before
from tensorcore.tensor import Tensor, new_tensor

__all__ = ["adjoint", "moveaxis", "movedim", "permute", "swapaxes", "swapdims", "t", "transpose"]


def _permuting(name: str) -> Op:
    return view_op(name, "The same elements with the dims in another order.", kernel="permute",
                   grad=lambda g, dims: _permute.view(g, {"dims": _inverse(dims)}))  # fmt: skip


_permute, _transpose, _t = _permuting("permute"), _permuting("transpose"), _permuting("t")
_show_permuted, _show_transpose, _show_t = (op.view for op in (_permute, _transpose, _t))  # type: ignore[attr-defined]
# Options that are made once: a dict is a twentieth of a call.
_SWAP, _KEEP = {"dims": (1, 0)}, ({"dims": ()}, {"dims": (0,)}, {"dims": (0, 1)})
_ORDERS = [frozenset(permutations(range(ndim))) for ndim in range(5)]
_REVERSED = [{"dims": tuple(range(ndim - 1, -1, -1))} for ndim in range(5)]
_MATRICES = [
    {"dims": (*range(ndim - 2), ndim - 1, ndim - 2)} for ndim in range(5)
]  # from two dims on: the last two swapped


@operation(samples=samples.permute)
@before("permuted", _show_permuted)
def permute(input: Tensor, *order: Any, dims: Any = None) -> Tensor:
    """The same memory with its dims in the order ``dims``."""
    if type(input) is not Tensor:
        check_tensors("permute", input=input)
    ndim = len(input.native.shape)
    given = order if dims is None else (dims,)
    wanted = tuple(given[0]) if len(given) == 1 and isinstance(given[0], (tuple, list)) else given
    for one in wanted:
        if type(one) is not int or one < 0:
            break
    else:
        known = wanted in _ORDERS[ndim] if ndim < len(_ORDERS) else sorted(wanted) == [*range(ndim)]
        if known and type(input) is Tensor:
            return _show_permuted(input, {"dims": wanted})  # type: ignore[no-any-return]
    order = rules.as_shape("permute", given)
    if len(order) != ndim:
        raise ShapeError(
            f"permute: expected as many dims as the tensor has ({ndim}), got {list(order)}; name each dim once"
        )
    return _permute.view(input, {"dims": rules.wrap_dims("permute", order, ndim)})


@operation(samples=samples.two_dims)
@before("transposed", _show_transpose, False)
def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """The same memory with two dims swapped."""
    if type(input) is not Tensor:
        check_tensors("transpose", input=input)
    ndim = len(input.native.shape)
    if type(dim0) is int and type(dim1) is int and -ndim <= dim0 < ndim and -ndim <= dim1 < ndim:
        if ndim == 2:
            return _show_transpose(input, _SWAP if (dim0 ^ dim1) & 1 else _KEEP[2])  # type: ignore[no-any-return]
        swapped = list(range(ndim))
        swapped[dim0], swapped[dim1] = swapped[dim1], swapped[dim0]
        return _show_transpose(input, {"dims": tuple(swapped)})  # type: ignore[no-any-return]
    return _show_transpose(input, {"dims": _swapped("transpose", input, dim0, dim1)})


def _swapped(op: str, input: Tensor, dim0: int, dim1: int) -> tuple[int, ...]:
    if type(input) is not Tensor:
        check_tensors(op, input=input)
    ndim = len(input.native.shape)
    a, b = rules.wrap_dim(op, dim0, ndim), rules.wrap_dim(op, dim1, ndim)
    dims = list(range(ndim))
    if ndim:
        dims[a], dims[b] = b, a
    return tuple(dims)


@operation(samples=samples.two_dims)
@before("transposed", _show_transpose, False)
def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """The same memory with two dims swapped."""
    return transpose(input, axis0, axis1)


@operation(samples=samples.two_dims)
@before("transposed", _show_transpose, False)
def swapdims(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """The same memory with two dims swapped."""
    return transpose(input, dim0, dim1)


@operation(samples=samples.matrix)
def t(input: Tensor) -> Tensor:
    """The transpose of a matrix; a tensor of fewer dims as it is."""
    if type(input) is not Tensor:
        check_tensors("t", input=input)
    ndim = len(input.native.shape)
    if ndim == 2:
        return _show_t(input, _SWAP)  # type: ignore[no-any-return]
    if ndim > 2:
        raise ShapeError(f"t: t() expects a tensor with <= 2 dimensions, got {ndim}D; use transpose(dim0, dim1)")
    return _t.view(input, _KEEP[ndim])


@operation(samples=samples.batches)
def adjoint(input: Tensor) -> Tensor:
    """The last two dims swapped, and conjugated; a 0-d tensor conjugated."""
    if type(input) is not Tensor:
        check_tensors("adjoint", input=input)
    ndim = len(input.native.shape)
    if 1 < ndim < len(_MATRICES) and not input.dtype.is_complex:
        return _show_transpose(input, _MATRICES[ndim])  # type: ignore[no-any-return]
    if (
        input.dtype.is_complex and input.node is None and ndim > 1 and type(input) is Tensor
    ):  # a view that nobody has to know of
        kernels = input.device.kernels
        turned = kernels["permute"](input.native, dims=(*range(ndim - 2), ndim - 1, ndim - 2))
        return new_tensor(kernels["conj_physical"](turned), input.dtype, input.device)
    return input.mH if input.native.shape else input.conj()  # type: ignore[attr-defined]


@operation(samples=samples.movedim)
@before("transposed", _show_permuted, True)
def movedim(input: Tensor, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """The same memory with the dims ``source`` moved to the places ``destination``; the others keep their order."""
    if type(input) is not Tensor:
        check_tensors("movedim", input=input)
    ndim = len(input.native.shape)
    if type(source) is int and type(destination) is int and -ndim <= source < ndim and -ndim <= destination < ndim:
        order = list(range(ndim))
        order.insert(destination % ndim, order.pop(source))
        return _permute.view(input, {"dims": tuple(order)})  # type: ignore[attr-defined, no-any-return]
    if type(source) is type(destination) is tuple and {*map(type, source), *map(type, destination)} == _INTS:
        order = _moved(ndim, source, destination)
    else:
        order = _moved.__wrapped__(ndim, source, destination)
    return _permute.view(input, {"dims": order}) if ndim else _alias.view(input, {"key": ()})  # type: ignore[attr-defined, no-any-return]


_INTS = {int}  # of which no other number is taken for one: True is 1 to a cache


@lru_cache(256)
def _moved(ndim: int, source: Any, destination: Any) -> tuple[int, ...]:
    """The order of dims in which those of ``source`` stand at ``destination``."""
    from_, to = rules.wrap_dims("movedim", source, ndim), rules.wrap_dims("movedim", destination, ndim)
    if len(from_) != len(to):
        raise ShapeError(
            f"movedim: Invalid source or destination dims: source ({source} dims) should contain the same number of dims "
            f"as destination, got {destination}; give as many"
        )
    others = iter([i for i in range(ndim) if i not in from_])
    places = dict(zip(to, from_, strict=True))
    return tuple([places[i] if i in places else next(others) for i in range(ndim)])


@operation(samples=samples.movedim)
@before("transposed", _show_permuted, True)
def moveaxis(input: Tensor, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """The same memory with the dims ``source`` moved to the places ``destination``; the others keep their order."""
    if type(input) is not Tensor:
        check_tensors("moveaxis", input=input)
    return movedim(input, source, destination)


# In place


def _swap_options(op: str, input: Tensor, dim0: int, dim1: int) -> tuple[Op, dict[str, Any]]:
    ndim = len(input.native.shape)
    if type(dim0) is int and type(dim1) is int and -ndim <= dim0 < ndim and -ndim <= dim1 < ndim:
        if ndim == 2:
            return _transpose, _SWAP if (dim0 ^ dim1) & 1 else _KEEP[2]
        dims = list(range(ndim))
        dims[dim0], dims[dim1] = dims[dim1], dims[dim0]
        return _transpose, {"dims": tuple(dims)}
    return _transpose, {"dims": _swapped(op, input, dim0, dim1)}


_reshaping(
    "transpose_", lambda input, dim0, dim1: _swap_options("transpose_", input, dim0, dim1), "permute", "dims", "dims"
)
_reshaping(
    "swapaxes_", lambda input, axis0, axis1: _swap_options("swapaxes_", input, axis0, axis1), "permute", "dims", "dims"
)
_reshaping(
    "swapdims_", lambda input, dim0, dim1: _swap_options("swapdims_", input, dim0, dim1), "permute", "dims", "dims"
)


def _t_options(input: Tensor) -> tuple[Op, dict[str, Any]]:
    if input.ndim > 2:
        raise ShapeError(
            f"t_: t_() expects a tensor with <= 2 dimensions, got {input.ndim}D; use transpose_(dim0, dim1)"
        )
    return _t, _SWAP if input.ndim == 2 else _KEEP[input.ndim]


_reshaping("t_", _t_options, "permute", "dims", "turned")


def _inverse(dims: tuple[int, ...]) -> tuple[int, ...]:
    back = [0] * len(dims)
    for i, dim in enumerate(dims):
        back[dim] = i
    return tuple(back)


def _transposed(name: str, doc: str) -> None:
    def get(self: Tensor) -> Tensor:
        ndim = len(self.native.shape)
        if name == "T":
            turned = _REVERSED[ndim] if ndim < len(_REVERSED) else {"dims": tuple(range(ndim - 1, -1, -1))}
            return _show_permuted(self, turned)  # type: ignore[no-any-return]
        if name == "H" and ndim not in (0, 2):
            raise ShapeError(f"H: tensor.H is only supported on matrices (2-D tensors), got {ndim}-D; use mH")
        if name in ("mT", "mH") and ndim == 1:
            raise ShapeError(
                f"{name}: expected a matrix or a batch of matrices, got {ndim}-D tensor; use unsqueeze first"
            )
        if 1 < ndim < len(_MATRICES) and type(self) is Tensor and (name == "mT" or not self.dtype.is_complex):
            return _show_transpose(self, _MATRICES[ndim])  # type: ignore[no-any-return]
        swapped = transpose(self, -2, -1) if ndim > 1 else self
        return swapped.conj() if name in ("H", "mH") and self.dtype.is_complex else swapped  # type: ignore[attr-defined]

    setattr(Tensor, name, property(get, doc=doc))


_transposed("T", "The dims in reverse order.")
_transposed("mT", "The last two dims swapped.")
_transposed("H", "The matrix, transposed and conjugated.")
_transposed("mH", "The last two dims swapped, and conjugated.")
