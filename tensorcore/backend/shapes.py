"""Shape rules: what shape and dtype each primitive answers with, without computing a value.

A rule takes what the kernel of its name takes, with a shape (a tuple) in the place of each native array, and
answers with a shape, or with a list of shapes where the kernel has several results. For a backend that keeps
no values, and for one that writes calls down to run them later. Where a result lies in memory is said in
``layouts.py``, and what is known of each kernel in ``kernels.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from tensorcore.backend import places
from tensorcore.backend.layouts import swapped
from tensorcore.errors import ShapeError, ValuesMissing

__all__ = ["VIEWS", "ViewRule"]

Shape = tuple[int, ...]


class ViewRule(NamedTuple):
    """Where a view lies: ``place`` takes shape, strides and offset of the array, in elements, and the options.

    It answers with those of the view, in elements of the view, or with None where only a copy could have that shape.
    ``dtype`` is as in Facts (``kernels.py``); with ``option``, ``place`` takes the bytes of an element as ``have`` too.
    """

    place: Callable[..., places.Place | None]
    dtype: Any = None


# Rules by kind


def broadcast(*values: Any, **options: Any) -> Shape:
    """Elementwise: the common shape of the arrays; numbers have none."""
    return np.broadcast_shapes(*[one for one in values if type(one) is tuple])


def same(x: Shape, *others: Any, **options: Any) -> Shape:
    """The first array's."""
    return x


def given(*values: Any, shape: Shape, **options: Any) -> Shape:
    """The option ``shape``."""
    return shape


def reduced(x: Shape, *others: Any, dim: Any = None, keepdim: bool = False, **options: Any) -> Shape:
    """The shape without the dims that are reduced (None for all), or with 1 in their place."""
    dims = range(len(x)) if dim is None else (dim,) if isinstance(dim, int) else dim
    if keepdim:
        return tuple([1 if i in dims else size for i, size in enumerate(x)])
    return tuple([size for i, size in enumerate(x) if i not in dims])


def extreme(x: Shape, **options: Any) -> Shape:
    """The shape of a reduction that needs an element; ValueError, as kernels raise it, where there is none."""
    made = reduced(x, **options)
    if 0 in x and 0 not in made:
        raise ValueError("no elements")
    return made


def twice(x: Shape, **options: Any) -> list[Shape]:
    """A pair of results of the first array's shape."""
    return [x, x]


def reduced_twice(x: Shape, **options: Any) -> list[Shape]:
    """Two reductions over the same dims, such as values and their places."""
    return [reduced(x, **options)] * 2


def each(*shapes: Any, needs: Sequence[bool] | None = None, **options: Any) -> list[Shape | None]:
    """Gradients of several arrays, each of its array's shape; those that nobody needs are None."""
    asked = needs or [True] * len(shapes)
    return [one if need else None for one, need in zip(shapes, asked, strict=False)]


def gradients(g: Shape, *values: Any, needs: Sequence[bool], **options: Any) -> list[Shape | None]:
    """The gradients of a fused kernel's arguments, which come after ``g``."""
    return each(*values, needs=needs)


# Rules of single primitives


def full(shape: Shape, value: Any, **options: Any) -> Shape:
    """The shape asked for."""
    return shape


def arange(start: Any, step: Any, length: int, **options: Any) -> Shape:
    """As many numbers as asked for."""
    return (length,)


def triangle_indices(rows: int, columns: int, offset: int, *, upper: bool, **options: Any) -> Shape:
    """Row and column of each place in a triangle."""
    below = sum([min(max(i + offset + (not upper), 0), columns) for i in range(rows)])
    return (2, rows * columns - below if upper else below)


def rot90(x: Shape, *, k: int, dims: tuple[int, int]) -> Shape:
    """Two dims swapped by an odd number of turns."""
    return swapped(x, dims) if k % 2 else x


def repeat(x: Shape, *, repeats: Shape) -> Shape:
    """Each dim as often as asked; new dims come in front."""
    wide = (1,) * (len(repeats) - len(x)) + x
    return tuple([size * count for size, count in zip(wide, repeats, strict=True)])


