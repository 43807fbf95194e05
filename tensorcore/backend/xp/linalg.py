"""Matrix products."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tensorcore.backend.base import Kernel, Native
    from tensorcore.backend.xp import XPBackend

__all__ = ["kernels"]


def kernels(backend: XPBackend) -> dict[str, Kernel]:
    """The family's kernels for one backend."""
    xp = backend.xp
    dot, matmul_ = xp.dot, xp.matmul

    def matmul(x: Native, y: Native) -> Native:
        if x.ndim == 2 and y.ndim == 2:
            return dot(x, y)  # 0.3 us less than matmul
        return matmul_(x, y) if x.ndim > 1 or y.ndim > 1 else xp.asarray(matmul_(x, y))

    return {"matmul": matmul}
