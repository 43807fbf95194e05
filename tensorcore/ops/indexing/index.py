"""Indexing: ``x[...]`` to read and to write, with PyTorch's rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorcore import dtypes
from tensorcore.dtypes import bool_, kind_of
from tensorcore.errors import ArgumentTypeError, DimensionError, DtypeError, ShapeError
from tensorcore.ops import rules
from tensorcore.ops.define import Op
from tensorcore.ops.indexing.parse import Indices, Kept, masks, new_dim, parse, simple
from tensorcore.ops.inplace import attach, check_writable, is_free
from tensorcore.ops.kinds import method, operation
from tensorcore.ops.operands import HIGHEST, LOWEST, PLAIN_FLOATS, PLAIN_INTEGERS, check_tensors, lifted
from tensorcore.ops.output import check_apart, written
from tensorcore.ops.record import record
from tensorcore.ops.samples import index as samples
from tensorcore.ops.shapes.convert import copy_
from tensorcore.ops.shapes.shape import _unsqueeze
from tensorcore.ops.shapes.views_part import select_op, slice_op
from tensorcore.shortcuts import before
from tensorcore.tape.mode import mode
from tensorcore.tape.node import add_into
from tensorcore.tensor import Tensor, new_tensor

__all__ = ["index_put", "index_put_"]

_show_select, _show_slice = select_op.view, slice_op.view  # type: ignore[attr-defined]

# The indices of a recorded call are kept as tensors, with their versions, next to what the kernel took.
_index = Op(
    "index", "input", "The elements at places that tensors name.", register=False,
    grads=dict(input=lambda g, input_shape, indices, arrived: _sent_back(g, input_shape, indices.check("index"), arrived)),
)  # fmt: skip
_index_put = Op(
    "index_put", "input values", "A tensor with values written at places that tensors name.", register=False,
    grads=dict(
        input=lambda g, indices, accumulate: g if accumulate else _put(
            _index_put, g, indices.check("index_put"), g.new_zeros(()), False),
        values=lambda g, indices: _read(g, indices.check("index_put"))),
)  # fmt: skip


def nothing(g: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Zeros of ``shape`` beside ``g``, for a call that adds to a copy of them: one zero that is repeated takes no memory."""
    return g.new_zeros(()).expand(shape)  # type: ignore[attr-defined, no-any-return]


def _sent_back(g: Tensor, shape: tuple[int, ...], indices: Indices, arrived: Tensor | None) -> Tensor | None:
    """The gradient of what was read at ``indices``: added to what has arrived, or to zeros."""
    if arrived is None:
        return _put(_index_put, nothing(g, shape), indices, g, True)
    return add_into(arrived, "index_put", g, indices=_natives(indices), accumulate=True)  # type: ignore[func-returns-value]


@before("getitem", _show_slice, _show_select, _unsqueeze.view, dtypes.int64, dtypes.bool_)  # type: ignore[attr-defined]
def getitem(self: Tensor, key: Any) -> Tensor:
    """``self[key]``: a view for ints, slices, None and Ellipsis; a copy as soon as a tensor is among the indices."""
    if found := simple(key, self.native.shape):
        return (_show_slice if found[1] else _show_select)(self, {"key": found[0]})  # type: ignore[no-any-return]
    if (dim := new_dim(key, len(self.native.shape))) is not None:
        return _unsqueeze.view(self, {"dim": dim})  # type: ignore[attr-defined, no-any-return]
    if vectors := _vectors(self, key):
        return _read(self, vectors)
    view, indices = parse(self, key)
    return view if indices is None else _read(view, indices)


def _vectors(self: Tensor, key: Any) -> Indices | None:
    """The indices where every one is a plain tensor of them, for the first dims; None for every other key."""
    shape, device = self.native.shape, self.device
    if type(key) is Tensor:
        key = (key,)
    if type(key) is not tuple or not 0 < len(key) <= len(shape):
        return None
    for one in key:
        if type(one) is not Tensor or one.dtype is not dtypes.int64 or not one.native.shape or one.device is not device:
            return None
    return key


