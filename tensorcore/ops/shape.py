"""Shapes and views: the same memory in another shape, order or part."""

from __future__ import annotations

from math import prod
from typing import Any

from tensorcore.errors import DimensionError, ShapeError
from tensorcore.ops import rules
from tensorcore.ops.calls import apply, record
from tensorcore.ops.define import Op, same
from tensorcore.ops.kinds import method, operation
from tensorcore.ops.kinds import view as view_op
from tensorcore.ops.views import view_of
from tensorcore.tensor import Tensor

__all__ = ["expand", "narrow", "permute", "reshape", "select", "squeeze", "t", "transpose", "unbind", "unsqueeze", "view"]

# Ops of one kernel that differ in what a printed grad_fn calls them


def _viewing(name: str, backward_name: str | None = None) -> Op:
    return view_op(name, "The same elements in another shape.", kernel="view", backward_name=backward_name,
                   grad=lambda g, input_shape: g.reshape(input_shape))  # fmt: skip


def _permuting(name: str) -> Op:
    return view_op(name, "The same elements with the dims in another order.", kernel="permute",
                   grad=lambda g, dims: _permute.view(g, {"dims": _inverse(dims)}))  # fmt: skip


def _indexing(name: str) -> Op:
    return view_op(name, "A part of the elements.", kernel="index",
                   grad=lambda g, input_shape, key: apply(unindex, (g,), {"shape": input_shape, "key": key}))  # fmt: skip


_view, _unsafe_view = _viewing("view"), _viewing("unsafe_view")
_squeeze, _unsqueeze = _viewing("squeeze"), _viewing("unsqueeze")
_permute, _transpose, _t = _permuting("permute"), _permuting("transpose"), _permuting("t")
_select, _slice = _indexing("select"), _indexing("slice")
_expand = view_op("expand", "Dims of size 1 repeated without a copy.", kernel="expand", grad=same)
_unbind = Op("unbind", "input", "Slices along a dim.", register=False,
             grads=dict(input=lambda g, dim, input_shape: _restack(g, dim, input_shape)))  # fmt: skip
unindex = Op("unindex", "input", "Zeros of a shape with the input in the place of a basic index.", register=False,
             grads=dict(input=lambda g, key: _slice.view(g, {"key": key})))  # fmt: skip


@method
def view(input: Tensor, *shape: Any) -> Tensor:
    """The same memory in another shape; one size may be -1. Raises where only a copy could have that shape."""
    sizes = rules.as_shape("view", shape)
    old = input.native.shape
    sizes = rules.infer_size("view", sizes, prod(old))
    native = input.device.kernels["view"](input.native, shape=sizes)
    if native is None:
        raise ShapeError(
            f"view: view size is not compatible with input tensor's size and stride (at least one dimension spans across "
            f"two contiguous subspaces), got shape {list(old)} and strides {input.stride()}; Use .reshape(...) instead"
        )
    return view_of(_view, input, {"shape": sizes}, native)


@operation()
def reshape(input: Tensor, *shape: Any) -> Tensor:
    """The same elements in another shape: a view where possible, else a copy. One size may be -1."""
    sizes = rules.infer_size("reshape", rules.as_shape("reshape", shape), prod(input.native.shape))
    native = input.device.kernels["view"](input.native, shape=sizes)
    if native is not None:
        return view_of(_view, input, {"shape": sizes}, native)
    made = input.contiguous()
    return view_of(_unsafe_view, made, {"shape": sizes})


@operation()
def permute(input: Tensor, *dims: Any) -> Tensor:
    """The same memory with its dims in the order ``dims``."""
    ndim = len(input.native.shape)
    order = rules.as_shape("permute", dims)
    if len(order) != ndim:
        raise ShapeError(
            f"permute: expected as many dims as the tensor has ({ndim}), got {list(order)}; name each dim once"
        )
    return _permute.view(input, {"dims": rules.wrap_dims("permute", order, ndim)})


@operation()
def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """The same memory with two dims swapped."""
    ndim = len(input.native.shape)
    a, b = rules.wrap_dim("transpose", dim0, ndim), rules.wrap_dim("transpose", dim1, ndim)
    dims = list(range(ndim))
    if ndim:
        dims[a], dims[b] = b, a
    return _transpose.view(input, {"dims": tuple(dims)})


@operation()
def t(input: Tensor) -> Tensor:
    """The transpose of a matrix; a tensor of fewer dims as it is."""
    ndim = len(input.native.shape)
    if ndim > 2:
        raise ShapeError(f"t: t() expects a tensor with <= 2 dimensions, got {ndim}D; use transpose(dim0, dim1)")
    return _t.view(input, {"dims": (1, 0) if ndim == 2 else tuple(range(ndim))})


