"""Copies and files: deepcopy and pickle of tensors, ``save`` and ``load``.

A saved file is a header (magic, version, its own length, the length of the pickle), a pickle of the object in which
storages are places in the rest of the file, and the bytes of the storages, each at a multiple of 64.
"""

from __future__ import annotations

import collections
import copy
import io
import os
import pickle
import stat
import struct
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO

import numpy as np

from tensorcore import dtypes
from tensorcore.backend.base import Backend
from tensorcore.backend.registry import device as find_device
from tensorcore.errors import ArgumentTypeError, DeviceError, GradientError, LoadError, RefusedGlobal, TensorcoreError
from tensorcore.ops.kinds import method
from tensorcore.ops.placement import as_device, host_device
from tensorcore.parameter import Parameter
from tensorcore.storage import UntypedStorage, storage_of, tensor_over
from tensorcore.tensor import Size, Tensor

__all__ = ["load", "save"]

_MAGIC = b"tensrcor"
_VERSION = 1
_HEADER = struct.Struct("<8sQQQ")
_ALIGNMENT = 64
_KINDS_OF_MAP = "None, a device, its name, a dict of names, or a function of storage and name"


def save(obj: Any, f: Any, *, pickle_protocol: int = 4) -> None:
    """Write an object to a file: tensors with their whole storages, each storage once, and whatever pickles.

    A path appears complete or not at all: it is written beside, then renamed.

    Args:
        f: a path, or an open binary file.
    """
    pickled = io.BytesIO()
    pickler = _Pickler(pickled, max(pickle_protocol, 4))
    pickler.dump(obj)
    if hasattr(f, "write"):
        _write(f, pickled.getbuffer(), pickler)
        return
    if not isinstance(f, (str, os.PathLike)):
        raise ArgumentTypeError(
            f"save: expected 'f' to be string, path, or a file-like object with a 'write' attribute, got {f!r}; pass "
            "a path"
        )
    with _atomic(os.fspath(f)) as file:
        _write(file, pickled.getbuffer(), pickler)