def repeat_interleave(x: Shape, *, repeats: Any, dim: int) -> Shape:
    """Each element along a dim as often as asked."""
    if not isinstance(repeats, int):
        raise ValuesMissing(
            "repeat_interleave: expected values, which the shape of the result depends on, got repeats that have none "
            "(on meta, for instance); pass an int, or tensors of a real device"
        )
    return resized(x, dim, x[dim] * repeats)


def index_tensors(x: Shape, *, indices: tuple[Shape | None, ...]) -> Shape:
    """The indices' common shape, in the place of their dims, or in front if these lie apart."""
    dims = [i for i, one in enumerate(indices) if one is not None]
    common = broadcast(*[one for one in indices if one is not None])
    together = dims == list(range(dims[0], dims[-1] + 1))
    rest = [size for i, size in enumerate(x) if i not in dims]
    at = dims[0] if together else 0
    return (*rest[:at], *common, *rest[at:])


def matmul(a: Shape, b: Shape) -> Shape:
    """Vectors, matrices, and batches of matrices that broadcast."""
    inner = b[-2] if len(b) > 1 else b[0]
    if a[-1] != inner:
        raise ShapeError(f"matmul: expected an inner size of {a[-1]}, got {inner}; transpose or reshape one of the two")
    return np.broadcast_shapes(a[:-2], b[:-2]) + (a[-2:-1] if len(a) > 1 else ()) + (b[-1:] if len(b) > 1 else ())


def turned(x: Shape) -> Shape:
    """The last two dims swapped."""
    return (*x[:-2], x[-1], x[-2])


def linear(x: Shape, weight: Shape, bias: Shape | None) -> Shape:
    """A batch of vectors times the transpose of a matrix (or a vector)."""
    return x[:-1] + weight[:-1]


def diagonal(x: Shape, *, dim1: int, dim2: int) -> Shape:
    """The diagonal of two dims as the last one."""
    rest = tuple([size for i, size in enumerate(x) if i not in (dim1, dim2)])
    return (*rest, min(x[dim1], x[dim2]))


def resized(x: Shape, dim: int, size: int) -> Shape:
    """Another size of one dim."""
    return (*x[:dim], size, *x[dim + 1 :]) if x else x


def pick(x: Shape, at: Shape, *, dim: int) -> Shape:
    """One element for each index."""
    return at


def topk(x: Shape, *, k: int, dim: int, **options: Any) -> list[Shape]:
    """``k`` values along a dim, and their places."""
    return [resized(x, dim, k) if x else (() if k else (0,))] * 2


def kept_dim(x: Shape, *, dim: int, keepdim: bool = False, **options: Any) -> list[Shape]:
    """A value along a dim, and its place."""
    return reduced_twice(x, dim=dim if x else (), keepdim=keepdim)


def windows(x: Shape, *others: Any, counts: Shape, **options: Any) -> Shape:
    """Pools: one value for each window of each channel."""
    return (*x[:2], *counts)


def windows_twice(x: Shape, *others: Any, counts: Shape, **options: Any) -> list[Shape]:
    """Pools that say where too."""
    return [windows(x, counts=counts)] * 2


def conv(x: Shape, weight: Shape, bias: Shape | None, *, counts: Shape, **options: Any) -> Shape:
    """One value for each window and each output channel."""
    return (x[0], weight[0], *counts)


def unfold(x: Shape, *, counts: Shape, kernel: Shape, **options: Any) -> Shape:
    """The windows as columns."""
    return (x[0], x[1] * prod(kernel), prod(counts))


def embedding(weight: Shape, indices: Shape, **options: Any) -> Shape:
    """A row for each index."""
    return indices + weight[1:]


def bag(weight: Shape, indices: Shape, offsets: Shape, *scales: Shape, last: bool, **options: Any) -> Shape:
    """A row for each bag."""
    return (offsets[0] - last, weight[1])


