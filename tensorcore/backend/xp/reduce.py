"""Reductions and scans."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from tensorcore.backend.base import Kernel, Native
    from tensorcore.backend.xp import XPBackend

__all__ = ["kernels"]


def kernels(backend: XPBackend) -> dict[str, Kernel]:
    """The family's kernels for one backend. ``dim`` is a tuple of dims counted from the front, or None for all."""
    xp = backend.xp
    default = ... if xp is np else None
    add, largest, smallest = xp.add.reduce, xp.maximum.reduce, xp.minimum.reduce

    def sum(x: Native, *, dim: tuple[int, ...] | None = None, keepdim: bool = False) -> Native:
        if x.dtype.itemsize > 2:
            return add(x, dim, keepdims=keepdim, out=default)
        return add(x, dim, np.float32, keepdims=keepdim, out=default).astype(x.dtype)

    def amax(x: Native, *, dim: tuple[int, ...] | None = None, keepdim: bool = False) -> Native:
        return largest(x, dim, keepdims=keepdim, out=default)

    def amin(x: Native, *, dim: tuple[int, ...] | None = None, keepdim: bool = False) -> Native:
        return smallest(x, dim, keepdims=keepdim, out=default)

    return {"sum": sum, "amax": amax, "amin": amin}
