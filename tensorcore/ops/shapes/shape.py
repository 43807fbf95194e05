"""Views of all elements: the same memory in another shape or order."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from tensorcore import dtypes
from tensorcore.errors import ArgumentTypeError, ShapeError
from tensorcore.ops import rules
from tensorcore.ops.define import Op, same
from tensorcore.ops.inplace import attach, check_writable
from tensorcore.ops.kinds import method, operation
from tensorcore.ops.kinds import view as view_op
from tensorcore.ops.operands import check_tensors
from tensorcore.ops.record import record
from tensorcore.ops.samples import index as samples
from tensorcore.tape.mode import mode
from tensorcore.tensor import Tensor, new_tensor

__all__ = [
    "adjoint", "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_tensors", "broadcast_to", "flatten",
    "moveaxis", "movedim", "permute", "ravel", "reshape", "squeeze", "swapaxes", "swapdims", "t", "transpose",
    "unflatten", "unsqueeze",
]  # fmt: skip

# Ops of one kernel that differ in what a printed grad_fn calls them


def _viewing(name: str, kernel: str = "view", backward_name: str | None = None) -> Op:
    return view_op(name, "The same elements in another shape.", kernel=kernel, backward_name=backward_name,
                   grad=lambda g, input_shape: g.reshape(input_shape))  # fmt: skip


def _permuting(name: str) -> Op:
    return view_op(name, "The same elements with the dims in another order.", kernel="permute",
                   grad=lambda g, dims: _permute.view(g, {"dims": _inverse(dims)}))  # fmt: skip


_view, _unsafe_view = _viewing("view"), _viewing("unsafe_view")
_squeeze, _unsqueeze = _viewing("squeeze", "index"), _viewing("unsqueeze", "unsqueeze")
_squeeze_dim, _squeeze_dims = (_viewing("squeeze", "index", f"SqueezeBackward{i}") for i in (1, 2))
_permute, _transpose, _t = _permuting("permute"), _permuting("transpose"), _permuting("t")
_expand = view_op("expand", "Dims of size 1 repeated without a copy.", kernel="expand", grad=same)
_alias = view_op("alias", "The same memory as it is.", kernel="index", grad=lambda g, key: g)
_reinterpret = Op("reinterpret", "input", "The same bits as another dtype.", register=False)
_SWAP, _KEEP = {"dims": (1, 0)}, ({"dims": ()}, {"dims": (0,)})


@operation(samples=samples.view)
def view(input: Tensor, *shape: Any, size: Any = None, dtype: Any = None) -> Tensor:
    """The same memory in another shape, or its bits as another dtype.

    Args:
        shape: the sizes, of which one may be -1; or a dtype. To a dtype of n times the size, n
            elements of the last dim become one; the other way each becomes n.

    Raises where only a copy could have that shape.
    """
    if not shape:
        shape = () if size is None and dtype is None else (dtype if size is None else size,)
    if len(shape) == 1 and isinstance(shape[0], dtypes.dtype):
        return _view_dtype(input, shape[0])
    sizes = rules.as_shape("view", shape)
    old = input.native.shape
    sizes = rules.infer_size("view", sizes, prod(old))
    native = input.device.kernels["view"](input.native, shape=sizes)
    if native is None:
        raise ShapeError(
            f"view: view size is not compatible with input tensor's size and stride (at least one dimension spans across "
            f"two contiguous subspaces), got shape {list(old)} and strides {input.stride()}; Use .reshape(...) instead"
        )
    return _view.view(input, {"shape": sizes}, native)


def _view_dtype(input: Tensor, dtype: dtypes.dtype) -> Tensor:
    have, size = input.dtype.itemsize, dtype.itemsize
    shape, strides = input.native.shape, input.stride()
    if dtype is input.dtype:
        return _alias.view(input, {"key": ()})
    if have != size and not shape:
        raise ShapeError(
            f"view: self.dim() cannot be 0 to view {input.dtype.name} as {dtype.name} (different element sizes), got a "
            f"0-d tensor; use unsqueeze(0) first"
        )
    if have != size and strides[-1] != 1:
        raise ShapeError(
            f"view: self.stride(-1) must be 1 to view {input.dtype.name} as {dtype.name} (different element sizes), got "
            f"{strides[-1]}; use contiguous() first"
        )
    if size > have:
        n = size // have
        numbers = (("size(-1)", shape[-1]), ("storage_offset()", input.storage_offset()),
                   *((f"stride({i})", step) for i, step in enumerate(strides[:-1])))  # fmt: skip
        for name, number in numbers:
            if number % n:
                raise ShapeError(
                    f"view: self.{name} must be divisible by {n} to view {input.dtype.name} as {dtype.name} (different "
                    f"element sizes), got {number}; use contiguous() or other sizes"
                )
    native = input.device.kernels["reinterpret"](input.native, dtype=dtype)
    alias = _alias.view(input.detach(), {"key": ()}, input.native)
    made = new_tensor(native, dtype, input.device)
    made.version = alias.version
    return made


@operation(samples=samples.reshape)
def reshape(input: Tensor, *sizes: Any, shape: Any = None) -> Tensor:
    """The same elements in another ``shape``: a view where possible, else a copy. One size may be -1."""
    sizes = rules.as_shape("reshape", sizes if shape is None else (shape,))
    sizes = rules.infer_size("reshape", sizes, prod(input.native.shape))
    native = input.device.kernels["view"](input.native, shape=sizes)
    if native is not None:
        return _view.view(input, {"shape": sizes}, native)
    # A copy that nobody else sees needs no history as a view.
    copied = input.device.kernels["contiguous"](input.native)
    made = new_tensor(input.device.kernels["view"](copied, shape=sizes), input.dtype, input.device)
    if input.node is not None and mode.enabled:
        record(_unsafe_view, (input,), {"shape": sizes}, made)
    return made


@operation(samples=samples.permute)
def permute(input: Tensor, *order: Any, dims: Any = None) -> Tensor:
    """The same memory with its dims in the order ``dims``."""
    ndim = len(input.native.shape)
    order = rules.as_shape("permute", order if dims is None else (dims,))
    if len(order) != ndim:
        raise ShapeError(
            f"permute: expected as many dims as the tensor has ({ndim}), got {list(order)}; name each dim once"
        )
    return _permute.view(input, {"dims": rules.wrap_dims("permute", order, ndim)})


@operation(samples=samples.two_dims)
def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """The same memory with two dims swapped."""
    return _transpose.view(input, {"dims": _swapped("transpose", input, dim0, dim1)})


def _swapped(op: str, input: Tensor, dim0: int, dim1: int) -> tuple[int, ...]:
    ndim = len(input.native.shape)
    a, b = rules.wrap_dim(op, dim0, ndim), rules.wrap_dim(op, dim1, ndim)
    dims = list(range(ndim))
    if ndim:
        dims[a], dims[b] = b, a
    return tuple(dims)


@operation(samples=samples.two_dims)
def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """The same memory with two dims swapped."""
    return transpose(input, axis0, axis1)


@operation(samples=samples.two_dims)
def swapdims(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """The same memory with two dims swapped."""
    return transpose(input, dim0, dim1)


@operation(samples=samples.matrix)
def t(input: Tensor) -> Tensor:
    """The transpose of a matrix; a tensor of fewer dims as it is."""
    ndim = len(input.native.shape)
    if ndim == 2:
        return _t.view(input, _SWAP)
    if ndim > 2:
        raise ShapeError(f"t: t() expects a tensor with <= 2 dimensions, got {ndim}D; use transpose(dim0, dim1)")
    return _t.view(input, _KEEP[ndim])


@operation(samples=samples.batches)
def adjoint(input: Tensor) -> Tensor:
    """The last two dims swapped, and conjugated; a 0-d tensor conjugated."""
    return input.mH if input.native.shape else input.conj()  # type: ignore[attr-defined]


@operation(samples=samples.movedim)
def movedim(input: Tensor, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """The same memory with the dims ``source`` moved to the places ``destination``; the others keep their order."""
    ndim = len(input.native.shape)
    from_, to = rules.wrap_dims("movedim", source, ndim), rules.wrap_dims("movedim", destination, ndim)
    if len(from_) != len(to):
        raise ShapeError(
            f"movedim: Invalid source or destination dims: source ({source} dims) should contain the same number of dims "
            f"as destination, got {destination}; give as many"
        )
    if not ndim:
        return _alias.view(input, {"key": ()})
    others = iter([i for i in range(ndim) if i not in from_])
    places = dict(zip(to, from_, strict=True))
    return _permute.view(input, {"dims": tuple([places[i] if i in places else next(others) for i in range(ndim)])})


@operation(samples=samples.movedim)
def moveaxis(input: Tensor, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """The same memory with the dims ``source`` moved to the places ``destination``; the others keep their order."""
    return movedim(input, source, destination)


@operation(samples=samples.expand)
def expand(input: Tensor, *sizes: Any, size: Any = None, implicit: bool = False) -> Tensor:
    """A view with dims of size 1 repeated, without a copy; -1 keeps a size, new dims come in front."""
    return _expanded("expand", input, rules.as_shape("expand", sizes if size is None else (size,)))


def _expanded(op: str, input: Tensor, wanted: tuple[int, ...]) -> Tensor:
    shape = input.native.shape
    extra = len(wanted) - len(shape)
    if extra < 0:
        raise ShapeError(
            f"{op}: the number of sizes provided ({len(wanted)}) must be greater or equal to the number of dimensions in "
            f"the tensor ({len(shape)}), got {list(wanted)}; name all dims"
        )
    full = []
    for i, size in enumerate(wanted):
        have = shape[i - extra] if i >= extra else None
        if size == -1 and have is not None:
            size = have
        if size < 0 or (have is not None and have not in (1, size)):
            raise ShapeError(
                f"{op}: The expanded size of the tensor ({size}) must match the existing size ({have}) at "
                f"non-singleton dimension {i}, got {list(wanted)} for {list(shape)}; only sizes of 1 expand"
            )
        full.append(size)
    return _expand.view(input, {"shape": tuple(full)})


@method
def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """This tensor expanded to the shape of ``other``."""
    check_tensors("expand_as", other=other)
    return _expanded("expand_as", input, tuple(other.native.shape))


@method
def view_as(input: Tensor, other: Tensor) -> Tensor:
    """The same memory in the shape of ``other``."""
    check_tensors("view_as", other=other)
    return view(input, tuple(other.native.shape))


@method
def reshape_as(input: Tensor, other: Tensor) -> Tensor:
    """The same elements in the shape of ``other``."""
    check_tensors("reshape_as", other=other)
    return reshape(input, tuple(other.native.shape))


@operation(samples=samples.broadcast_to)
def broadcast_to(input: Tensor, size: Sequence[int]) -> Tensor:
    """A view of the shape ``size``, to which the tensor's own broadcasts."""
    return _expanded("broadcast_to", input, rules.as_shape("broadcast_to", (size,)))