def load(f: Any, map_location: Any = None, *, weights_only: bool = True) -> Any:
    """What ``save`` wrote to a file.

    Args:
        f: a path, or an open binary file.
        map_location: where storages go that were saved on another device: a device or its name for all of them, a
            dict from saved to wanted names, or a function that gets a storage on the host and the saved name and
            gives a storage, or None for the saved device.
        weights_only: build tensors and plain containers alone. A file from a stranger can run any code
            when it is loaded with ``weights_only=False``.
    """
    if map_location is not None and not (isinstance(map_location, (str, Backend, dict)) or callable(map_location)):
        raise ArgumentTypeError(
            f"load: expected map_location to be {_KINDS_OF_MAP}, got {map_location!r}; pass one of these"
        )
    if hasattr(f, "read"):
        return _read(f, map_location, weights_only)
    if not isinstance(f, (str, os.PathLike)):
        raise ArgumentTypeError(f"load: expected a path or an open binary file, got {f!r}; pass a path")
    with open(f, "rb") as file:
        return _read(file, map_location, weights_only)


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Let ``load(..., weights_only=True)`` build these classes and call these functions too."""
    for one in safe_globals:
        one, name = one if isinstance(one, tuple) else (one, f"{one.__module__}.{one.__qualname__}")
        _safe[name] = one


def get_safe_globals() -> list[Any]:
    """What ``add_safe_globals`` added."""
    return list(_safe.values())


def clear_safe_globals() -> None:
    """Take back all that ``add_safe_globals`` added."""
    _safe.clear()


@contextmanager
def safe_globals(safe_globals: list[Any]) -> Iterator[None]:
    """``add_safe_globals`` for the length of a ``with`` block."""
    before = dict(_safe)
    add_safe_globals(safe_globals)
    try:
        yield
    finally:
        _safe.clear()
        _safe.update(before)


# Tensors and storages as pickle and copy see them


def rebuild_tensor(
    cls: type, storage: Any, dtype: Any, offset: int, size: Any, stride: Any, requires_grad: bool, notes: dict[str, Any]
) -> Tensor:
    """A tensor over a storage, as ``Tensor.__reduce_ex__`` described it."""
    if not (isinstance(cls, type) and issubclass(cls, Tensor)):
        raise ArgumentTypeError(f"load: expected a kind of Tensor, got {cls!r}; the file is damaged")
    made = tensor_over(storage, dtype, size, stride, offset, cls)
    made.__dict__.update(notes)
    return made.requires_grad_() if requires_grad else made


def rebuild_storage(device: Backend, dtype: Any, size: int, values: Any) -> UntypedStorage:
    """A storage of ``size`` elements, with these bytes if there are any."""
    if values is None:
        return storage_of(device, device.allocate((size,), dtype))
    return storage_of(device, device.from_host(np.frombuffer(values, dtype.numpy)))


def _reduce_tensor(self: Tensor, protocol: int) -> Any:
    if self.node is not None and (self._notes() if self.grad_fn is None else {}).get("tensor_hooks"):
        warnings.warn(
            "pickle: expected a tensor without hooks, got one whose backward hooks will not be serialized; "
            "register them again on the copy",
            stacklevel=2,
        )
    strides, offset = self.device.layout(self.native)
    notes = {key: value for key, value in self.__dict__.items() if key != "_grad"}
    storage = storage_of(self.device, self.native)
    size = tuple(self.native.shape)
    return rebuild_tensor, (type(self), storage, self.dtype, offset, size, strides, self.requires_grad, notes)


def _reduce_storage(self: UntypedStorage, protocol: int) -> Any:
    native = self._native
    dtype = dtypes.from_numpy_dtype(native.dtype)
    values: Any = None
    if self.device.capabilities.values:
        values = pickle.PickleBuffer(self._bytes()) if protocol >= 5 else self._bytes().tobytes()
    return rebuild_storage, (self.device, dtype, native.shape[0], values)


def _deepcopy(self: Tensor, memo: dict[int, Any]) -> Tensor:
    """A copy with a storage of its own, which views copied in the same ``memo`` share again."""
    if not self.is_leaf:
        raise GradientError(
            "deepcopy: Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at "
            "the moment, got the result of an op; use detach() before"
        )
    if id(self) in memo:
        return memo[id(self)]  # type: ignore[no-any-return]
    _, (cls, storage, dtype, offset, size, stride, requires_grad, notes) = _reduce_quietly(self)
    # As in PyTorch, a parameter's copy is bare: no gradient, no attributes.
    bare = isinstance(self, Parameter)
    notes = {"_is_param": True} if bare and "_is_param" in notes else {} if bare else copy.deepcopy(notes, memo)
    made = rebuild_tensor(cls, storage.__deepcopy__(memo), dtype, offset, size, stride, requires_grad, notes)
    memo[id(self)] = made
    if not bare and self.grad is not None:
        made.grad = copy.deepcopy(self.grad, memo)
    return made


def _reduce_quietly(self: Tensor) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _reduce_tensor(self, 4)


method(_reduce_tensor, "__reduce_ex__")
method(_deepcopy, "__deepcopy__")
UntypedStorage.__reduce_ex__ = _reduce_storage  # type: ignore[method-assign, assignment]


# The file


class _Pickler(pickle.Pickler):
    """Puts storages aside and writes where they will be instead."""

    def __init__(self, file: BinaryIO, protocol: int) -> None:
        super().__init__(file, protocol)
        self.storages: dict[UntypedStorage, tuple[Any, ...]] = {}
        self.end = 0

    def persistent_id(self, obj: Any) -> Any:
        if type(obj) is not UntypedStorage:
            return None
        if obj not in self.storages:
            valued = obj.device.capabilities.values
            dtype = dtypes.from_numpy_dtype(obj._native.dtype).name
            self.storages[obj] = ("storage", self.end, obj.nbytes(), str(obj.device), dtype, valued)
            self.end += _rounded(obj.nbytes()) if valued else 0
        return self.storages[obj]


def _write(file: Any, pickled: memoryview, pickler: _Pickler) -> None:
    start = _rounded(_HEADER.size + len(pickled))
    file.write(_HEADER.pack(_MAGIC, _VERSION, start + pickler.end, len(pickled)))
    file.write(pickled)
    file.write(bytes(start - _HEADER.size - len(pickled)))
    for storage, (_, _, nbytes, _, _, valued) in pickler.storages.items():
        if valued:
            file.write(storage._bytes().data)
            file.write(bytes(_rounded(nbytes) - nbytes))


def _read(file: Any, map_location: Any, weights_only: bool) -> Any:
    header = file.read(_HEADER.size)
    if header[:8] != _MAGIC[: len(header[:8])] or not header:
        raise LoadError(
            f"load: expected a file that save() of tensorcore wrote, got one that starts with {bytes(header[:8])!r}; "
            f"check the path"
        )
    if len(header) < _HEADER.size:
        raise _cut_short(_HEADER.size, len(header))
    _, version, total, length = _HEADER.unpack(header)
    if version != _VERSION:
        raise LoadError(f"load: expected a file of version {_VERSION}, got {version}; load it with a newer tensorcore")
    reader = _Reader(file, _HEADER.size, total)
    pickled = reader.read(length)
    reader.read(_rounded(reader.at) - reader.at)
    unpickler = (_SafeUnpickler if weights_only else _Unpickler)(io.BytesIO(pickled))
    unpickler.places = _Places(reader, map_location)
    try:
        found = unpickler.load()
        reader.read(total - reader.at)
    except (TensorcoreError, OSError):
        raise
    except Exception as error:
        if not weights_only:
            raise  # the error of the object's own code
        raise LoadError(f"load: expected what save() writes, got a damaged file ({error!r}); save it again") from error
    return found


class _Reader:
    """Reads a file from its start to its end, and says where it was cut short."""

    def __init__(self, file: Any, at: int, total: int) -> None:
        self.file, self.at, self.total = file, at, total
        with suppress(AttributeError, OSError):
            here = file.tell()
            size = file.seek(0, os.SEEK_END) - here + at
            file.seek(here)
            if size < total:
                raise _cut_short(total, size)

    def read(self, size: int) -> bytes:
        if self.at + size > self.total:
            raise _cut_short(self.at + size, self.total)
        found: bytes = self.file.read(size)
        if len(found) < size:
            raise _cut_short(self.total, self.at + len(found))
        self.at += size
        return found


class _Places:
    """The storages of a file, each made when the pickle first names it."""

    def __init__(self, reader: _Reader, map_location: Any) -> None:
        self.reader, self.map_location = reader, map_location
        self.start = reader.at
        self.made: dict[Any, UntypedStorage] = {}

    def storage(self, place: Any) -> UntypedStorage:
        _, at, nbytes, name, dtype_name, valued = place
        if place not in self.made:
            dtype = getattr(dtypes, {"bool": "bool_"}.get(dtype_name, dtype_name))
            self.made[place] = self._make(at, nbytes, name, dtypes.as_dtype(dtype, "load"), valued)
        return self.made[place]

    def _make(self, at: int, nbytes: int, name: str, dtype: Any, valued: bool) -> UntypedStorage:
        if not valued:
            return rebuild_storage(self._saved_device(name), dtype, nbytes // dtype.itemsize, None)
        self.reader.read(self.start + at - self.reader.at)
        values = self.reader.read(nbytes)
        where = self.map_location
        if isinstance(where, (dict, str, Backend)) or where is None:
            wanted = where.get(name, name) if isinstance(where, dict) else name if where is None else where
            device = self._saved_device(wanted) if wanted is name else as_device(wanted)
            return rebuild_storage(device, dtype, nbytes // dtype.itemsize, values)
        host = rebuild_storage(host_device(), dtype, nbytes // dtype.itemsize, values)
        chosen = where(host, name)
        return host.to(self._saved_device(name)) if chosen is None else chosen.untyped()

    def _saved_device(self, name: str) -> Backend:
        try:
            return find_device(name)
        except DeviceError as error:
            raise DeviceError(
                f"load: expected the device '{name}', on which a storage was saved, got none here ({error}); "
                f"pass map_location to load it on another one"
            ) from error


class _Unpickler(pickle.Unpickler):
    """Builds whatever the file says."""

    places: _Places

    def persistent_load(self, place: Any) -> Any:
        return self.places.storage(place)


class _SafeUnpickler(pickle._Unpickler):  # type: ignore[name-defined]
    """Builds tensors and plain containers alone.

    In Python, because the C one lets a file set attributes of the very functions that it is allowed to call.
    """

    places: _Places
    dispatch = dict(pickle._Unpickler.dispatch)  # type: ignore[attr-defined]  # noqa: RUF012

    def persistent_load(self, place: Any) -> Any:
        return self.places.storage(place)

    def find_class(self, module: str, name: str) -> Any:
        full = f"{module}.{name}"
        if full in _PLAIN:
            return _PLAIN[full]
        if full in _safe:
            return _safe[full]
        raise RefusedGlobal(
            f"load: Weights only load failed: expected tensors and plain containers, got {full}, which was not an "
            "allowed "
            f"global; if you trust it, allow it with serialization.add_safe_globals([{name}]), or pass "
            "weights_only=False "
            f"if you trust the file"
        )

    def load_build(self) -> None:
        target = self.stack[-2]
        allowed = tuple(one for one in _safe.values() if isinstance(one, type))
        if type(target) not in (collections.OrderedDict, *allowed):
            raise RefusedGlobal(
                f"load: Weights only load failed: expected no state for a {type(target).__name__}, got some; "
                f"pass weights_only=False if you trust the file"
            )
        super().load_build()

    dispatch[pickle.BUILD[0]] = load_build


def _named(*objects: Any) -> dict[str, Any]:
    return {f"{one.__module__}.{one.__qualname__}": one for one in objects}


_PLAIN = _named(
    collections.OrderedDict, collections.Counter, set, frozenset, complex, bytearray, slice, range,
    Size, Tensor, Parameter, rebuild_tensor, dtypes._named, find_device,
)  # fmt: skip
_safe: dict[str, Any] = {}


@contextmanager
def _atomic(path: str) -> Iterator[BinaryIO]:
    """A file that takes the place of ``path`` once it is complete."""
    path = os.path.realpath(path)
    parent = os.path.dirname(path)
    if not os.path.isdir(parent):
        raise LoadError(
            f"save: expected a directory to write to, got {parent}: Parent directory {parent} does not exist."
        )
    mode = None
    with suppress(OSError):
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):  # a pipe or a device cannot be replaced
            with open(path, "wb") as file:
                yield file
            return
        mode = stat.S_IMODE(status.st_mode)
    beside = f"{path}.{os.urandom(4).hex()}.tmp"
    try:
        with open(
            os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666), "wb"
        ) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            os.chmod(beside, mode)
        os.replace(beside, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside)
        raise


def _rounded(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def _cut_short(expected: int, got: int) -> LoadError:
    return LoadError(f"load: expected {expected} bytes, got {got}; the file was cut short, copy or save it again")
