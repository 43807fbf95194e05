"""Python's data as arrays: nested sequences of numbers, and numbers that a dtype must be able to hold."""

from __future__ import annotations

import functools
from itertools import chain
from math import inf, isfinite
from typing import Any

import numpy as np

from tensorcore import dtypes
from tensorcore.dtypes import PROMOTION, dtype
from tensorcore.errors import ArgumentError, ArgumentTypeError, ConversionError
from tensorcore.ops.operands import PLAIN_INTEGERS
from tensorcore.shortcuts import before
from tensorcore.tensor import Tensor, new_tensor

__all__ = ["as_scalar", "filled_as", "host_array", "plainly_filled"]

_PYTHON = {bool: "bool", int: "integer", float: "floating", complex: "complex"}
_PLAIN = frozenset([bool, int, float, list, tuple])
_LARGEST_FLOAT16, _LARGEST_FLOAT32 = float(np.finfo(np.float16).max), float(np.finfo(np.float32).max)


def host_array(op: str, data: Any, wanted: dtype | None) -> tuple[np.ndarray, dtype]:
    """A host array with the numbers of ``data``, in ``wanted`` or in the dtype that PyTorch infers; theirs where none is needed."""
    if type(data) in _PLAIN:
        array = plain_array(data, None if wanted is None else wanted.numpy, dtypes.get_default_dtype().numpy)
        if array is not None:
            return array, wanted or dtypes.from_numpy_dtype(array.dtype)
    if isinstance(data, Tensor):
        array = data.device.to_host(data.native)
        wanted = wanted or data.dtype
        return array.astype(wanted.numpy, copy=False), wanted
    if isinstance(data, np.ndarray):
        if not data.dtype.isnative:
            raise ArgumentError(
                f"{op}: given numpy array has byte order different from the native byte order, got {data.dtype}; "
                f"convert it with array.astype(array.dtype.newbyteorder('='))"
            )
        found = dtypes.from_numpy_dtype(data.dtype)
        wanted = wanted or found
        if any(step < 0 for step in data.strides):
            raise ArgumentError(
                f"{op}: At least one stride in the given numpy array is negative, got strides {data.strides}; use "
                "array.copy()"
            )
        return data.astype(wanted.numpy, copy=False), wanted
    if isinstance(data, (str, bytes)):
        raise ArgumentTypeError(f"{op}: new(): invalid data type '{type(data).__name__}', got {data!r}; pass numbers")
    leaves, shape = _leaves(op, data, wanted)
    if isinstance(leaves, np.ndarray):
        wanted = wanted or dtypes.from_numpy_dtype(leaves.dtype)
        return leaves.astype(wanted.numpy), wanted
    kinds = set(map(type, leaves))
    found = None
    if kinds <= _PYTHON.keys():
        if kinds:
            kind = max((_PYTHON[one] for one in kinds), key=dtypes._KINDS.index)
            found = dtypes.default_for(kind)
    else:
        for one in leaves:
            mine = _dtype_of(op, one, wanted)
            found = mine if found is None or found is mine else PROMOTION[found, mine]
        leaves = [one.item() if isinstance(one, (np.generic, np.ndarray, Tensor)) else one for one in leaves]
        kinds = set(map(type, leaves))
    found = found or dtypes.get_default_dtype()
    wanted = wanted or found
    return _converted(op, leaves, kinds, wanted).reshape(shape), wanted


@before("plain_array")
def plain_array(data: Any, wanted: np.dtype | None, floats: np.dtype) -> np.ndarray | None:
    """What Python's own numbers, and lists of them, are as an array; None for those whose dtype has to be looked into."""
    return None


