"""Generated C: compiled where there is a compiler, kept on disk, loaded.

``$TENSORCORE_CODEGEN_CACHE``, else ``tensorcore/codegen`` in ``$XDG_CACHE_HOME`` or ``~/.cache``, holds a library for each text that was
compiled, under a hash of it, the headers, the compiler's version and the flags. Programs that run at the same time may share it.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import os
import re
import shutil
import subprocess
import sysconfig
import tempfile
import warnings
from pathlib import Path

from . import native
from .native.flags import FLAGS, INSTRUCTION_SETS

__all__ = ["addresses", "compiler", "parts"]

_HERE = Path(__file__).resolve().parent / "native"
_MOST = 1000  # libraries that are kept on disk, a few dozen kilobytes each; the ones that were used last
_SECONDS = 120.0  # that a compiler may take
_loaded: dict[str, tuple[int, ...]] = {}
_failed: list[str] = []


@functools.cache
def compiler() -> str | None:
    """The C compiler: ``$CC``, the one that Python was built with, or any under a usual name; None where there is none."""
    for name in (os.environ.get("CC"), sysconfig.get_config_var("CC"), "cc", "gcc", "clang"):
        found = shutil.which(name.split()[0]) if name and name.split() else None
        if found:
            return found
    return None


def addresses(text: str, count: int) -> tuple[int, ...] | None:
    """The addresses of the functions ``written_0`` and so on of a text; None, after a warning, where it cannot be compiled."""
    if _failed:
        return None
    try:
        key = _key(text)
        if key not in _loaded:
            library = _opened(text, key)
            _loaded[key] = tuple([_address(library, f"written_{i}") for i in range(count)])
        return _loaded[key]
    except (OSError, AttributeError, subprocess.SubprocessError) as error:
        said = getattr(error, "stderr", None) or error
        warnings.warn(
            f"codegen: expected {compiler() or 'a C compiler'} to make a library of a generated file, got: {str(said).strip()[:400]}; "
            "programs of this process run without",
            RuntimeWarning,
            stacklevel=2,
        )
        _failed.append(text)
        return None


def _address(library: ctypes.CDLL, name: str) -> int:
    return ctypes.cast(library[name], ctypes.c_void_p).value or 0


def _key(text: str) -> str:
    return hashlib.sha256(f"{_surroundings(native.isa() or '')}\n{text}".encode()).hexdigest()


@functools.cache
def _surroundings(isa: str) -> str:
    """What besides the text decides about a library."""
    found = compiler()
    version = _run([found, "--version"]) if found else ""
    headers = b"".join(path.read_bytes() for path in parts())
    return f"{found}\n{version}\n{isa}\n{FLAGS}\n{INSTRUCTION_SETS.get(isa)}\n{hashlib.sha256(headers).hexdigest()}"


def _opened(text: str, key: str) -> ctypes.CDLL:
    path = _library(text, key)
    try:
        return ctypes.CDLL(str(path))
    except OSError:  # half of a file, or one that somebody put there
        path.unlink(missing_ok=True)
        return ctypes.CDLL(str(_library(text, key)))


def parts() -> list[Path]:
    """The files that a generated one is made of besides its text."""
    found: list[Path] = []
    waiting = [_HERE / "loops" / "written.h", _HERE / "exp_limits.c"]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.append(path)
            waiting += [
                (path.parent / name).resolve()
                for name in re.findall(r'^#include "(.+)"', path.read_text(), re.MULTILINE)
            ]
    return sorted(found)


def _library(text: str, key: str) -> Path:
    """The library's file, compiled if it is not there yet."""
    folder = _folder()
    library = folder / f"{key}.so"
    with contextlib.suppress(OSError):
        os.utime(library)
        return library
    found, isa = compiler(), native.isa() or "plain"
    if found is None:
        raise OSError("no C compiler is on the path; install one or set CC")
    with tempfile.TemporaryDirectory(dir=folder) as room:
        source, made = Path(room, "written.c"), Path(room, "written.so")
        source.write_text(text)
        _run([
            found, *FLAGS, *INSTRUCTION_SETS[isa], f"-DNATIVE_SUFFIX={isa}", f"-I{_HERE}", "-shared", "-fPIC",
            str(source), str(_HERE / "exp_limits.c"), "-lm", "-o", str(made),
        ])  # fmt: skip
        os.replace(made, library)  # at once, so that nobody finds half of it
    _tidy(folder)
    return library


def _run(command: list[str]) -> str:
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, timeout=_SECONDS, stdin=subprocess.DEVNULL
    )
    return done.stdout


@functools.cache
def _folder() -> Path:
    """Where libraries lie: nobody else may write there, since what lies there is run. Else a folder of this process alone."""
    root = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    folder = Path(os.environ.get("TENSORCORE_CODEGEN_CACHE") or f"{root}/tensorcore/codegen").expanduser()
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        state = folder.stat()
        if state.st_uid == os.getuid() and not state.st_mode & 0o022 and os.access(folder, os.W_OK):
            return folder
    return _own_folder()


@functools.cache
def _own_folder() -> Path:
    room = tempfile.TemporaryDirectory(prefix="tensorcore-codegen-")
    _rooms.append(room)  # which is removed with it
    return Path(room.name)


_rooms: list[tempfile.TemporaryDirectory[str]] = []


def _tidy(folder: Path) -> None:
    """Removes what was not used for longest. A library that a process has loaded stays there for it."""
    with contextlib.suppress(OSError):
        libraries = sorted(folder.glob("*.so"), key=lambda path: path.stat().st_mtime)
        for path in libraries[: max(len(libraries) - _MOST, 0)]:
            path.unlink(missing_ok=True)
