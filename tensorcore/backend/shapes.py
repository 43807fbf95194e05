"""Shape rules: what shape, strides and dtype each primitive answers with, without computing a value.

A rule takes what the kernel of its name takes, with a shape (a tuple) in the place of each native array, and
answers with a shape, or with a list of shapes where the kernel has several results. For a backend that keeps
no values, and for one that writes calls down to run them later.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from tensorcore import dtypes
from tensorcore.backend import shapes_index
from tensorcore.backend.strides import view_strides
from tensorcore.errors import ShapeError

__all__ = ["NEEDS_VALUES", "RULES", "VIEWS", "WRITES", "Rule", "ViewRule", "kept_strides"]

Shape = tuple[int, ...]
Place = tuple[Shape, Shape, int]  # shape, strides and offset of a view, in its own elements


class Rule(NamedTuple):
    """What one kernel answers with.

    Attributes:
        shape: the rule.
        dtype: of the result where it is not the first array's: a dtype, ``option`` (the option ``dtype``, where it is
            not None), ``real`` or ``complex`` (the first's with that kind), ``last`` (the last array's), or a tuple of
            these for several results.
        keeps: where the result lies in memory as the arguments do, what of an argument's dims it has: a function of
            the argument's shape, its strides and the options that gives a shape and strides. None for row-major order.
    """

    shape: Callable[..., Any]
    dtype: Any = None
    keeps: Callable[..., tuple[Shape, Shape]] | None = None


class ViewRule(NamedTuple):
    """Where a view lies: ``place`` takes shape, strides and offset of the array, in elements, and the options.

    It answers with those of the view, in elements of the view, or with None where only a copy could have that shape.
    ``dtype`` is as in Rule.
    """

    place: Callable[..., Place | None]
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


def windows(x: Shape, *, counts: Shape, **options: Any) -> Shape:
    """Pools: one value for each window of each channel."""
    return (*x[:2], *counts)


def conv(x: Shape, weight: Shape, bias: Shape | None, *, counts: Shape, **options: Any) -> Shape:
    """One value for each window and each output channel."""
    return (x[0], weight[0], *counts)


def unfold(x: Shape, *, counts: Shape, kernel: Shape, **options: Any) -> Shape:
    """The windows as columns."""
    return (x[0], x[1] * prod(kernel), prod(counts))


def embedding(weight: Shape, indices: Shape, **options: Any) -> Shape:
    """A row for each index."""
    return indices + weight[1:]


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


def nll_loss(x: Shape, target: Shape, weight: Any, *, reduction: str, **options: Any) -> list[Shape]:
    """The loss, the weight of each target, and their sum."""
    return [target if reduction == "none" else (), (x[0], prod(x[2:])), ()]


def cross_entropy(x: Shape, target: Shape, weight: Any, **options: Any) -> list[Shape]:
    """As nll_loss, with the logarithms after the loss."""
    made, every, weights = nll_loss(x, target, weight, **options)
    return [made, x, every, weights]


# Views


def as_permute(shape: Shape, strides: Shape, offset: int, *, dims: Shape) -> Place:
    """The dims in another order."""
    return tuple([shape[i] for i in dims]), tuple([strides[i] for i in dims]), offset


def as_expand(shape: Shape, strides: Shape, offset: int, *, to: Shape) -> Place:
    """Dims of size 1 stretched by a stride of 0; new dims come in front."""
    extra = len(to) - len(shape)
    stretched = [
        0 if have == 1 and want != 1 else step for have, want, step in zip(shape, to[extra:], strides, strict=True)
    ]
    for i in range(extra - 1, -1, -1):
        stretched.insert(0, to[i + 1] * stretched[0] if to[i] == 1 and shape else 0)
    return to, tuple(stretched), offset


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
            offset += start * strides[at]
            sizes.append(size)
            steps.append(strides[at] * step)
            at += 1
        else:
            offset += (one % shape[at]) * strides[at]
            at += 1
    return tuple(sizes), tuple(steps), offset


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
        "bitwise_right_shift bitwise_xor ceil conj_physical copysign cos cosh div exp exp2 expm1 floor floor_divide fmod hypot log "
        "log10 log1p log2 maximum minimum mul neg nextafter pow relu remainder round sign sin sinh sqrt sub tan tanh trunc "
        "clamp clamp_max clamp_min digamma erf erfc erfinv fmax fmin gelu leaky_relu lgamma logaddexp logaddexp2 polygamma "
        "positive reciprocal rsqrt sgn sigmoid silu square trigamma trunc_divide",
        broadcast, None, aligned,
    ),
    **_rules("abs angle", broadcast, "real", aligned),
    **_rules("complex", broadcast, "complex"),
    **_rules(
        "eq ge gt isfinite isinf isnan le logical_and logical_not logical_or logical_xor lt ne signbit",
        broadcast, dtypes.bool_, aligned,
    ),
    "where": Rule(lambda condition, x, y: broadcast(condition, x, y), "last", aligned),
    **_rules("cast", same, "option", aligned),
    **_rules("clone", same, None, aligned),
    **_rules("contiguous", same),
    **_rules("full", full, "option"),
    **_rules("arange", arange, "option"),
    **_rules("unindex", given),
    **_rules("sum prod", reduced, "option", unreduced),
    **_rules("amax amin logsumexp mean nansum", reduced, None, unreduced),
    **_rules("norm var", reduced, "real", unreduced),
    **_rules("all any", reduced, dtypes.bool_),
    **_rules("argmax argmin count_nonzero", reduced, dtypes.int64),
    **_rules("var_mean", reduced_twice, ("real", None)),
    **_rules("max_dim min_dim kthvalue median_dim mode_dim", kept_dim, (None, dtypes.int64)),
    **_rules("cumsum cumprod", same, "option"),
    **_rules("cumsum_back logcumsumexp shifted", same),
    **_rules("cummax cummin sort", twice, (None, dtypes.int64)),
    **_rules("topk", topk, (None, dtypes.int64)),
    **_rules("spread", given),
    **_rules("ties", same),
    **_rules("searchsorted", lambda x, values, **options: values, dtypes.int64),
    **_rules("pick", pick),
    **_rules("put_picked", lambda x, at, *, dim, size, unique=True: resized(x, dim, size)),
    **_rules("take_rows", lambda x, *, dim, index, size: resized(x, dim, len(index))),
    **_rules("add_rows", lambda x, *, dim, index, size: resized(x, dim, size)),
    **_rules(shapes_index.SAME, same),
    **_rules(shapes_index.LIKE_INDEX, lambda x, index, **options: index),
    **_rules(shapes_index.GIVEN, given),
    **{name: Rule(rule) for name, rule in shapes_index.FROM_INDEX.items()},
    "rot90": Rule(shapes_index.turned, None, shapes_index.turned_layout),
    **_rules("triangle_indices", shapes_index.triangle, "option"),
    **_rules("repeat_interleave", shapes_index.each_repeated),
    **_rules("masked_fill", lambda x, mask, value: broadcast(x, mask)),
    **_rules("regather", lambda x, *, own, wanted: wanted[0]),
    **_rules("linspace", lambda start, end, steps, **options: (steps,), "option"),
    **_rules("eye", lambda rows, columns, **options: (rows, columns), "option"),
    **_rules("matmul", matmul),
    **_rules("matmul_nt", lambda a, b: matmul(a, turned(b))),
    **_rules("matmul_tn", lambda a, b: matmul(turned(a), b)),
    **_rules("linear", linear),
    **_rules("addmm", lambda input, x, y, **options: matmul(x, y)),
    **_rules("cross", lambda x, y, *, dim: broadcast(x, y)),
    **_rules("take_diagonal", diagonal),
    **_rules("put_diagonal", given),
    **_rules("inverse", same),
    **_rules("conv", conv),
    **_rules("conv_input_gradient conv_weight_gradient fold constant_pad max_unpool avg_pool_gradient", given),
    **_rules("unfold", unfold),
    **_rules("max_pool avg_pool", windows),
    **_rules("max_pool_gradient", lambda g, x, made, **options: x),
    **_rules("max_pool_pick", lambda x, source, made, **options: made),
    **_rules("max_pool_indices", lambda x, made, **options: made, dtypes.int64),
    **_rules("max_unpool_gradient", lambda g, indices: indices),
    **_rules("embedding embedding_pick", embedding),
    **_rules("embedding_gradient", embedding_gradient),
    **_rules("softmax log_softmax softmax_backward log_softmax_backward", same, None, aligned),
    **_rules("standardize", standardize),
    **_rules("mse_loss binary_cross_entropy_with_logits", lost),
    **_rules("nll_loss", nll_loss),
    **_rules("cross_entropy", cross_entropy),
    **_rules(
        "standardize_backward mse_loss_backward binary_cross_entropy_with_logits_backward nll_loss_backward "
        "cross_entropy_backward",
        gradients,
    ),
}  # fmt: skip

VIEWS: dict[str, ViewRule] = {
    "permute": ViewRule(as_permute),
    "expand": ViewRule(lambda x, strides, offset, *, shape: as_expand(x, strides, offset, to=shape)),
    "view": ViewRule(lambda x, strides, offset, *, shape: as_view(x, strides, offset, to=shape)),
    "index": ViewRule(as_index),
    **{name: ViewRule(place) for name, place in shapes_index.VIEW_PLACES.items()},
    "reinterpret": ViewRule(lambda x, own, start, *, shape, strides, offset, dtype: (shape, strides, offset), "option"),
    "real": ViewRule(as_real, "real"),
    "imag": ViewRule(as_imag, "real"),
    "view_as_real": ViewRule(as_pairs, "real"),
    "view_as_complex": ViewRule(as_complex, "complex"),
}

# These write into their first array, and answer with it.
WRITES = frozenset(["copy", "fill", "sgd_step", "adam_step"])

# The shapes of these depend on values.
NEEDS_VALUES = frozenset(["unique", "unique_consecutive", *shapes_index.UNKNOWN.split()])