def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """Views of the tensors in their common shape."""
    if len(tensors) == 1 and not isinstance(tensors[0], Tensor):
        tensors = tuple(tensors[0])
    check_tensors("broadcast_tensors", **{f"tensors[{i}]": one for i, one in enumerate(tensors)})
    shape = rules.broadcast("broadcast_tensors", *[tuple(one.native.shape) for one in tensors])
    return tuple([_expanded("broadcast_tensors", one, shape) for one in tensors])


@operation(samples=samples.squeeze)
def squeeze(input: Tensor, dim: Any = None) -> Tensor:
    """Without the dims of size 1: all of them, or those among ``dim``."""
    op = _squeeze if dim is None else _squeeze_dim if isinstance(dim, int) else _squeeze_dims
    return op.view(input, _squeezed(input, dim))


def _squeezed(input: Tensor, dim: Any) -> dict[str, Any]:
    shape = input.native.shape
    dims = rules.wrap_dims("squeeze", dim, len(shape))
    return {"key": tuple([0 if size == 1 and i in dims else slice(None) for i, size in enumerate(shape)])}


@operation(samples=samples.unsqueeze)
def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """With a dim of size 1 put in at ``dim``."""
    return _unsqueeze.view(input, {"dim": rules.wrap_dim("unsqueeze", dim, len(input.native.shape) + 1)})


