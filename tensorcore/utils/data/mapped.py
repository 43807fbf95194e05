"""Data sets in files that may be larger than memory: a batch reads its own rows, and nothing else stays."""

from __future__ import annotations

import contextlib
import mmap
import os
from collections.abc import Sequence
from math import prod
from tokenize import TokenError
from typing import Any

import numpy as np

from tensorcore import dtypes
from tensorcore.errors import ArgumentError, ArgumentTypeError, DimensionError, DtypeError, LoadError
from tensorcore.ops.creation.create import from_numpy
from tensorcore.serialization.safetensors import located
from tensorcore.tensor import Tensor
from tensorcore.utils.data.dataset import Gathering

__all__ = ["MappedDataset", "NpyDataset", "RawDataset", "SafetensorsDataset"]

# How much of its files a data set lets the system keep in this process's memory, by an estimate from above: a fault
# brings in up to 64 KiB around the byte that was asked for.
_RESIDENT = 64 << 20
_FAULT = 64 << 10


class Column:
    """An array in a file whose first dim counts the rows, which lie one after the other.

    Raises LoadError where the file is too short for it.
    """

    def __init__(
        self, path: Any, dtype: np.dtype, shape: Sequence[int], offset: int, resident: int = _RESIDENT
    ) -> None:
        self.path, self.dtype, self.shape, self.offset = os.fspath(path), dtype, tuple(shape), offset
        self.resident = resident
        try:
            dtypes.from_numpy_dtype(dtype.newbyteorder("="))
        except (DtypeError, ArgumentTypeError, KeyError):
            raise DtypeError(
                f"MappedDataset: expected a dtype that tensorcore has, got {dtype} in {self.path}; convert the file"
            ) from None
        if not self.shape:
            raise ArgumentError(
                f"MappedDataset: expected an array of rows, got one number in {self.path}; give it a dim"
            )
        needed, got = offset + prod(self.shape) * dtype.itemsize, os.stat(self.path).st_size
        if got < needed:
            raise LoadError(
                f"MappedDataset: expected {needed} bytes, got {got}; {self.path} was cut short, get it again"
            )
        self._reset()

    def _reset(self) -> None:
        self._map: mmap.mmap | None = None
        self._array: np.ndarray | None = None
        self._touched = 0

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_map": None, "_array": None, "_touched": 0}

    def rows(self, index: Any) -> Tensor:
        """A copy of the rows of an int, a slice, or a list."""
        array = self._opened()
        found = np.array(array[index])
        if not found.dtype.isnative:
            found = found.astype(found.dtype.newbyteorder("="))
        count = found.shape[0] if found.ndim == array.ndim else 1
        self._touched += count * (found.nbytes // max(count, 1) + _FAULT)
        if self._touched > self.resident:
            self._forget()
        return from_numpy(found)

    def _opened(self) -> np.ndarray:
        if self._array is None:
            if not prod(self.shape):
                self._array = np.empty(self.shape, self.dtype)
            else:
                with open(self.path, "rb") as file:
                    self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
                flat = np.frombuffer(self._map, self.dtype, prod(self.shape), self.offset)
                self._array = flat.reshape(self.shape)
        return self._array

    def _forget(self) -> None:
        """Give the pages back: the file has them still."""
        self._touched = 0
        if self._map is not None and hasattr(mmap, "MADV_DONTNEED"):
            with contextlib.suppress(OSError):
                self._map.madvise(mmap.MADV_DONTNEED)


class MappedDataset(Gathering[tuple[Tensor, ...]]):
    """Arrays in files with equally many rows; a sample is a tuple of one row of each, as in a TensorDataset.

    A batch is gathered with one read for each array, in the worker that makes it. Workers map the files themselves.

    Attributes:
        bytes_read: how many bytes of rows this process has asked for.
    """

    def __init__(self, *columns: Column) -> None:
        lengths = {column.shape[0] for column in columns}
        if len(lengths) != 1:
            raise ArgumentError(
                f"MappedDataset: expected arrays of equally many rows, got {[one.shape for one in columns]}; cut them"
            )
        self.columns = columns
        self.bytes_read = 0

    def __len__(self) -> int:
        return self.columns[0].shape[0]

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        if not isinstance(index, slice):
            if not hasattr(index, "__index__"):
                raise ArgumentTypeError(f"MappedDataset: expected an int or a slice, got {index!r}; use __getitems__")
            index = self._checked([index.__index__()])[0]
        return tuple(self._rows(index))

    def __getitems__(self, indices: list[int]) -> list[tuple[Tensor, ...]]:
        """Several samples."""
        return list(zip(*[rows.unbind(0) for rows in self.gathered(indices)], strict=True))

    def gathered(self, indices: Sequence[int]) -> list[Tensor]:
        """A batch of each array."""
        return self._rows(self._checked(indices))

    def _rows(self, index: Any) -> list[Tensor]:
        found = [column.rows(index) for column in self.columns]
        self.bytes_read += sum([one.nbytes for one in found])
        return found

    def _checked(self, indices: Sequence[int]) -> list[int]:
        length = len(self)
        for one in indices:
            if not -length <= one < length:
                raise DimensionError(
                    f"MappedDataset: index {one} is out of range for {length} samples, got it; use less"
                )
        return list(indices)


class NpyDataset(MappedDataset):
    """Arrays in files that ``numpy.save`` wrote.

    Args:
        paths: one or several.
    """

    def __init__(self, *paths: Any) -> None:
        super().__init__(*[_npy(path) for path in paths])


class RawDataset(MappedDataset):
    """Rows of one dtype in a file without a header.

    Args:
        dtype: of the values.
        shape: of one row; ``()`` for one number each.
        offset: bytes before the first row.
    """

    def __init__(self, path: Any, dtype: dtypes.dtype, shape: Sequence[int] = (), offset: int = 0) -> None:
        kind = dtypes.as_dtype(dtype, "RawDataset").numpy
        row = prod(shape) * kind.itemsize
        if offset < 0 or row <= 0:
            raise ArgumentError(
                f"RawDataset: expected rows of values behind the start, got {shape} at {offset}; see both"
            )
        size = os.stat(path).st_size - offset
        if size < 0 or size % row:
            raise LoadError(
                f"RawDataset: expected whole rows of {row} bytes, got {size} bytes behind {offset} in {os.fspath(path)}; "
                "the file was cut short, or has another shape"
            )
        super().__init__(Column(path, kind, (size // row, *shape), offset))


class SafetensorsDataset(MappedDataset):
    """Tensors in a safetensors file.

    Args:
        names: of the tensors, in the order in which a sample has them.
    """

    def __init__(self, path: Any, *names: str) -> None:
        super().__init__(*[Column(path, *place) for place in located(path, names)])


def _npy(path: Any) -> Column:
    with open(path, "rb") as file:
        try:
            version = np.lib.format.read_magic(file)
            read = np.lib.format.read_array_header_1_0 if version[0] == 1 else np.lib.format.read_array_header_2_0
            shape, turned, dtype = read(file)
        except (ValueError, TypeError, SyntaxError, TokenError) as error:  # what NumPy's reader of headers lets through
            raise LoadError(f"NpyDataset: expected a file that numpy.save wrote, got {error}; check {path}") from None
        if turned and len(shape) > 1:
            raise LoadError(
                f"NpyDataset: expected rows one after the other, got columns (Fortran order) in {path}; save it again with "
                "numpy.ascontiguousarray"
            )
        return Column(path, dtype, shape, file.tell())
