"""Tensors in a safetensors file: a header that says what is inside, then the plain bytes of each tensor.

The format (https://github.com/huggingface/safetensors) is eight bytes with the length of a JSON header, the header,
and the values in row-major order, little-endian. Nothing in such a file can run code.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from tensorcore import dtypes
from tensorcore.errors import ArgumentTypeError, DtypeError, LoadError
from tensorcore.ops.placement import as_device
from tensorcore.tensor import Tensor, new_tensor

__all__ = ["load_file", "read_metadata", "save_file"]

_NAMES = {
    "BOOL": dtypes.bool_, "U8": dtypes.uint8, "I8": dtypes.int8, "I16": dtypes.int16, "I32": dtypes.int32,
    "I64": dtypes.int64, "F16": dtypes.float16, "BF16": dtypes.bfloat16, "F32": dtypes.float32, "F64": dtypes.float64,
    "C64": dtypes.complex64,
}  # fmt: skip
_DTYPES = {dtype: name for name, dtype in _NAMES.items()}
# The format's own limit on the header; a file that claims more is no safetensors file.
_LONGEST_HEADER = 100_000_000


def save_file(tensors: Mapping[str, Tensor], filename: Any, metadata: Mapping[str, str] | None = None) -> None:
    """Write tensors by name. The file appears whole or not at all, and replaces an older one only once it is complete.

    Args:
        metadata: text by name, kept in the header.
    """
    header: dict[str, Any] = {"__metadata__": _texts(metadata)} if metadata else {}
    arrays = []
    at = 0
    # Large elements first, so that each tensor begins at a multiple of its element's size.
    for name, one in sorted(tensors.items(), key=lambda item: (-_checked(*item).dtype.itemsize, item[0])):
        array = np.ascontiguousarray(one.device.to_host(one.native))
        arrays.append(array)
        header[name] = {
            "dtype": _DTYPES[one.dtype],
            "shape": list(one.native.shape),
            "data_offsets": [at, at + array.nbytes],
        }
        at += array.nbytes
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    path = Path(filename)
    # Beside the target: only within one file system is a rename atomic.
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(len(text).to_bytes(8, "little"))
            file.write(text)
            for array in arrays:
                file.write(_swapped(array).reshape(-1).view(np.uint8).data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def load_file(filename: Any, device: Any = None) -> dict[str, Tensor]:
    """The tensors of a file by name, on ``device`` or where tensors are made by default."""
    header, values = _read(Path(filename))
    target = as_device(device)
    made = {}
    for name, entry in header.items():
        dtype, shape, (start, end) = _NAMES[entry["dtype"]], tuple(entry["shape"]), entry["data_offsets"]
        array = _swapped(
            np.frombuffer(values, dtype.numpy, prod(shape), start) if end > start else np.empty(0, dtype.numpy)
        )
        made[name] = new_tensor(target.from_host(array.reshape(shape)), dtype, target)
    return made


def read_metadata(filename: Any) -> dict[str, str]:
    """The texts that ``save_file`` was given, without reading the tensors."""
    with open(filename, "rb") as file:
        return dict(_header(Path(filename), file).get("__metadata__", {}))


def _read(path: Path) -> tuple[dict[str, Any], bytes]:
    with open(path, "rb") as file:
        header = _header(path, file)
        header.pop("__metadata__", None)
        values = file.read()
    try:
        for entry in header.values():
            start, end = entry["data_offsets"]
            if end - start != prod(entry["shape"]) * _NAMES[entry["dtype"]].itemsize or start < 0:
                raise ValueError
    except (KeyError, TypeError, ValueError):
        raise _broken(path, "a header that describes its tensors, got one that does not add up") from None
    size = max((entry["data_offsets"][1] for entry in header.values()), default=0)
    if len(values) != size:
        raise _broken(path, f"{size} bytes of values, got {len(values)}")
    return header, values


def _header(path: Path, file: Any) -> dict[str, Any]:
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


def _broken(path: Path, what: str) -> LoadError:
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


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
