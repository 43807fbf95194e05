"""Losses by margins between classes or between labels, and the distances between all rows of a matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensorcore import dtypes
from tensorcore.errors import (
    ArgumentError,
    ArgumentTypeError,
    DtypeError,
    GradientError,
    ShapeError,
    UnsupportedDtype,
    UsageError,
)
from tensorcore.ops.calls import PLAIN_FLOATS
from tensorcore.ops.define import Op
from tensorcore.ops.fused import Fused
from tensorcore.ops.indexing.scatter import gather
from tensorcore.ops.kinds import operation
from tensorcore.ops.layers.activation import logsigmoid
from tensorcore.ops.layers.labels import is_plain, weighs
from tensorcore.ops.layers.loss import check_reduction, pairwise_distance, reduced
from tensorcore.ops.layers.pool import taken
from tensorcore.ops.operands import check_tensors
from tensorcore.ops.pointwise.choice import where
from tensorcore.ops.record import record
from tensorcore.ops.reductions.distance import POWERS, between, pull
from tensorcore.ops.reductions.reduce import check_floating
from tensorcore.ops.reductions.reduce import sum as total
from tensorcore.ops.samples import loss as samples
from tensorcore.tape.mode import mode
from tensorcore.tensor import Tensor, new_tensor

__all__ = [
    "multi_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss", "pdist",
    "triplet_margin_with_distance_loss",
]  # fmt: skip


def _rows(op: str, input: Tensor, target: Tensor, per_class: bool) -> tuple[Tensor, Tensor, bool]:
    """Input (samples, classes) and its target, and whether there was a dim for the samples."""
    check_tensors(op, input=input, target=target)
    check_floating(op, input)
    shape, aimed = input.native.shape, target.native.shape
    if len(shape) > 2 or (shape and shape[-1] == 0):
        raise ShapeError(
            f"{op}: Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(shape)}"
        )
    batched = len(shape) == 2
    wanted = (shape if per_class else shape[:1]) if batched else (shape if per_class else ())
    alike = aimed == wanted or (
        not batched and target.numel() == (input.numel() if per_class else 1) and len(aimed) <= 1
    )
    if not alike:
        raise ShapeError(
            f"{op}: inconsistent target size: {list(aimed)} for input of size: {list(shape)}, got these; reshape one"
        )
    if target.dtype is not dtypes.int64:
        raise DtypeError(f"{op}: expected scalar type Long for target, got {target.dtype}; convert it with .long()")
    if batched:
        return input, target, True
    count = shape[0] if shape else 1
    return _row(input, (1, count)), _row(target, (1, count) if per_class else (1,)), False


def _row(one: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The elements of one sample in that shape."""
    native = one.device.kernels["view"](one.native, shape=shape) if one.node is None else None
    return one.reshape(shape) if native is None else new_tensor(native, one.dtype, one.device)  # type: ignore[attr-defined]


def _check_values(op: str, target: Tensor, low: int, high: int) -> None:
    if target.device.capabilities.values and target.numel():
        smallest, largest = target.device.kernels["index_bounds"](target.native)
        if smallest < low or largest >= high:
            raise UsageError(
                f"{op}: target out of range: expected classes from {low} to {high - 1}, got "
                f"{smallest if smallest < low else largest}; look at the labels"
            )


def _hinges(input: Tensor, target: Tensor, weight: Tensor | None, *, p: int, margin: float, reduction: str) -> Tensor:
    """The loss of each row in other ops.

    A backend's kernels take the same: ``multi_margin_loss`` scores (rows, classes), a class for each row as int64, and weights of
    the classes or None; ``multilabel_margin_loss`` scores and labels of the same shape. All classes are known to be some of the
    scores'. Their gradients, ``..._backward(g, ..., needs, ...)``, are those of the scores, and None for the others.
    """
    at = target.unsqueeze(1)
    hinge = _over(input - gather(input, 1, at) + margin)
    each = hinge if p == 1 else hinge * hinge
    # The target's own term is the margin's, and counts for nothing.
    each = each.scatter(1, at, 0.0)
    if weight is not None:
        each = each * weight[target].unsqueeze(1)
    return reduced(total(each, 1) / input.native.shape[1], reduction)


