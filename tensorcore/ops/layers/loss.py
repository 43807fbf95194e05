"""Losses: what training minimises. Each takes ``reduction="none" | "mean" | "sum"``."""

from __future__ import annotations

import warnings
from math import log, pi
from typing import Any

from tensorcore import dtypes
from tensorcore.dtypes import promote_types
from tensorcore.errors import ArgumentError, ArgumentTypeError, DtypeError, ShapeError, UsageError
from tensorcore.ops import rules
from tensorcore.ops.calls import PLAIN_FLOATS, apply
from tensorcore.ops.define import Op
from tensorcore.ops.fused import Fused
from tensorcore.ops.kinds import operation
from tensorcore.ops.operands import anywhere, check_tensors
from tensorcore.ops.pointwise.choice import where
from tensorcore.ops.reductions.reduce import check_floating, mean
from tensorcore.ops.reductions.reduce import sum as total
from tensorcore.ops.reductions.statistics import vector_norm
from tensorcore.ops.samples import loss as samples
from tensorcore.ops.shortage import again
from tensorcore.tensor import Tensor, new_tensor

__all__ = [
    "cosine_embedding_loss", "cosine_similarity", "gaussian_nll_loss", "hinge_embedding_loss", "huber_loss",
    "l1_loss", "margin_ranking_loss", "mse_loss", "pairwise_distance", "poisson_nll_loss", "smooth_l1_loss",
    "soft_margin_loss", "triplet_margin_loss",
]  # fmt: skip


def check_reduction(op: str, reduction: str, size_average: Any = None, reduce: Any = None) -> str:
    """The reduction asked for, also by the two arguments that PyTorch had before it."""
    if size_average is not None or reduce is not None:
        average = True if size_average is None else size_average
        reduction = "none" if reduce is False else "mean" if average else "sum"
        warnings.warn(
            f"size_average and reduce args will be deprecated, please use reduction={reduction!r} instead.",
            stacklevel=3,
        )
    if reduction not in ("none", "mean", "sum"):
        raise ArgumentError(
            f"{op}: {reduction} is not a valid value for reduction, got {reduction!r}; pass none, mean or sum"
        )
    return reduction


def reduced(values: Tensor, reduction: str) -> Tensor:
    return values if reduction == "none" else mean(values) if reduction == "mean" else total(values)


def _float_result(op: str, input: Tensor) -> None:
    if input.dtype.kind in ("bool", "integer"):
        raise DtypeError(
            f"{op}: result type Float can't be cast to the desired output type, got {input.dtype}; convert it with "
            ".float()"
        )


def _same_size(op: str, input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    if not isinstance(input, Tensor) or not isinstance(target, Tensor):
        check_tensors(op, input=input, target=target)
    if input.native.shape != target.native.shape:
        rules.broadcast(op, tuple(input.native.shape), tuple(target.native.shape))
        warnings.warn(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}). This will "
            "likely lead "
            f"to incorrect results due to broadcasting. Please ensure they have the same size.",
            stacklevel=3,
        )
    if input.dtype is target.dtype:
        return input, target
    # PyTorch broadcasts before it promotes: neither dtype counts for less. Of bools there is no difference.
    kind = promote_types(input.dtype, target.dtype)
    return input.to(kind), target.to(kind)  # type: ignore[attr-defined]


# Regression


def _mse(input: Tensor, target: Tensor, *, reduction: str) -> Tensor:
    away = input - target
    return reduced(away * away, reduction)


_mse_loss = Fused("mse_loss", "input target", "Mean squared error.", _mse)


def _squares(input: Tensor, target: Tensor, reduction: str) -> Tensor:
    """In one kernel where the two are alike."""
    if input.native.shape == target.native.shape:
        return _mse_loss((input, target), {"reduction": reduction})  # type: ignore[no-any-return]
    return _mse(input, target, reduction=reduction)


def _weighted(values: Tensor, weight: Any, reduction: str) -> Tensor:
    if weight is None:
        return reduced(values, reduction)
    values = values * weight
    if reduction == "mean":
        return total(values) / total(weight.expand(values.native.shape))
    return reduced(values, reduction)


