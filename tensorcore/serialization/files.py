"""Whole files: what ``save`` writes, and how ``load`` tells what it was given."""

from __future__ import annotations

import io
import os
import pickle
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tensorcore.errors import ArgumentError, ArgumentTypeError, LoadError, TensorcoreError
from tensorcore.serialization.archive import Archive, ArchiveWriter
from tensorcore.serialization.atomic import atomic_file
from tensorcore.serialization.options import Options
from tensorcore.serialization.pickler import pickler_class
from tensorcore.serialization.places import Storages, check_map
from tensorcore.serialization.unpickler import SafeUnpickler, Survey, free_class

__all__ = ["read", "unsafe_globals", "write"]

_ZIP, _TAR_AT, _TAR = b"PK\x03\x04", 257, b"ustar"


def write(obj: Any, f: Any, pickle_module: Any, protocol: int, zipped: bool, byteorder: bool) -> None:
    """``save``."""
    if not hasattr(f, "write") and not isinstance(f, (str, os.PathLike)):
        raise ArgumentTypeError(
            f"save: expected 'f' to be string, path, or a file-like object with a 'write' attribute, got {f!r}; pass "
            "a path"
        )
    if not isinstance(protocol, int) or isinstance(protocol, bool):
        raise ArgumentTypeError(f"save: expected pickle_protocol to be an int, got {protocol!r}; leave it out")
    if not zipped:
        from tensorcore.serialization.legacy import write_legacy

        def put(file: Any) -> None:
            write_legacy(obj, file, pickler_class(pickle_module), protocol)
    else:
        # All that can fail for the object's sake fails before a byte is written.
        text = io.BytesIO()
        pickler = pickler_class(pickle_module)(text, protocol)
        pickler.dump(obj)

        def put(file: Any) -> None:
            _put(file, text.getbuffer(), pickler.storages, name, byteorder)

    if hasattr(f, "write"):
        name = "archive"
        put(f)
        return
    path = os.fspath(f)
    name = os.path.splitext(os.path.basename(os.fsdecode(path)))[0] or "archive"
    with atomic_file(path, "save") as file:
        put(file)


def read(f: Any, map_location: Any, pickle_module: Any, weights_only: bool | None, mapped: Any, options: Any) -> Any:
    """``load``."""
    check_map(map_location)
    safely = weights_only is None or bool(weights_only)
    if safely and weights_only is None and pickle_module is not None:
        safely = False
    if safely and pickle_module is not None:
        raise LoadError(
            "load: Can not safely load weights when explicit pickle_module is specified, got one; leave it out"
        )
    if not hasattr(f, "read") and not isinstance(f, (str, os.PathLike)):
        raise ArgumentTypeError(f"load: expected a path or an open binary file, got {f!r}; pass a path")
    if mapped and not isinstance(f, (str, os.PathLike)):
        raise ArgumentError("load: f must be a file path in order to use the mmap argument, got a file; pass its path")
    if isinstance(f, (str, os.PathLike)) and os.fsdecode(os.fspath(f)).endswith(".safetensors"):
        return _safetensors(f, map_location)
    with _opened(f) as file:
        kind = _kind(file)
        unpickler: Any = SafeUnpickler if safely else free_class(pickle_module)
        if kind == "zip":
            return _read_zip(file, map_location, unpickler, _map(file) if mapped else None, options)
        if mapped:
            raise LoadError("load: mmap can only be used with zip files, got an older one; save it again to map it")
        from tensorcore.serialization.legacy import read_legacy

        with _explained(unpickler):
            return read_legacy(file, map_location, lambda part, storages: _made(unpickler, part, storages, options))


def unsafe_globals(f: Any) -> list[str]:
    """``get_unsafe_globals_in_checkpoint``."""
    with _opened(f) as file:
        if _kind(file) != "zip":
            raise ArgumentError("get_unsafe_globals_in_checkpoint: Expected input to be a checkpoint returned by save")
        survey = Survey(io.BytesIO(Archive(file).read("data.pkl")))
        survey.allowed = Options.safe
        with _explained(SafeUnpickler):
            survey.load()
        return sorted(survey.names)


