"""The kernels of a level: each by the rule for its name, for its kind, or one example after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorcore.backend import shapes
from tensorcore.backend.base import Kernel
from tensorcore.backend.kernels import NEEDS_VALUES, OPTIONAL, POINTWISE, RULES
from tensorcore.func import batching, batching_joint, batching_matrices, batching_views

if TYPE_CHECKING:
    from tensorcore.func.batching import Rule
    from tensorcore.func.levels import BatchedBackend

__all__ = ["batched_kernel"]


def batched_kernel(backend: BatchedBackend, name: str) -> Kernel | None:
    """The kernel of that name on a level, None where the wrapped backend has none or ops should decompose it."""
    kernel = backend.inner.kernels[name]
    if not kernel:
        return None
    families = (batching.RULES, batching_views.RULES, batching_joint.RULES, batching_matrices.RULES)
    rule = next((family[name] for family in families if name in family), None) or _by_shape(name)
    if rule is not None:
        return rule(backend, name, kernel)
    return None if name in OPTIONAL else batching.looped(backend, name, kernel)


def _by_shape(name: str) -> Rule | None:
    """The rule of a kernel's kind, as its shape rule tells it."""
    known = RULES.get(name)
    if name in POINTWISE:
        return batching.elementwise
    if known is not None and known.shape in (shapes.reduced, shapes.reduced_twice, shapes.kept_dim):
        return batching.along
    return batching.unseen if name in NEEDS_VALUES else None