def _over(x: Tensor) -> Tensor:
    """What is over 0, else 0, also for NaN, as in PyTorch's losses by margins."""
    return where(x.detach() > 0, x, 0.0)


def _between(input: Tensor, target: Tensor, *, reduction: str) -> Tensor:
    valid = (target < 0).cumsum(1) == 0
    at = target.clamp(0)
    # How often each class is a label: what is not valid adds nothing to class 0.
    mine = valid.new_zeros(valid.native.shape, dtype=dtypes.int64).scatter_add(1, at, valid.to(dtypes.int64)) > 0
    apart = 1 - gather(input, 1, at).unsqueeze(2) + input.unsqueeze(1)
    each = where(valid.unsqueeze(2) & ~mine.unsqueeze(1), _over(apart), 0.0)
    return reduced(total(each, (1, 2)) / input.native.shape[1], reduction)


_multi_margin = Fused(
    "multi_margin_loss", "input target weight", "Margins between a class and the others.", _hinges,
    backward_name="MultiMarginLossBackward0",
)  # fmt: skip
_multilabel_margin = Fused(
    "multilabel_margin_loss", "input target", "Margins between labels and the other classes.", _between,
    backward_name="MultilabelMarginLossBackward0",
)  # fmt: skip


@operation(samples=samples.multi_margin, method=False)
def multi_margin_loss(input: Tensor, target: Tensor, p: int = 1, margin: float = 1.0, weight: Tensor | None = None,
                      size_average: Any = None, reduce: Any = None, reduction: str = "mean") -> Tensor:  # fmt: skip
    """The mean over the other classes of ``max(0, margin - input[target] + input[other]) ** p``.

    Args:
        input: scores, (samples, classes) or (classes).
        target: a class for each sample.
        p: 1 or 2.
        weight: one for each class: what a sample of that class counts.
    """
    usual = is_plain(input, target, None, size_average, 0, reduce, reduction) and weighs(weight, input)
    if usual and p in (1, 2) and 0 not in input.native.shape:
        _check_values("multi_margin_loss", target, 0, input.native.shape[1])
        options = {"p": int(p), "margin": float(margin), "reduction": reduction}
        return _multi_margin((input, target, weight), options)  # type: ignore[no-any-return]
    reduction = check_reduction("multi_margin_loss", reduction, size_average, reduce)
    if p not in (1, 2):
        raise ArgumentError(f"multi_margin_loss: only p == 1 and p == 2 supported, got {p}; pass one of them")
    if weight is not None:
        check_tensors("multi_margin_loss", weight=weight)
        if weight.node is not None and mode.enabled:
            raise GradientError(
                "multi_margin_loss: The function is not differentiable with respect to argument 'weight'. This input cannot "
                "have requires_grad True, got one that has; detach() it"
            )
        if len(weight.native.shape) != 1:
            raise ArgumentError(
                f"multi_margin_loss: weight must be one-dimensional, got {list(weight.shape)}; flatten it"
            )
    rows, classes, batched = _rows("multi_margin_loss", input, target, per_class=False)
    count = rows.native.shape[1]
    if weight is not None and weight.numel() != count:
        raise ShapeError(
            f"multi_margin_loss: inconsistent weight size: {list(weight.shape)} for input of size: {list(input.shape)}, got "
            f"these; give one per class"
        )
    _check_values("multi_margin_loss", classes, 0, count)
    each = reduction if batched else "sum"  # of one sample every reduction is its loss
    return _multi_margin((rows, classes, weight), {"p": int(p), "margin": float(margin), "reduction": each})  # type: ignore[no-any-return]


@operation(samples=samples.multilabel_margin, method=False)
def multilabel_margin_loss(input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None,
                           reduction: str = "mean") -> Tensor:  # fmt: skip
    """``max(0, 1 - (input[label] - input[other]))`` over all labels and all other classes, divided by the classes.

    Args:
        input: scores, (samples, classes) or (classes).
        target: in the shape of ``input``, the labels of each sample, ended by -1.
    """
    reduction = check_reduction("multilabel_margin_loss", reduction, size_average, reduce)
    rows, labels, batched = _rows("multilabel_margin_loss", input, target, per_class=True)
    count = rows.native.shape[1]
    _check_values("multilabel_margin_loss", labels, -1, count)
    return _multilabel_margin((rows, labels), {"reduction": reduction if batched else "sum"})  # type: ignore[no-any-return]


