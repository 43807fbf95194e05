"""A backend for libraries without views: arrays with strides over flat memory that only the library can read.

The author writes how to make, read and write flat memory, and kernels on the library's own dense arrays. Views,
in-place writes and the layout of results come from here.
"""

from __future__ import annotations

import itertools
from math import prod
from typing import Any

import numpy as np

from tensorcore.backend.arrays import Array
from tensorcore.backend.base import Backend, Kernel, Native, required
from tensorcore.backend.strides import column_strides, contiguous_strides
from tensorcore.dtypes import dtype as Dtype
from tensorcore.dtypes import from_numpy_dtype

__all__ = ["Memory", "StridedArray", "StridedBackend", "flat_index"]

Shape = tuple[int, ...]
Dense = Any  # an array of the library, as its functions make them
_addresses = itertools.count(1 << 20, 1 << 40)


class Memory:
    """One allocation, which views share: ``data`` is the library's flat array of ``nbytes`` in elements of ``dtype``.

    A library whose arrays never change puts another one there with each write.
    """

    __slots__ = ("__weakref__", "address", "data", "dtype", "nbytes")

    def __init__(self, data: Dense, dtype: np.dtype[Any], nbytes: int) -> None:
        self.data = data
        self.dtype = dtype
        self.nbytes = nbytes
        self.address = next(_addresses)  # no place anywhere, and no other memory has it


class StridedArray(Array):
    """A native array: shape, strides and offset, in elements, over a storage. ``dtype`` is NumPy's."""

    __slots__ = ("dtype", "offset", "shape", "storage", "strides")

    def __init__(self, shape: Shape, strides: Shape, offset: int, dtype: Any, storage: Any) -> None:
        self.shape = shape
        self.strides = strides
        self.offset = offset
        self.dtype = dtype
        self.storage = storage

    def __repr__(self) -> str:
        return f"{type(self).__name__}(shape={self.shape}, strides={self.strides}, dtype={self.dtype})"


