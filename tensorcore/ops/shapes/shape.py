"""Views of all elements: the same memory in another shape or order."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from tensorcore import dtypes
from tensorcore.errors import ShapeError
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
    "adjoint", "broadcast_tensors", "broadcast_to", "moveaxis", "movedim", "permute", "reshape", "squeeze",
    "swapaxes", "swapdims", "t", "transpose", "unsqueeze",
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
# Read once: a third of the time of a short call goes to attributes.
_show_view, _show_unsqueezed = _view.view, _unsqueeze.view  # type: ignore[attr-defined]
_show_permuted, _show_transpose, _show_t = (op.view for op in (_permute, _transpose, _t))  # type: ignore[attr-defined]
_show_expanded, _show_squeezed = _expand.view, _squeeze.view  # type: ignore[attr-defined]
_show_squeezed_dim = _squeeze_dim.view  # type: ignore[attr-defined]
_ALL = slice(None)
_SWAP, _KEEP = {"dims": (1, 0)}, ({"dims": ()}, {"dims": (0,)})
_REVERSED = [tuple(range(ndim - 1, -1, -1)) for ndim in range(5)]


@operation(samples=samples.view)
def view(input: Tensor, *shape: Any, size: Any = None, dtype: Any = None) -> Tensor:
    """The same memory in another shape, or its bits as another dtype.

    Args:
        shape: the sizes, of which one may be -1; or a dtype. To a dtype of n times the size, n
            elements of the last dim become one; the other way each becomes n.

    Raises where only a copy could have that shape.
    """
    if type(input) is not Tensor:
        check_tensors("view", input=input)
    count = 1
    for one in shape:
        if type(one) is not int or one < 1:
            break
        count *= one
    else:
        if shape and count == prod(input.native.shape):  # sizes in full: the usual call
            native = input.device.kernels["view"](input.native, shape=shape)
            if native is not None:
                return _show_view(input, {"shape": shape}, native)  # type: ignore[no-any-return]
    if not shape:
        shape = () if size is None and dtype is None else (dtype if size is None else size,)
    if len(shape) == 1 and isinstance(shape[0], dtypes.dtype):
        return _view_dtype(input, shape[0])
    sizes = _sizes("view", input, shape)
    native = input.device.kernels["view"](input.native, shape=sizes)
    if native is None:
        old = input.native.shape
        raise ShapeError(
            f"view: view size is not compatible with input tensor's size and stride (at least one dimension spans across "
            f"two contiguous subspaces), got shape {list(old)} and strides {input.stride()}; Use .reshape(...) instead"
        )
    return _show_view(input, {"shape": sizes}, native)  # type: ignore[no-any-return]


def _sizes(op: str, input: Tensor, sizes: Any) -> tuple[int, ...]:
    """The sizes of as many elements as ``input`` has; without another frame where they are ints that fit, one may be -1."""
    given = sizes[0] if len(sizes) == 1 and type(sizes[0]) is tuple else sizes
    count = prod(input.native.shape)
    known, holes = 1, 0
    for one in given:
        if type(one) is not int or one < 0:
            if type(one) is not int or one < -1:
                break
            holes += 1
        else:
            known *= one
    else:
        if not holes:
            if known == count:
                return given  # type: ignore[no-any-return]
        elif holes == 1 and known and not count % known:
            at = given.index(-1)
            return (*given[:at], count // known, *given[at + 1 :])
    return rules.infer_size(op, rules.as_shape(op, sizes), count)


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
    if type(input) is not Tensor:
        check_tensors("reshape", input=input)
    count = 1
    for one in sizes:
        if type(one) is not int or one < 1:
            sizes = _sizes("reshape", input, sizes if shape is None else (shape,))
            break
        count *= one
    else:
        if shape is not None or count != prod(input.native.shape):
            sizes = _sizes("reshape", input, sizes if shape is None else (shape,))
    native = input.device.kernels["view"](input.native, shape=sizes)
    if native is not None:
        return _show_view(input, {"shape": sizes}, native)
    # A copy that nobody else sees needs no history as a view.
    copied = input.device.kernels["contiguous"](input.native)
    made = new_tensor(input.device.kernels["view"](copied, shape=sizes), input.dtype, input.device)
    if input.node is not None and mode.enabled:
        record(_unsafe_view, (input,), {"shape": sizes}, made)
    return made


@operation(samples=samples.permute)
def permute(input: Tensor, *order: Any, dims: Any = None) -> Tensor:
    """The same memory with its dims in the order ``dims``."""
    if type(input) is not Tensor:
        check_tensors("permute", input=input)
    ndim = len(input.native.shape)
    for one in order:
        if type(one) is not int or one < 0:
            break
    else:
        if dims is None and sorted(order) == [*range(ndim)] and type(input) is Tensor:
            native = input.device.kernels["permute"](input.native, dims=order)
            return _show_permuted(input, {"dims": order}, native)  # type: ignore[no-any-return]
    order = rules.as_shape("permute", order if dims is None else (dims,))
    if len(order) != ndim:
        raise ShapeError(
            f"permute: expected as many dims as the tensor has ({ndim}), got {list(order)}; name each dim once"
        )
    return _permute.view(input, {"dims": rules.wrap_dims("permute", order, ndim)})


@operation(samples=samples.two_dims)
def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """The same memory with two dims swapped."""
    if type(input) is not Tensor:
        check_tensors("transpose", input=input)
    ndim = len(input.native.shape)
    if type(dim0) is int and type(dim1) is int and -ndim <= dim0 < ndim and -ndim <= dim1 < ndim:
        if ndim == 2:
            dims: tuple[int, ...] = (1, 0) if (dim0 ^ dim1) & 1 else (0, 1)
        else:
            swapped = list(range(ndim))
            swapped[dim0], swapped[dim1] = swapped[dim1], swapped[dim0]
            dims = tuple(swapped)
        native = input.device.kernels["permute"](input.native, dims=dims) if type(input) is Tensor else None
        return _show_transpose(input, {"dims": dims}, native)
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
    if type(input) is not Tensor:
        check_tensors("t", input=input)
    ndim = len(input.native.shape)
    if ndim == 2:
        native = input.device.kernels["permute"](input.native, dims=(1, 0)) if type(input) is Tensor else None
        return _show_t(input, _SWAP, native)
    if ndim > 2:
        raise ShapeError(f"t: t() expects a tensor with <= 2 dimensions, got {ndim}D; use transpose(dim0, dim1)")
    return _t.view(input, _KEEP[ndim])


@operation(samples=samples.batches)
def adjoint(input: Tensor) -> Tensor:
    """The last two dims swapped, and conjugated; a 0-d tensor conjugated."""
    if type(input) is not Tensor:
        check_tensors("adjoint", input=input)
    return input.mH if input.native.shape else input.conj()  # type: ignore[attr-defined]


@operation(samples=samples.movedim)
def movedim(input: Tensor, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """The same memory with the dims ``source`` moved to the places ``destination``; the others keep their order."""
    if type(input) is not Tensor:
        check_tensors("movedim", input=input)
    ndim = len(input.native.shape)
    if type(source) is int and type(destination) is int and -ndim <= source < ndim and -ndim <= destination < ndim:
        order = list(range(ndim))
        order.insert(destination % ndim, order.pop(source))
        return _permute.view(input, {"dims": tuple(order)})  # type: ignore[attr-defined, no-any-return]
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
    if type(input) is not Tensor:
        check_tensors("moveaxis", input=input)
    return movedim(input, source, destination)


@operation(samples=samples.expand)
def expand(input: Tensor, *sizes: Any, size: Any = None, implicit: bool = False) -> Tensor:
    """A view with dims of size 1 repeated, without a copy; -1 keeps a size, new dims come in front."""
    return _expanded("expand", input, sizes if size is None else (size,))


def _expanded(op: str, input: Tensor, sizes: tuple[Any, ...]) -> Tensor:
    if type(input) is not Tensor:
        check_tensors(op, input=input)
    shape = input.native.shape
    wanted = sizes[0] if len(sizes) == 1 and type(sizes[0]) is tuple else sizes
    extra = len(wanted) - len(shape)
    if extra >= 0 and type(input) is Tensor:
        for have, one in zip((1,) * extra + tuple(shape), wanted, strict=True):
            if type(one) is not int or (one != have and have != 1) or one < 0:
                break
        else:
            native = input.device.kernels["expand"](input.native, shape=wanted)
            return _show_expanded(input, {"shape": wanted}, native)  # type: ignore[no-any-return]
    wanted = rules.as_shape(op, sizes)
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
    return _expanded("broadcast_to", input, (size,))


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
    if type(input) is not Tensor:
        check_tensors("squeeze", input=input)
    shape = input.native.shape
    if dim is None:
        key: tuple[Any, ...] = tuple([0 if size == 1 else _ALL for size in shape])
        native = input.device.kernels["index"](input.native, key=key) if type(input) is Tensor else None
        return _show_squeezed(input, {"key": key}, native)  # type: ignore[no-any-return]
    if type(dim) is int and -len(shape) <= dim < len(shape):
        key = (_ALL,) * (dim % len(shape)) + (0,) if shape[dim] == 1 else ()
        native = input.device.kernels["index"](input.native, key=key) if type(input) is Tensor else None
        return _show_squeezed_dim(input, {"key": key}, native)  # type: ignore[no-any-return]
    op = _squeeze if dim is None else _squeeze_dim if isinstance(dim, int) else _squeeze_dims
    return op.view(input, _squeezed(input, dim))


def _squeezed(input: Tensor, dim: Any) -> dict[str, Any]:
    shape = input.native.shape
    dims = rules.wrap_dims("squeeze", dim, len(shape))
    return {"key": tuple([0 if size == 1 and i in dims else slice(None) for i, size in enumerate(shape)])}


@operation(samples=samples.unsqueeze)
def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """With a dim of size 1 put in at ``dim``."""
    if type(input) is not Tensor:
        check_tensors("unsqueeze", input=input)
    ndim = len(input.native.shape)
    if type(dim) is not int or not 0 <= dim <= ndim:
        dim = rules.wrap_dim("unsqueeze", dim, ndim + 1)
    native = input.device.kernels["unsqueeze"](input.native, dim=dim) if type(input) is Tensor else None
    return _show_unsqueezed(input, {"dim": dim}, native)


def _reshaping(name: str, function: Any) -> None:
    """An in-place form that changes how the tensor shows its memory, and none of the values."""

    def call(input: Tensor, *args: Any, **named: Any) -> Tensor:
        if input.node is not None or input.trail is not None:
            check_writable(name, input)
        op, options = function(input, *args, **named)
        trail = input.trail
        before = new_tensor(input.native, input.dtype, input.device)
        before.node, before.version, before.trail = input.node, input.version, trail
        made = op.view(before, options)
        input.native = made.native
        if trail is not None:
            # It stays a view of its base, in its new shape.
            input.trail = made.trail
        if input.version is not None:
            input.version.bump()
        if input.node is not None and mode.enabled:
            attach(input, made.node) if trail is None else setattr(input, "node", made.node)
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


def _inverse(dims: tuple[int, ...]) -> tuple[int, ...]:
    back = [0] * len(dims)
    for i, dim in enumerate(dims):
        back[dim] = i
    return tuple(back)


def _transposed(name: str, doc: str) -> None:
    def get(self: Tensor) -> Tensor:
        ndim = len(self.native.shape)
        if name == "T":
            dims = _REVERSED[ndim] if ndim < len(_REVERSED) else tuple(range(ndim - 1, -1, -1))
            native = self.device.kernels["permute"](self.native, dims=dims) if type(self) is Tensor else None
            return _show_permuted(self, {"dims": dims}, native)
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
