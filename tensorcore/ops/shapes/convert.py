"""Conversions: to another dtype or device, copies, and memory laid out anew."""

from __future__ import annotations

from typing import Any

from tensorcore import dtypes
from tensorcore.backend.base import Backend
from tensorcore.backend.registry import device as find_device
from tensorcore.errors import ArgumentTypeError, ShapeError, not_bool
from tensorcore.formats import channels_last, channels_last_3d, contiguous_format, order_of, preserve_format, strided
from tensorcore.ops import rules, samples
from tensorcore.ops.calls import apply
from tensorcore.ops.creation.literal import as_scalar, host_array
from tensorcore.ops.define import Op, same
from tensorcore.ops.inplace import attach, check_recordable, check_same_device, check_writable, is_free
from tensorcore.ops.kinds import method, operation
from tensorcore.ops.operands import check_tensors
from tensorcore.ops.output import check_apart, written
from tensorcore.ops.placement import Default, host_device, not_stored
from tensorcore.ops.record import record
from tensorcore.ops.shortage import again
from tensorcore.shortcuts import before, elementwise_way
from tensorcore.tape.mode import mode
from tensorcore.tensor import Tensor, new_tensor

__all__ = ["clone", "contiguous", "copy_", "fill_", "to", "type_as", "zero_"]

# The walk fits each gradient to the dtype of the tensor it belongs to, so a cast passes it on.
_cast = Op("to", "input", "The same values in another dtype.", kernel="cast", grads=dict(input=same),
           backward_name="ToCopyBackward0", register=False)  # fmt: skip
_clone = Op("clone", "input", "A copy.", grads=dict(input=same), register=False)
_contiguous = Op("contiguous", "input", "A copy in row-major order.", grads=dict(input=same),
                 backward_name="CloneBackward0", register=False)  # fmt: skip
# What was in the memory before has a gradient too, which is zero: leaves that it came from get zeros, and not None.
_written = dict(input=lambda g: g.new_zeros(g.shape), src=same)
_copy = Op("copy", "input src", "The values of src in the memory of input.", grads=_written,
           backward_name="torch::autograd::CopyBackwards", register=False)  # fmt: skip
# Zeros and one value for all, which have names of their own on the tape.
_fill_op = Op("fill", "input src", "One value in the memory of input.", grads=_written, register=False)
_zero_op = Op("zero", "input src", "Zeros in the memory of input.", grads=_written, register=False)
_move = Op("move", "input", "The same values on another device.", register=False, backward_name="ToCopyBackward0",
           grads=dict(input=lambda g, source, target: g.to(source)))  # fmt: skip


_SWITCHES = ("non_blocking", "copy")
_OPTIONS = ("dtype", "device", "other", *_SWITCHES, "memory_format")


