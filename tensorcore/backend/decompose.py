"""Kernels that a backend may leave out because they are made of others of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tensorcore.backend.base import Backend

__all__ = ["VIEWED", "decomposed", "viewed"]

Native = Any
Kernel = Callable[..., Any]

# The views that ``as_strided`` of a backend is enough for.
VIEWED = frozenset(["as_strided", "diagonal", "expand", "index", "permute", "unsqueeze", "view", "windows"])


def decomposed(name: str, backend: Backend) -> Kernel | None:
    """The kernel ``name`` made of others of the backend; None where there is no way to make it.

    Each takes and answers what the backend's own would.
    """
    from tensorcore.backend.composed import composed

    return composed(name, backend)


def viewed(name: str, backend: Backend) -> Kernel | None:
    """The kernel of a view of the same dtype, made of ``as_strided``; None where it is no such view."""
    if name not in VIEWED or not backend.capabilities.views:
        return None
    from tensorcore.backend.shapes import VIEWS

    place = VIEWS[name].place

    def kernel(x: Native, **options: Any) -> Native | None:
        found = place(tuple(x.shape), *backend.layout(x), **options)
        return None if found is None else backend.as_strided(x, *found)

    return kernel
