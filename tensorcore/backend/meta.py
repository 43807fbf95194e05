"""The device ``meta``: tensors with a shape, a dtype and strides, and no values, so that a model runs in no memory."""

from __future__ import annotations

from math import prod
from typing import Any, NoReturn

import numpy as np

from tensorcore import dtypes
from tensorcore.backend.base import Backend, Capabilities, Kernel, Native
from tensorcore.backend.kernels import LAYOUTS, NEEDS_VALUES, RULES, WRITES, Facts
from tensorcore.backend.layouts import Layout
from tensorcore.backend.shapes import VIEWS, ViewRule
from tensorcore.backend.strided import StridedArray, StridedBackend
from tensorcore.backend.strides import column_strides, contiguous_strides
from tensorcore.errors import ValuesMissing

__all__ = ["MetaArray", "MetaBackend"]

Shape = tuple[int, ...]


class MetaStorage:
    """What the views of one memory have in common, had there been any memory."""

    __slots__ = ("nbytes",)

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes


class MetaArray(StridedArray):
    """The native array of ``meta``."""

    __slots__ = ()


class MetaBackend(StridedBackend):
    """Every primitive by its shape rule: whatever kernels would compute, here they only say how large it is."""

    capabilities = Capabilities(tuple(one.name for one in dtypes.ALL), values=False)
    array = MetaArray

    def __init__(self, index: int = 0) -> None:
        super().__init__("meta", index)

    def allocate(self, shape: Shape, dtype: dtypes.dtype) -> MetaArray:
        return _dense(tuple(shape), dtype.numpy)

    def from_host(self, array: np.ndarray) -> MetaArray:
        return _dense(array.shape, array.dtype)

    def to_host(self, native: Native) -> NoReturn:
        raise ValuesMissing(
            f"to_host: Cannot copy out of meta tensor; no data! expected values, got shape {list(native.shape)} alone; "
            f"make the tensor on a real device, for instance with empty_like(tensor, device=...)"
        )

    def copy_from(self, other: Backend, native: Native) -> MetaArray:
        strides, _ = other.layout(native)
        shape = tuple(native.shape)
        dense = _is_dense(shape, strides)
        return _dense(shape, native.dtype, strides if dense else None)

    def random(self, kind: str, shape: Shape, dtype: dtypes.dtype, generator: Any = None, **options: Any) -> MetaArray:
        """Nothing is drawn: the generator gives its next numbers to tensors that have values."""
        return self.allocate(tuple(shape), dtype)

    def data_pointer(self, native: Native) -> int:
        return 0

    def kernel_index_bounds(self, x: Native) -> tuple[int, int]:
        """No index is known, so none is out of range."""
        return 0, -1

    def find_kernel(self, name: str) -> Kernel | None:
        own = Backend.find_kernel(self, name)
        if own is not None:
            return own
        if name in VIEWS:
            return _viewing(VIEWS[name])
        if name in WRITES:
            return _writing
        if name in NEEDS_VALUES:
            return _refusing(name)
        return _shaped(RULES[name], LAYOUTS.get(name)) if name in RULES else None


def _dense(shape: Shape, dtype: Any, strides: Shape | None = None) -> MetaArray:
    storage = MetaStorage(prod(shape) * dtype.itemsize)
    return MetaArray(shape, contiguous_strides(shape) if strides is None else strides, 0, dtype, storage)


def _is_dense(shape: Shape, strides: Shape) -> bool:
    """Whether the elements fill their memory without gaps or overlaps, in some order of the dims."""
    wanted = 1
    for step, size in sorted(zip(strides, shape, strict=True)):
        if size == 1:
            continue
        if step != wanted:
            return False
        wanted *= size
    return prod(shape) > 0


def _viewing(rule: ViewRule) -> Kernel:
    def kernel(x: MetaArray, **options: Any) -> MetaArray | None:
        known = {"have": x.itemsize} if rule.dtype == "option" else {}
        place = rule.place(x.shape, x.strides, x.offset, **known, **options)
        return None if place is None else MetaArray(*place, _dtype(rule.dtype, [x], options), x.storage)

    return kernel


def _writing(target: Any, *others: Any, **options: Any) -> Any:
    return target


def _refusing(name: str) -> Kernel:
    def kernel(*natives: Any, **options: Any) -> NoReturn:
        raise ValuesMissing(
            f"{name}: expected values, which the shape of the result depends on, got a tensor on meta, which has none; "
            f"run it on a real device"
        )

    return kernel


def _shaped(rule: Facts, layout: Layout | None) -> Kernel:
    shape_of, dtype_rule, columns = rule.shape, rule.dtype, rule.columns
    assert shape_of is not None

    def kernel(*natives: Any, out: Any = None, **options: Any) -> Any:
        shape = shape_of(*map(_shape_of, natives), **{key: _shape_of(value) for key, value in options.items()})
        if out is not None:
            return out
        first = natives[0] if natives and type(natives[0]) is list else ()
        arrays = [one for one in (*first, *natives) if type(one) is MetaArray]
        if type(shape) is list:
            kinds = dtype_rule if type(dtype_rule) is tuple else (dtype_rule,) * len(shape)
            return tuple(
                [
                    None
                    if one is None
                    else _dense(one, _dtype(kind, arrays, options), strides_of(i, one, arrays, options))
                    for i, (one, kind) in enumerate(zip(shape, kinds, strict=False))
                ]
            )
        return _dense(shape, _dtype(dtype_rule, arrays, options), strides_of(0, shape, arrays, options))

    def strides_of(i: int, shape: Shape, arrays: list[MetaArray], options: dict[str, Any]) -> Shape | None:
        if i in columns:
            return column_strides(shape)
        return layout and layout(shape, [(one.shape, one.strides) for one in arrays], options)

    return kernel


def _shape_of(value: Any) -> Any:
    """A shape in the place of an array; numbers and whatever else stay as they are."""
    if type(value) is MetaArray:
        return value.shape
    if type(value) is list or type(value) is tuple:
        return type(value)(map(_shape_of, value))
    return value


def _dtype(rule: Any, arrays: list[MetaArray], options: dict[str, Any]) -> Any:
    if rule is None:
        return arrays[0].dtype
    if rule == "option":
        dtype = options.get("dtype")
        return arrays[0].dtype if dtype is None else dtype.numpy
    if isinstance(rule, dtypes.dtype):
        return rule.numpy
    if rule == "last":
        return arrays[-1].dtype
    found = dtypes.from_numpy_dtype(arrays[0].dtype)
    return (found.to_real() if rule == "real" else found.to_complex()).numpy
