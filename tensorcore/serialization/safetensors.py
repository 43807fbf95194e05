"""Tensors in a safetensors file: a header that says what is inside, then the plain bytes of each tensor.

The format (https://github.com/huggingface/safetensors) is eight bytes with the length of a JSON header, the header,
and the values in row-major order, little-endian. Nothing in such a file can run code.
"""

from __future__ import annotations

import itertools
import json
import mmap
import os
import sys
from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from tensorcore import dtypes
from tensorcore.errors import ArgumentTypeError, DimensionError, DtypeError, LoadError
from tensorcore.ops.placement import as_device
from tensorcore.serialization.atomic import atomic_file
from tensorcore.tensor import Tensor, new_tensor

__all__ = ["SafeSlice", "load", "load_file", "located", "read_metadata", "safe_open", "save", "save_file"]

_NAMES = {
    "BOOL": dtypes.bool_, "U8": dtypes.uint8, "I8": dtypes.int8, "I16": dtypes.int16, "I32": dtypes.int32,
    "I64": dtypes.int64, "F16": dtypes.float16, "BF16": dtypes.bfloat16, "F32": dtypes.float32, "F64": dtypes.float64,
    "C64": dtypes.complex64, "U16": dtypes.uint16, "U32": dtypes.uint32, "U64": dtypes.uint64,
}  # fmt: skip
_DTYPES = {dtype: name for name, dtype in _NAMES.items()}
# The format's own limit on the header; a file that claims more is no safetensors file.
_LONGEST_HEADER = 100_000_000


def save_file(tensors: Mapping[str, Tensor], filename: Any, metadata: Mapping[str, str] | None = None) -> None:
    """Write tensors by name. The file appears whole or not at all, and replaces an older one only once it is complete.

    Args:
        metadata: text by name, kept in the header.
    """
    pieces = _pieces(tensors, metadata)
    with atomic_file(os.fspath(filename), "save_file") as file:
        for piece in pieces:
            file.write(piece)