class StridedBackend(Backend):
    """A device whose library has dense arrays and no views of them.

    The author writes ``dense``, ``host``, ``read``, ``write`` and a table ``dense_kernels``: what kernels are to a
    backend, on the library's own arrays, without ``out=``, answering with new arrays, or with NotImplemented for
    dtypes that it leaves to others. An array of the library has ``shape``, a NumPy ``dtype`` and ``reshape``, for which
    ``flattened`` stands in where it has none. Kernels that need the strides themselves are methods ``kernel_{name}``, as
    in any backend, that take ``StridedArray``.
    """

    array: Any = StridedArray
    dense_kernels: dict[str, Kernel]

    # Required

    def dense(self, array: np.ndarray) -> Dense:
        """The library's copy of a NumPy array of any strides."""
        raise required(self, "dense")

    def host(self, dense: Dense) -> np.ndarray:
        """The values as a new NumPy array."""
        raise required(self, "host")

    def read(self, data: Dense, shape: Shape, strides: Shape, offset: int) -> Dense:
        """The elements of a view as a dense array; ``data`` is flat, and the view lies within it."""
        raise required(self, "read")

    def write(self, data: Dense, shape: Shape, strides: Shape, offset: int, values: Dense) -> Dense:
        """``data`` with ``values``, of that shape and its dtype, in the places of a view: itself, or a new array."""
        raise required(self, "write")

    # Yours if you can do better

    def flat(self, size: int, dtype: np.dtype[Any]) -> Dense:
        """A new flat array of undefined values."""
        return self.dense(np.zeros(size, dtype))

    def flattened(self, dense: Dense) -> Dense:
        """A dense array as a flat one, which may share its memory."""
        return dense.reshape(-1)

    def launch(self, name: str, kernel: Kernel, natives: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Run a dense kernel on native arrays, and answer with native arrays."""
        result = kernel(*self._loaded(natives), **{key: self._loaded(one) for key, one in options.items()})
        return self._kept(name, result, natives, options)

    # What the interface asks for

    def allocate(self, shape: Shape, dtype: Dtype) -> Native:
        return self.new(tuple(shape), dtype.numpy)

    def from_host(self, array: np.ndarray) -> Native:
        return self.wrap(self.dense(array))

    def to_host(self, native: Native) -> np.ndarray:
        return self.host(self.load(native))

    def as_strided(self, native: Native, shape: Shape, strides: Shape, offset: int) -> Native:
        return self.array(tuple(shape), tuple(strides), offset, native.dtype, native.storage)

    def layout(self, native: Native) -> tuple[Shape, int]:
        return native.strides, native.offset

    def storage(self, native: Native) -> Native:
        size = native.storage.nbytes // native.dtype.itemsize
        return self.array((size,), (1,), 0, native.dtype, native.storage)

    def storage_key(self, native: Native) -> Any:
        return id(native.storage)

    def data_pointer(self, native: Native) -> int:
        return int(native.storage.address + native.offset * native.itemsize)

    def find_kernel(self, name: str) -> Kernel | None:
        own = super().find_kernel(name)
        if own is not None:
            return own
        from tensorcore.backend.shapes import VIEWS

        if name in VIEWS:
            return self._viewing(VIEWS[name])
        if name in ("copy", "fill"):
            return getattr(self, f"_{name}")  # type: ignore[no-any-return]
        kernel = self.dense_kernels.get(name)
        return None if kernel is None else self._launching(name, kernel)

    # For kernels that take strided arrays

    def new(self, shape: Shape, dtype: np.dtype[Any], strides: Shape | None = None) -> Native:
        """New memory for a dense array of these strides."""
        size = prod(shape)
        memory = Memory(self.flat(size, dtype), dtype, size * dtype.itemsize)
        return self.array(shape, contiguous_strides(shape) if strides is None else strides, 0, dtype, memory)

    def wrap(self, dense: Dense) -> Native:
        """A native array over the memory of a dense one."""
        shape, dtype = tuple(dense.shape), np.dtype(dense.dtype)
        memory = Memory(self.flattened(dense), dtype, prod(shape) * dtype.itemsize)
        return self.array(shape, contiguous_strides(shape), 0, dtype, memory)

    def load(self, native: StridedArray) -> Dense:
        """The elements as a dense array of the library."""
        memory = native.storage
        if memory.dtype == native.dtype:
            return self.read(memory.data, native.shape, native.strides, native.offset)
        # The bits of other elements: no library has this in common with the next, and it is rare.
        return self.dense(_strided(self.host(memory.data).view(native.dtype), native))

    def save(self, native: StridedArray, values: Dense) -> None:
        """Write a dense array of the same shape and dtype."""
        memory = native.storage
        if not native.size:
            return
        if memory.dtype == native.dtype:
            memory.data = self.write(memory.data, native.shape, native.strides, native.offset, values)
            return
        bits = np.array(self.host(memory.data))
        _strided(bits.view(native.dtype), native)[...] = self.host(values)
        memory.data = self.flattened(self.dense(bits))

    def _loaded(self, value: Any) -> Any:
        if type(value) is self.array:
            return self.load(value)
        if type(value) is list or type(value) is tuple:
            return type(value)([self._loaded(one) for one in value])
        return value

    def _kept(self, name: str, result: Any, natives: tuple[Any, ...], options: dict[str, Any]) -> Any:
        if type(result) is list or type(result) is tuple:
            return tuple(
                [self._placed(one, self._strides(name, one, natives, options, i)) for i, one in enumerate(result)]
            )
        return self._placed(result, self._strides(name, result, natives, options, 0))

    def _placed(self, result: Any, strides: Shape) -> Any:
        if not hasattr(result, "shape") or isinstance(result, np.generic):
            return result  # a number, NotImplemented
        if strides == contiguous_strides(tuple(result.shape)):
            return self.wrap(result)
        made = self.new(tuple(result.shape), np.dtype(result.dtype), strides)
        self.save(made, result)
        return made

    def _strides(
        self, name: str, result: Any, natives: tuple[Any, ...], options: dict[str, Any], position: int
    ) -> Shape:
        """Where a result of a kernel lies: as its arguments do, or column after column, for those that PyTorch has so."""
        from tensorcore.backend.kernels import LAYOUTS, RULES

        shape, rule, layout = tuple(getattr(result, "shape", ())), RULES.get(name), LAYOUTS.get(name)
        if rule is not None and position in rule.columns and len(shape) > 1:
            return column_strides(shape)
        if layout is None or len(shape) < 2 or not natives:
            return contiguous_strides(shape)
        first = natives[0] if type(natives[0]) is list else ()
        arrays = [one for one in (*first, *natives) if type(one) is self.array]
        return layout(shape, [(one.shape, one.strides) for one in arrays], options)

    def _launching(self, name: str, kernel: Kernel) -> Kernel:
        def launch(*natives: Any, out: StridedArray | None = None, **options: Any) -> Any:
            result = self.launch(name, kernel, natives, options)
            if result is NotImplemented:
                result = self.without(name)(*natives, **options)
            return result if out is None else self._copy(out, result)

        return launch

    def _viewing(self, rule: Any) -> Kernel:
        def view(x: StridedArray, **options: Any) -> StridedArray | None:
            known = {"have": x.itemsize} if rule.dtype == "option" else {}
            place = rule.place(x.shape, x.strides, x.offset, **known, **options)
            return None if place is None else self.array(*place, _dtype_of(rule.dtype, x, options), x.storage)

        return view

    def _copy(self, target: StridedArray, source: Any) -> StridedArray:
        if type(source) is not self.array:
            return self._fill(target, source)
        if source.dtype != target.dtype:
            source = self.kernels["cast"](source, dtype=from_numpy_dtype(target.dtype))
        if source.shape != target.shape:
            source = self.kernels["expand"](source, shape=target.shape)
        self.save(target, self.load(source))
        return target

    def _fill(self, target: StridedArray, value: Any) -> StridedArray:
        if type(value) is self.array:
            return self._copy(target, value)
        self.save(target, self.dense(np.full(target.shape, value, target.dtype)))
        return target


def flat_index(shape: Shape, strides: Shape, offset: int) -> np.ndarray:
    """The places of a view's elements in flat memory, of the view's shape: what ``take`` and ``put`` want."""
    places = np.full(shape, offset, np.int64)
    for i, (size, step) in enumerate(zip(shape, strides, strict=True)):
        places += (np.arange(size) * step).reshape((size,) + (1,) * (len(shape) - 1 - i))
    return places


def _strided(flat: np.ndarray, native: StridedArray) -> np.ndarray:
    # A view without elements may begin behind the last one.
    steps = [step * flat.itemsize for step in native.strides]
    return np.lib.stride_tricks.as_strided(flat[native.offset :], native.shape, steps)


def _dtype_of(rule: Any, x: StridedArray, options: dict[str, Any]) -> Any:
    if rule is None:
        return x.dtype
    if rule == "option":
        return options["dtype"].numpy
    found = from_numpy_dtype(x.dtype)
    return (found.to_real() if rule == "real" else found.to_complex()).numpy
