"""Tensors from nothing: filled, counted, or from Python's and NumPy's data."""

from __future__ import annotations

from math import ceil, inf, isfinite, prod
from typing import Any

import numpy as np

from tensorcore import dtypes
from tensorcore.backend.base import Backend
from tensorcore.backend.places import kept_strides
from tensorcore.dtypes import dtype as Dtype
from tensorcore.errors import (
    ArgumentTypeError,
    ConversionError,
    DtypeError,
    OutOfMemoryError,
    ShapeError,
    UnsupportedDtype,
    not_bool,
)
from tensorcore.formats import is_sparse, only_strided, order_of, preserve_format
from tensorcore.ops import rules, samples
from tensorcore.ops.creation.arrays import from_numpy
from tensorcore.ops.creation.literal import as_scalar, filled_as, host_array, plainly_filled
from tensorcore.ops.kinds import method, operation
from tensorcore.ops.output import store
from tensorcore.ops.placement import Default, as_device, check_stored, get_default_device, not_stored
from tensorcore.ops.shortage import again
from tensorcore.shortcuts import before
from tensorcore.tensor import Tensor, new_tensor

__all__ = [
    "arange", "as_tensor", "empty", "empty_like", "empty_strided", "from_numpy", "full", "full_like",
    "is_tensor", "numel", "ones", "ones_like", "tensor", "zeros", "zeros_like",
]  # fmt: skip


_NUMBERS = {int, float}
_EXACT = 2.0**53  # below it a float holds every int


def made(native: Any, dtype: Dtype, device: Backend, requires_grad: bool) -> Tensor:
    """A tensor around a new native array, a leaf of the tape if asked."""
    new = new_tensor(native, dtype, device)
    return new.requires_grad_(requires_grad) if requires_grad else new


@before("filled", as_scalar, Default, vars(dtypes), Dtype, Backend, again)
def _filled(op: str, size: Any, value: Any, dtype: Any, device: Any, requires_grad: bool, out: Tensor | None) -> Tensor:
    shape = _shape(op, size)
    wanted = None if dtype is None else dtypes.as_dtype(dtype, op)
    if out is not None:
        if wanted is not None and wanted is not out.dtype:
            raise DtypeError(
                f"{op}: dtype {wanted} does not match dtype of out parameter ({out.dtype}), got both; leave one out"
            )
        if tuple(out.native.shape) != shape:
            out.native = out.device.allocate(shape, out.dtype)
        return out if value is None else out.fill_(value)  # type: ignore[attr-defined]
    wanted = wanted or dtypes.get_default_dtype()
    target = as_device(device)
    if (device is not None or dtype is not None) and wanted.name not in target.capabilities.dtypes:
        raise not_stored(op, wanted, target)
    return _made(op, shape, value, wanted, target, requires_grad)


def _made(op: str, shape: Any, value: Any, dtype: Dtype, device: Backend, requires_grad: bool) -> Tensor:
    """A tensor of one value, of undefined ones where that is None."""
    if value is not None and not (
        type(value) is int and 0 <= value <= (1 if dtype.kind == "bool" else 127)
    ):  # others may not fit
        value = as_scalar(op, value, dtype, shape)
    try:
        native = device.allocate(shape, dtype) if value is None else device.kernels["full"](shape, value, dtype=dtype)
    except MemoryError as error:
        native = again(device, "full", (shape, 0 if value is None else value), {"dtype": dtype}, error)
    new = new_tensor(native, dtype, device)
    return new.requires_grad_(requires_grad) if requires_grad else new


def _shape(op: str, size: Any) -> tuple[int, ...]:
    """Sizes as programs give them, none negative, and no more elements than an int counts."""
    given = tuple(size[0]) if len(size) == 1 and isinstance(size[0], tuple) else size
    count = 1
    for one in given:
        if type(one) is not int or one < 0:
            break
        count *= one
    else:
        if count < 2**63 and type(given) is tuple:
            return given  # the usual call
    shape = rules.as_shape(op, size)
    if shape and min(shape) < 0:
        raise ShapeError(
            f"{op}: Trying to create tensor with negative dimension {min(shape)}, got {list(shape)}; use sizes >= 0"
        )
    if prod(shape) >= 2**63:
        raise OutOfMemoryError(
            f"{op}: expected fewer than 2**63 elements, got {list(shape)}; Storage size calculation overflowed"
        )
    return shape


