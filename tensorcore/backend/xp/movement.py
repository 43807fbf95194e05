"""Kernels that make, move and view memory without computing: creation, casts, copies, views, indexing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tensorcore.backend.base import Kernel, Native
    from tensorcore.backend.xp import XPBackend
    from tensorcore.dtypes import dtype

__all__ = ["kernels"]


def kernels(backend: XPBackend) -> dict[str, Kernel]:
    """The family's kernels for one backend."""
    xp = backend.xp

    # Creation

    def full(shape: tuple[int, ...], value: Any, *, dtype: dtype) -> Native:
        made = backend.allocate(shape, dtype)
        made.fill(value)
        return made

    def arange(start: Any, step: Any, length: int, *, dtype: dtype) -> Native:
        """``start + step * i``, computed in double precision as PyTorch does."""
        exact = start + step * xp.arange(length)
        return exact.astype(backend.xp_dtype(dtype))

    # Copies

    def clone(x: Native) -> Native:
        """A copy with the strides of ``x`` where it is dense."""
        return xp.copy(x, order="K")

    def contiguous(x: Native) -> Native:
        return xp.copy(x, order="C")

    def copy(target: Native, source: Native) -> Native:
        """Write ``source``, broadcast and cast, into the memory of ``target``."""
        target[...] = source
        return target

    def fill(target: Native, value: Any) -> Native:
        target[...] = value
        return target

    def cast(x: Native, *, dtype: dtype) -> Native:
        return x.astype(backend.xp_dtype(dtype))

    # Views

    def permute(x: Native, *, dims: tuple[int, ...]) -> Native:
        return x.transpose(dims)

    def expand(x: Native, *, shape: tuple[int, ...]) -> Native:
        size = x.itemsize
        extra = len(shape) - x.ndim
        strides = (0,) * extra + tuple(
            [0 if have == 1 and want != 1 else step for have, want, step in zip(x.shape, shape[extra:], x.strides, strict=True)]
        )
        _, offset = backend.layout(x)
        return backend.as_strided(x, shape, tuple([step // size for step in strides]), offset)

    def view(x: Native, *, shape: tuple[int, ...]) -> Native | None:
        """The same memory in another shape, None where only a copy could have it."""
        try:
            return x.reshape(shape, copy=False)
        except ValueError:
            return None

    def index(x: Native, *, key: tuple[Any, ...]) -> Native:
        """Basic indexing: ints, slices with positive steps, None, Ellipsis."""
        return x[(*key, ...)]  # the Ellipsis keeps a 0-d result an array

    def unindex(x: Native, *, shape: tuple[int, ...], key: tuple[Any, ...]) -> Native:
        """Zeros of ``shape`` with ``x`` in the place that ``key`` shows."""
        made = xp.zeros(shape, x.dtype)
        made[key] = x
        return made

    return {function.__name__: function for function in (
        full, arange, clone, contiguous, copy, fill, cast, permute, expand, view, index, unindex,
    )}  # fmt: skip
