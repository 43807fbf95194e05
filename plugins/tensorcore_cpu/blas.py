"""The BLAS that matrix products run on: oneMKL where it pays, and the thread count of the OpenBLAS inside NumPy.

The C kernels multiply matrices themselves. On Intel's processors oneMKL is faster still, and takes their place where the
package ``mkl`` is installed: one thread for each call, several calls beside each other on the kernels' own threads. It is
looked for and loaded at the first product that is worth it. Where the processor has a unit for tiles of bfloat16, it makes
products of float32 from 64 rows and columns on, of three such numbers for each float (``thirds.c``): at least as exact in the mean, and
faster than either. The environment variable ``TENSORCORE_BLAS`` says otherwise: ``own`` leaves both out, ``mkl`` takes that
library for all, on every processor, and makes it an error that it is missing.

Factorisations are LAPACK's, whose routines SciPy hands out to C.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

__all__ = ["describe", "find_mkl", "get_threads", "prepare", "set_threads", "wanted"]

_NAME = "libmkl_rt.so*"
_asked: list[int] = []  # the count of threads that was set last, if any was


@functools.cache
def find_mkl() -> str | None:
    """The file of oneMKL's one library, of the package ``mkl`` of this Python; None where it is not installed."""
    for folder in dict.fromkeys(Path(prefix, "lib") for prefix in (sys.prefix, sys.base_prefix)):
        for found in sorted(folder.glob(_NAME), reverse=True):
            return str(found)
    try:  # installed elsewhere, with --user or --target
        files = metadata.files("mkl") or []
    except metadata.PackageNotFoundError:
        return None
    places = [Path(str(one.locate())) for one in files if one.match(_NAME)]
    return next((str(one.resolve()) for one in places if one.exists()), None)


def wanted(intel: bool) -> str | None:
    """The file of the library to multiply with on a processor that is one of Intel's or not; None for the C kernels.

    Raises RuntimeError where ``TENSORCORE_BLAS`` asks for what is not there, or for what there never is.
    """
    asked = os.environ.get("TENSORCORE_BLAS", "")
    if asked not in ("", "own", "mkl"):
        raise RuntimeError(f"TENSORCORE_BLAS: expected own or mkl, got '{asked}'; leave it out to have the faster one")
    if asked == "own" or not (intel or asked):
        return None
    found = find_mkl()
    if asked and found is None:
        raise RuntimeError("TENSORCORE_BLAS: expected oneMKL, got none; install it with `pip install tensorcore[mkl]`")
    return found


def prepare(library: Any) -> None:
    """Have the extension module load the library, if any, before its first large product, and LAPACK before its first use."""
    library.blas_finder(functools.partial(_load, library))
    library.thirds(not os.environ.get("TENSORCORE_BLAS"))
    library.lapack_finder(_lapack)


def describe(library: Any) -> str:
    """What matrix products run on, in words; loads it. ``library`` is the extension module, None where there is none."""
    if library is None:
        return _of_numpy()
    tiles = "tiles of bfloat16 for large ones of float32, " if library.thirds(None) else ""
    try:
        if library.blas_in_use():
            return f"{tiles}oneMKL {_version()} on the kernels' threads"
    except RuntimeError as error:
        return str(error)
    return f"{tiles}own kernels, and {_of_numpy()} for other dtypes"


def set_threads(count: int) -> None:
    """Let NumPy's products use up to ``count`` threads, and LAPACK's factorisations, but no more than there are processors.

    Nothing happens where these are another library's than OpenBLAS.
    """
    _asked[:] = [count]
    setter = _function("set")
    if setter is not None:
        setter(ctypes.c_int(count))
    _set_lapack_threads(count)


def _set_lapack_threads(count: int) -> None:
    """Those of SciPy's OpenBLAS, once it is loaded. They wait for one another in loops: more than processors would take turns at that."""
    lapack = sys.modules.get("scipy.linalg.cython_lapack")
    setter = None if lapack is None else _function("set", str(lapack.__file__))
    if setter is not None:
        here = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        setter(ctypes.c_int(min(count, here)))


def get_threads() -> int:
    """How many threads NumPy's products may use; 1 where it has another BLAS than OpenBLAS, which does not say."""
    getter = _function("get")
    return 1 if getter is None else int(getter())


def _load(library: Any) -> None:
    found = wanted(library.is_intel())
    if found is None:
        return
    try:
        library.blas_load(found)
    except OSError as error:
        if os.environ.get("TENSORCORE_BLAS"):
            raise RuntimeError(
                f"TENSORCORE_BLAS: expected a oneMKL that can be loaded, got {error}; install it again"
            ) from None


def _lapack() -> dict[str, Any] | None:
    """LAPACK's and BLAS's routines by name, as SciPy hands them out; None without SciPy.

    ``get_threads`` and ``set_threads`` are the addresses of the functions that say and change how many threads they use,
    where there are any.
    """
    try:
        from scipy.linalg import cython_blas, cython_lapack
    except ImportError:
        return None
    if _asked:
        _set_lapack_threads(_asked[0])
    found = {f"{verb}_threads": _function(verb, cython_lapack.__file__) for verb in ("get", "set")}
    addresses = {name: None if one is None else ctypes.cast(one, ctypes.c_void_p).value for name, one in found.items()}
    return {**cython_blas.__pyx_capi__, **cython_lapack.__pyx_capi__, **addresses}


def _version() -> str:
    try:
        return metadata.version("mkl")
    except metadata.PackageNotFoundError:  # a system's or conda's own
        return "of unknown version"


def _of_numpy() -> str:
    import numpy as np

    # Written to sys.stdout by default.
    built: Any = np.show_config(mode="dicts")
    known = built.get("Build Dependencies", {}).get("blas", {}) if built else {}
    return f"NumPy's {known.get('name', 'unknown')} {known.get('version', '')}".strip()


@functools.cache
def _function(verb: str, file: str | None = None) -> Any:
    """OpenBLAS's function under one of its names: builds with 64-bit integers, and NumPy's own, are renamed.

    That of the library a module's file is linked to, NumPy's unless given.
    """
    from numpy._core import _multiarray_umath

    try:
        library = ctypes.CDLL(file or _multiarray_umath.__file__)  # finds what the module is linked to as well
    except OSError:
        return None
    for prefix in ("scipy_", ""):
        for suffix in ("64_", ""):
            function = getattr(library, f"{prefix}openblas_{verb}_num_threads{suffix}", None)
            if function is not None:
                return function
    return None
