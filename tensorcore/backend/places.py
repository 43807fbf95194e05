"""Where views lie: shape, strides and offset of an array in, those of a view of it out, in elements of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorcore.backend.strides import contiguous_strides, view_strides

__all__ = [
    "as_bits", "as_complex", "as_diagonal", "as_expand", "as_imag", "as_index", "as_pairs", "as_permute", "as_real",
    "as_unsqueeze", "as_view", "as_windows", "in_memory", "kept_strides",
]  # fmt: skip

Shape = tuple[int, ...]
Place = tuple[Shape, Shape, int]


def as_permute(shape: Shape, strides: Shape, offset: int, *, dims: Shape) -> Place:
    """The dims in another order."""
    return tuple([shape[i] for i in dims]), tuple([strides[i] for i in dims]), offset


def as_expand(shape: Shape, strides: Shape, offset: int, *, to: Shape) -> Place:
    """Dims of size 1 stretched by a stride of 0; new dims come in front."""
    extra = len(to) - len(shape)
    steps = [
        0 if have == 1 and want != 1 else step for have, want, step in zip(shape, to[extra:], strides, strict=True)
    ]
    for i in range(extra - 1, -1, -1):
        steps.insert(0, 0 if to[i] != 1 else to[i + 1] * steps[0] if steps else 1)
    return to, tuple(steps), offset


def as_view(shape: Shape, strides: Shape, offset: int, *, to: Shape) -> Place | None:
    """Another shape of the same memory, None where only a copy could have it."""
    found = view_strides(shape, strides, to)
    return None if found is None else (to, found, offset)


def as_index(shape: Shape, strides: Shape, offset: int, *, key: Sequence[Any]) -> Place:
    """Ints, and slices with positive steps, from the first dim on."""
    sizes: list[int] = []
    steps: list[int] = []
    for i, one in enumerate(key):
        if isinstance(one, slice):
            start, stop, step = one.indices(shape[i])
            sizes.append(max(0, -((start - stop) // step)))
            steps.append(strides[i] * step)
            offset += start * strides[i]
        else:
            offset += one % max(shape[i], 1) * strides[i]
    return (*sizes, *shape[len(key) :]), (*steps, *strides[len(key) :]), offset


def as_unsqueeze(shape: Shape, strides: Shape, offset: int, *, dim: int, step: int | None = None) -> Place:
    """A dim of size 1 put in, with a stride of its own or the reach of the dim behind it."""
    if step is None:
        step = shape[dim] * strides[dim] if dim < len(shape) else 1
    return (*shape[:dim], 1, *shape[dim:]), (*strides[:dim], step, *strides[dim:]), offset


def as_diagonal(shape: Shape, strides: Shape, offset: int, *, at: int, dim1: int, dim2: int) -> Place:
    """A diagonal of two dims as the last one."""
    rows, columns = shape[dim1], shape[dim2]
    length = max(0, min(rows, columns - at) if at >= 0 else min(rows + at, columns))
    start = 0 if not length else at * strides[dim2] if at >= 0 else -at * strides[dim1]
    others = [i for i in range(len(shape)) if i not in (dim1, dim2)]
    steps = (*[strides[i] for i in others], strides[dim1] + strides[dim2])
    return (*[shape[i] for i in others], length), steps, offset + start


def as_windows(shape: Shape, strides: Shape, offset: int, *, dim: int, size: int, step: int) -> Place:
    """Overlapping slices along a dim, with their elements as the last dim."""
    if not shape:
        return (size,), (1,), offset
    sizes = (*shape[:dim], (shape[dim] - size) // step + 1, *shape[dim + 1 :], size)
    return sizes, (*strides[:dim], step * strides[dim], *strides[dim + 1 :], strides[dim]), offset


def as_bits(shape: Shape, strides: Shape, offset: int, *, have: int, dtype: Any) -> Place:
    """The same bytes as elements of another size, of which the last dim has more or fewer; ``have`` bytes before."""
    size = dtype.itemsize
    if have == size:
        return shape, strides, offset
    steps = (*[step * have // size for step in strides[:-1]], 1)
    return (*shape[:-1], shape[-1] * have // size), steps, offset * have // size


def as_real(shape: Shape, strides: Shape, offset: int) -> Place:
    """The real parts of complex numbers: every second number."""
    return shape, tuple([2 * step for step in strides]), 2 * offset


def as_imag(shape: Shape, strides: Shape, offset: int) -> Place:
    """The imaginary parts: the numbers between."""
    return shape, tuple([2 * step for step in strides]), 2 * offset + 1


def as_pairs(shape: Shape, strides: Shape, offset: int) -> Place:
    """Complex numbers as pairs of real ones."""
    return (*shape, 2), (*[2 * step for step in strides], 1), 2 * offset


def as_complex(shape: Shape, strides: Shape, offset: int) -> Place:
    """Pairs of real numbers as complex ones."""
    return shape[:-1], tuple([step // 2 for step in strides[:-1]]), offset // 2


def kept_strides(shape: Shape, operands: Sequence[tuple[Shape, Shape]]) -> Shape:
    """The strides of a dense result of ``shape`` that lies in memory as the operands (shape, strides) do.

    Without elements there is no order to keep: row-major, as kernels leave it.
    """
    if 0 in shape:
        return contiguous_strides(shape)
    wide = []
    for have, strides in operands:
        extra = len(shape) - len(have)
        wide.append((0,) * extra + tuple([0 if size == 1 else step for size, step in zip(have, strides, strict=True)]))
    # An insertion sort from the innermost dim out: a dim moves inwards past those with larger strides, and past
    # those that no operand can compare it with only if it also passes one behind them. The first that can decides.
    order = list(range(len(shape)))[::-1]
    for i in range(1, len(order)):
        moving, to = order[i], i
        for j in range(i - 1, -1, -1):
            compared = [one[moving] >= one[order[j]] for one in wide if one[moving] and one[order[j]]]
            if not compared:
                continue
            if compared[0]:
                break
            to = j
        order.insert(to, order.pop(i))
    result, step = [0] * len(shape), 1
    for dim in order:
        result[dim] = step
        step *= max(shape[dim], 1)
    return tuple(result)


def in_memory(xp: Any, shape: Shape, strides: Shape) -> Any:
    """Where in a flat memory each element of a strided array lies: an integer array of a NumPy-like namespace."""
    at = xp.zeros(shape, xp.int64)
    for i, (size, step) in enumerate(zip(shape, strides, strict=True)):
        at += (xp.arange(size) * step).reshape((-1,) + (1,) * (len(shape) - 1 - i))
    return at
