"""Shape rules: what shape, strides and dtype each primitive answers with, without computing a value.

A rule takes what the kernel of its name takes, with a shape (a tuple) in the place of each native array, and
answers with a shape, or with a list of shapes where the kernel has several results. For a backend that keeps
no values, and for one that writes calls down to run them later.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tensorcore import dtypes
from tensorcore.backend.strides import view_strides
from tensorcore.errors import ShapeError

__all__ = ["NEEDS_VALUES", "RULES", "VIEWS", "WRITES", "Rule", "kept_strides"]

Shape = tuple[int, ...]
Place = tuple[Shape, Shape, int]  # shape, strides and offset of a view


class Rule(NamedTuple):
    """What one kernel answers with.

    Attributes:
        shape: the rule.
        dtype: of the result where it is not the first array's: a dtype, ``option`` (the option ``dtype``, where it is
            not None), ``real`` (that of the real part), or a tuple of these for several results.
        keeps: where the result lies in memory as the arguments do, what of an argument's dims it has: a function of
            the argument's shape, its strides and the options that gives a shape and strides. None for row-major order.
    """

    shape: Callable[..., Any]
    dtype: Any = None
    keeps: Callable[..., tuple[Shape, Shape]] | None = None


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


def reduced_twice(x: Shape, **options: Any) -> list[Shape]:
    """A pair of reductions over the same dims."""
    return [reduced(x, **options)] * 2


def twice(x: Shape, **options: Any) -> list[Shape]:
    """A pair of results of the first array's shape."""
    return [x, x]


def aligned(x: Shape, strides: Shape, options: dict[str, Any]) -> tuple[Shape, Shape]:
    """Elementwise: a result has all dims of an argument."""
    return x, strides


def unreduced(x: Shape, strides: Shape, options: dict[str, Any]) -> tuple[Shape, Shape]:
    """Reductions: a result has the dims that are not reduced, and a dim of size 1 says nothing."""
    marks = reduced(tuple(range(len(x))), dim=options.get("dim"), keepdim=options.get("keepdim", False))
    if options.get("keepdim"):
        return reduced(x, dim=options.get("dim"), keepdim=True), strides
    return tuple([x[i] for i in marks]), tuple([strides[i] for i in marks])


# Rules of single primitives


def matmul(a: Shape, b: Shape) -> Shape:
    """Vectors, matrices, and batches of matrices that broadcast."""
    inner = b[-2] if len(b) > 1 else b[0]
    if a[-1] != inner:
        raise ShapeError(f"matmul: expected an inner size of {a[-1]}, got {inner}; transpose or reshape one of the two")
    return np.broadcast_shapes(a[:-2], b[:-2]) + (a[-2:-1] if len(a) > 1 else ()) + (b[-1:] if len(b) > 1 else ())


def full(shape: Shape, value: Any, **options: Any) -> Shape:
    """The shape asked for."""
    return shape


def arange(start: Any, step: Any, length: int, **options: Any) -> Shape:
    """As many numbers as asked for."""
    return (length,)


# Views: shape, strides and offset in, the same of the view out; strides and offsets count elements.


def as_permute(shape: Shape, strides: Shape, offset: int, *, dims: Shape) -> Place:
    """The dims in another order."""
    return tuple([shape[i] for i in dims]), tuple([strides[i] for i in dims]), offset


def as_expand(shape: Shape, strides: Shape, offset: int, *, to: Shape) -> Place:
    """Dims of size 1 stretched by a stride of 0; new dims come in front."""
    extra = len(to) - len(shape)
    stretched = [
        0 if have == 1 and want != 1 else step for have, want, step in zip(shape, to[extra:], strides, strict=True)
    ]
    return to, (0,) * extra + tuple(stretched), offset


def as_view(shape: Shape, strides: Shape, offset: int, *, to: Shape) -> Place | None:
    """Another shape of the same memory, None where only a copy could have it."""
    found = view_strides(shape, strides, to)
    return None if found is None else (to, found, offset)