@operation(samples=samples.regression, method=False)
def mse_loss(input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean",
             weight: Tensor | None = None) -> Tensor:  # fmt: skip
    """Squared differences."""
    reduction = check_reduction("mse_loss", reduction, size_average, reduce)
    input, target = _same_size("mse_loss", input, target)
    check_floating("mse_loss", input)
    if weight is None:
        return _squares(input, target, reduction)
    away = input - target
    return _weighted(away * away, weight, reduction)


@operation(samples=samples.regression, method=False)
def l1_loss(input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean",
            weight: Tensor | None = None) -> Tensor:  # fmt: skip
    """Absolute differences."""
    reduction = check_reduction("l1_loss", reduction, size_average, reduce)
    input, target = _same_size("l1_loss", input, target)
    if weight is None and input.dtype.is_floating_point:
        return _smoothly(input, target, reduction, 0.0, 1.0)
    return _weighted((input - target).abs(), weight, reduction)


def _smooth(input: Tensor, target: Tensor, *, reduction: str, limit: float, scale: float) -> Tensor:
    size = (input - target).abs()
    if limit == 0:
        return reduced(size * scale, reduction)
    small, large = size * size * (0.5 * scale / limit), (size - 0.5 * limit) * scale
    return reduced(apply(_choose, (size.detach() < limit, small, large), dtype=small.dtype), reduction)


_smooth_l1 = Fused("smooth_l1_loss", "input target", "Squares of small differences, and large ones.", _smooth)


def _smoothly(input: Tensor, target: Tensor, reduction: str, limit: float, scale: float) -> Tensor:
    """In one kernel where the two are alike."""
    options = {"reduction": reduction, "limit": float(limit), "scale": float(scale)}
    if input.native.shape == target.native.shape:
        return _smooth_l1((input, target), options)  # type: ignore[no-any-return]
    return _smooth(input, target, **options)


_choose = Op(
    "where", "condition input other", "Elements of one or the other.", register=False,
    grads=dict(input=lambda g, condition: g * condition.to(g.dtype),
               other=lambda g, condition: g * (1.0 - condition.to(g.dtype))),
)  # fmt: skip


@operation(samples=samples.regression, method=False)
def smooth_l1_loss(input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean",
                   beta: float = 1.0) -> Tensor:  # fmt: skip
    """Squares over ``2 beta`` where the difference is below ``beta``, else the difference less ``beta / 2``."""
    reduction = check_reduction("smooth_l1_loss", reduction, size_average, reduce)
    if beta < 0:
        raise ShapeError(f"smooth_l1_loss: does not support negative values for beta, got {beta}; pass beta >= 0")
    input, target = _same_size("smooth_l1_loss", input, target)
    check_floating("smooth_l1_loss", input)
    return _smoothly(input, target, reduction, beta, 1.0)


@operation(samples=samples.regression, method=False)
def huber_loss(input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0,
               weight: Tensor | None = None) -> Tensor:  # fmt: skip
    """Half squares where the difference is at most ``delta``, else ``delta`` times the difference less
    ``delta / 2``."""
    reduction = check_reduction("huber_loss", reduction)
    if delta <= 0:
        raise ShapeError(f"huber_loss: does not support non-positive values for delta, got {delta}; pass delta > 0")
    alike = _same_size("huber_loss", input, target)
    check_floating("huber_loss", input)
    of_each = reduction if weight is None else "none"
    if (
        delta > dtypes.finfo(alike[0].dtype).max
    ):  # which no difference is over, and which the kernels would take for infinity
        made = _squares(*alike, of_each) * 0.5
    else:
        made = _smoothly(*alike, of_each, delta, delta)
    made = made if made.dtype is input.dtype else made.to(input.dtype)
    return made if weight is None else _weighted(made, weight, reduction)


# Distances and margins

_LONG = 256  # elements of a row from which on one op after the other is as fast


