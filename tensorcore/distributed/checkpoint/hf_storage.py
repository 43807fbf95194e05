"""Checkpoints as ``.safetensors`` of each rank's parts, which are not written: the classes are there to be imported, and refused."""

from __future__ import annotations

from typing import Any

from tensorcore.distributed.checkpoint.files import FileSystemReader, FileSystemWriter
from tensorcore.errors import UsageError

__all__ = ["HuggingFaceStorageReader", "HuggingFaceStorageWriter"]


class HuggingFaceStorageWriter(FileSystemWriter):
    """Refused when it is made."""

    def __init__(self, path: str, *args: Any, **options: Any) -> None:
        raise UsageError(
            "HuggingFaceStorageWriter: expected FileSystemWriter, the one format of parts here, got this one; "
            "or gather the state_dict and write it with utils.safetensors"
        )


class HuggingFaceStorageReader(FileSystemReader):
    """Refused when it is made."""

    def __init__(self, path: str, *args: Any, **options: Any) -> None:
        raise UsageError(
            "HuggingFaceStorageReader: expected FileSystemReader, the one format of parts here, got this one; "
            "whole .safetensors are read with utils.safetensors"
        )