def as_index(shape: Shape, strides: Shape, offset: int, *, key: Sequence[Any]) -> Place:
    """A basic index: ints, slices with positive steps, None for a new dim, Ellipsis."""
    named = sum(one is not None and one is not Ellipsis for one in key)
    sizes: list[int] = []
    steps: list[int] = []
    at = 0
    for one in (*key, ...) if Ellipsis not in key else key:
        if one is None:
            sizes.append(1)
            steps.append(0)
        elif one is Ellipsis:
            rest = len(shape) - named
            sizes += shape[at : at + rest]
            steps += strides[at : at + rest]
            at += rest
        elif isinstance(one, slice):
            start, stop, step = one.indices(shape[at])
            size = max(0, -(-(stop - start) // step))
            offset += start * strides[at] if size else 0
            sizes.append(size)
            steps.append(strides[at] * step)
            at += 1
        else:
            offset += (one % shape[at]) * strides[at]
            at += 1
    return tuple(sizes), tuple(steps), offset


def kept_strides(shape: Shape, operands: Sequence[tuple[Shape, Shape]]) -> Shape:
    """The strides of a dense result of ``shape`` that lies in memory as the operands (shape, strides) do."""
    wide = []
    for have, strides in operands:
        extra = len(shape) - len(have)
        wide.append((0,) * extra + tuple([0 if size == 1 else step for size, step in zip(have, strides, strict=True)]))
    # An insertion sort from the innermost dim out: a dim moves inwards past those with larger strides, and past
    # those that no operand can compare it with only if it also passes one behind them.
    order = list(range(len(shape)))[::-1]
    for i in range(1, len(order)):
        moving, to = order[i], i
        for j in range(i - 1, -1, -1):
            compared = [one[moving] >= one[order[j]] for one in wide if one[moving] and one[order[j]]]
            if not compared:
                continue
            if any(compared):
                break
            to = j
        order.insert(to, order.pop(i))
    result, step = [0] * len(shape), 1
    for dim in order:
        result[dim] = step
        step *= max(shape[dim], 1)
    return tuple(result)


# The tables


def _rules(names: str, *rule: Any) -> dict[str, Rule]:
    return {name: Rule(*rule) for name in names.split()}


RULES: dict[str, Rule] = {
    **_rules(
        "acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_left_shift bitwise_not bitwise_or "
        "bitwise_right_shift bitwise_xor ceil conj copysign cos cosh div exp exp2 expm1 floor floor_divide fmod hypot log "
        "log10 log1p log2 maximum minimum mul neg nextafter pow relu remainder round sign sin sinh sqrt sub tan tanh trunc",
        broadcast, None, aligned,
    ),
    **_rules("abs", broadcast, "real", aligned),
    **_rules(
        "eq ge gt isfinite isinf isnan le logical_and logical_not logical_or logical_xor lt ne signbit",
        broadcast, dtypes.bool_, aligned,
    ),
    "where": Rule(lambda condition, x, y: broadcast(condition, x, y), "second", aligned),
    **_rules("cast", same, "option", aligned),
    **_rules("clone", same, None, aligned),
    **_rules("contiguous", same),
    **_rules("full", full, "option"),
    **_rules("arange", arange, "option"),
    **_rules("unindex", given),
    **_rules("sum", reduced, "option", unreduced),
    **_rules("amax amin", reduced, None, unreduced),
    **_rules("matmul", matmul),
}  # fmt: skip

VIEWS: dict[str, Callable[..., Place | None]] = {
    "permute": as_permute,
    "expand": lambda x, strides, offset, *, shape: as_expand(x, strides, offset, to=shape),
    "view": lambda x, strides, offset, *, shape: as_view(x, strides, offset, to=shape),
    "index": as_index,
}

# These write into their first array, and answer with it.
WRITES = frozenset(["copy", "fill"])

# The shapes of these depend on values.
NEEDS_VALUES: frozenset[str] = frozenset()