def _sizes(op: str, sizes: tuple[Any, ...], size: Any) -> tuple[Any, ...]:
    """Sizes given one by one, as one tuple, or by keyword."""
    if size is not None:
        return (size,)
    if not sizes:
        raise ArgumentTypeError(
            f"{op}: missing 1 required positional argument: 'size', got none; pass () for a 0-d tensor"
        )
    return sizes


def _sparse(op: str, size: Any, *options: Any) -> Tensor:
    from tensorcore.ops.sparse.making import without_elements

    return without_elements(op, _shape(op, size), *options)  # type: ignore[no-any-return]


def empty(*sizes: Any, size: Any = None, out: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
          requires_grad: bool = False, pin_memory: bool = False, memory_format: Any = None) -> Tensor:  # fmt: skip
    """A tensor of undefined values, in page-locked memory with ``pin_memory``; of no elements in a sparse ``layout``."""
    if layout is not None and is_sparse("empty", layout):
        return _sparse("empty", _sizes("empty", sizes, size), layout, dtype, device, requires_grad, out)
    made = _filled("empty", _sizes("empty", sizes, size), None, dtype, device, not pin_memory and requires_grad, out)
    if memory_format is not None and order_of("empty", memory_format, len(made.native.shape)):
        made = like("empty", made, None, None, None, made.requires_grad, memory_format)
    return _pinned(made, requires_grad, pin_memory) if pin_memory else made


def zeros(*sizes: Any, size: Any = None, out: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
          requires_grad: bool = False, pin_memory: bool = False) -> Tensor:  # fmt: skip
    """A tensor of zeros, in page-locked memory with ``pin_memory``; of no elements in a sparse ``layout``."""
    if layout is not None and is_sparse("zeros", layout):
        return _sparse("zeros", _sizes("zeros", sizes, size), layout, dtype, device, requires_grad, out)
    made = _filled("zeros", _sizes("zeros", sizes, size), 0, dtype, device, not pin_memory and requires_grad, out)
    return _pinned(made, requires_grad, pin_memory) if pin_memory else made


def ones(*sizes: Any, size: Any = None, out: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
         requires_grad: bool = False, pin_memory: bool = False) -> Tensor:  # fmt: skip
    """A tensor of ones, in page-locked memory with ``pin_memory``."""
    only_strided("ones", layout)
    made = _filled("ones", _sizes("ones", sizes, size), 1, dtype, device, not pin_memory and requires_grad, out)
    return _pinned(made, requires_grad, pin_memory) if pin_memory else made


def full(size: Any, fill_value: Any, *, out: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
         requires_grad: bool = False, pin_memory: bool = False) -> Tensor:  # fmt: skip
    """A tensor of one value, of that value's dtype unless another is named; page-locked with ``pin_memory``."""
    only_strided("full", layout)
    if (
        out is dtype is device is None
        and type(size) is tuple
        and type(fill_value) is int
        and not requires_grad
        and not pin_memory
    ):
        shape = _shape("full", (size,))
        if (plain := plainly_filled(shape, fill_value, dtypes.int64, as_device(None))) is not None:
            return plain
    if hasattr(size, "__index__"):
        raise ArgumentTypeError(f"full: argument 'size' must be tuple of ints, got {size!r}; write ({size!r},)")
    kind, fill_value = _fill_value("full", fill_value)
    if dtype is None and out is None:
        dtype = dtypes.default_for(kind)
    made = _filled("full", (size,), fill_value, dtype, device, not pin_memory and requires_grad, out)
    return _pinned(made, requires_grad, pin_memory) if pin_memory else made


def _fill_value(op: str, value: Any) -> tuple[str, Any]:
    """A number, or the one in a 0-d tensor, and its kind."""
    if isinstance(value, Tensor) and not value.native.shape:
        return value.dtype.kind, value.item()
    kind = dtypes.kind_of(value)
    if kind is None:
        raise ArgumentTypeError(
            f"{op}: argument 'fill_value' must be Number, got {type(value).__name__}; use torch.tensor(...)"
        )
    return kind, value


