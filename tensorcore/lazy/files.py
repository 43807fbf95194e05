"""Tensors of files whose bytes are read when they are first used."""

from __future__ import annotations

import os
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from tensorcore.backend.base import Backend
from tensorcore.dtypes import from_numpy_dtype
from tensorcore.errors import LoadError
from tensorcore.lazy.arrays import around
from tensorcore.lazy.backend import over
from tensorcore.lazy.record import dense_form, leaf
from tensorcore.ops.placement import as_device
from tensorcore.serialization.safetensors import located, safe_open
from tensorcore.tensor import Tensor, new_tensor

__all__ = ["load"]


def load(path: Any, device: Any = None) -> Any:
    """The lazy tensors of a ``.safetensors`` file by name, or the one of a ``.npy`` file.

    Only the header is read; the bytes of a tensor when one of its values is needed. A file that has changed by then
    raises LoadError.

    Args:
        device: where the tensors are when they are made, or a lazy device over it.
    """
    name = os.fsdecode(path)
    target = over(as_device(device)).target
    if name.endswith(".npy"):
        dtype, shape, fortran, start = _header(name)
        return _tensor(target, name, dtype, shape, start, fortran)
    if not name.endswith(".safetensors"):
        raise LoadError(f"load: expected a file in .safetensors or .npy, got {name!r}; use tensorcore.load for others")
    with safe_open(name) as file:
        names = file.keys()
    places = zip(names, located(name, names), strict=True)
    return {one: _tensor(target, name, dtype.newbyteorder("<"), shape, at) for one, (dtype, shape, at) in places}


def _header(path: str) -> tuple[np.dtype[Any], tuple[int, ...], bool, int]:
    with open(path, "rb") as file:
        try:
            version = np.lib.format.read_magic(file)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, fortran, dtype = read(file)
        except ValueError as error:
            raise LoadError(f"load: expected a .npy file, got {path} with no header of one: {error}") from error
        if dtype.hasobject:
            raise LoadError(f"load: expected numbers, got Python objects in {path}; save an array of numbers")
        return dtype, shape, fortran, file.tell()


def _tensor(
    target: Backend, path: str, dtype: np.dtype[Any], shape: tuple[int, ...], start: int, fortran: bool = False
) -> Tensor:
    """A lazy tensor of the elements from ``start`` on."""
    native_dtype = dtype.newbyteorder("=")
    kind = from_numpy_dtype(native_dtype)
    one = dense_form(tuple(shape), native_dtype)
    native = around(leaf(one, maker=_reader(target, path, _stamp(path), dtype, one.shape, start, fortran)), one)
    return new_tensor(native, kind, over(target))  # type: ignore[no-any-return]


def _reader(
    target: Backend, path: str, known: Any, dtype: np.dtype[Any], shape: tuple[int, ...], start: int, fortran: bool
) -> Callable[[], Any]:
    def read() -> Any:
        if _stamp(path) != known:
            raise LoadError(
                f"load: expected {path} as it was when it was opened, got one that has changed; load it anew"
            )
        values = np.fromfile(path, dtype, prod(shape), offset=start)
        if values.size != prod(shape):
            raise LoadError(
                f"load: expected {prod(shape)} elements of {dtype} in {path}, got {values.size}; it was cut short"
            )
        values = values.reshape(shape, order="F" if fortran else "C")
        return target.share_host(values.astype(dtype.newbyteorder("="), order="C", copy=False))

    return read


def _stamp(path: str) -> tuple[int, int] | None:
    """What changes when a file is written."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_size, found.st_mtime_ns
