"""A checkpoint as a folder: one file of raw bytes for each rank, and a table of what is where.

A folder appears under its name once all of it has reached the disk, by a rename; until then its name is another, and the
checkpoint that was there before is whole.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tensorcore import dtypes
from tensorcore.serialization import load as load_objects
from tensorcore.serialization import save as save_objects

__all__ = ["Chunk", "FileSystemReader", "FileSystemWriter", "TensorEntry"]

_TABLE, _OBJECTS, _VERSION = ".metadata", "objects.pt", 1


class Chunk(NamedTuple):
    """A part of a tensor in a file: where it begins in the whole, its sizes, the file, and the first byte there."""

    starts: tuple[int, ...]
    sizes: tuple[int, ...]
    file: str
    offset: int


class TensorEntry(NamedTuple):
    """A tensor of a checkpoint: its shape, the name of its dtype, and its parts."""

    shape: tuple[int, ...]
    dtype: str
    chunks: list[Chunk]


class FileSystemWriter:
    """Writes a checkpoint to a folder that all ranks can reach.

    Args:
        path: of the folder, which is replaced where there is one.
        sync_files: have the bytes on the disk before the checkpoint gets its name.
    """

    def __init__(self, path: str | os.PathLike[str], *, sync_files: bool = True) -> None:
        self.path, self.sync_files = Path(path).absolute(), sync_files
        self.unfinished = self.path.with_name(f".{self.path.name}.unfinished")

    def begin(self) -> None:
        """Make the folder; one rank does."""
        shutil.rmtree(self.unfinished, ignore_errors=True)
        self.unfinished.mkdir(parents=True)

    def write(self, rank: int, parts: Iterable[tuple[str, Sequence[int], Any]]) -> dict[str, Chunk]:
        """Write this rank's parts of tensors, given as key, first place in the whole, and host array."""
        name = f"__{rank}_0.distcp"
        made: dict[str, Chunk] = {}
        with (self.unfinished / name).open("wb") as file:
            for key, starts, array in parts:
                made[key] = Chunk(tuple(starts), tuple(array.shape), name, file.tell())
                file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
            self._settle(file)
        return made

    def finish(self, tensors: dict[str, TensorEntry], objects: dict[str, Any]) -> None:
        """Write the table and give the folder its name; one rank does, after all have written."""
        with (self.unfinished / _OBJECTS).open("wb") as file:
            save_objects(objects, file)
            self._settle(file)
        with (self.unfinished / _TABLE).open("w", encoding="utf-8") as file:
            json.dump({"version": _VERSION, "tensors": tensors}, file)
            self._settle(file)
        before = _before(self.path)
        if self.path.exists():
            shutil.rmtree(before, ignore_errors=True)
            self.path.rename(before)
        self.unfinished.rename(self.path)
        if self.sync_files:
            handle = os.open(self.path.parent, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
        shutil.rmtree(before, ignore_errors=True)

    def abandon(self) -> None:
        """Remove what there is of an unfinished one."""
        shutil.rmtree(self.unfinished, ignore_errors=True)

    def _settle(self, file: Any) -> None:
        file.flush()
        if self.sync_files:
            os.fsync(file.fileno())


class FileSystemReader:
    """Reads a checkpoint from a folder, on any number of ranks."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        given = Path(path).absolute()
        # Whoever wrote the next one was stopped between the two renames: the one before is still there.
        self.path = _before(given) if not given.exists() and _before(given).exists() else given
        self._files: dict[str, Any] = {}

    def tensors(self) -> dict[str, TensorEntry]:
        """The table: an entry for each tensor. Raises FileNotFoundError where there is no whole checkpoint."""
        with (self.path / _TABLE).open(encoding="utf-8") as file:
            table = json.load(file)
        return {
            key: TensorEntry(tuple(shape), dtype, [Chunk(tuple(a), tuple(b), name, at) for a, b, name, at in chunks])
            for key, (shape, dtype, chunks) in table["tensors"].items()
        }

    def objects(self) -> dict[str, Any]:
        """Everything that is not a tensor, by key."""
        found: dict[str, Any] = load_objects(self.path / _OBJECTS)
        return found

    def read(self, entry: TensorEntry, starts: Sequence[int], sizes: Sequence[int]) -> np.ndarray:
        """A part of a tensor, whatever parts it was written in."""
        dtype = getattr(dtypes, entry.dtype if entry.dtype != "bool" else "bool_").numpy
        made = np.empty(tuple(sizes), dtype)
        for chunk in entry.chunks:
            low = [max(a, b) for a, b in zip(starts, chunk.starts, strict=True)]
            high = [min(a + n, b + m) for a, n, b, m in zip(starts, sizes, chunk.starts, chunk.sizes, strict=True)]
            if any(a >= b for a, b in zip(low, high, strict=True)):
                continue
            source = self._chunk(chunk, dtype)
            here = tuple(slice(a - s, b - s) for a, b, s in zip(low, high, starts, strict=True))
            there = tuple(slice(a - s, b - s) for a, b, s in zip(low, high, chunk.starts, strict=True))
            made[here] = source[there]
        return made

    def _chunk(self, chunk: Chunk, dtype: Any) -> Any:
        if chunk.file not in self._files:
            self._files[chunk.file] = np.memmap(self.path / chunk.file, np.uint8, "r")
        size = int(np.prod(chunk.sizes)) * dtype.itemsize
        return self._files[chunk.file][chunk.offset : chunk.offset + size].view(dtype).reshape(chunk.sizes)


def _before(path: Path) -> Path:
    return path.with_name(f".{path.name}.before")