def _fill(self: Tensor, key: Any, value: float) -> bool:
    """Whether a plain mask or plain indices named the places, which have the number now."""
    native, device = self.native, self.device
    if type(key) is Tensor and key.dtype is dtypes.bool_ and key.device is device and key.native.shape == native.shape:
        device.kernels["masked_fill"](
            native, key.native, device.kernels["full"]((), value, dtype=self.dtype), out=native
        )
        return True
    indices = _vectors(self, key)
    if indices is None or 0 in native.shape:
        return False
    places = []
    for one in indices:
        places.append(one.native)
        if one.native.shape != places[0].shape:
            return False
    number = device.kernels["full"]((), value, dtype=self.dtype)
    try:
        device.kernels["index_put"](native, number, indices=tuple(places), accumulate=False, out=native)
    except IndexError:
        return False  # the complete call says what is wrong
    return True


def setitem(self: Tensor, key: Any, value: Any) -> None:
    """``self[key] = value``: a number, or a tensor that broadcasts to the place."""
    native, device = self.native, self.device
    found = simple(key, native.shape)
    if (type(value) is float or type(value) is int) and self.dtype in PLAIN_FLOATS and is_free(self):
        # A number in a tensor of its own needs no tensor for the place.
        if found:
            place = device.kernels["index"](native, key=found[0])
            device.kernels["copy"](place, device.kernels["full"]((), value, dtype=self.dtype))
            written(self)
            return
        if _fill(self, key, value):
            written(self)
            return
    if not isinstance(value, Tensor):
        if kind_of(value) is None:
            raise ArgumentTypeError(
                f"setitem: can't assign a {type(value).__name__} to a tensor of {self.dtype}, "
                f"got {value!r}; wrap it in "
                f"torch.tensor(...)"
            )
        value = number_of(self, value)
    if (
        self.node is None
        and found
        and not (mode.enabled and (value.node is not None or self.trail is not None))
        and value.device is device
        and not value.dtype.is_complex
        and (value.version is None or value.version is not self.version)
    ):
        # Without a history to keep, the place needs no tensor of its own.
        place = device.kernels["index"](native, key=found[0])
        if not value.native.shape or tuple(value.native.shape) == tuple(place.shape):
            check_writable("setitem", self)
            device.kernels["copy"](place, value.native)
            written(self)
            return
    vectors = None if found else _vectors(self, key)
    view, indices = (self, vectors) if vectors else parse(self, key)
    if indices is None:
        copy_(view, _fitting(value, tuple(view.native.shape)))
        return
    if value.dtype is not self.dtype and (self.dtype.is_complex or not value.dtype.is_complex):
        masked = isinstance(key, Tensor) and key.dtype is dtypes.bool_
        if all([size == 1 for size in value.native.shape]) if masked else not value.native.shape:
            # A mask with one value, and a number, are filled in whatever dtype they have.
            value = value.to(self.dtype)  # type: ignore[attr-defined]
    if value.device is not self.device:
        value = value.to(self.device)  # type: ignore[attr-defined]
    check_writable("index_put_", view)
    _put(_index_put, view, indices, value, False, write=True)


Tensor.__getitem__ = getitem  # type: ignore[attr-defined]
Tensor.__setitem__ = setitem  # type: ignore[attr-defined]


@operation(samples=samples.index_put)
def index_put(input: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False) -> Tensor:
    """A copy of ``input`` with ``values`` written at the places that ``indices`` name, one tensor for each dim.

    Args:
        values: broadcast to the shape of ``input[indices]``.
        accumulate: add to what is there; each of several equal indices counts.
    """
    made = _put_plainly(input, indices, values, accumulate, write=False)
    if made is not None:
        return made
    indices = _checked("index_put", input, indices, values)
    values = _one_for_a_mask(input, indices, values, accumulate)
    return _put(_index_put, input, _expanded(input, indices), values, accumulate)