def _put(file: Any, pickled: Any, storages: Any, name: str, byteorder: bool) -> None:
    archive = ArchiveWriter(file, name, Options.checksums)
    archive.add("data.pkl", pickled)
    archive.add(".format_version", b"1")
    archive.add(".storage_alignment", b"64")
    if byteorder:
        archive.add("byteorder", sys.byteorder.encode())
    for storage, key in storages.items():
        archive.add(f"data/{key}", storage._bytes().data)
    archive.add("version", b"3\n")
    archive.add(".data/serialization_id", f"{archive.digest:040d}".encode())
    archive.close()


def _read_zip(file: Any, map_location: Any, unpickler: Any, mapped: Any, options: Any) -> Any:
    archive = Archive(file)
    if "constants.pkl" in archive:
        raise LoadError(
            "load: expected what save() writes, got a TorchScript archive, which is a program; "
            "save the state_dict of the module that it was made from"
        )
    text = io.BytesIO(archive.read("data.pkl", Options.checksums))
    storages = Storages(archive, map_location, mapped, Options.checksums)
    with _explained(unpickler):
        found = _made(unpickler, text, storages, options).load()
    file.seek(archive.start + archive.end)
    return found


def _made(unpickler: Any, file: Any, storages: Any, options: dict[str, Any]) -> Any:
    made = unpickler(file, **{"encoding": "utf-8", **options})
    made.storages, made.allowed = storages, Options.safe
    return made


@contextmanager
def _explained(unpickler: Any) -> Iterator[None]:
    """What goes wrong in a safe unpickler is the file's fault; in a free one it may be the object's own code's."""
    try:
        yield
    except (TensorcoreError, OSError, MemoryError):
        raise
    except UnicodeDecodeError as error:
        raise LoadError(
            f"load: expected text in {error.encoding}, got other bytes ({error}); "
            'pass encoding="latin1" for a file that Python 2 wrote'
        ) from error
    except Exception as error:
        if not issubclass(unpickler, SafeUnpickler):
            raise
        raise LoadError(f"load: expected what save() writes, got a damaged file ({error!r}); save it again") from error


@contextmanager
def _opened(f: Any) -> Iterator[Any]:
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            yield file
    elif hasattr(f, "seek") and hasattr(f, "tell") and (not hasattr(f, "seekable") or f.seekable()):
        yield f
    else:
        yield io.BytesIO(f.read())


def _kind(file: Any) -> str:
    start = file.tell()
    head = file.read(_TAR_AT + len(_TAR))
    file.seek(start)
    if isinstance(head, str):
        raise ArgumentTypeError('load: expected a file that is open for bytes, got one for text; open it with "rb"')
    if head[:4] == _ZIP:
        return "zip"
    if head[_TAR_AT:] == _TAR:
        raise LoadError(
            "load: expected a file of PyTorch 0.2 or later, got the tar archive that older ones wrote; "
            "load and save it with PyTorch once"
        )
    if len(head) < 4 and _ZIP.startswith(head):
        raise LoadError(f"load: expected a file that save() wrote, got {len(head)} bytes; the file was cut short")
    if head[:1] == pickle.PROTO and len(head) > 2:
        return "legacy"
    raise LoadError(
        f"load: expected a file that save() of PyTorch or tensorcore wrote, got one that starts with "
        f"{bytes(head[:8])!r}; check the path"
    )


def _map(file: Any) -> Any:
    import mmap

    shared = Options.mmap_flags == mmap.MAP_SHARED
    if not shared:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    with open(file.name, "r+b") as writable:
        return mmap.mmap(writable.fileno(), 0, access=mmap.ACCESS_WRITE)


def _safetensors(f: Any, map_location: Any) -> Any:
    if isinstance(map_location, dict) or (callable(map_location) and not hasattr(map_location, "kernels")):
        raise LoadError(
            f"load: expected map_location to be a device or its name for a safetensors file, got {map_location!r}; "
            "pass one of those"
        )
    from tensorcore.serialization.safetensors import load_file

    return load_file(f, map_location)
