"""What composed kernels are written in: the kernels of a backend as methods, and a few words for what recurs."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tensorcore.backend.base import Backend, Kernel, Native
    from tensorcore.dtypes import dtype

__all__ = ["Kernels", "kept"]

Shape = tuple[int, ...]


def kept(shape: Shape, dim: Any) -> Shape:
    """The shape after a reduction that keeps its dims."""
    return tuple([1 if dim is None or i in dim else size for i, size in enumerate(shape)])


class Kernels:
    """The kernels of one backend: ``k.add(x, y)`` is its kernel ``add``, its own or a composed one."""

    __slots__ = ("backend",)

    def __init__(self, backend: Backend) -> None:
        self.backend = backend

    def __getattr__(self, name: str) -> Kernel:
        return self.backend.kernels[name]

    def dtype(self, x: Native) -> dtype:
        """The dtype of a native array."""
        return self.backend.dtype_of(x)

    def kind(self, x: Native) -> str:
        """``bool``, ``integer``, ``floating`` or ``complex``."""
        return self.dtype(x).kind

    def host(self, array: Any) -> Native:
        """A NumPy array as a native one."""
        return self.backend.from_host(np.asarray(array))

    def number(self, x: Native) -> int:
        """The one value of an integer array, which waits for it."""
        return int(self.backend.to_host(x).item())

    def zeros(self, shape: Shape, like: Native) -> Native:
        """Zeros of the dtype of ``like``."""
        return self.full(shape, 0, dtype=self.dtype(like))

    def reshape(self, x: Native, shape: Shape) -> Native:
        """The elements in another shape (at most one size of -1): a view where there can be one, else a copy."""
        if -1 in shape:
            rest = prod([size for size in shape if size != -1])
            shape = tuple([prod(x.shape) // max(rest, 1) if size == -1 else size for size in shape])
        found = self.view(x, shape=shape)
        return self.view(self.contiguous(x), shape=shape) if found is None else found

    def part(self, x: Native, dim: int, start: int, stop: int | None = None) -> Native:
        """A view of what lies from ``start`` to ``stop`` along a dim; of one place, without that dim, if ``stop`` is None."""
        return self.index(x, key=(slice(None),) * dim + (start if stop is None else slice(start, stop),))

    def joined(self, parts: list[Native], dim: int) -> Native:
        """Parts of one dtype one after the other along a dim."""
        shape = tuple(parts[0].shape)
        size = sum([one.shape[dim] for one in parts])
        return self.cat(parts, dim=dim, shape=(*shape[:dim], size, *shape[dim + 1 :]))

    def along(self, index: Native, shape: Shape, dim: int) -> Native:
        """A vector of indices along ``dim`` as one index for each element of ``shape``."""
        column = self.reshape(index, (-1,) + (1,) * (len(shape) - 1 - dim))
        return self.expand(column, shape=shape)

    def placed(self, result: Native, out: Native | None) -> Native:
        """The result, in the memory of ``out`` where there is one."""
        return result if out is None else self.copy(out, result)