def _pinned(tensor: Tensor, requires_grad: bool, pin_memory: bool = True) -> Tensor:
    if pin_memory is not True:
        raise not_bool("pin_memory", "pin_memory", pin_memory)
    pinned = tensor.pin_memory()  # type: ignore[attr-defined]
    return pinned.requires_grad_(requires_grad) if requires_grad else pinned  # type: ignore[no-any-return]


def like(
    op: str, input: Tensor, value: Any, dtype: Any, device: Any, requires_grad: bool, memory_format: Any = None
) -> Tensor:
    """A tensor of the input's shape that lies in memory as the input does, without its gaps and overlaps."""
    if not isinstance(input, Tensor):
        raise ArgumentTypeError(
            f"{op}: argument 'input' must be Tensor, got {type(input).__name__}; wrap it in torch.tensor(...)"
        )
    if (
        (dtype is None or dtype is dtypes.bool_)  # which every device has
        and device is None is memory_format
        and type(input) is Tensor
        and input.device.is_contiguous(input.native)
    ):
        return _filled(op, input.native.shape, value, dtype or input.dtype, input.device, requires_grad, None)
    shape = tuple(input.native.shape)
    dtype, device = dtype or input.dtype, input.device if device is None else device
    if type(input) is not Tensor and not value and hasattr(input, "emptied"):  # a sparse tensor of no elements
        return input.emptied(dtype, device, requires_grad)  # type: ignore[no-any-return]
    order: Any = None
    if memory_format is not None and memory_format is not preserve_format:
        order = order_of(op, memory_format, len(shape))
        if order is None:
            return _filled(op, (shape,), value, dtype, device, requires_grad, None)
    elif input.device.is_contiguous(input.native):
        return _filled(op, (shape,), value, dtype, device, requires_grad, None)
    if order is None:
        strides = kept_strides(shape, [(shape, input.stride())])
        order = sorted(range(len(shape)), key=lambda i: -strides[i])
    made = _filled(op, ([shape[i] for i in order],), value, dtype, device, False, None)
    made.native = made.device.kernels["permute"](made.native, dims=tuple([order.index(i) for i in range(len(shape))]))
    return made.requires_grad_(requires_grad) if requires_grad else made


@operation(samples=samples.unary)
def empty_like(input: Tensor, *, dtype: Any = None, layout: Any = None, device: Any = None,
               requires_grad: bool = False, memory_format: Any = None) -> Tensor:  # fmt: skip
    """Undefined values in the shape, dtype and on the device of ``input``."""
    if layout is not None and layout is not input.layout:
        only_strided("empty_like", layout)
    return like("empty_like", input, None, dtype, device, requires_grad, memory_format)


@operation(samples=samples.unary)
def zeros_like(input: Tensor, *, dtype: Any = None, layout: Any = None, device: Any = None,
               requires_grad: bool = False, memory_format: Any = None) -> Tensor:  # fmt: skip
    """Zeros in the shape, dtype and on the device of ``input``."""
    if layout is not None and layout is not input.layout:
        return new_zeros(input, input.shape, dtype=dtype, device=device, layout=layout, requires_grad=requires_grad)
    return like("zeros_like", input, 0, dtype, device, requires_grad, memory_format)


@operation(samples=samples.unary)
def ones_like(input: Tensor, *, dtype: Any = None, layout: Any = None, device: Any = None,
              requires_grad: bool = False, memory_format: Any = None) -> Tensor:  # fmt: skip
    """Ones in the shape, dtype and on the device of ``input``."""
    if layout is not None:
        only_strided("ones_like", layout)
    return like("ones_like", input, 1, dtype, device, requires_grad, memory_format)


@operation(samples=samples.filled)
def full_like(input: Tensor, fill_value: Any, *, dtype: Any = None, layout: Any = None, device: Any = None,
              requires_grad: bool = False, memory_format: Any = None) -> Tensor:  # fmt: skip
    """One value in the shape, dtype and on the device of ``input``."""
    if layout is not None:
        only_strided("full_like", layout)
    if (
        dtype is device is memory_format is None
        and not requires_grad
        and (made := filled_as(input, fill_value)) is not None
    ):
        return made
    if type(fill_value) is not float:
        _, fill_value = _fill_value("full_like", fill_value)
    return like("full_like", input, fill_value, dtype, device, requires_grad, memory_format)


