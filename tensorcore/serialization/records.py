"""The parts of a ``.pt`` file by name, for programs that look into one without loading it."""

from __future__ import annotations

import weakref
from pathlib import Path
from typing import Any

from tensorcore.serialization.archive import Archive

__all__ = ["PyTorchFileReader"]


class PyTorchFileReader:
    """The records of an archive that ``save`` or PyTorch wrote.

    Args:
        name_or_buffer: a path, or an open binary file.

    Raises LoadError (a RuntimeError) for a file of another kind, and where a record is asked for that is not there.
    """

    def __init__(self, name_or_buffer: Any) -> None:
        file = name_or_buffer
        if isinstance(name_or_buffer, str | Path):
            file = Path(name_or_buffer).open("rb")  # noqa: SIM115
            weakref.finalize(self, file.close)
        self._archive = Archive(file)

    def get_all_records(self) -> list[str]:
        """The names, without the folder that all are in."""
        return [name.partition("/")[2] for name in self._archive.records]

    def has_record(self, name: str) -> bool:
        """Whether there is a record of that name."""
        return name in self._archive

    def get_record(self, name: str) -> bytes:
        """A record's bytes."""
        return self._archive.read(name)

    def get_record_size(self, name: str) -> int:
        """How many bytes a record has."""
        return self._archive.size(name)