def as_scalar(op: str, value: Any, wanted: dtype, shape: Any = ()) -> Any:
    """A number as the Python number that an array of ``wanted`` is filled with; raises where it does not fit.

    As in PyTorch, a half float of no dims takes numbers over its largest as infinity, an array of them does not.
    """
    if (
        (type(value) is float or type(value) is int)
        and -65504 <= value <= 65504
        and (wanted.is_floating_point or wanted.is_complex)
    ):
        return float(value)  # which every floating dtype holds
    if type(value) is complex and wanted.is_complex and abs(value.real) <= 65504 and abs(value.imag) <= 65504:
        return value
    kind = dtypes.kind_of(value)
    if kind is None:
        raise ArgumentTypeError(f"{op}: expected a Number, got {type(value).__name__}; wrap it in torch.tensor(...)")
    if type(value) not in _PYTHON:
        value = value.item()
    if wanted.kind == "bool":
        return bool(value)
    if kind == "complex" and wanted.kind != "complex":
        if value.imag:
            raise _overflow(op, value, wanted)
        value = value.real
    if wanted.kind == "integer":
        return _integer(op, value, wanted)
    if wanted.itemsize <= 4 or wanted is dtypes.complex64:
        largest = _LARGEST_FLOAT16 if wanted is dtypes.float16 else _LARGEST_FLOAT32
        largest = inf if wanted.itemsize == 2 and not shape else largest
        parts = (value.real, value.imag) if isinstance(value, complex) else (value,)
        if any(isfinite(part) and abs(part) > largest for part in parts):
            raise _overflow(op, value, wanted)
    return complex(value) if wanted.kind == "complex" else float(value)


def plainly_filled(shape: Any, value: Any, wanted: dtype, device: Any) -> Tensor | None:
    """A tensor of a number that floating dtypes, the integers of 32 and 64 bits and bools hold; None where there is more to see."""
    kind = type(value)
    if (kind is not float and kind is not int) or not -65504 <= value <= 65504:
        return None
    if not wanted.is_floating_point:
        if wanted not in PLAIN_INTEGERS and wanted is not dtypes.bool_:
            return None
        value = value != 0 if wanted is dtypes.bool_ else int(value)
    try:
        return new_tensor(device.kernels["full"](shape, value, dtype=wanted), wanted, device)  # type: ignore[no-any-return]
    except MemoryError:
        return None  # tried once more by the complete call, with the caches freed


def filled_as(input: Tensor, value: Any) -> Tensor | None:
    """A plain number in the shape, dtype and on the device of a tensor in row-major order; None where there is more to look at."""
    if type(input) is Tensor and input.device.is_contiguous(input.native):
        return plainly_filled(input.native.shape, value, input.dtype, input.device)
    return None


def _leaves(op: str, data: Any, wanted: dtype | None) -> tuple[Any, tuple[int, ...]]:
    """The numbers of nested sequences of equal lengths in one list, and the shape; arrays come back stacked."""
    if not _is_sequence(data):
        return [data], ()
    level = [data]
    shape: list[int] = []
    while level and _is_sequence(level[0]):
        first = len(level[0])
        for one in level:
            if not _is_sequence(one):
                _dtype_of(op, one, wanted)
                raise ArgumentTypeError(
                    f"{op}: expected a sequence at dim {len(shape)}, got {one!r}; not a sequence, make all alike"
                )
            if len(one) != first:
                raise ArgumentError(
                    f"{op}: expected sequence of length {first} at dim {len(shape)} (got {len(one)}), got parts of "
                    "several "
                    f"lengths; make all parts the same shape"
                )
        if shape and all([isinstance(one, np.ndarray) for one in level]) and len({one.shape for one in level}) == 1:
            stacked = np.stack(level)
            return stacked.reshape(*shape, *level[0].shape), ()
        shape.append(first)
        level = list(chain.from_iterable(level))
    if level and isinstance(level[0], (str, bytes)):
        raise ArgumentError(f"{op}: too many dimensions '{type(level[0]).__name__}', got {level[0]!r}; pass numbers")
    if set(map(type, level)) <= _PYTHON.keys():
        return level, tuple(shape)
    for one in level:
        if _is_sequence(one):
            raise ArgumentTypeError(
                f"{op}: expected a number, got {one!r} beside numbers; '{type(one).__name__}' is no number"
            )
    return level, tuple(shape)