def _reshaping(name: str, function: Any) -> None:
    """An in-place form that changes how the tensor shows its memory, and none of the values."""

    def call(input: Tensor, *args: Any, **named: Any) -> Tensor:
        if input.node is not None or input.origin is not None:
            check_writable(name, input)
        op, options = function(input, *args, **named)
        view = input.origin
        before = new_tensor(input.native, input.dtype, input.device)
        before.node, before.version, before.origin = input.node, input.version, view
        made = op.view(before, options)
        input.native = made.native
        if view is not None:
            # It stays a view of its base, in its new shape.
            input.origin = made.origin
        if input.version is not None:
            input.version.bump()
        if input.node is not None and mode.enabled:
            attach(input, made.node) if view is None else setattr(input, "node", made.node)
        return input

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"In-place form of :func:`{name[:-1]}`."
    method(call)


_reshaping("squeeze_", lambda input, dim=None: (_squeeze, _squeezed(input, dim)))
_reshaping("unsqueeze_", lambda input, dim: (_unsqueeze, {"dim": rules.wrap_dim("unsqueeze_", dim, input.ndim + 1)}))
_reshaping("transpose_", lambda input, dim0, dim1: (_transpose, {"dims": _swapped("transpose_", input, dim0, dim1)}))
_reshaping("swapaxes_", lambda input, axis0, axis1: (_transpose, {"dims": _swapped("swapaxes_", input, axis0, axis1)}))
_reshaping("swapdims_", lambda input, dim0, dim1: (_transpose, {"dims": _swapped("swapdims_", input, dim0, dim1)}))