@operation(samples=samples.multilabel, method=False)
def multilabel_soft_margin_loss(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None,
                                reduce: Any = None, reduction: str = "mean") -> Tensor:  # fmt: skip
    """The mean over the last dim of the cross entropies of yes-or-no scores; see ``binary_cross_entropy_with_logits``."""
    reduction = check_reduction("multilabel_soft_margin_loss", reduction, size_average, reduce)
    check_tensors("multilabel_soft_margin_loss", input=input, target=target)
    each = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    if weight is not None:
        each = each * weight
    shape = input.native.shape
    return reduced(total(each, max(len(shape) - 1, 0)) / (shape[-1] if shape else 1), reduction)


@operation(samples=samples.triplet_with_distance, method=False)
def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """``max(0, d(anchor, positive) - d(anchor, negative) + margin)`` with any distance.

    Args:
        distance_function: of two tensors of many vectors; :func:`pairwise_distance` if None.
        swap: take the distance of positive and negative where it is the smaller one.
    """
    op = "triplet_margin_with_distance_loss"
    reduction = check_reduction(op, reduction)
    check_tensors(op, anchor=anchor, positive=positive, negative=negative)
    distance = pairwise_distance if distance_function is None else distance_function
    if margin <= 0:
        raise ArgumentError(f"{op}: margin must be greater than 0, got {margin}; pass e.g. 1.0")
    if not len(anchor.native.shape) == len(positive.native.shape) == len(negative.native.shape):
        raise ShapeError(
            f"{op}: The anchor, positive, and negative tensors are expected to have the same number of dimensions, got "
            f"{anchor.ndim}, {positive.ndim} and {negative.ndim}; reshape them"
        )
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = far.minimum(distance(positive, negative))
    return reduced((near - far + margin).clamp(min=0), reduction)


@operation(samples=samples.rows, method=False)
def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """The p-norm distances between every two rows of a matrix (n, features), in the order (0, 1), (0, 2), ..., (n - 2, n - 1)."""
    if not isinstance(input, Tensor):
        raise ArgumentTypeError(
            f"pdist: expected argument 'input' to be a Tensor, got {type(input).__name__}; wrap it in torch.tensor(...)"
        )
    shape = tuple(input.native.shape)
    if len(shape) != 2:
        raise ShapeError(f"pdist: only supports 2D tensors, got: {len(shape)}D; reshape it")
    if input.dtype not in (dtypes.float32, dtypes.float64, dtypes.float16, dtypes.bfloat16):
        raise UnsupportedDtype(f'pdist: "pdist" not implemented for {input.dtype.name}, got one; use .float()')
    if p < 0:
        raise UsageError(f"pdist: only supports non-negative p values, got {p}; pass p >= 0")
    taped = input.node is not None and mode.enabled
    if input.dtype in PLAIN_FLOATS and shape[0] > 1 and shape[1] and (not taped or p in POWERS):
        kernel = input.device.kernels["pdist"]
        if kernel:
            made = new_tensor(kernel(input.native, p=float(p)), input.dtype, input.device)
            if taped:
                record(_pdist, (input,), {"p": float(p)}, made)
            return made
    if shape[1] == 0 or shape[0] < 2:
        return input.new_zeros((0 if shape[0] < 2 else shape[0] * (shape[0] - 1) // 2,)) + total(input) * 0
    return _each_pair(input, p)


def _each_pair(input: Tensor, p: float) -> Tensor:
    first, second = np.triu_indices(input.native.shape[0], 1)
    return between(taken(input, 0, first) - taken(input, 0, second), p)


_pdist = Op("pdist", "input", "Distances between every two rows.", register=False, backward_name="PdistBackward0", grads=dict(
    input=lambda g, input, out, p: pull(g, input, None, out, p, lambda x: _each_pair(x, p))))  # fmt: skip
