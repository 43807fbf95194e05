"""The thread count of the OpenBLAS inside NumPy, which its matrix products run on."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

__all__ = ["get_threads", "set_threads"]


def set_threads(count: int) -> None:
    """Let matrix products use up to ``count`` threads; nothing happens where NumPy has another BLAS."""
    setter = _function("set")
    if setter is not None:
        setter(ctypes.c_int(count))


def get_threads() -> int:
    """How many threads matrix products may use; 1 where NumPy has another BLAS, which does not say."""
    getter = _function("get")
    return 1 if getter is None else int(getter())


@functools.cache
def _function(verb: str) -> Any:
    """OpenBLAS's function under one of its names: builds with 64-bit integers, and NumPy's own, are renamed."""
    from numpy._core import _multiarray_umath

    try:
        library = ctypes.CDLL(_multiarray_umath.__file__)  # finds what the module is linked to as well
    except OSError:
        return None
    for prefix in ("scipy_", ""):
        for suffix in ("64_", ""):
            function = getattr(library, f"{prefix}openblas_{verb}_num_threads{suffix}", None)
            if function is not None:
                return function
    return None