@method
def expand(input: Tensor, *sizes: Any) -> Tensor:
    """A view with dims of size 1 repeated, without a copy; -1 keeps a size, new dims come in front."""
    wanted = rules.as_shape("expand", sizes)
    shape = input.native.shape
    extra = len(wanted) - len(shape)
    if extra < 0:
        raise ShapeError(
            f"expand: the number of sizes provided ({len(wanted)}) must be greater or equal to the number of dimensions in "
            f"the tensor ({len(shape)}), got {list(wanted)}; name all dims"
        )
    full = []
    for i, size in enumerate(wanted):
        have = shape[i - extra] if i >= extra else None
        if size == -1 and have is not None:
            size = have
        if size < 0 or (have is not None and have not in (1, size)):
            raise ShapeError(
                f"expand: The expanded size of the tensor ({size}) must match the existing size ({have}) at "
                f"non-singleton dimension {i}, got {list(wanted)} for {list(shape)}; only sizes of 1 expand"
            )
        full.append(size)
    return _expand.view(input, {"shape": tuple(full)})


@operation()
def squeeze(input: Tensor, dim: Any = None) -> Tensor:
    """Without the dims of size 1: all of them, or those among ``dim``."""
    shape = input.native.shape
    dims = rules.wrap_dims("squeeze", dim, len(shape))
    return _squeeze.view(input, {"shape": tuple([n for i, n in enumerate(shape) if n != 1 or i not in dims])})


@operation()
def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """With a dim of size 1 put in at ``dim``."""
    shape = input.native.shape
    at = rules.wrap_dim("unsqueeze", dim, len(shape) + 1)
    return _unsqueeze.view(input, {"shape": (*shape[:at], 1, *shape[at:])})


@operation()
def select(input: Tensor, dim: int, index: int) -> Tensor:
    """The slice at ``index`` along ``dim``, which the result lacks."""
    shape = input.native.shape
    if not shape:
        raise DimensionError("select: select() cannot be applied to a 0-dim tensor, got one; use item()")
    at = rules.wrap_dim("select", dim, len(shape))
    if not -shape[at] <= index < shape[at]:
        raise DimensionError(
            f"select: expected index in the range [{-shape[at]}, {shape[at] - 1}], got {index}; it is out of range for "
            f"dim {dim} of size {shape[at]}"
        )
    return _select.view(input, {"key": (*[slice(None)] * at, int(index))})


@operation()
def narrow(input: Tensor, dim: int, start: Any, length: int) -> Tensor:
    """The part of ``length`` elements from ``start`` along ``dim``."""
    shape = input.native.shape
    at = rules.wrap_dim("narrow", dim, len(shape))
    begin = int(start)
    begin = begin + shape[at] if begin < 0 else begin
    if length < 0 or not 0 <= begin <= shape[at] - length:
        raise ShapeError(
            f"narrow: expected start ({start}) + length ({length}) to be at most the dimension size ({shape[at]}), got more "
            f"(or a negative length); take fewer"
        )
    return _slice.view(input, {"key": (*[slice(None)] * at, slice(begin, begin + length))})


@operation()
def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """All slices along ``dim``, as views."""
    shape = input.native.shape
    if not shape:
        raise DimensionError("unbind: Dimension specified as 0 but tensor has no dimensions, got a 0-d tensor; use item()")
    at = rules.wrap_dim("unbind", dim, len(shape))
    return several_views(_unbind, input, {"dim": at}, [(*[slice(None)] * at, i) for i in range(shape[at])])


def several_views(op: Op, input: Tensor, options: dict[str, Any], keys: list[Any]) -> tuple[Tensor, ...]:
    """Views at basic indices as the results of one node, whose formula gets the gradients of all of them."""
    node, input_node = input.node, input.node
    input.node = None
    try:
        made = [view_of(_slice, input, {"key": key}, kind="several") for key in keys]
    finally:
        input.node = input_node
    if node is not None and made:
        from tensorcore.tape.mode import mode

        if mode.enabled:
            record(op, (input,), options, made)
    return tuple(made)


def _restack(g: list[Any], dim: int, shape: tuple[int, ...]) -> Tensor:
    from tensorcore.ops.join import stack

    one = next(each for each in g if each is not None)
    return stack([one.new_zeros(one.shape) if each is None else each for each in g], dim)


def _inverse(dims: tuple[int, ...]) -> tuple[int, ...]:
    back = [0] * len(dims)
    for i, dim in enumerate(dims):
        back[dim] = i
    return tuple(back)


def _transposed(name: str, doc: str) -> None:
    def get(self: Tensor) -> Tensor:
        ndim = len(self.native.shape)
        if name in ("T", "H") and ndim != 2 and not (name == "T" or ndim == 0):
            raise ShapeError(f"{name}: tensor.H is only supported on matrices (2-D tensors), got {ndim}-D; use mH")
        if name in ("mT", "mH") and ndim < 2:
            raise ShapeError(f"{name}: expected a matrix or a batch of matrices, got {ndim}-D tensor; use unsqueeze first")
        if name == "T":
            return permute(self, *reversed(range(ndim)))
        swapped = transpose(self, -2, -1) if ndim > 1 else self
        return swapped.conj() if name in ("H", "mH") and self.dtype.is_complex else swapped  # type: ignore[attr-defined]

    setattr(Tensor, name, property(get, doc=doc))


_transposed("T", "The dims in reverse order.")
_transposed("mT", "The last two dims swapped.")
_transposed("H", "The matrix, transposed and conjugated.")
_transposed("mH", "The last two dims swapped, and conjugated.")
