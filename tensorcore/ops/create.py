"""Tensors from nothing: filled, counted, or from Python's and NumPy's data."""

from __future__ import annotations

from math import ceil, isfinite
from typing import Any

import numpy as np

from tensorcore import dtypes
from tensorcore.backend.base import Backend
from tensorcore.backend.registry import device as find_device
from tensorcore.dtypes import dtype as Dtype
from tensorcore.errors import ArgumentError, ArgumentTypeError, GradientError, ShapeError
from tensorcore.ops import rules
from tensorcore.ops.kinds import method, operation
from tensorcore.tensor import Tensor, new_tensor

__all__ = [
    "arange", "as_tensor", "empty", "empty_like", "empty_strided", "from_numpy", "full", "full_like", "get_default_device",
    "ones", "ones_like", "set_default_device", "tensor", "zeros", "zeros_like",
]  # fmt: skip


class Default:
    """Where tensors are made when no device is named.

    Attributes:
        device: the device, or its name until it is first needed.
        host: the one that shares memory with NumPy, and what ``device`` starts as; the facade names it.
    """

    device: Any = None
    host: Any = None


def get_default_device() -> Backend:
    """The device of tensors that are made without naming one."""
    device = Default.device or host_device()
    if type(device) is str:
        device = Default.device = find_device(device)
    return device


def host_device() -> Backend:
    """The device in the host's own memory."""
    if type(Default.host) is str:
        Default.host = find_device(Default.host)
    return Default.host


def set_default_device(device: Any) -> None:
    """Make tensors on ``device`` where none is named; None goes back to the start."""
    Default.device = device if device is None or isinstance(device, Backend) else find_device(device)


def as_device(device: Any) -> Backend:
    """A device from what programs pass: itself, its name, or None for the default."""
    if device is None:
        return get_default_device()
    return device if isinstance(device, Backend) else find_device(device)


def made(native: Any, dtype: Dtype, device: Backend, requires_grad: bool) -> Tensor:
    """A tensor around a new native array, a leaf of the tape if asked."""
    new = new_tensor(native, dtype, device)
    return new.requires_grad_() if requires_grad else new


def _filled(op: str, size: Any, value: Any, dtype: Any, device: Any, requires_grad: bool, out: Tensor | None) -> Tensor:
    shape = rules.as_shape(op, size)
    if shape and min(shape) < 0:
        raise ShapeError(f"{op}: Trying to create tensor with negative dimension {min(shape)}, got {list(shape)}; use sizes >= 0")
    if out is not None:
        if tuple(out.native.shape) != shape:
            out.native = out.device.allocate(shape, out.dtype)
        return out if value is None else out.fill_(value)  # type: ignore[attr-defined]
    dtype = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype, op)
    device = as_device(device)
    native = device.allocate(shape, dtype) if value is None else device.kernels["full"](shape, value, dtype=dtype)
    return made(native, dtype, device, requires_grad)


def empty(*size: Any, out: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
          requires_grad: bool = False, pin_memory: bool = False, memory_format: Any = None) -> Tensor:  # fmt: skip
    """A tensor of undefined values."""
    return _filled("empty", size, None, dtype, device, requires_grad, out)


def zeros(*size: Any, out: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
          requires_grad: bool = False) -> Tensor:  # fmt: skip
    """A tensor of zeros."""
    return _filled("zeros", size, 0, dtype, device, requires_grad, out)


def ones(*size: Any, out: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
         requires_grad: bool = False) -> Tensor:  # fmt: skip
    """A tensor of ones."""
    return _filled("ones", size, 1, dtype, device, requires_grad, out)


