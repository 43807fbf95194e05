"""Kernels of whole CuPy arrays where those of ``XPBackend`` do not fit the device."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from tensorcore.plugin import XPBackend

__all__ = ["kernels"]

Native = Any
# Of these NumPy's run on the host, on copies: the device has no kernel for them, and programs rarely need them there.
ON_HOST = ("mode_dim", "unique")


def kernels(backend: Any) -> dict[str, Callable[..., Any]]:
    """The kernels by name."""
    xp = backend.xp

    def truth(x: Native) -> Native:
        return x != 0 if getattr(x, "dtype", None) is not None and x.dtype.kind == "c" else x

    def logical(name: str) -> Callable[..., Any]:
        function = getattr(xp, name)

        def kernel(*natives: Native, out: Any = None) -> Native:
            return function(*map(truth, natives), out=out)

        return kernel

    table: dict[str, Callable[..., Any]] = {
        name: logical(name) for name in ("logical_not", "logical_and", "logical_or", "logical_xor")
    }
    table.update({name: on_host(backend, name) for name in ON_HOST})
    return table


@cache
def host() -> Any:
    """NumPy's kernels."""
    return XPBackend(np)


def on_host(backend: Any, name: str) -> Callable[..., Any]:
    """NumPy's kernel on copies of the arrays, its results sent back."""

    def kernel(*natives: Native, **options: Any) -> Any:
        found = host().table[name](*map(backend.to_host, natives), **options)
        several = isinstance(found, tuple)
        made = [backend.from_host(np.asarray(one)) for one in (found if several else (found,))]
        return tuple(made) if several else made[0]

    return kernel