@method
def index_put_(input: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False) -> Tensor:
    """In-place form of :func:`index_put`."""
    if _put_plainly(input, indices, values, accumulate, write=True) is not None:
        return input
    indices = _checked("index_put_", input, indices, values)
    values = _one_for_a_mask(input, indices, values, accumulate)
    check_writable("index_put_", input)
    return _put(_index_put, input, _expanded(input, indices), values, accumulate, write=True)


def _put_plainly(input: Any, indices: Any, values: Any, accumulate: Any, *, write: bool) -> Tensor | None:
    """Plain indices of one shape and as many values, or one, none of it recorded; None for other calls, and where something is wrong."""
    if not (type(input) is type(values) is Tensor and type(indices) in (tuple, list) and type(accumulate) is bool):
        return None
    device, version = input.device, input.version if write else None
    if values.dtype is not input.dtype or values.device is not device or values.node is not None:
        return None
    if not is_free(input) if write else input.node is not None:
        return None
    if not accumulate and len(indices) == 1 and (filled := _filled(input, indices[0], values, write)) is not None:
        return filled
    vectors = _vectors(input, tuple(indices))
    if not vectors:
        return None
    first, shape, places = vectors[0].native.shape, input.native.shape, []  # type: ignore[union-attr]
    for one in vectors:
        native = one.native  # type: ignore[union-attr]
        if native.shape != first or (version is not None and one.version is version):  # type: ignore[union-attr]
            return None
        places.append(native)
    if values.native.shape and values.native.shape != first + shape[len(places) :]:
        return None
    if 0 in first or 0 in shape or (version is not None and values.version is version):
        return None
    options: dict[str, Any] = {"indices": tuple(places), "accumulate": accumulate}
    if write:
        options["out"] = input.native
    try:
        native = device.kernels["index_put"](input.native, values.native, **options)
    except (IndexError, MemoryError):
        return None
    if write:
        written(input)
        return input
    return new_tensor(native, input.dtype, device)  # type: ignore[no-any-return]


def _filled(input: Tensor, mask: Any, value: Tensor, write: bool) -> Tensor | None:
    """One value in the place of all elements that a mask of the same shape names; None for other calls."""
    if (
        type(mask) is not Tensor
        or mask.dtype is not dtypes.bool_
        or mask.device is not input.device
        or value.native.shape
        or mask.native.shape != input.native.shape
        or (write and (mask.version is input.version or value.version is input.version) and input.version is not None)
    ):
        return None
    native = input.device.kernels["masked_fill"](
        input.native, mask.native, value.native, **({"out": input.native} if write else {})
    )
    if write:
        written(input)
        return input
    return new_tensor(native, input.dtype, input.device)  # type: ignore[no-any-return]


def _checked(op: str, input: Any, indices: Any, values: Any) -> tuple[Any, ...]:
    """The indices as a tuple, once all operands are tensors; None stands for a dim that is not indexed."""
    check_tensors(op, input=input, values=values)
    if not isinstance(indices, (tuple, list)):
        raise ArgumentTypeError(f"{op}: expected indices as a tuple of Tensors, got {indices!r}; put them in a tuple")
    check_tensors(op, **{f"indices[{i}]": one for i, one in enumerate(indices) if one is not None})
    return tuple(indices)


def _one_for_a_mask(input: Tensor, indices: tuple[Any, ...], values: Tensor, accumulate: bool) -> Tensor:
    """The values; a single one for the places of one mask in the input's dtype, as PyTorch fills a mask with it."""
    masked = len(indices) == 1 and indices[0] is not None and indices[0].dtype is dtypes.bool_ and not accumulate
    fills = masked and values.numel() == 1 and values.dtype.is_complex <= input.dtype.is_complex  # type: ignore[attr-defined]
    return values.to(input.dtype) if fills else values  # type: ignore[attr-defined, no-any-return]