def full(size: Any, fill_value: Any, *, out: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
         requires_grad: bool = False) -> Tensor:  # fmt: skip
    """A tensor of one value, of that value's dtype unless another is named."""
    if isinstance(fill_value, Tensor):
        dtype = dtype or fill_value.dtype
        fill_value = fill_value.item()
    if dtype is None and out is None:
        kind = dtypes.kind_of(fill_value)
        if kind is None:
            raise ArgumentTypeError(f"full: expected fill_value to be a number, got {fill_value!r}; use torch.tensor(...)")
        dtype = dtypes.default_for(kind)
    return _filled("full", (size,), fill_value, dtype, device, requires_grad, out)


def _like(op: str, input: Tensor, value: Any, dtype: Any, device: Any, requires_grad: bool) -> Tensor:
    return _filled(op, (tuple(input.native.shape),), value, dtype or input.dtype, device or input.device, requires_grad, None)


@operation()
def empty_like(input: Tensor, *, dtype: Any = None, layout: Any = None, device: Any = None,
               requires_grad: bool = False, memory_format: Any = None) -> Tensor:  # fmt: skip
    """Undefined values in the shape, dtype and on the device of ``input``."""
    return _like("empty_like", input, None, dtype, device, requires_grad)


@operation()
def zeros_like(input: Tensor, *, dtype: Any = None, layout: Any = None, device: Any = None,
               requires_grad: bool = False, memory_format: Any = None) -> Tensor:  # fmt: skip
    """Zeros in the shape, dtype and on the device of ``input``."""
    return _like("zeros_like", input, 0, dtype, device, requires_grad)


@operation()
def ones_like(input: Tensor, *, dtype: Any = None, layout: Any = None, device: Any = None,
              requires_grad: bool = False, memory_format: Any = None) -> Tensor:  # fmt: skip
    """Ones in the shape, dtype and on the device of ``input``."""
    return _like("ones_like", input, 1, dtype, device, requires_grad)


@operation()
def full_like(input: Tensor, fill_value: Any, *, dtype: Any = None, layout: Any = None, device: Any = None,
              requires_grad: bool = False, memory_format: Any = None) -> Tensor:  # fmt: skip
    """One value in the shape, dtype and on the device of ``input``."""
    return _like("full_like", input, fill_value, dtype, device, requires_grad)