def _of_rows(name: str, x1: Any, x2: Any, dim: Any, **options: Any) -> Tensor | None:
    """What one kernel makes of the rows of two tensors, where there is one and nothing is recorded; None for other calls."""
    if not (
        type(x1) is type(x2) is Tensor
        and x1.node is x2.node is None
        and x1.dtype is x2.dtype
        and x1.dtype in PLAIN_FLOATS
        and x1.device is x2.device
        and type(dim) is int
    ):
        return None
    shape = x1.native.shape
    ndim = len(shape)
    if not ndim or dim not in (-1, ndim - 1) or shape != x2.native.shape or shape[-1] >= _LONG or 0 in shape:
        return None
    kernel = x1.device.kernels[name]
    if not kernel:
        return None
    try:
        native = kernel(x1.native, x2.native, **options)
    except MemoryError as error:
        native = again(x1.device, name, (x1.native, x2.native), options, error)
    return new_tensor(native, x1.dtype, x1.device)  # type: ignore[no-any-return]


@operation(samples=samples.two_vectors, method=False)
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between ``x1`` and ``x2`` along ``dim``; each length is at least ``eps``."""
    if type(eps) is float and eps >= 0 and (made := _of_rows("cosine_similarity", x1, x2, dim, eps=eps)) is not None:
        return made
    if type(x1) is not Tensor or type(x2) is not Tensor:
        check_tensors("cosine_similarity", x1=x1, x2=x2)
    dim = rules.whole("cosine_similarity", "dim", dim)
    if not isinstance(eps, (int, float)):
        raise ArgumentTypeError(f"cosine_similarity: argument 'eps' must be float, got {eps!r}; pass a number")
    if eps < 0:
        raise UsageError(f"cosine_similarity: eps must be non-negative, got: {eps}; pass 0 or more")
    kind = promote_types(x1.dtype, x2.dtype)
    if not kind.is_floating_point:
        raise DtypeError(
            f"cosine_similarity: expected common dtype to be floating point, got {kind}; convert them with .float()"
        )
    shape = rules.broadcast("cosine_similarity", tuple(x1.native.shape), tuple(x2.native.shape))
    # ``dim`` counts those of the common shape.
    x1, x2 = (
        one if one.dtype is kind and tuple(one.native.shape) == shape else one.to(kind).expand(shape)
        for one in (x1, x2)
    )
    lengths = [vector_norm(one, 2, dim, True).clamp(min=eps) for one in (x1, x2)]  # type: ignore[attr-defined]
    return total((x1 / lengths[0]) * (x2 / lengths[1]), dim)


@operation(samples=samples.two_vectors, method=False)
def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """The p-norm along the last dim of ``x1 - x2 + eps``."""
    if type(p) in (int, float) and p in (1, 2) and type(eps) is float:
        made = _of_rows("pairwise_distance", x1, x2, -1, p=float(p), eps=eps)
        if made is not None:
            return made.unsqueeze(-1) if keepdim else made  # type: ignore[attr-defined, no-any-return]
    if type(x1) is not Tensor or type(x2) is not Tensor:
        check_tensors("pairwise_distance", x1=x1, x2=x2)
    return vector_norm(x1 - x2 + eps, p, -1, keepdim)


@operation(samples=samples.cosine_embedding, method=False)
def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, size_average: Any = None,
                          reduce: Any = None, reduction: str = "mean") -> Tensor:  # fmt: skip
    """``1 - cos`` where the target is 1, ``max(0, cos - margin)`` where it is -1."""
    reduction = check_reduction("cosine_embedding_loss", reduction, size_average, reduce)
    check_tensors("cosine_embedding_loss", input1=input1, input2=input2, target=target)
    dims = len(target.native.shape)
    if dims > 1 or len(input1.native.shape) != dims + 1 or len(input2.native.shape) != dims + 1:
        raise ShapeError(
            f"cosine_embedding_loss: {dims}D target tensor expects {dims + 1}D input tensors, got "
            f"{list(input1.shape)} and "
            f"{list(input2.shape)}; one target per pair"
        )
    tiny = 1e-12
    product = total(input1 * input2, dims)
    squares = (total(input1 * input1, dims) + tiny) * (total(input2 * input2, dims) + tiny)
    cosine = product / squares.sqrt()  # type: ignore[attr-defined]
    same, apart = _marks(target, cosine.dtype)
    return reduced(same * (1.0 - cosine) + apart * (cosine - margin).clamp(min=0.0), reduction)


def _marks(target: Tensor, dtype: Any) -> tuple[Tensor, Tensor]:
    """Where the target is 1, and where it is -1, as numbers."""
    return (target == 1).to(dtype), (target == -1).to(dtype)


@operation(samples=samples.embedding, method=False)
def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """The input where the target is 1, ``max(0, margin - input)`` where it is -1."""
    reduction = check_reduction("hinge_embedding_loss", reduction, size_average, reduce)
    check_tensors("hinge_embedding_loss", input=input, target=target)
    if not input.dtype.is_floating_point:
        margin = int(margin)  # as in PyTorch, where the margin is added in place
    hinge = (margin - input).clamp(min=0)
    return reduced(where(target != 1, hinge, 0) + where(target != -1, input, 0), reduction)


@operation(samples=samples.ranking, method=False)
def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, size_average: Any = None,
                        reduce: Any = None, reduction: str = "mean") -> Tensor:  # fmt: skip
    """``max(0, -target * (input1 - input2) + margin)``: the target says which of the two should rank higher."""
    reduction = check_reduction("margin_ranking_loss", reduction, size_average, reduce)
    check_tensors("margin_ranking_loss", input1=input1, input2=input2, target=target)
    if not len(input1.native.shape) == len(input2.native.shape) == len(target.native.shape):
        raise ShapeError(
            "margin_ranking_loss: All input tensors should have same dimension but got sizes: input1: "
            f"{input1.shape}, input2: "
            f"{input2.shape}, target: {target.shape}; reshape them"
        )
    return reduced((-target * (input1 - input2) + margin).clamp(min=0.0), reduction)


@operation(samples=samples.triplet, method=False)
def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2.0,
                        eps: float = 1e-6, swap: bool = False, size_average: Any = None, reduce: Any = None,
                        reduction: str = "mean") -> Tensor:  # fmt: skip
    """``max(0, d(anchor, positive) - d(anchor, negative) + margin)`` with p-norm distances along the last dim.

    Args:
        swap: take the distance of positive and negative where it is the smaller one.
    """
    reduction = check_reduction("triplet_margin_loss", reduction, size_average, reduce)
    check_tensors("triplet_margin_loss", anchor=anchor, positive=positive, negative=negative)
    if margin <= 0:
        raise ArgumentError(f"triplet_margin_loss: margin must be greater than 0, got {margin}; pass e.g. 1.0")
    if not len(anchor.native.shape) == len(positive.native.shape) == len(negative.native.shape):
        raise ShapeError(
            f"triplet_margin_loss: The anchor, positive, and negative tensors are expected to have the same number of "
            f"dimensions, but got: anchor {anchor.ndim}D, positive {positive.ndim}D, and negative {negative.ndim}D "
            "inputs; reshape them"
        )
    near, far = pairwise_distance(anchor, positive, p, eps), pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = far.minimum(pairwise_distance(positive, negative, p, eps))  # type: ignore[attr-defined]
    return reduced((near - far + margin).clamp(min=0.0), reduction)


def _margins(input: Tensor, target: Tensor, *, reduction: str) -> Tensor:
    score = -target * input
    if score.dtype.is_complex:
        return reduced((score.exp() + 1.0).log(), reduction)
    size = score.abs()
    return reduced((1.0 + (-size).exp()).log() + (score + size) * 0.5, reduction)


_soft_margin = Fused("soft_margin_loss", "input target", "Margins of yes or no.", _margins)


@operation(samples=samples.embedding, method=False)
def soft_margin_loss(input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None,
                     reduction: str = "mean") -> Tensor:  # fmt: skip
    """``log(1 + exp(-target * input))``."""
    reduction = check_reduction("soft_margin_loss", reduction, size_average, reduce)
    check_tensors("soft_margin_loss", input=input, target=target)
    _float_result("soft_margin_loss", input)
    if rules.broadcast("soft_margin_loss", input.native.shape, target.native.shape) != input.native.shape:
        raise ShapeError(
            f"soft_margin_loss: output with shape {list(input.shape)} doesn't match the broadcast shape, got a target of "
            f"{list(target.shape)}; reshape one"
        )
    if target.dtype.is_complex and not input.dtype.is_complex:
        raise DtypeError(
            f"soft_margin_loss: result type {target.dtype} can't be cast to the input's {input.dtype}, got a complex target; "
            "pass a real one"
        )
    if target.dtype.kind == "bool" or (target.dtype.kind == "integer" and target.dtype.is_signed):
        target = target.to(input.dtype)  # type: ignore[attr-defined]
    if input.dtype is target.dtype and input.dtype.is_floating_point and input.native.shape == target.native.shape:
        return _soft_margin((input, target), {"reduction": reduction})  # type: ignore[no-any-return]
    made = _margins(input, target, reduction=reduction)
    return made if made.dtype is input.dtype else made.to(input.dtype)  # type: ignore[attr-defined]


# Likelihoods


@operation(samples=samples.gaussian, method=False)
def gaussian_nll_loss(input: Tensor, target: Tensor, var: Tensor | float, full: bool = False, eps: float = 1e-6,
                      reduction: str = "mean") -> Tensor:  # fmt: skip
    """Negative log likelihood of the target under normal distributions of mean ``input`` and variance ``var``.

    Args:
        var: at least ``eps``; of the input's shape, or with a last dim of 1, or without the last dim.
        full: add the constant ``log(2 pi) / 2``.
    """
    check_tensors("gaussian_nll_loss", input=input, target=target)
    _float_result("gaussian_nll_loss", input)
    check_floating("gaussian_nll_loss", input)
    if not isinstance(var, Tensor):
        if not isinstance(var, float):  # PyTorch takes no int
            check_tensors("gaussian_nll_loss", var=var)
        if var < 0:
            raise ArgumentError(f"gaussian_nll_loss: var has negative entry/entries, got {var}; variances are >= 0")
        var = input.new_full((), float(var)).expand(input.native.shape)
    elif var.device.capabilities.host and anywhere((var < 0).any()):
        raise ArgumentError("gaussian_nll_loss: var has negative entry/entries, got some; variances are >= 0")
    shape, have = tuple(input.native.shape), tuple(var.native.shape)
    if have != shape:
        if shape[:-1] == have:
            var = var.unsqueeze(-1)
        elif len(have) != len(shape) or [a for a, b in zip(have, shape, strict=True) if a != b] != [1]:
            raise ArgumentError(
                f"gaussian_nll_loss: var is of incorrect size, got {list(have)} for an input of {list(shape)}; give "
                "one per element, or one for all along one dim"
            )
    if reduction not in ("none", "mean", "sum"):
        raise ArgumentError(f"gaussian_nll_loss: {reduction} is not valid, got {reduction!r}; pass none, mean or sum")
    # The variance counts as at least eps, and its gradient is the one it has without that bound.
    small = (var.detach() < eps).to(var.dtype)
    floor = (eps - var.detach()) * small
    var = var + floor
    away = input - target
    each = 0.5 * (var.log() + away * away / var)
    return reduced(each + 0.5 * log(2 * pi) if full else each, reduction)


@operation(samples=samples.poisson, method=False)
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: Any = None,
    eps: float = 1e-8,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """Negative log likelihood of counts under Poisson distributions.

    Args:
        log_input: the input is the logarithm of the rate, else the rate.
        full: add Stirling's approximation of ``log(target!)`` where the target is over 1.
    """
    reduction = check_reduction("poisson_nll_loss", reduction, size_average, reduce)
    check_tensors("poisson_nll_loss", input=input, target=target)
    each = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        big = (target.detach() > 1).to(target.dtype)
        safe = target * big + (1.0 - big)
        each = each + big * (target * safe.log() - target + 0.5 * (2 * pi * safe).log())
    return reduced(each, reduction)
