"""Files of any objects with tensors in them, in PyTorch's own format: ``save``, ``load``, and what a file may build."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from tensorcore.backend.base import Backend
from tensorcore.errors import ArgumentError, ArgumentTypeError
from tensorcore.serialization.copies import rebuild_storage, rebuild_tensor
from tensorcore.serialization.options import Options, location_tag

__all__ = ["load", "save"]

DEFAULT_PROTOCOL = 2
# What ``load`` takes for map_location.
MAP_LOCATION: TypeAlias = Callable[[Any, str], Any] | Backend | str | dict[str, str] | None


def save(
    obj: Any,
    f: Any,
    pickle_module: Any = None,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Write an object to a file that PyTorch reads too: tensors with their whole storages, each storage once.

    A path appears complete or not at all: it is written beside, synchronised with the disk, then renamed.

    Args:
        obj: tensors, and whatever pickles. Classes are written by name: PyTorch reads what is built of tensors,
            parameters, containers, numbers, text, dtypes, sizes and devices alone.
        f: a path, or an object with ``write``.
        pickle_module: gives the Pickler, which must be written in Python, as dill's is.
        pickle_protocol: 2 is the one that PyTorch's ``weights_only`` reads.

    Raises OSError with the path where the disk is full or fails, RuntimeError where the directory does not exist.
    """
    from tensorcore.serialization.files import write

    write(obj, f, pickle_module, pickle_protocol, _use_new_zipfile_serialization, not _disable_byteorder_record)


def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """What ``save`` of tensorcore or of PyTorch wrote to a file.

    Args:
        f: a path, or an open binary file, which is read from where it is to the object's end.
        map_location: where storages go that were saved on another device: a device or its name for all of them, a
            dict from saved to wanted names, or a function that gets a storage on the host and the saved name and
            gives a storage, or None for the saved device.
        pickle_module: gives the Unpickler where ``weights_only=False``.
        weights_only: build tensors and plain containers alone, as also where None. A file from a stranger can run
            any code when it is loaded with ``weights_only=False``.
        mmap: let tensors on the host show the file itself, which is read as they are used and never written to.
        pickle_load_args: for the Unpickler, e.g. ``encoding="latin1"`` for text from Python 2.

    Raises LoadError (a RuntimeError) for a file that was cut short, is damaged or of another kind, RefusedGlobal (an
    UnpicklingError) for one that wants more built than ``weights_only`` allows.
    """
    from tensorcore.serialization.files import read

    return read(f, map_location, pickle_module, weights_only, mmap, pickle_load_args)


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Let ``load(..., weights_only=True)`` build these classes and call these functions too.

    Args:
        safe_globals: classes or functions, or pairs of one and the full name that files call it by.
    """
    Options.safe = {**Options.safe, **_by_name(safe_globals)}


def get_safe_globals() -> list[Any]:
    """What ``add_safe_globals`` added."""
    return list(Options.safe.values())


def clear_safe_globals() -> None:
    """Take back all that ``add_safe_globals`` added."""
    Options.safe = {}


@contextmanager
def safe_globals(safe_globals: list[Any]) -> Iterator[None]:
    """``add_safe_globals`` for the length of a ``with`` block."""
    before = Options.safe
    add_safe_globals(safe_globals)
    try:
        yield
    finally:
        Options.safe = before


def get_unsafe_globals_in_checkpoint(f: Any) -> list[str]:
    """The full names in a file that ``weights_only=True`` would refuse; builds nothing."""
    from tensorcore.serialization.files import unsafe_globals

    return unsafe_globals(f)


def get_crc32_options() -> bool:
    """Whether ``save`` writes checksums and ``load`` compares them."""
    return Options.checksums


def set_crc32_options(compute_crc32: bool) -> None:
    """Write and compare checksums, or do neither, which is faster."""
    Options.checksums = bool(compute_crc32)


def get_default_mmap_options() -> int | None:
    """How ``load(mmap=True)`` maps: ``mmap.MAP_PRIVATE`` or ``mmap.MAP_SHARED``."""
    import mmap

    return mmap.MAP_PRIVATE if Options.mmap_flags is None else Options.mmap_flags


@contextmanager
def _mmap_options(before: int | None) -> Iterator[None]:
    try:
        yield
    finally:
        Options.mmap_flags = before


def set_default_mmap_options(flags: int) -> Any:
    """Let ``load(mmap=True)`` map with ``mmap.MAP_PRIVATE`` (writes stay here) or ``mmap.MAP_SHARED`` (they reach the
    file); in ``with``, for the block alone."""
    import mmap

    if flags not in (mmap.MAP_PRIVATE, mmap.MAP_SHARED):
        raise ArgumentError(
            f"set_default_mmap_options: expected mmap.MAP_PRIVATE or mmap.MAP_SHARED, got {flags}; pass one of them"
        )
    before, Options.mmap_flags = Options.mmap_flags, flags
    return _mmap_options(before)


def register_package(priority: int, tagger: Any, deserializer: Any) -> None:
    """Let a package name and restore storages in files.

    Args:
        priority: the lower the earlier; below 10 it is asked before the devices that are here, whose names are known,
            and else about the names of others.
        tagger: called with a storage that is saved, returns its name or None.
        deserializer: called with a storage on the host and its name in the file, returns the storage to use or None.
    """
    Options.packages = sorted([*Options.packages, (priority, tagger, deserializer)], key=lambda one: one[0])


def default_restore_location(storage: Any, location: str) -> Any:
    """The storage on the device that files call ``location``, as a function that is given to ``load`` as map_location wants it.

    Raises RuntimeError where there is no such device here.
    """
    from tensorcore.serialization.places import restored

    host = storage.untyped()
    return restored(location, host.to)


def _by_name(safe_globals: list[Any]) -> dict[str, Any]:
    found = {}
    for one in safe_globals:
        if not isinstance(one, tuple):
            found[f"{one.__module__}.{one.__qualname__}"] = one
        elif len(one) != 2:
            raise ArgumentError(f"add_safe_globals: expected a pair of object and name, got {one!r}; pass two")
        elif not isinstance(one[1], str):
            raise ArgumentTypeError(f"add_safe_globals: expected a name, got {one[1]!r}; pass e.g. 'module.Class'")
        else:
            found[one[1]] = one[0]
    return found