def save(tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> bytes:
    """What ``save_file`` would write."""
    return b"".join(_pieces(tensors, metadata))


def load_file(filename: Any, device: Any = None) -> dict[str, Tensor]:
    """The tensors of a file by name, on ``device`` or where tensors are made by default.

    Each goes from the file to the device's memory without a copy in between.
    """
    with safe_open(filename, device=device) as file:
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


def load(data: bytes, device: Any = None) -> dict[str, Tensor]:
    """The tensors in what ``save`` gave."""
    return _Values("the data", data, as_device(device)).all()


def read_metadata(filename: Any) -> dict[str, str]:
    """The texts that ``save_file`` was given, without reading the tensors."""
    with open(filename, "rb") as file:
        return dict(_header(os.fsdecode(filename), file).get("__metadata__", {}))


def located(filename: Any, names: Any) -> list[tuple[np.dtype, tuple[int, ...], int]]:
    """NumPy dtype, shape and place in the file of each of these tensors."""
    with safe_open(filename) as file:
        values = file._values
        entries = [values.entry(name) for name in names]
        return [
            (_NAMES[one["dtype"]].numpy, tuple(one["shape"]), values.start + one["data_offsets"][0]) for one in entries
        ]


class safe_open:
    """A file whose tensors are read when they are asked for; use it in ``with``.

    Args:
        framework: accepted as the safetensors package wants it.
        device: where tensors are made.

    Raises LoadError where the header does not fit the file.
    """

    def __init__(self, filename: Any, framework: str = "pt", device: Any = None) -> None:
        path = os.fsdecode(filename)
        with open(path, "rb") as file:
            # An empty file cannot be mapped; reading it says what is missing.
            empty = not os.fstat(file.fileno()).st_size
            self._map: Any = b"" if empty else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._values = _Values(path, self._map, as_device(device))

    def __enter__(self) -> safe_open:
        return self

    def __exit__(self, *exception: object) -> None:
        """Nothing is left open: the file stays mapped for as long as slices of it are alive."""
        self._values = self._map = None

    def keys(self) -> list[str]:
        """The names, in order."""
        return sorted(self._values.header)

    def offset_keys(self) -> list[str]:
        """The names in the order of their values in the file."""
        header = self._values.header
        return sorted(header, key=lambda name: header[name]["data_offsets"])

    def metadata(self) -> dict[str, str] | None:
        """The texts that the file was written with."""
        return self._values.metadata

    def get_tensor(self, name: str) -> Tensor:
        """One tensor, in memory of its own."""
        return self._values.tensor(name)

    def get_slice(self, name: str) -> SafeSlice:
        """One tensor to be indexed: only what is asked for is read."""
        return SafeSlice(self._values, name)


class SafeSlice:
    """A tensor in a file; indexing with ints, slices and ``...`` reads that part."""

    def __init__(self, values: _Values, name: str) -> None:
        self._values, self._name = values, name
        self._array = values.array(name)

    def get_shape(self) -> list[int]:
        """Its shape."""
        return list(self._array.shape)

    def get_dtype(self) -> str:
        """The format's name for its dtype."""
        return str(self._values.entry(self._name)["dtype"])

    def __getitem__(self, index: Any) -> Tensor:
        try:
            return self._values.made(self._array[index], self._name)
        except IndexError as error:
            raise DimensionError(
                f"get_slice: expected an index into {self.get_shape()}, got {index!r}: {error}"
            ) from None


class _Values:
    """The header of a file and the bytes after it."""

    def __init__(self, path: str, data: Any, device: Any) -> None:
        self.path, self.data, self.device = path, data, device
        self.header = _header(path, _Bytes(data))
        self.metadata = self.header.pop("__metadata__", None)
        self.start = 8 + int.from_bytes(data[:8], "little")
        ranges = []
        for name, entry in self.header.items():
            ranges.append(self._range(name, entry))
        size = max((end for _, end in ranges), default=0)
        if len(data) - self.start != size:
            raise _broken(path, f"{size} bytes of values, got {len(data) - self.start}")
        ranges.sort()
        if any(begin < end for (_, end), (begin, _) in itertools.pairwise(ranges)):
            raise _broken(path, "tensors that lie apart, got some that overlap")

    def _range(self, name: str, entry: Any) -> tuple[int, int]:
        try:
            kind, shape, (start, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
            right = all([type(one) is int and one >= 0 for one in (*shape, start, end)])
        except (KeyError, TypeError, ValueError):
            right = False
        if right and kind not in _NAMES:
            raise LoadError(f"load_file: expected a dtype that tensorcore has, got {kind!r} for {name!r} in {self.path}; "
                             "convert it before it is saved")  # fmt: skip
        if not right or end - start != prod(shape) * _NAMES[kind].itemsize:
            raise _broken(self.path, f"a header that describes its tensors, got {name!r} that does not add up")
        return start, end

    def entry(self, name: str) -> Any:
        try:
            return self.header[name]
        except KeyError:
            raise _unknown(self.path, name, self.header) from None

    def array(self, name: str) -> np.ndarray:
        """The values of a tensor, as they lie in the file."""
        entry = self.entry(name)
        dtype, shape = _NAMES[entry["dtype"]].numpy, tuple(entry["shape"])
        if not prod(shape):
            return np.empty(shape, dtype)
        return np.frombuffer(self.data, dtype, prod(shape), self.start + entry["data_offsets"][0]).reshape(shape)

    def made(self, array: np.ndarray, name: str) -> Tensor:
        """A tensor on the device of a part of the file."""
        dtype = _NAMES[self.entry(name)["dtype"]]
        native = self.device.from_host(_swapped(np.ascontiguousarray(array)).reshape(np.shape(array)))
        return new_tensor(native, dtype, self.device)

    def tensor(self, name: str) -> Tensor:
        return self.made(self.array(name), name)

    def all(self) -> dict[str, Tensor]:
        return {name: self.tensor(name) for name in self.header}


class _Bytes:
    """Reads bytes-like data from its start."""

    def __init__(self, data: Any) -> None:
        self.data, self.at = data, 0

    def read(self, size: int) -> bytes:
        self.at += size
        return bytes(self.data[self.at - size : self.at])


def _pieces(tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None) -> list[Any]:
    """What a file consists of, one after the other."""
    header: dict[str, Any] = {"__metadata__": _texts(metadata)} if metadata else {}
    arrays = []
    at = 0
    # Large elements first, so that each tensor begins at a multiple of its element's size.
    for name, one in sorted(tensors.items(), key=lambda item: (-_checked(*item).dtype.itemsize, item[0])):
        array = np.ascontiguousarray(one.device.to_host(one.native))
        arrays.append(_swapped(array).reshape(-1).view(np.uint8).data)
        shape = list(one.native.shape)
        header[name] = {"dtype": _DTYPES[one.dtype], "shape": shape, "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return [len(text).to_bytes(8, "little"), text, *arrays]


def _header(path: str, file: Any) -> dict[str, Any]:
    length = file.read(8)
    if len(length) < 8:
        raise _broken(path, f"a header, got a file of {len(length)} bytes")
    size = int.from_bytes(length, "little")
    if size > _LONGEST_HEADER:
        raise _broken(path, f"a header of at most {_LONGEST_HEADER} bytes, got one of {size}")
    text = file.read(size)
    if len(text) < size:
        raise _broken(path, f"a header of {size} bytes, got {len(text)}")
    try:
        header = json.loads(text)
    except ValueError:
        header = None
    if not isinstance(header, dict):
        raise _broken(path, "a header in JSON, got something else")
    return header


def _broken(path: str, what: str) -> LoadError:
    return LoadError(
        f"load_file: expected {what}; {path} was cut short or is no safetensors file, use an earlier one or start anew"
    )


def _checked(name: str, tensor: Tensor) -> Tensor:
    if not isinstance(tensor, Tensor):
        raise ArgumentTypeError(
            f"save_file: expected {name!r} to be a Tensor, got {tensor!r}; wrap it in torch.tensor(...)"
        )
    if tensor.dtype not in _DTYPES:
        raise DtypeError(
            f"save_file: expected a dtype that safetensors has, got {tensor.dtype} for {name!r}; convert it"
        )
    return tensor


def _texts(metadata: Mapping[str, str]) -> dict[str, str]:
    for name, text in metadata.items():
        if not isinstance(name, str) or not isinstance(text, str):
            raise ArgumentTypeError(
                f"save_file: expected metadata to be text by name, got {name!r}: {text!r}; use json.dumps"
            )
    return dict(metadata)


def _swapped(array: np.ndarray) -> np.ndarray:
    """The array in the byte order of the file, or back."""
    return array.byteswap() if sys.byteorder == "big" else array


def _unknown(path: str, name: str, header: Any) -> KeyError:
    return KeyError(f"get_tensor: expected one of {sorted(header)[:20]} in {path}, got {name!r}; see keys()")
