"""The native arrays of a level of vmap."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorcore.backend.arrays import Array

if TYPE_CHECKING:
    from tensorcore.func.levels import Level

__all__ = ["BatchedArray"]


class BatchedArray(Array):
    """The native array of a level: one example's shape over an array of the wrapped backend.

    Attributes:
        inner: the array; its first dim counts the examples if ``batched``, else all examples share it.
        viewed: whether other arrays show the same memory.
    """

    __slots__ = ("batched", "inner", "level", "shape", "viewed")

    def __init__(self, level: Level, inner: Any, batched: bool) -> None:
        self.level = level
        self.inner = inner
        self.batched = batched
        self.shape = tuple(inner.shape[1:]) if batched else tuple(inner.shape)
        self.viewed = False

    @property
    def dtype(self) -> Any:
        """As the wrapped array has it."""
        return self.inner.dtype

    def __repr__(self) -> str:
        return f"BatchedArray(shape={self.shape}, batched={self.batched})"
