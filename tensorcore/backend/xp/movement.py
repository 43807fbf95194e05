"""Kernels that make, move and view memory without computing: creation, casts, copies, views, indexing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorcore.backend.places import as_diagonal, as_unsqueeze, as_windows, in_memory, kept_strides
from tensorcore.backend.strides import view_strides
from tensorcore.dtypes import int64

if TYPE_CHECKING:
    from tensorcore.backend.base import Kernel, Native
    from tensorcore.backend.xp import XPBackend
    from tensorcore.dtypes import dtype

__all__ = ["kernels"]


def kernels(backend: XPBackend) -> dict[str, Kernel]:
    """The family's kernels for one backend."""
    xp, over = backend.xp, backend.over

    # Creation

    def full(shape: tuple[int, ...], value: Any, *, dtype: dtype) -> Native:
        """A new array of one value."""
        made = backend.allocate(shape, dtype)
        made.fill(value)
        return made

    def arange(start: Any, step: Any, length: int, *, dtype: dtype) -> Native:
        """``start + step * i``, computed in double precision as PyTorch does."""
        if dtype is int64 and type(start) is type(step) is int and abs(start) + abs(step) * length < 2**53 and step:
            return xp.arange(start, start + step * length, step, np.int64)
        exact = start + step * xp.arange(length)
        return exact.astype(backend.xp_dtype(dtype))

    def linspace(start: Any, end: Any, steps: int, *, base: float | None, dtype: dtype) -> Native:
        """Counted from both ends, so that the last number is ``end`` itself and the middle is symmetric."""
        kind = complex if dtype.is_complex else float
        narrow = dtype.itemsize <= 4 and dtype.is_floating_point and base is None
        wide: Any = np.dtype(np.complex128 if dtype.is_complex else np.float32 if narrow else np.float64)
        halves = narrow and dtype.itemsize == 2

        def rounded(x: Any) -> Any:
            """As the 16 bit dtypes keep it, which PyTorch's kernel computes every step in."""
            return x.astype(backend.xp_dtype(dtype)).astype(wide) if halves else x

        last = max(steps - 1, 1)
        start, end, count = [rounded(wide.type(kind(one))) for one in (start, end, last)]
        step = rounded(rounded(end - start) / count)
        if dtype.is_floating_point and base is None and not halves:
            # Products and sums are rounded once, as PyTorch's multiply-adds; the step itself is of the dtype.
            wider = np.longdouble if dtype.itemsize == 8 and xp is np else np.float64
            wide = np.dtype(wider)
            start, end, step = wide.type(start), wide.type(end), wide.type(step)
        i = xp.arange(steps)
        up = start + rounded(step * i.astype(wide))
        down = end - rounded(step * (steps - 1 - i).astype(wide))
        made = xp.where(i < steps // 2, up, down) if steps > 1 else xp.full((steps,), start)
        if base is not None:
            made = xp.power(wide.type(base), made)
        return made.astype(backend.xp_dtype(dtype))

    def eye(rows: int, columns: int, *, dtype: dtype) -> Native:
        """Ones where the row is the column, zeros elsewhere."""
        if xp is not np:
            return xp.eye(rows, columns, dtype=backend.xp_dtype(dtype))
        made = np.zeros(rows * columns, dtype.numpy)
        made[: min(rows, columns) * columns : columns + 1] = 1
        return made.reshape(rows, columns)

    def triangle_indices(rows: int, columns: int, offset: int, *, upper: bool, dtype: dtype) -> Native:
        """The rows and the columns of the elements on one side of a diagonal, as two rows."""
        at = xp.triu_indices(rows, offset, columns) if upper else xp.tril_indices(rows, offset, columns)
        return xp.stack(at).astype(backend.xp_dtype(dtype))

    # Copies

    def clone(x: Native) -> Native:
        """A copy with the strides of ``x`` where it is dense."""
        if 0 not in x.strides:
            return xp.copy(x, order="K")
        # An expanded dim, which NumPy would make the innermost one.
        lie = kept_strides(x.shape, [(x.shape, x.strides)])
        order = sorted(range(x.ndim), key=lambda i: -lie[i])
        return xp.transpose(xp.copy(xp.transpose(x, order), order="C"), [order.index(i) for i in range(x.ndim)])

    def contiguous(x: Native) -> Native:
        """A copy in row-major order."""
        return xp.copy(x, order="C")

    def copy(target: Native, source: Native) -> Native:
        """Write ``source``, broadcast and cast, into the memory of ``target``."""
        target[...] = source
        return target

    def fill(target: Native, value: Any) -> Native:
        """Write one value, a number or a 0-d array, to every element."""
        target[...] = value
        return target

    def cast(x: Native, *, dtype: dtype) -> Native:
        """The elements as another dtype, in new memory."""
        into = backend.xp_dtype(dtype)
        if x.dtype.kind == "b" and np.dtype(into).kind == "V":
            x = x.view(np.uint8) != 0  # bytes that are seen as bools: ml_dtypes' types would take the numbers they are
        return x.astype(into)

    def tri(x: Native, *, diagonal: int, upper: bool) -> Native:
        """Matrices with zeros on one side of a diagonal: below it where ``upper``, else above."""
        rows, columns = x.shape[-2:]
        below = xp.arange(columns) - xp.arange(rows)[:, None] <= diagonal - upper
        return xp.ascontiguousarray(xp.where(below != upper, x, xp.zeros((), x.dtype)))

    def keep_triangle(x: Native, *, diagonal: int, upper: bool) -> Native:
        """``tri``, in place."""
        x[...] = tri(x, diagonal=diagonal, upper=upper)
        return x

    def flip(x: Native, *, dims: tuple[int, ...]) -> Native:
        key = tuple([slice(None, None, -1 if i in dims else 1) for i in range(x.ndim)])
        return xp.copy(x[(*key, ...)], order="C")

    def roll(x: Native, *, shifts: Any, dims: Any) -> Native:
        """The elements moved on along ``dims``; one shift of all elements in a row where that is None."""
        return xp.ascontiguousarray(xp.roll(x, shifts, dims)).reshape(x.shape)

    def rot90(x: Native, *, k: int, dims: tuple[int, int]) -> Native:
        """``k`` quarter turns in the plane of ``dims``: a flipped copy whose strides are swapped, as PyTorch's are."""
        if k % 2 == 0:
            return flip(x, dims=dims if k else ())
        return flip(x, dims=(dims[1] if k == 1 else dims[0],)).swapaxes(*dims)

    def cat(xs: list[Native], *, dim: int, shape: tuple[int, ...], out: Native | None = None) -> Native:
        """The parts one after the other, those of shape ``(0,)`` left out; in row-major order whatever theirs."""
        if 0 in [x.size for x in xs]:
            xs = [x for x in xs if x.ndim == len(shape)] or xs
        made = xp.empty(shape, xs[0].dtype) if out is None else out
        return xp.concatenate(xs, dim, out=made)

    def stack(xs: list[Native], *, dim: int, out: Native | None = None) -> Native:
        shape = xs[0].shape
        made = xp.empty((*shape[:dim], len(xs), *shape[dim:]), xs[0].dtype) if out is None else out
        return xp.stack(xs, dim, out=made)

    def repeat(x: Native, *, repeats: tuple[int, ...]) -> Native:
        """``x`` laid end to end, that often along each dim; more numbers than dims make new ones in front."""
        return xp.ascontiguousarray(xp.tile(x, repeats)) if repeats else x.copy()

    def repeat_interleave(x: Native, *, repeats: Any, dim: int) -> Native:
        """``repeats`` is an int, or a native array with the count of each element along ``dim``."""
        return xp.ascontiguousarray(xp.repeat(x, repeats, dim))

    # Views

    def permute(x: Native, *, dims: tuple[int, ...]) -> Native:
        if not x.size:
            # NumPy's empty arrays have strides of 0, which say nothing about the order of the dims.
            strides = backend.strides(x)
            return restride(x, tuple([x.shape[i] for i in dims]), tuple([strides[i] for i in dims]))
        return x.transpose(dims)

    def restride(x: Native, shape: tuple[int, ...], strides: tuple[int, ...], offset: int = 0) -> Native:
        """A view within the memory that ``x`` spans; ``offset`` counts from the first element of ``x``."""
        size = x.itemsize
        if x.flags.forc:
            # Its own memory without gaps: no need for the two addresses that layout compares (0.9 us each).
            steps = tuple([step * size for step in strides])
            return over(x, shape, x.dtype, offset * size if 0 not in shape else 0, steps)
        return as_strided(x, shape=shape, strides=strides, offset=offset)

    def as_strided(x: Native, *, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> Native:
        """A view of the storage under ``x``; ``offset`` counts from the first element of ``x``."""
        start = backend.layout(x)[1] + offset
        if 0 in shape:
            start = min(start, backend.storage(x).shape[0])
        return backend.as_strided(x, shape, strides, start)

    def expand(x: Native, *, shape: tuple[int, ...]) -> Native:
        extra = len(shape) - x.ndim
        strides = [
            0 if have == 1 and want != 1 else step
            for have, want, step in zip(x.shape, shape[extra:], backend.strides(x), strict=True)
        ]
        for i in range(extra - 1, -1, -1):
            strides.insert(0, shape[i + 1] * strides[0] if shape[i] == 1 and x.ndim else 0)
        return restride(x, shape, tuple(strides))

    def view(x: Native, *, shape: tuple[int, ...]) -> Native | None:
        """The same memory in another shape, None where only a copy could have it."""
        old = x.shape
        # With sizes of 0 and 1 NumPy chooses other strides than PyTorch does.
        if x.flags.c_contiguous and 1 not in old and 0 not in old:
            return x.reshape(shape)
        own = backend.strides(x)
        strides = view_strides(old, own, shape)
        if strides is not None and 1 not in old and 1 not in shape and 0 not in (*old, *own):
            return x.reshape(shape)  # where there is but one answer NumPy finds it too, 20 times as fast
        return None if strides is None else restride(x, shape, strides)

    def unsqueeze(x: Native, *, dim: int, step: int | None = None) -> Native:
        """``step`` is the new dim's stride, where it is not the reach of the dim behind it."""
        shape = x.shape
        if step is None and x.flags.c_contiguous and 1 not in shape and 0 not in shape:
            return x.reshape((*shape[:dim], 1, *shape[dim:]))
        return restride(x, *as_unsqueeze(shape, backend.strides(x), 0, dim=dim, step=step))

    def index(x: Native, *, key: tuple[Any, ...]) -> Native:
        """Basic indexing with ints and slices that lie inside ``x``, steps positive."""
        made = x[(*key, ...)]  # the Ellipsis keeps a 0-d result an array
        return made if made.size else index_empty(x, key)

    def index_empty(x: Native, key: tuple[Any, ...]) -> Native:
        """NumPy forgets start and step of a slice without elements; PyTorch shows them in offset and strides."""
        shape, strides, offset = [], [], 0
        key = (*key, *[slice(None)] * (x.ndim - len(key)))
        for one, size, step in zip(key, x.shape, backend.strides(x), strict=True):
            if isinstance(one, slice):
                start, stop, jump = one.indices(size)
                shape.append(max(0, -((start - stop) // jump)))
                strides.append(step * jump)
                offset += start * step
            else:
                offset += one % max(size, 1) * step
        return as_strided(x, shape=tuple(shape), strides=tuple(strides), offset=offset)

    def diagonal(x: Native, *, offset: int, dim1: int, dim2: int) -> Native:
        return restride(x, *as_diagonal(x.shape, backend.strides(x), 0, at=offset, dim1=dim1, dim2=dim2))

    def windows(x: Native, *, dim: int, size: int, step: int) -> Native:
        """Slices of ``size`` elements along ``dim``, ``step`` apart: how many there are in its place, the elements last."""
        return restride(x, *as_windows(x.shape, backend.strides(x), 0, dim=dim, size=size, step=step))

    def reinterpret(x: Native, *, dtype: dtype) -> Native:
        """The same bits as another dtype; the last dim grows or shrinks with the size of an element."""
        wanted = backend.xp_dtype(dtype)
        if x.itemsize == wanted.itemsize or (x.flags.c_contiguous and x.size):
            return x.view(wanted)
        strides, offset = backend.layout(x)
        have, size = x.itemsize, wanted.itemsize
        shape = (*x.shape[:-1], x.shape[-1] * have // size)
        steps = (*[step * have // size for step in strides[:-1]], 1)
        return backend.as_strided(backend.storage(x).view(wanted), shape, steps, offset * have // size)

    # Gradients of views

    def unindex(x: Native, *, shape: tuple[int, ...], key: tuple[Any, ...]) -> Native:
        """Zeros of ``shape`` with ``x`` in the place that ``key`` shows."""
        made = xp.zeros(shape, x.dtype)
        made[key] = x
        return made

    def undiagonal(x: Native, *, shape: tuple[int, ...], offset: int, dim1: int, dim2: int) -> Native:
        """Zeros of ``shape`` with ``x`` on a diagonal."""
        made = xp.zeros(shape, x.dtype)
        backend.kernels["diagonal"](made, offset=offset, dim1=dim1, dim2=dim2)[...] = x
        return made

    def unwindows(x: Native, *, shape: tuple[int, ...], dim: int, size: int, step: int) -> Native:
        """Zeros of ``shape`` to which each window of ``windows`` is added in its place."""
        made = xp.zeros(shape or (1,), x.dtype)
        before = (slice(None),) * dim
        count = x.shape[dim] if shape else 1
        for i in range(size):
            made[(*before, slice(i, i + (count - 1) * step + 1, step))] += x[..., i]
        return made.reshape(shape)

    def regather(x: Native, *, own: tuple[Any, ...], wanted: tuple[Any, ...]) -> Native:
        """The elements of ``x``, laid out as ``own`` says, that a tensor of the geometry ``wanted`` shows.

        A geometry is shape, strides and offset; where elements of ``x`` share a place, their sum counts.
        """
        low = min(own[2], wanted[2])
        span = max([sum([(n - 1) * step for n, step in zip(shape, steps, strict=True)]) + first
                    for shape, steps, first in (own, wanted) if 0 not in shape], default=low) - low + 1  # fmt: skip
        memory = xp.zeros(span, x.dtype)
        if lie_apart(*own[:2]):
            backend.as_strided(memory, own[0], own[1], own[2] - low)[...] = x
        else:
            xp.add.at(memory, in_memory(xp, *own[:2]).ravel() + (own[2] - low), x.ravel())
        return xp.ascontiguousarray(backend.as_strided(memory, wanted[0], wanted[1], wanted[2] - low)).reshape(
            wanted[0]
        )

    def lie_apart(shape: Any, strides: Any) -> bool:
        """Whether each element surely has a place of its own: each step leads over all that lies within it."""
        reach = 0
        for step, n in sorted(zip(strides, shape, strict=True)):
            if n > 1 and step <= reach:
                return False
            reach += (n - 1) * step
        return True

    def shared(x: Native, *, geometry: tuple[Any, ...]) -> Native:
        """``x`` divided by how many elements of a tensor of this geometry share each place."""
        at = in_memory(xp, *geometry[:2])
        return (x / xp.bincount(at.ravel(), minlength=1)[at]).astype(x.dtype)

    return {function.__name__: function for function in (
        full, arange, linspace, eye, triangle_indices, clone, contiguous, copy, fill, cast, tri, keep_triangle, flip, roll,
        rot90, cat, stack, repeat, repeat_interleave,
        permute, as_strided, expand, view, unsqueeze, index, diagonal, windows, reinterpret, unindex, undiagonal, unwindows,
        regather, shared,
    )}  # fmt: skip
