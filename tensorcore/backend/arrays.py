"""What native arrays say of themselves that are none of NumPy's."""

from __future__ import annotations

from math import prod
from typing import Any

__all__ = ["Array"]


class Array:
    """The base of this library's own native arrays: what follows from their ``shape`` and their ``dtype``, which is NumPy's."""

    __slots__ = ()
    __array_ufunc__ = None  # a NumPy kernel that meets one by mistake fails instead of looping

    shape: tuple[int, ...]
    dtype: Any

    @property
    def ndim(self) -> int:
        """The number of dims."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return int(self.dtype.itemsize)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.itemsize