@method
def to(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The tensor in another dtype, on another device, or both; the tensor itself where nothing changes.

    Args:
        args: a dtype, a device (or its name), a dtype after a device, or another tensor to be like; then ``non_blocking``
            and ``copy``.
        kwargs: ``dtype``, ``device``, ``other``, ``non_blocking``, ``copy`` (a copy even where nothing changes),
            ``memory_format``.
    """
    if len(args) == 1 and not kwargs:
        one = find_device(args[0]) if type(args[0]) is str else args[0]
        if one is input.device or one is input.dtype:
            return input
        if type(one) is dtypes.dtype and type(input) is Tensor and input.node is None:  # nothing to record
            device = input.device
            if one.name not in device.capabilities.dtypes:
                raise not_stored("to", one, device)
            try:
                return new_tensor(device.kernels["cast"](input.native, dtype=one), one, device)
            except MemoryError:
                pass  # tried once more, with the caches freed
    given = dict(zip(_SWITCHES, [one for one in args if isinstance(one, bool)], strict=False)) | kwargs
    dtype, device = given.get("dtype"), given.get("device")
    non_blocking, copy = [given.get(name, False) for name in _SWITCHES]
    for name, one in given.items():
        if name not in _OPTIONS:
            raise ArgumentTypeError(
                f"to: expected one of the options {', '.join(_OPTIONS)}, got '{name}'; pass one of these"
            )
        if name in _SWITCHES and one is not False and one is not True:
            raise not_bool("to", name, one)
    for one in (*args, given.get("other")):
        if isinstance(one, dtypes.dtype) or one in (float, int, bool, complex):
            dtype = one
        elif isinstance(one, (Backend, str)) or type(one) is int:
            device = one
        elif isinstance(one, Tensor):
            dtype, device = one.dtype, one.device
        elif not isinstance(one, bool) and one is not None:
            raise ArgumentTypeError(
                f"to: expected a dtype, a device or a tensor, got {one!r}; pass e.g. torch.float64 or a device's name"
            )
    made = input
    if device is not None:
        target = device if isinstance(device, Backend) else find_device(device)
        if target is input.device:
            pass
        elif (target.many or input.device.many) and (
            met := input.device.meet(target) or target.meet(input.device)
        ) is not None:
            made = met.lift(input)
        else:
            if input.dtype.name not in target.capabilities.dtypes:
                if dtype is None or dtypes.as_dtype(dtype, "to").name not in target.capabilities.dtypes:
                    raise not_stored("to", input.dtype, target)
                input = to(input, dtype)  # converted before it goes there
            native = _moved(input, target, non_blocking)
            made = new_tensor(native, input.dtype, target)
            if mode.enabled and input.node is not None:
                record(_move, (input,), {"source": input.device, "target": target}, made)
    if dtype is not None:
        dtype = dtypes.as_dtype(dtype, "to")
        if dtype is not made.dtype:
            if dtype.name not in made.device.capabilities.dtypes:
                raise not_stored("to", dtype, made.device)
            made = apply(_cast, (made,), {"dtype": dtype}, dtype=dtype)
    format = kwargs.get("memory_format")
    if format is not None and format is not preserve_format:
        order_of("to", format, len(input.native.shape))
        fits = made.is_contiguous(memory_format=format)
        return clone(made, memory_format=format) if not fits or (copy and made is input) else made
    return clone(input) if copy and made is input else made


def _moved(input: Tensor, target: Backend, non_blocking: bool) -> Any:
    if not non_blocking:
        return target.copy_from(input.device, input.native)
    if target.capabilities.host:
        return target.share_host(input.device.begin_to_host(input.native))
    return target.begin_copy(input.device, input.native)


@operation(samples=samples.unary)
@elementwise_way(_clone, again, None, None)
def clone(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """A copy, on the tape; strides are kept where the memory is dense, unless a ``memory_format`` asks for others."""
    if type(input) is not Tensor:
        check_tensors("clone", input=input)
    if memory_format is None or memory_format is preserve_format:
        return apply(_clone, (input,))
    return _laid_out(input, order_of("clone", memory_format, len(input.native.shape)))


@method
@before("contiguous")
def contiguous(input: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor itself where its memory is in row-major order (or ``memory_format``) without gaps, else a copy that is."""
    if memory_format not in (None, contiguous_format, preserve_format):
        order = order_of("contiguous", memory_format, len(input.native.shape))
        return input if input.is_contiguous(memory_format=memory_format) else _laid_out(input, order)
    return input if input.device.is_contiguous(input.native) else apply(_contiguous, (input,))


def with_channels_of(made: Tensor, input: Tensor) -> Tensor:
    """``made``, computed from ``input`` by other ops, with the channels innermost in memory where those of ``input`` are."""
    device, native = input.device, input.native
    formats = {4: channels_last, 5: channels_last_3d}
    if device.is_contiguous(native) or len(native.shape) not in formats:
        return made
    from tensorcore.backend.layouts import is_channels_last  # not at import: few ask

    if not is_channels_last(tuple(native.shape), device.strides(native)):
        return made
    return contiguous(made, formats[len(native.shape)])


def _laid_out(input: Tensor, order: tuple[int, ...] | None) -> Tensor:
    """A copy with the dims in ``order`` in memory, from the largest stride to the smallest; row-major for None."""
    if order is None:
        return apply(_contiguous, (input,))
    kernels = input.device.kernels
    rows = kernels["contiguous"](kernels["permute"](input.native, dims=order))
    if rows is input.native or input.device.storage_key(rows) == input.device.storage_key(input.native):
        rows = kernels["clone"](rows)
    back = tuple([order.index(i) for i in range(len(order))])
    made = new_tensor(kernels["permute"](rows, dims=back), input.dtype, input.device)
    if mode.enabled and input.node is not None:
        record(_contiguous, (input,), None, made)
    return made


@method
@before("on_host", Default)
def cpu(input: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor in the host's memory; itself where it is there already."""
    return to(input, host_device())


@method
def cuda(input: Tensor, device: Any = "cuda", non_blocking: bool = False, memory_format: Any = None) -> Tensor:
    """The tensor on a GPU: the first one, or that of an index or a name."""
    if device is None:
        return cuda(input, non_blocking=non_blocking)
    return to(input, f"cuda:{device}" if isinstance(device, int) else device, non_blocking=non_blocking)


@method
def type_as(input: Tensor, other: Tensor) -> Tensor:
    """The tensor in the dtype and on the device of ``other``."""
    return to(input, other.dtype) if other.device is input.device else to(input, other.device, other.dtype)


@method
def copy_(input: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
    """Write the values of ``src``, a number too, broadcast, cast and moved, into this tensor's memory."""
    if (
        type(src) is Tensor
        and is_free(input)
        and src.dtype is input.dtype
        and src.device is input.device
        and src.native.shape == input.native.shape
        and (src.node is None or not mode.enabled)
        and (src.version is None or src.version is not input.version or src.native is input.native)
    ):
        input.device.kernels["copy"](input.native, src.native)
        written(input)
        return input
    if isinstance(input, Tensor):
        check_apart("copy_", input, (src,))
        src = _of_number(src, input.dtype)
    return write(_copy, input, src, non_blocking)


def _of_number(src: Any, target: dtypes.dtype) -> Any:
    """A tensor of the host that holds a number as its own dtype, cast to another, does; anything else as it is."""
    if isinstance(src, Tensor) or dtypes.kind_of(src) is None:
        return src
    host, (array, own) = host_device(), host_array("copy_", src, None)
    kind = {dtypes.float32: dtypes.float64, dtypes.complex64: dtypes.complex128}.get(own, own)
    number = new_tensor(host.from_host(array.astype(kind.numpy)), kind, host)
    if kind.is_complex and not target.is_complex and target is not dtypes.bool_:
        number = number.real  # type: ignore[attr-defined]
    return to(number, target)


def write(op: Op, input: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
    """The copy behind ``copy_``, ``fill_`` and ``zero_``, recorded under the name of ``op``."""
    check_writable("copy_", input)
    if not isinstance(src, Tensor):
        raise ArgumentTypeError(f"copy_: expected src to be a Tensor, got {src!r}; wrap it in torch.tensor(...)")
    rules.broadcast("copy_", tuple(src.native.shape), tuple(input.native.shape))
    if rules.broadcast("copy_", tuple(src.native.shape), tuple(input.native.shape)) != tuple(input.native.shape):
        rules.cannot_expand("copy_", tuple(src.native.shape), tuple(input.native.shape))
    source = to(src, input.device, non_blocking=non_blocking)
    check_same_device("copy_", input, source.device)
    native = source.native
    if source.dtype.is_complex and not input.dtype.is_complex and input.dtype is not dtypes.bool_:
        native = input.device.kernels["real"](native)
    recording = mode.enabled and (src.node is not None or input.node is not None)
    if recording:
        check_recordable("copy_", input)
    before = new_tensor(input.native, input.dtype, input.device)
    before.node = input.node
    input.device.kernels["copy"](input.native, native)
    written(input)
    if recording:
        made = new_tensor(input.native, input.dtype, input.device)
        record(op, (before, source), None, made)
        attach(input, made.node)
    return input


@method
def fill_(input: Tensor, value: Any) -> Tensor:
    """Write one value into every element."""
    return _fill(input, value)


def _fill(input: Tensor, value: Any, op: Op = _fill_op) -> Tensor:
    if not isinstance(value, Tensor):
        if dtypes.kind_of(value) is None:
            raise ArgumentTypeError(f"fill_: expected value to be a number or a 0-d Tensor, got {value!r}; use copy_")
        number = as_scalar("fill_", value, input.dtype, input.native.shape)
        if is_free(input):
            input.device.kernels["fill"](input.native, number)
            written(input)
            return input
        native = input.device.kernels["full"]((), number, dtype=input.dtype)
        value = new_tensor(native, input.dtype, input.device)
    if value.native.shape:
        raise ShapeError(
            f"fill_: only supports 0-dimension value tensor but got tensor with {len(value.native.shape)} dimensions; "
            "use copy_"
        )
    repeated = [i for i, step in enumerate(input.stride()) if step == 0 and input.native.shape[i] > 1]  # type: ignore[attr-defined]
    if repeated and not (mode.enabled and (input.node is not None or value.node is not None)):
        # Every element gets the same value, so one of those that share a place stands for all.
        part = input
        for dim in repeated:
            part = part.narrow(dim, 0, 1)  # type: ignore[attr-defined]
        write(op, part, value)
        return input
    return write(op, input, value)


@method
def zero_(input: Tensor) -> Tensor:
    """Write zero into every element."""
    if not is_free(input):
        return _fill(input, 0, _zero_op)
    input.device.kernels["fill"](input.native, 0)
    written(input)
    return input


Tensor.layout = property(lambda self: strided, doc="How the elements are stored.")  # type: ignore[attr-defined]


def _as(name: str, target: dtypes.dtype) -> None:
    def convert(self: Tensor, memory_format: Any = None) -> Tensor:
        return to(self, target) if memory_format is None else to(self, target, memory_format=memory_format)

    convert.__name__ = convert.__qualname__ = name
    convert.__doc__ = f"The tensor in ``{target.name}``."
    method(convert)


for _name, _target in {
    "float": dtypes.float32, "double": dtypes.float64, "half": dtypes.float16, "bfloat16": dtypes.bfloat16,
    "int": dtypes.int32, "long": dtypes.int64, "short": dtypes.int16, "char": dtypes.int8, "byte": dtypes.uint8,
    "bool": dtypes.bool_, "cfloat": dtypes.complex64, "cdouble": dtypes.complex128,
}.items():  # fmt: skip
    _as(_name, _target)