def number_of(self: Tensor, value: Any, shape: tuple[int, ...] = ()) -> Tensor:
    """A number as a tensor, of no dims unless told, of the dtype and on the device of ``self``."""
    dtype = self.dtype
    if (type(value) is float or type(value) is int) and (dtype.is_floating_point or dtype.is_complex):
        return new_tensor(self.device.kernels["full"](shape, value, dtype=dtype), dtype, self.device)
    if (type(value) is int or type(value) is float) and (
        (dtype in PLAIN_INTEGERS and LOWEST <= value <= HIGHEST)
        or (0 <= value < 128 and dtype.kind == "integer")
        or dtype is bool_
    ):
        value = value != 0 if dtype is bool_ else int(value)
        return new_tensor(self.device.kernels["full"](shape, value, dtype=dtype), dtype, self.device)
    kind = kind_of(value)
    if kind == "complex" and not dtype.is_complex:
        raise DtypeError(
            f"setitem: value cannot be converted to type {dtype.name} without overflow, got {value}; take its real part"
        )
    if dtype.kind == "integer":
        limits = dtypes.iinfo(dtype)
        if not limits.min <= value <= limits.max:
            raise DtypeError(f"setitem: value cannot be converted to type {dtype.name} without overflow, got {value}")
        value = int(value)
    return new_tensor(self.device.kernels["full"](shape, value, dtype=dtype), dtype, self.device)