def _is_sequence(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return True
    if type(value) in _PYTHON:
        return False
    if isinstance(value, Tensor):
        return False
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    return not isinstance(value, (str, bytes, dict)) and hasattr(value, "__len__") and hasattr(value, "__getitem__")


def _dtype_of(op: str, value: Any, wanted: dtype | None) -> dtype:
    if isinstance(value, Tensor):
        if value.numel() != 1:
            raise (ArgumentError if value.dtype.is_floating_point else ArgumentTypeError)(
                f"{op}: only one element tensors can be converted to Python scalars, got one of shape "
                f"{list(value.shape)}; "
                f"use torch.stack"
            )
        return value.dtype
    if isinstance(value, (np.generic, np.ndarray)):
        return dtypes.from_numpy_dtype(value.dtype)
    kind = dtypes.kind_of(value)
    if kind is not None:
        return dtypes.default_for(kind)
    if isinstance(value, (str, bytes)):
        raise ArgumentTypeError(f"{op}: new(): invalid data type '{type(value).__name__}', got {value!r}; pass numbers")
    if wanted is not None:
        raise ArgumentTypeError(f"{op}: must be real number, not {type(value).__name__}, got {value!r}; pass numbers")
    raise ConversionError(f"{op}: Could not infer dtype of {type(value).__name__}, got {value!r}; pass numbers")


def _converted(op: str, leaves: list[Any], kinds: set[type], wanted: dtype) -> np.ndarray:
    """Python numbers as a flat array of ``wanted``."""
    if complex in kinds and wanted.kind not in ("bool", "complex"):
        bad = next(one for one in leaves if isinstance(one, complex))
        raise ArgumentTypeError(f"{op}: must be real number, not complex, got {bad}; use a complex dtype")
    if wanted.kind == "integer":
        info = dtypes.iinfo(wanted)
        try:
            array = np.array(leaves, np.float64 if float in kinds else np.int64)
        except OverflowError:
            if wanted is dtypes.uint64 and all(0 <= one < 2**64 for one in leaves):
                return np.array(leaves, np.uint64)
            bad = next(one for one in leaves if not -(2**63) <= one < 2**63)
            raise ArgumentError(f"{op}: Overflow when unpacking long long, got {bad}; use a floating dtype") from None
        low = info.min if float in kinds or wanted.is_signed else -info.max
        # 2.0**63 is the first double over the largest int64.
        if array.size and not (array.min() >= low and array.max() <= info.max and array.max() < 2.0**63):
            for one in leaves:
                _integer(op, one, wanted)
        return array.astype(wanted.numpy)
    if wanted.kind == "bool":
        return np.array([bool(one) for one in leaves], np.bool_)
    try:
        with np.errstate(over="ignore"):
            return np.array(leaves, np.complex128 if wanted.kind == "complex" else np.float64).astype(wanted.numpy)
    except OverflowError:
        raise ArgumentError(f"{op}: int too large to convert to float, got one; pass smaller numbers") from None


def _integer(op: str, value: Any, wanted: dtype) -> int:
    """A number cut to an integer; the negatives of an unsigned dtype wrap, as in PyTorch."""
    least, most = _limits(wanted)
    low = -most if isinstance(value, int) and not wanted.is_signed else least
    if not low <= value <= most or value == 2.0**63:
        raise _overflow(op, value, wanted)
    return int(value) % (most + 1) if value < 0 and not wanted.is_signed else int(value)


@functools.cache
def _limits(integer: dtype) -> tuple[int, int]:
    info = dtypes.iinfo(integer)
    return info.min, info.max


def _overflow(op: str, value: Any, wanted: dtype) -> ConversionError:
    return ConversionError(
        f"{op}: value cannot be converted to type {wanted.name} without overflow, got {value}; use a wider dtype"
    )
