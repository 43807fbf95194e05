"""Kernels made of other kernels, for a backend that has none of its own: one function each, by the kernel's name.

A function takes :class:`Kernels` and then what the kernel takes. Narrow floats are rounded after every step.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tensorcore.backend.composed import elementwise, indexing, linear, movement, order, pool, reduce, special
from tensorcore.backend.composed.kernels import Kernels

__all__ = ["COMPOSED", "Kernels", "composed"]

_FUNCTIONS: dict[str, Callable[..., Any]] = {}
for _family in (elementwise, indexing, linear, movement, order, pool, reduce, special):
    _FUNCTIONS.update({name: getattr(_family, name) for name in _family.__all__})

COMPOSED = frozenset(_FUNCTIONS)


def composed(name: str, backend: Any) -> Callable[..., Any] | None:
    """The kernel ``name`` made of others of the backend; None where there is no way to make it."""
    function = _FUNCTIONS.get(name)
    return None if function is None else partial(function, Kernels(backend))
