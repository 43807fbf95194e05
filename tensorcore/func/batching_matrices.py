"""Batching rules of matrix factorisations and solutions: the examples are one more dim in front of the matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorcore.backend.base import Kernel
from tensorcore.func.batching import Rule, everyone, made, reshaped, rule

if TYPE_CHECKING:
    from tensorcore.func.levels import BatchedBackend

__all__ = ["RULES"]


def batches(*dims: int) -> Rule:
    """The rule of a kernel of arrays whose last ``dims`` are its own, and whose batches in front of them broadcast."""

    @rule
    def apply(backend: BatchedBackend, kernel: Kernel, /, *natives: Any, **options: Any) -> Any:
        wide = max([len(one.shape) - own for one, own in zip(natives, dims, strict=True)])
        inner = []
        for one, own in zip(natives, dims, strict=True):
            missing = wide - (len(one.shape) - own)
            shape = (backend.level.size, *[1] * missing, *one.shape)
            inner.append(reshaped(backend, everyone(backend, one), shape))
        return made(backend, kernel(*inner, **options), True)

    return apply


RULES: dict[str, Rule] = {
    **dict.fromkeys(("cholesky", "eig", "eigh", "geqrf", "inverse", "ldl_factor", "lu_factor", "svd"), batches(2)),
    **dict.fromkeys(("ldl_solve", "lu_solve", "ormqr"), batches(2, 1, 2)),
    **dict.fromkeys(("lstsq", "solve_triangular"), batches(2, 2)),
    "householder_product": batches(2, 1),
    "unpack_pivots": batches(1),
}