@method
def new_zeros(self: Tensor, *sizes: Any, size: Any = None, **options: Any) -> Tensor:
    """Zeros of the shape ``size`` in the dtype and on the device of this tensor; ``options`` are those of ``zeros``."""
    if not options:
        return _filled("zeros", _sizes("zeros", sizes, size), 0, self.dtype, self.device, False, None)
    return zeros(*sizes, size=size, **_as(self, options))


@method
def new_ones(self: Tensor, *sizes: Any, size: Any = None, **options: Any) -> Tensor:
    """Ones of the shape ``size`` in the dtype and on the device of this tensor; ``options`` are those of ``ones``."""
    return ones(*sizes, size=size, **_as(self, options))


@method
def new_empty(self: Tensor, *sizes: Any, size: Any = None, **options: Any) -> Tensor:
    """Undefined values of the shape ``size`` in the dtype and on the device of this tensor; ``options`` are those of ``empty``."""
    return empty(*sizes, size=size, **_as(self, options))


@method
def new_full(self: Tensor, size: Any, fill_value: Any, **options: Any) -> Tensor:
    """One value in the shape ``size``, in the dtype and on the device of this tensor; ``options`` are those of ``full``."""
    return full(size, fill_value, **_as(self, options))


def _as(self: Tensor, options: dict[str, Any]) -> dict[str, Any]:
    if options.get("dtype") is None:
        options["dtype"] = self.dtype
    if options.get("device") is None:
        options["device"] = self.device
    return options


def _new_tensor(self: Tensor, data: Any, **options: Any) -> Tensor:
    """A copy of ``data`` in the dtype and on the device of this tensor; ``options`` are those of ``tensor``."""
    return tensor(data, **_as(self, options))


method(_new_tensor, "new_tensor")


def empty_strided(size: Any, stride: Any, *, dtype: Any = None, layout: Any = None, device: Any = None,
                  requires_grad: bool = False, pin_memory: bool = False) -> Tensor:  # fmt: skip
    """A tensor of undefined values with these strides, in elements."""
    only_strided("empty_strided", layout)
    shape, strides = rules.as_shape("empty_strided", (size,)), rules.as_shape("empty_strided", (stride,))
    if len(shape) != len(strides):
        raise ShapeError(
            f"empty_strided: expected a stride for each size, got {list(shape)} and {list(strides)}; give as many"
        )
    dtype = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype, "empty_strided")
    device = as_device(device)
    if any(size < 0 for size in shape) or any(step < 0 for step in strides):
        raise ShapeError(
            f"empty_strided: Trying to create tensor with negative dimension or stride, got sizes {list(shape)} and "
            "strides "
            f"{list(strides)}; use numbers >= 0"
        )
    span = 1 + sum((n - 1) * step for n, step in zip(shape, strides, strict=True)) if 0 not in shape else 0
    flat = device.allocate((span,), dtype)
    if pin_memory:
        flat = _pinned(new_tensor(flat, dtype, device), False).native
    return made(device.as_strided(flat, shape, strides, 0), dtype, device, requires_grad)


@method
def new_empty_strided(self: Tensor, size: Any, stride: Any, *, dtype: Any = None, device: Any = None,
                      requires_grad: bool = False) -> Tensor:  # fmt: skip
    """Undefined values with these strides, in the dtype and on the device of this tensor."""
    dtype, device = dtype or self.dtype, self.device if device is None else device
    return empty_strided(size, stride, dtype=dtype, device=device, requires_grad=requires_grad)


def tensor(data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False,
           pin_memory: bool = False) -> Tensor:  # fmt: skip
    """A leaf tensor with a copy of ``data``: numbers, nested sequences of them, a NumPy array, a tensor."""
    array, found = host_array("tensor", data, None if dtype is None else dtypes.as_dtype(dtype, "tensor"))
    if device is None and isinstance(data, Tensor):
        device = data.device
    target = as_device(device)
    if found.name not in target.capabilities.dtypes:
        raise not_stored("tensor", found, target)
    new = made(target.from_host(array), found, target, not pin_memory and requires_grad)
    return _pinned(new, requires_grad, pin_memory) if pin_memory else new


def is_tensor(obj: Any) -> bool:
    """Whether ``obj`` is a tensor."""
    return isinstance(obj, Tensor)