def embedding_gradient(g: Shape, indices: Shape, *, rows: int, **options: Any) -> Shape:
    """A gradient for each row."""
    return (rows, g[-1])


def standardize(
    x: Shape, weight: Any, bias: Any, *, view: Shape, dims: Shape, centre: bool, **options: Any
) -> list[Shape | None]:
    """The result, and mean and variance in the view with the dims of size 1."""
    kept = reduced(view, dim=dims, keepdim=True)
    return [x, kept if centre else None, kept]


def lost(x: Shape, target: Shape, *others: Any, reduction: str, **options: Any) -> Shape:
    """A loss of each element, or one of all."""
    return broadcast(x, target) if reduction == "none" else ()


def lost_by_row(x: Shape, *others: Any, reduction: str, **options: Any) -> Shape:
    """A loss of each row, or what they come to."""
    return x[:1] if reduction == "none" else ()


def nll_loss(x: Shape, target: Shape, weight: Any, *, reduction: str, **options: Any) -> list[Shape]:
    """The loss, the weight of each target, and their sum."""
    return [target if reduction == "none" else (), (x[0], prod(x[2:])), ()]


def cross_entropy(x: Shape, target: Shape, weight: Any, **options: Any) -> list[Shape]:
    """As nll_loss, with the logarithms after the loss."""
    made, every, weights = nll_loss(x, target, weight, **options)
    return [made, x, every, weights]


def grid_sample(x: Shape, grid: Shape, **options: Any) -> Shape:
    """All channels of each sample at the places of its grid."""
    return (*x[:2], *grid[1:-1])


def sparse_matmul(rows: Shape, columns: Shape, values: Shape, dense: Shape, *, count: int, **options: Any) -> Shape:
    return (count, dense[1])


def lstm_steps(gates: Shape, weight: Shape, h0: Shape, c0: Shape, **options: Any) -> list[Shape]:
    """All states, the last one of each sequence with its cell, and what the gradient needs of each row."""
    rows = (gates[0], h0[1])
    return [rows, h0, c0, gates, rows, rows, rows]


def gru_steps(gates: Shape, weight: Shape, bias: Any, h0: Shape, **options: Any) -> list[Shape]:
    """All states, the last one of each sequence, and what the gradient needs of each row."""
    rows = (gates[0], h0[1])
    return [rows, h0, gates, rows, rows]


def rnn_steps(gates: Shape, weight: Shape, h0: Shape, **options: Any) -> list[Shape]:
    """All states, the last one of each sequence, and what the gradient needs of each row."""
    return [gates, h0, gates, gates]


def attention(query: Shape, key: Shape, value: Shape, mask: Any, **options: Any) -> list[Shape]:
    """A row of values for each query, and a sum for each."""
    return [(*query[:3], value[3]), query[:3]]


VIEWS: dict[str, ViewRule] = {
    "permute": ViewRule(places.as_permute),
    "expand": ViewRule(lambda x, strides, offset, *, shape: places.as_expand(x, strides, offset, to=shape)),
    "view": ViewRule(lambda x, strides, offset, *, shape: places.as_view(x, strides, offset, to=shape)),
    "as_strided": ViewRule(lambda x, own, start, *, shape, strides, offset: (shape, strides, start + offset)),
    "index": ViewRule(places.as_index),
    "unsqueeze": ViewRule(places.as_unsqueeze),
    "diagonal": ViewRule(
        lambda x, strides, start, *, offset, dim1, dim2: places.as_diagonal(
            x, strides, start, at=offset, dim1=dim1, dim2=dim2
        )
    ),
    "windows": ViewRule(places.as_windows),
    "reinterpret": ViewRule(places.as_bits, "option"),
    "real": ViewRule(places.as_real, "real"),
    "imag": ViewRule(places.as_imag, "real"),
    "view_as_real": ViewRule(places.as_pairs, "real"),
    "view_as_complex": ViewRule(places.as_complex, "complex"),
}
