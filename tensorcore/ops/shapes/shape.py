"""Views of all elements: the same memory in another shape."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any

from tensorcore import dtypes
from tensorcore.backend.base import Backend, Native
from tensorcore.errors import ShapeError
from tensorcore.ops import rules
from tensorcore.ops.define import Op, named, same
from tensorcore.ops.inplace import attach, check_writable
from tensorcore.ops.kinds import method, operation
from tensorcore.ops.kinds import view as view_op
from tensorcore.ops.operands import check_tensors
from tensorcore.ops.output import written
from tensorcore.ops.placement import check_stored
from tensorcore.ops.record import record
from tensorcore.ops.samples import index as samples
from tensorcore.shortcuts import before
from tensorcore.tape.mode import mode
from tensorcore.tensor import Tensor, new_tensor

__all__ = ["broadcast_tensors", "broadcast_to", "reshape", "squeeze", "unsqueeze"]

# Ops of one kernel that differ in what a printed grad_fn calls them


def _viewing(name: str, kernel: str = "view", backward_name: str | None = None) -> Op:
    return view_op(name, "The same elements in another shape.", kernel=kernel, backward_name=backward_name,
                   grad=lambda g, input_shape: g.reshape(input_shape))  # fmt: skip


_view, _unsafe_view = _viewing("view"), _viewing("unsafe_view")
_squeeze, _unsqueeze = _viewing("squeeze", "index"), _viewing("unsqueeze", "unsqueeze")
_squeeze_dim, _squeeze_dims = (_viewing("squeeze", "index", f"SqueezeBackward{i}") for i in (1, 2))
_expand = view_op("expand", "Dims of size 1 repeated without a copy.", kernel="expand", grad=same)
_alias = view_op("alias", "The same memory as it is.", kernel="index", grad=lambda g, key: g)
_reinterpret = Op("reinterpret", "input", "The same bits as another dtype.", register=False)
# Read once: a third of the time of a short call goes to attributes.
_show_view, _show_unsqueezed = _view.view, _unsqueeze.view  # type: ignore[attr-defined]
_show_expanded, _show_squeezed = _expand.view, _squeeze.view  # type: ignore[attr-defined]
_show_squeezed_dim = _squeeze_dim.view  # type: ignore[attr-defined]
_ALL = slice(None)


@operation(samples=samples.view)
@before("viewed", _show_view, _view.kernel, False)
def view(input: Tensor, *shape: Any, size: Any = None, dtype: Any = None) -> Tensor:
    """The same memory in another shape, or its bits as another dtype.

    Args:
        shape: the sizes, of which one may be -1; or a dtype. To a dtype of n times the size, n
            elements of the last dim become one; the other way each becomes n.

    Raises where only a copy could have that shape.
    """
    if type(input) is not Tensor:
        check_tensors("view", input=input)
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


@before("sizes")
def _sizes(op: str, input: Tensor, sizes: Any) -> tuple[int, ...]:
    """The sizes of as many elements as ``input`` has; without another frame where they are ints that fit, one may be -1."""
    given = tuple(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], tuple) else sizes
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
    check_stored("view", dtype, input.device)
    native = input.device.kernels["reinterpret"](input.native, dtype=dtype)
    alias = _alias.view(input.detach(), {"key": ()}, input.native)
    made = new_tensor(native, dtype, input.device)
    made.version = alias.version
    return made


def in_shape(device: Backend, native: Native, shape: tuple[int, ...]) -> Native:
    """A native array with its elements in another shape: a view where possible, else a copy."""
    made = device.kernels["view"](native, shape=shape)
    return device.kernels["view"](device.kernels["contiguous"](native), shape=shape) if made is None else made


@operation(samples=samples.reshape)
@before("viewed", _show_view, _view.kernel, True)
def reshape(input: Tensor, *sizes: Any, shape: Any = None) -> Tensor:
    """The same elements in another ``shape``: a view where possible, else a copy. One size may be -1."""
    if type(input) is not Tensor:
        check_tensors("reshape", input=input)
    sizes = _sizes("reshape", input, sizes if shape is None else (shape,))
    native = input.device.kernels["view"](input.native, shape=sizes)
    if native is not None:
        return _show_view(input, {"shape": sizes}, native)
    # A copy that nobody else sees needs no history as a view.
    made = new_tensor(in_shape(input.device, input.native, sizes), input.dtype, input.device)
    if input.node is not None and mode.enabled:
        record(_unsafe_view, (input,), {"shape": sizes}, made)
    return made


@operation(samples=samples.expand)
@before("expanded", _show_expanded, False)
def expand(input: Tensor, *sizes: Any, size: Any = None, implicit: bool = False) -> Tensor:
    """A view with dims of size 1 repeated, without a copy; -1 keeps a size, new dims come in front."""
    return _expanded("expand", input, sizes if size is None else (size,))


def _expanded(op: str, input: Tensor, sizes: tuple[Any, ...]) -> Tensor:
    if type(input) is not Tensor:
        check_tensors(op, input=input)
    shape = input.native.shape
    wanted = tuple(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], tuple) else sizes
    extra = len(wanted) - len(shape)
    if extra >= 0 and type(input) is Tensor:
        at = -extra
        for one in wanted:
            if (
                type(one) is not int
                or (one < 0 and (at < 0 or one != -1))
                or (at >= 0 and shape[at] not in (1, one) and one != -1)
            ):
                break
            at += 1
        else:
            if -1 in wanted:
                wanted = tuple([shape[i - extra] if one == -1 else one for i, one in enumerate(wanted)])
            return _show_expanded(input, {"shape": wanted})  # type: ignore[no-any-return]
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
@before("expanded", _show_expanded, True)
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
def squeeze(input: Tensor, dim: Any = None, *, axis: Any = None) -> Tensor:
    """Without the dims of size 1: all of them, or those among ``dim``."""
    if dim is None:
        dim = axis
    if type(input) is not Tensor:
        check_tensors("squeeze", input=input)
    shape = input.native.shape
    if dim is None:
        return _show_squeezed(input, _solid(shape))  # type: ignore[no-any-return]
    if type(dim) is int and -len(shape) <= dim < len(shape):
        key: tuple[Any, ...] = (_ALL,) * (dim % len(shape)) + (0,) if shape[dim] == 1 else ()
        return _show_squeezed_dim(input, {"key": key})  # type: ignore[no-any-return]
    op = _squeeze if dim is None else _squeeze_dim if isinstance(dim, int) else _squeeze_dims
    return op.view(input, _squeezed(input, dim))


@lru_cache(1024)
def _solid(shape: tuple[int, ...]) -> dict[str, Any]:
    """What leaves out the dims of size 1; not to be changed, because others get the same."""
    return {"key": tuple([0 if size == 1 else _ALL for size in shape])}


def _squeezed(input: Tensor, dim: Any) -> dict[str, Any]:
    shape = input.native.shape
    dims = rules.wrap_dims("squeeze", dim, len(shape))
    return {"key": tuple([0 if size == 1 and i in dims else slice(None) for i, size in enumerate(shape)])}


@operation(samples=samples.unsqueeze)
def unsqueeze(input: Tensor, dim: int | None = None, *, axis: int | None = None) -> Tensor:
    """With a dim of size 1 put in at ``dim``."""
    if dim is None:
        dim = axis
    if type(input) is not Tensor:
        check_tensors("unsqueeze", input=input)
    ndim = len(input.native.shape)
    if type(dim) is not int or not 0 <= dim <= ndim:
        dim = rules.wrap_dim("unsqueeze", dim, ndim + 1)
    return _show_unsqueezed(input, {"dim": dim})  # type: ignore[no-any-return]


def _reshaping(name: str, function: Any, kernel: str, option: str, way: str) -> None:
    """An in-place form that changes how the tensor shows its memory, and none of the values.

    Args:
        kernel, option: by which its usual calls do so, and ``way``: what the option is made of, see ``run_reshaped``.
    """
    function.__qualname__ = name  # what Python says of a wrong argument

    @before("reshaped", kernel, (option,), way)
    @named(name)
    def call(input: Tensor, *args: Any, **named: Any) -> Tensor:
        trail = input.trail
        if input.node is not None or trail is not None:
            check_writable(name, input)
        op, options = function(input, *args, **named)
        if type(input) is Tensor and input.node is trail is None:  # no view that anybody has to know of: half the time
            input.native = input.device.kernels[op.kernel](input.native, **options)
            written(input)
            return input
        earlier = new_tensor(input.native, input.dtype, input.device)
        earlier.node, earlier.version, earlier.trail = input.node, input.version, trail
        made = op.view(earlier, options)
        input.native = made.native
        if trail is not None:
            # It stays a view of its base, in its new shape.
            input.trail = made.trail
        written(input)
        if input.node is not None and mode.enabled:
            attach(input, made.node) if trail is None else setattr(input, "node", made.node)
        return input

    setattr(Tensor, name, call)


def _squeezing(input: Tensor, dim: Any = None, *, axis: Any = None) -> tuple[Op, dict[str, Any]]:
    dim = axis if dim is None else dim
    return _squeeze, _solid(input.native.shape) if dim is None else _squeezed(input, dim)


_reshaping("squeeze_", _squeezing, "index", "key", "solid")


def _unsqueezing(input: Tensor, dim: Any = None, *, axis: Any = None) -> tuple[Op, dict[str, Any]]:
    return _unsqueeze, {"dim": rules.wrap_dim("unsqueeze_", axis if dim is None else dim, input.ndim + 1)}


_reshaping("unsqueeze_", _unsqueezing, "unsqueeze", "dim", "unwrapped")