@method
def new_zeros(self: Tensor, *size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Zeros of the shape ``size`` in the dtype and on the device of this tensor."""
    return _filled("new_zeros", size, 0, dtype or self.dtype, device or self.device, requires_grad, None)


@method
def new_ones(self: Tensor, *size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Ones of the shape ``size`` in the dtype and on the device of this tensor."""
    return _filled("new_ones", size, 1, dtype or self.dtype, device or self.device, requires_grad, None)


@method
def new_empty(self: Tensor, *size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Undefined values of the shape ``size`` in the dtype and on the device of this tensor."""
    return _filled("new_empty", size, None, dtype or self.dtype, device or self.device, requires_grad, None)


@method
def new_full(self: Tensor, size: Any, fill_value: Any, *, dtype: Any = None, device: Any = None,
             requires_grad: bool = False) -> Tensor:  # fmt: skip
    """One value in the shape ``size``, in the dtype and on the device of this tensor."""
    return _filled("new_full", (size,), fill_value, dtype or self.dtype, device or self.device, requires_grad, None)


def _new_tensor(self: Tensor, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A copy of ``data`` in the dtype and on the device of this tensor."""
    return tensor(data, dtype=dtype or self.dtype, device=device or self.device, requires_grad=requires_grad)


method(_new_tensor, "new_tensor")


def empty_strided(size: Any, stride: Any, *, dtype: Any = None, layout: Any = None, device: Any = None,
                  requires_grad: bool = False, pin_memory: bool = False) -> Tensor:  # fmt: skip
    """A tensor of undefined values with these strides, in elements."""
    shape, strides = rules.as_shape("empty_strided", (size,)), rules.as_shape("empty_strided", (stride,))
    if len(shape) != len(strides):
        raise ShapeError(f"empty_strided: expected a stride for each size, got {list(shape)} and {list(strides)}; give as many")
    dtype = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype, "empty_strided")
    device = as_device(device)
    span = 1 + sum((n - 1) * step for n, step in zip(shape, strides, strict=True)) if 0 not in shape else 0
    native = device.as_strided(device.allocate((span,), dtype), shape, strides, 0)
    return made(native, dtype, device, requires_grad)


@method
def new_empty_strided(self: Tensor, size: Any, stride: Any, *, dtype: Any = None, device: Any = None,
                      requires_grad: bool = False) -> Tensor:  # fmt: skip
    """Undefined values with these strides, in the dtype and on the device of this tensor."""
    return empty_strided(size, stride, dtype=dtype or self.dtype, device=device or self.device, requires_grad=requires_grad)


def tensor(data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False,
           pin_memory: bool = False) -> Tensor:  # fmt: skip
    """A leaf tensor with a copy of ``data``: numbers, nested sequences of them, a NumPy array, a tensor."""
    array, found = _host_array("tensor", data, dtype)
    if device is None and isinstance(data, Tensor):
        device = data.device
    device = as_device(device)
    return made(device.from_host(array), found, device, requires_grad)


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """``data`` as a tensor, sharing its memory where no conversion is needed."""
    if isinstance(data, Tensor):
        return data.to(device or data.device, dtype or data.dtype)  # type: ignore[attr-defined]
    if isinstance(data, np.ndarray) and (device is None or as_device(device).capabilities.host):
        shared = from_numpy(data)
        return shared if dtype is None else shared.to(dtype)  # type: ignore[attr-defined]
    return tensor(data, dtype=dtype, device=device)


def from_numpy(ndarray: np.ndarray) -> Tensor:
    """A tensor on the host that shares the memory of a NumPy array."""
    if not isinstance(ndarray, np.ndarray):
        raise ArgumentTypeError(f"from_numpy: expected np.ndarray (got {type(ndarray).__name__}); use torch.tensor(...)")
    found = dtypes.from_numpy_dtype(ndarray.dtype)
    if any(step < 0 for step in ndarray.strides):
        raise ArgumentError(
            f"from_numpy: At least one stride in the given numpy array is negative, got strides {ndarray.strides}, and "
            f"tensors with negative strides are not supported; use array.copy()"
        )
    device = host_device()
    return new_tensor(device.share_host(ndarray), found, device)


def _host_array(op: str, data: Any, dtype: Any) -> tuple[np.ndarray, Dtype]:
    """``data`` as a host array in the dtype asked for, or in the one that PyTorch infers."""
    wanted = None if dtype is None else dtypes.as_dtype(dtype, op)
    if isinstance(data, Tensor):
        array = data.detach().device.to_host(data.native)
        wanted = wanted or data.dtype
        return array.astype(wanted.numpy), wanted
    if isinstance(data, (np.ndarray, np.generic)):
        array = np.asarray(data)
        wanted = wanted or dtypes.from_numpy_dtype(array.dtype)
        return array.astype(wanted.numpy), wanted
    array, kind = _nested(op, data)
    wanted = wanted or dtypes.default_for(kind)
    if kind == "floating" and wanted.kind in ("integer",) and array.size and not np.isfinite(array).all():
        raise ArgumentError(f"{op}: cannot convert float NaN or infinity to integer, got {data!r}; use a floating dtype")
    return array.astype(wanted.numpy), wanted


def _nested(op: str, data: Any) -> tuple[np.ndarray, str]:
    """Nested sequences of numbers (or of 0-d tensors and arrays) as an array, and the dtype kind of all of them."""
    kind = dtypes.kind_of(data)
    if kind is not None:
        if kind == "integer" and not -(2**63) <= data < 2**63:
            raise GradientError(f"{op}: Overflow when unpacking long, got {data}; use a floating dtype")
        return np.array(data), kind
    if isinstance(data, (Tensor, np.ndarray)):
        array = np.asarray(data.detach().numpy() if isinstance(data, Tensor) else data)
        return array, dtypes.from_numpy_dtype(array.dtype).kind
    if isinstance(data, (str, bytes)) or not hasattr(data, "__len__") or not hasattr(data, "__getitem__"):
        raise ArgumentTypeError(f"{op}: expected numbers or nested sequences of them, got {type(data).__name__}; pass a list")
    if not len(data):
        return np.empty(0), "floating"
    first = data[0]
    if not isinstance(first, (Tensor, np.ndarray)) and dtypes.kind_of(first) is not None:
        try:
            array = np.array(data)
        except (ValueError, OverflowError):
            array = np.array(None)
        if array.ndim == 1 and array.dtype.kind in "biufc" and array.dtype != np.uint64:
            kinds = {"b": "bool", "i": "integer", "u": "integer", "f": "floating", "c": "complex"}
            return array, kinds[array.dtype.kind]
    parts = [_nested(op, one) for one in data]
    shape = parts[0][0].shape
    for i, (part, _) in enumerate(parts):
        if part.shape != shape:
            raise ArgumentError(
                f"{op}: expected sequence of length {shape[0] if shape else 0} at dim 1 "
                f"(got {part.shape[0] if part.shape else 'a number'}), at position {i}; make all parts the same shape"
            )
    kind = max((kind for _, kind in parts), key=["bool", "integer", "floating", "complex"].index)
    return np.stack([part for part, _ in parts]), kind


def arange(start: Any, end: Any = None, step: Any = 1, *, out: Any = None, dtype: Any = None, layout: Any = None,
           device: Any = None, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """Numbers from ``start`` up to, and not including, ``end``, ``step`` apart."""
    if end is None:
        start, end = 0, start
    numbers = [one.item() if isinstance(one, Tensor) else one for one in (start, end, step)]
    start, end, step = numbers
    for name, one in zip(("start", "end", "step"), numbers, strict=True):
        if dtypes.kind_of(one) is None:
            raise ArgumentTypeError(f"arange: expected {name} to be a number, got {one!r}; pass an int or a float")
        if not isfinite(one):
            raise GradientError(f"arange: unsupported range: {start} -> {end}, got {name}={one}; pass finite numbers")
    if step == 0:
        raise GradientError("arange: step must be nonzero, got 0; pass a positive or a negative step")
    if (end - start) * step < 0:
        raise GradientError(
            f"arange: upper bound and lower bound inconsistent with step sign, got {start}, {end}, step {step}; swap the bounds"
        )
    if dtype is None:
        kinds = {dtypes.kind_of(one) for one in numbers}
        dtype = dtypes.get_default_dtype() if "floating" in kinds else dtypes.int64
    dtype = dtypes.as_dtype(dtype, "arange")
    length = max(0, ceil((end - start) / step))
    device = as_device(device)
    result = made(device.kernels["arange"](start, step, length, dtype=dtype), dtype, device, requires_grad)
    if out is not None:
        from tensorcore.ops.calls import store

        return store("arange", result, out)
    return result


@method
def fill_(input: Tensor, value: Any) -> Tensor:
    """Write one value into every element."""
    return _fill(input, value)


def _fill(input: Tensor, value: Any, name: str = "fill_op") -> Tensor:
    from tensorcore.ops import convert

    if not isinstance(value, Tensor):
        if dtypes.kind_of(value) is None:
            raise ArgumentTypeError(f"fill_: expected value to be a number or a 0-d Tensor, got {value!r}; use copy_")
        value = full((), value, dtype=input.dtype, device=input.device)
    if value.native.shape:
        raise ShapeError(
            f"fill_: only supports 0-dimension value tensor but got tensor with {len(value.native.shape)} dimensions; use copy_"
        )
    return convert.write(getattr(convert, name), input, value)


@method
def zero_(input: Tensor) -> Tensor:
    """Write zero into every element."""
    return _fill(input, 0, "zero_op")