def _t_options(input: Tensor) -> tuple[Op, dict[str, Any]]:
    if input.ndim > 2:
        raise ShapeError(
            f"t_: t_() expects a tensor with <= 2 dimensions, got {input.ndim}D; use transpose_(dim0, dim1)"
        )
    return _t, _SWAP if input.ndim == 2 else _KEEP[input.ndim]


_reshaping("t_", _t_options)


@operation(samples=samples.flatten)
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """The dims from ``start_dim`` to ``end_dim`` as one; a tensor of no dims becomes one of a single element."""
    shape = input.native.shape
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
def ravel(input: Tensor) -> Tensor:
    """The elements in one dim: a view where possible, else a copy."""
    return reshape(input, -1) if 0 not in input.native.shape else reshape(input, 0)


@operation(samples=samples.unflatten)
def unflatten(input: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    """One dim as several, of ``sizes``; one of them may be -1."""
    shape = input.native.shape
    if not shape:
        raise ShapeError(
            "unflatten: Dimension specified as 0 but tensor has no dimensions, got a 0-d tensor; use reshape"
        )
    at = rules.wrap_dim("unflatten", dim, len(shape))
    if not len(sizes):
        raise ShapeError("unflatten: sizes must be non-empty, got (); give at least one size")
    full = rules.infer_size("unflatten", rules.as_shape("unflatten", (sizes,)), shape[at])
    return view(input, (*shape[:at], *full, *shape[at + 1 :]))


def _at_least(n: int, doc: str) -> Any:
    def call(*tensors: Any) -> Any:
        if len(tensors) == 1 and isinstance(tensors[0], Tensor):
            return grow(tensors[0])
        if len(tensors) == 1:
            tensors = tuple(tensors[0])
        return tuple([grow(one) for one in tensors])

    def grow(one: Tensor) -> Tensor:
        if not isinstance(one, Tensor):
            raise ArgumentTypeError(f"atleast_{n}d: expected tensors, got {one!r}; wrap it in torch.tensor(...)")
        ndim = len(one.native.shape)
        if ndim >= n:
            return one
        if not ndim:
            return reshape(one, (1,) * n)
        for dim in {(1, 2): (0,), (1, 3): (0, 2), (2, 3): (2,)}[ndim, n]:
            one = unsqueeze(one, dim)
        return one

    call.__name__ = call.__qualname__ = f"atleast_{n}d"
    call.__doc__ = doc
    return operation(method=False, samples=samples.few_dims)(call)


atleast_1d = _at_least(1, "Tensors of no dims as vectors of one element; others as they are.")
atleast_2d = _at_least(2, "Tensors of fewer than two dims with dims of size 1 in front.")
atleast_3d = _at_least(3, "Tensors of fewer than three dims with dims of size 1 around.")


def _inverse(dims: tuple[int, ...]) -> tuple[int, ...]:
    back = [0] * len(dims)
    for i, dim in enumerate(dims):
        back[dim] = i
    return tuple(back)


def _transposed(name: str, doc: str) -> None:
    def get(self: Tensor) -> Tensor:
        ndim = len(self.native.shape)
        if name == "T":
            return _permute.view(self, {"dims": tuple(range(ndim - 1, -1, -1))})
        if name == "H" and ndim not in (0, 2):
            raise ShapeError(f"H: tensor.H is only supported on matrices (2-D tensors), got {ndim}-D; use mH")
        if name in ("mT", "mH") and ndim == 1:
            raise ShapeError(
                f"{name}: expected a matrix or a batch of matrices, got {ndim}-D tensor; use unsqueeze first"
            )
        swapped = transpose(self, -2, -1) if ndim > 1 else self
        return swapped.conj() if name in ("H", "mH") and self.dtype.is_complex else swapped  # type: ignore[attr-defined]

    setattr(Tensor, name, property(get, doc=doc))


_transposed("T", "The dims in reverse order.")
_transposed("mT", "The last two dims swapped.")
_transposed("H", "The matrix, transposed and conjugated.")
_transposed("mH", "The last two dims swapped, and conjugated.")
