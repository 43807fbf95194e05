"""Writing files so that a crash, a full disk or Ctrl-C never leaves half of one."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from tensorcore.errors import LoadError

__all__ = ["atomic_file"]


@contextmanager
def atomic_file(path: str, op: str) -> Iterator[BinaryIO]:
    """A file that takes the place of ``path`` once the block has ended well; else nothing has changed.

    An OSError from writing gets the path that was wanted. Pipes and devices are written to directly.
    """
    try:
        path = os.path.realpath(path)
        parent = os.path.dirname(path)
        if not os.path.isdir(parent):
            raise LoadError(
                f"{op}: expected a directory to write to, got {parent}: Parent directory {parent} does not exist."
            )
        mode = None
        with suppress(OSError):
            mode = os.stat(path).st_mode
        if mode is not None and not stat.S_ISREG(mode):
            with open(path, "wb") as file:
                yield file
            return
        # Beside the target: only within one file system is a rename atomic. The name is short whatever the path's is.
        beside = os.path.join(parent, f".{os.urandom(6).hex()}.tmp")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        try:
            # An interrupt may come as soon as the file is there.
            handle = os.open(beside, flags, 0o666)
            with open(handle, "wb") as file:
                yield file
                file.flush()
                os.fsync(handle)
            if mode is not None:
                os.chmod(beside, stat.S_IMODE(mode))
            os.replace(beside, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(beside)
            raise
        _sync_directory(parent)
    except OSError as error:
        if error.filename is None and error.errno is not None:
            error.filename = path
        raise


def _sync_directory(path: str) -> None:
    """Let the rename survive a power cut, where the system can."""
    with suppress(OSError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