def numel(input: Tensor) -> int:
    """The number of elements."""
    return input.numel()


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """``data`` as a tensor, sharing its memory where no conversion is needed; where a default device is set it goes there."""
    if device is None and Default.device is not None:
        device = get_default_device()
    if isinstance(data, Tensor):
        return data.to(data.device if device is None else device, dtype or data.dtype)  # type: ignore[attr-defined]
    if isinstance(data, np.ndarray) and (device is None or as_device(device).capabilities.host):
        shared = from_numpy(data)
        return shared if dtype is None else shared.to(dtype)  # type: ignore[attr-defined]
    return tensor(data, dtype=dtype, device=device)


def arange(start: Any = 0, end: Any = None, step: Any = 1, *, out: Any = None, dtype: Any = None, layout: Any = None,
           device: Any = None, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """Numbers from ``start`` up to, and not including, ``end``, ``step`` apart."""
    if layout is not None:
        only_strided("arange", layout)
    if end is None:
        start, end = 0, start
    if (
        type(start) is int
        and type(end) is int
        and type(step) is int
        and 0 <= start <= end < 2**20
        and step > 0
        and out is None
        and dtype is None
    ):  # the usual numbers need no look
        target = as_device(device)
        native = target.kernels["arange"](start, step, -((start - end) // step), dtype=dtypes.int64)
        return made(native, dtypes.int64, target, requires_grad)
    given = {type(start), type(end), type(step)}
    if (
        float in given <= _NUMBERS
        and -_EXACT < start < _EXACT
        and -_EXACT < end < _EXACT
        and 0 < abs(step) < inf
        and 0 <= (end - start) / step < 2**20
        and out is None
        and dtype is None
    ):  # nor do the usual floats
        dtype, target = dtypes.get_default_dtype(), as_device(device)
        native = target.kernels["arange"](start, step, ceil((end - start) / step), dtype=dtype)
        return made(native, dtype, target, requires_grad)
    numbers = [_bound(name, one) for name, one in (("start", start), ("end", end), ("step", step))]
    if dtype is None and out is not None:
        dtype = out.dtype
    if dtype is None:
        kinds = {dtypes.kind_of(one) for one in numbers}
        dtype = dtypes.get_default_dtype() if "floating" in kinds else dtypes.int64
    dtype = dtypes.as_dtype(dtype, "arange")
    if dtype.kind in ("bool", "complex"):
        raise UnsupportedDtype(f'arange: "arange_cpu" not implemented for {dtype.name}, got it as dtype; use .to(...)')
    exact = numbers
    if dtype.kind == "integer":
        numbers = [as_scalar("arange", one, dtypes.int64) for one in numbers]
    start, end, step = numbers
    if step == 0:
        raise ConversionError("arange: step must be nonzero, got 0; pass a positive or a negative step")
    if (end - start) * step < 0:
        raise ConversionError(
            f"arange: upper bound and lower bound inconsistent with step sign, got {start}, {end}, step {step}; swap "
            "the bounds"
        )
    # As in PyTorch, int64 counts between the bounds cut to integers and the others between the bounds as given.
    start_, end_, step_ = numbers if dtype is dtypes.int64 else exact
    integers = all([isinstance(one, int) for one in (start_, end_, step_)])
    length = -((start_ - end_) // step_) if integers else ceil((end_ - start_) / step_)
    if length >= 2**62:
        raise OutOfMemoryError(f"arange: invalid size, possible overflow? got {length} numbers; use a larger step")
    target = as_device(device)
    check_stored("arange", dtype, target)
    try:
        native = target.kernels["arange"](start, step, max(0, length), dtype=dtype)
    except MemoryError as error:
        raise OutOfMemoryError(f"arange: expected room for {length} numbers, got none ({error}); make fewer") from error
    result = made(native, dtype, target, requires_grad)
    return result if out is None else store("arange", result, out)


def _bound(name: str, value: Any) -> Any:
    """A finite real number, or the one in a 0-d tensor."""
    if isinstance(value, Tensor) and not value.native.shape:
        value = value.item()
    kind = dtypes.kind_of(value)
    if kind is None:
        raise ArgumentTypeError(
            f"arange: argument '{name}' must be Number, got {type(value).__name__}; pass an int or a float"
        )
    if kind == "complex" or not isfinite(value):
        raise ConversionError(f"arange: unsupported range, got {name}={value}; pass finite real numbers")
    return value