def _fitting(value: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A value without the leading dims of size 1 that its place lacks."""
    have = value.native.shape
    drop = 0
    while len(have) - drop > len(shape) and have[drop] == 1:
        drop += 1
    return value.reshape(have[drop:]) if drop else value  # type: ignore[attr-defined]


def _expanded(input: Tensor, indices: tuple[Any, ...]) -> Indices:
    """The tensors that a caller of ``index_put`` passed, masks spread."""
    spread: list[Tensor | None] = []
    for one in indices:
        if one is not None and (
            not isinstance(one, Tensor) or one.dtype.name not in ("int64", "int32", "bool", "uint8")
        ):
            raise DimensionError(
                f"index_put: tensors used as indices must be long, int, byte or bool tensors, got "
                f"{one.dtype if isinstance(one, Tensor) else one!r}; convert it with .long()"
            )
        spread.extend(masks(one, input, len(spread)))
    if len(spread) > len(input.native.shape):
        raise DimensionError(
            f"index_put: too many indices for tensor of dimension {len(input.native.shape)}, got "
            f"{len(spread)}; leave some out"
        )
    return tuple(spread)


def _shape_at(op: str, input: Tensor, indices: Indices) -> tuple[int, ...]:
    """The shape of ``input[indices]``: the indices' common shape, in their place if they are neighbours, else in front."""
    first = None if indices[0] is None else tuple(indices[0].native.shape)
    for one in indices:
        if one is None or one.native.shape != first:
            break
    else:
        return (*first, *input.native.shape[len(indices) :])  # type: ignore[misc]
    try:
        common = rules.broadcast(op, *[tuple(one.native.shape) for one in indices if one is not None])
    except ShapeError:
        shapes = ", ".join(str(list(one.native.shape)) for one in indices if one is not None)
        raise DimensionError(
            f"{op}: shape mismatch: indexing tensors could not be broadcast together with shapes {shapes}, got those; "
            f"make them broadcast"
        ) from None
    shape = input.native.shape
    at = [i for i, one in enumerate(indices) if one is not None]
    rest = [size for i, size in enumerate(shape) if i not in at]
    front = at[0] if at[-1] - at[0] == len(at) - 1 else 0
    return (*rest[:front], *common, *rest[front:])


def _reads_something(input: Tensor, indices: Indices, wanted: tuple[int, ...]) -> bool:
    """Whether indices outside the tensor are wrong, or nobody asks for an element: PyTorch does not check them then."""
    shape = input.native.shape
    none = any(one is not None and shape[i] == 0 for i, one in enumerate(indices))
    empty = any(one is not None and not one.numel() for one in indices)
    return 0 not in wanted or (none and not empty)


def _natives(indices: Indices) -> tuple[Any, ...]:
    return tuple([None if one is None else one.native for one in indices])


def _read(input: Tensor, indices: Indices) -> Tensor:
    """The elements at ``indices``, as a copy."""
    shape, alike, natives = None, True, []
    for one in indices:
        if one is None:
            natives.append(None)
            continue
        if one.device is not input.device:
            input, *indices = lifted("index", input, *indices)  # type: ignore[assignment]
            alike, natives = False, list(_natives(indices))
            break
        native = one.native
        if shape is None:
            shape = native.shape
        elif native.shape != shape:
            alike = False
        natives.append(native)
    # Indices of one shape need no look at the shapes.
    if not alike or 0 in input.native.shape:
        wanted = _shape_at("index", input, indices)
        if 0 in wanted and _reads_something(input, indices, wanted):
            raise DimensionError("index: index is out of bounds for dimension with size 0, got one; leave it out")
    try:
        native = input.device.kernels["index_tensors"](input.native, indices=tuple(natives))
    except IndexError as error:
        wanted = _shape_at("index", input, indices)
        if _reads_something(input, indices, wanted):
            raise DimensionError(
                f"index: expected indices inside the tensor, got one outside: {error}; check it"
            ) from None
        native = input.device.allocate(wanted, input.dtype)
    made = new_tensor(native, input.dtype, input.device)
    if input.node is not None and mode.enabled:
        record(_index, (input,), {"indices": Kept(indices)}, made)
    return made


def _put(op: Op, input: Tensor, indices: Indices, values: Tensor, accumulate: bool, *, write: bool = False) -> Tensor:
    """``values`` written at ``indices``, into a copy or (``write``) into ``input`` itself."""
    if values.dtype is not input.dtype:
        raise DtypeError(
            f"index_put: Index put requires the source and destination dtypes match, got "
            f"{input.dtype} for the destination "
            f"and {values.dtype} for the source; convert it with .to(...)"
        )
    if not any([one is not None for one in indices]):
        raise DimensionError("index_put: expected at least one index tensor, got none; use copy_")
    if write:
        check_apart("index_put_", input, (values, *indices), all_of_it=True)
    else:
        input, values, *indices = lifted("index_put", input, values, *indices)  # type: ignore[assignment]
    wanted = _shape_at("index_put", input, indices)
    have = tuple(values.native.shape)
    fitted = _fitting(values, wanted) if have else values
    try:
        fits = not have or rules.broadcast("index_put", tuple(fitted.native.shape), wanted) == wanted
    except ShapeError:
        fits = False
    if not fits:
        raise ShapeError(
            f"index_put: shape mismatch: value tensor of shape {list(have)} cannot be broadcast "
            f"to indexing result of shape "
            f"{list(wanted)}, got that; give it that shape"
        )
    device = input.device
    before = input
    if write:
        before = new_tensor(input.native, input.dtype, device)
        before.node = input.node
    source = fitted.native
    try:
        if 0 in wanted and not _reads_something(input, indices, wanted):
            native = input.native if write else device.kernels["clone"](input.native)
        else:
            native = device.kernels["index_put"](
                input.native,
                source,
                indices=_natives(indices),
                accumulate=accumulate,
                **({"out": input.native} if write else {}),
            )
    except IndexError as error:
        raise DimensionError(
            f"index_put: expected indices inside the tensor, got one outside: {error}; check it"
        ) from None
    made = new_tensor(native, input.dtype, device)
    if write:
        written(input)
    if mode.enabled and (input.node is not None or fitted.node is not None):
        record(op, (before, fitted), {"indices": Kept(indices), "accumulate": accumulate}, made)
        if write and made.node is not None:
            attach(input, made.node)
    return input if write else made
