"""Losses: what training minimises. Each takes ``reduction="none" | "mean" | "sum"``."""

from __future__ import annotations

import warnings
from math import log, pi, prod
from typing import Any

from tensorcore import dtypes
from tensorcore.errors import ArgumentError, ArgumentTypeError, DimensionError, DtypeError, GradientError, ShapeError
from tensorcore.ops import rules
from tensorcore.ops import samples_loss as samples
from tensorcore.ops.calls import apply, result_type
from tensorcore.ops.define import Op
from tensorcore.ops.fused import Fused
from tensorcore.ops.kinds import operation
from tensorcore.ops.norm import log_softmax
from tensorcore.ops.reduce import check_floating, mean, sum as total
from tensorcore.ops.statistics import vector_norm
from tensorcore.tape.mode import mode
from tensorcore.tensor import Tensor, new_tensor

__all__ = [
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cosine_embedding_loss", "cosine_similarity",
    "cross_entropy", "gaussian_nll_loss", "hinge_embedding_loss", "huber_loss", "kl_div", "l1_loss", "margin_ranking_loss",
    "mse_loss", "nll_loss", "pairwise_distance", "poisson_nll_loss", "smooth_l1_loss", "soft_margin_loss",
    "triplet_margin_loss",
]  # fmt: skip


def _reduction(op: str, reduction: str, size_average: Any = None, reduce: Any = None) -> str:
    """The reduction asked for, also by the two arguments that PyTorch had before it."""
    if size_average is not None or reduce is not None:
        average = True if size_average is None else size_average
        reduction = "none" if reduce is False else "mean" if average else "sum"
        warnings.warn(f"size_average and reduce args will be deprecated, please use reduction={reduction!r} instead.", stacklevel=3)
    if reduction not in ("none", "mean", "sum"):
        raise ArgumentError(f"{op}: {reduction} is not a valid value for reduction, got {reduction!r}; pass none, mean or sum")
    return reduction


def _reduced(values: Tensor, reduction: str) -> Tensor:
    return values if reduction == "none" else mean(values) if reduction == "mean" else total(values)


def _tensors(op: str, **named: Any) -> None:
    for name, one in named.items():
        if not isinstance(one, Tensor):
            raise ArgumentTypeError(f"{op}: expected argument '{name}' to be a Tensor, got {type(one).__name__}; wrap it in torch.tensor(...)")


def _float_result(op: str, input: Tensor) -> None:
    if input.dtype.kind in ("bool", "integer"):
        raise DtypeError(f"{op}: result type Float can't be cast to the desired output type, got {input.dtype}; convert it with .float()")


def _same_size(op: str, input: Tensor, target: Tensor) -> None:
    _tensors(op, input=input, target=target)
    if tuple(input.native.shape) != tuple(target.native.shape):
        rules.broadcast(op, tuple(input.native.shape), tuple(target.native.shape))
        warnings.warn(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}). This will likely lead "
            f"to incorrect results due to broadcasting. Please ensure they have the same size.",
            stacklevel=3,
        )


# Regression


def _mse(input: Tensor, target: Tensor, *, reduction: str) -> Tensor:
    away = input - target
    return _reduced(away * away, reduction)


_mse_loss = Fused("mse_loss", "input target", "Mean squared error.", _mse)


def _weighted(values: Tensor, weight: Any, reduction: str) -> Tensor:
    if weight is None:
        return _reduced(values, reduction)
    values = values * weight
    if reduction == "mean":
        return total(values) / total(weight.expand(values.native.shape))
    return _reduced(values, reduction)


@operation(samples=samples.regression, method=False)
def mse_loss(input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean",
             weight: Tensor | None = None) -> Tensor:  # fmt: skip
    """Squared differences."""
    reduction = _reduction("mse_loss", reduction, size_average, reduce)
    _same_size("mse_loss", input, target)
    kind = result_type(input, target)
    if weight is None and input.dtype is target.dtype and kind.is_floating_point:
        if tuple(input.native.shape) == tuple(target.native.shape):
            return _mse_loss((input, target), {"reduction": reduction})
    if not kind.is_floating_point:
        raise DtypeError(f"mse_loss: expected floating tensors, got {kind}: not implemented for it; convert them with .float()")
    away = input - target
    return _weighted(away * away, weight, reduction)


@operation(samples=samples.regression, method=False)
def l1_loss(input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean",
            weight: Tensor | None = None) -> Tensor:  # fmt: skip
    """Absolute differences."""
    reduction = _reduction("l1_loss", reduction, size_average, reduce)
    _same_size("l1_loss", input, target)
    return _weighted((input - target).abs(), weight, reduction)


def _where_small(size: Tensor, limit: float, small: Tensor, large: Tensor) -> Tensor:
    return apply(_choose, (size.detach() < limit, small, large), dtype=small.dtype)


_choose = Op(
    "where", "condition input other", "Elements of one or the other.", register=False,
    grads=dict(input=lambda g, condition: g * condition.to(g.dtype),
               other=lambda g, condition: g * (1.0 - condition.to(g.dtype))),
)  # fmt: skip


@operation(samples=samples.regression, method=False)
def smooth_l1_loss(input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean",
                   beta: float = 1.0) -> Tensor:  # fmt: skip
    """Squares over ``2 beta`` where the difference is below ``beta``, else the difference less ``beta / 2``."""
    reduction = _reduction("smooth_l1_loss", reduction, size_average, reduce)
    if beta < 0:
        raise ShapeError(f"smooth_l1_loss: does not support negative values for beta, got {beta}; pass beta >= 0")
    _same_size("smooth_l1_loss", input, target)
    check_floating("smooth_l1_loss", input)
    size = (input - target).abs()
    if beta == 0:
        return _reduced(size, reduction)
    return _reduced(_where_small(size, beta, size * size * (0.5 / beta), size - 0.5 * beta), reduction)


@operation(samples=samples.regression, method=False)
def huber_loss(input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0,
               weight: Tensor | None = None) -> Tensor:  # fmt: skip
    """Half squares where the difference is at most ``delta``, else ``delta`` times the difference less ``delta / 2``."""
    reduction = _reduction("huber_loss", reduction)
    if delta <= 0:
        raise ShapeError(f"huber_loss: does not support non-positive values for delta, got {delta}; pass delta > 0")
    _same_size("huber_loss", input, target)
    check_floating("huber_loss", input)
    size = (input - target).abs()
    return _weighted(_where_small(size, delta, size * size * 0.5, delta * (size - 0.5 * delta)), weight, reduction)


# Classification


def _one_hot(target: Tensor, classes: int, dtype: Any, ignore_index: int) -> Tensor:
    """Ones at the classes along dim 1, zeros elsewhere and for what is ignored."""
    shape = tuple(target.native.shape)
    line = target.device.kernels["arange"](0, 1, classes, dtype=dtypes.int64)
    numbers = new_tensor(line, dtypes.int64, target.device).reshape(1, classes, *[1] * (len(shape) - 1))
    aimed = target.detach().unsqueeze(1)
    apart = (numbers != aimed) + (aimed != ignore_index).ne(True)
    return apart.ne(True).to(dtype)


def _nll(input: Tensor, target: Tensor, weight: Tensor | None, *, reduction: str, ignore_index: int) -> Tensor:
    hot = _one_hot(target, input.native.shape[1], input.dtype, ignore_index)
    if weight is not None:
        hot = hot * weight.reshape(1, -1, *[1] * (len(input.native.shape) - 2))
    each = -total(hot * input, 1)
    if reduction == "mean":
        return total(each) / total(hot)
    return _reduced(each, reduction)


def _log_nll(input: Tensor, target: Tensor, weight: Tensor | None, **options: Any) -> Tensor:
    return _nll(log_softmax(input, 1), target, weight, **options)


_nll_loss = Fused("nll_loss", "input target weight", "Negative log likelihood.", _nll)
_cross_entropy = Fused("cross_entropy", "input target weight", "Negative log likelihood of softmax.", _log_nll,
                       backward_name="NllLossBackward0")  # fmt: skip


def _check_classes(op: str, input: Tensor, target: Tensor, weight: Any, ignore_index: int) -> tuple[Tensor, Tensor, bool]:
    """Input and target with a batch dim, and whether it was added; classes along dim 1."""
    _tensors(op, input=input, target=target)
    if weight is not None and weight.node is not None and mode.enabled:
        raise GradientError(
            f"{op}: The function 'nll_loss_forward' is not differentiable with respect to argument 'weight'. This input cannot "
            f"have requires_grad True, got one that has; detach() it"
        )
    shape, aimed = tuple(input.native.shape), tuple(target.native.shape)
    if target.dtype not in (dtypes.int64, dtypes.uint8):
        raise DtypeError(f"{op}: expected scalar type Long or Byte for target, got {target.dtype}; convert it with .long()")
    if not shape:
        raise ArgumentError(f"{op}: Expected 1 or more dimensions, got an input of 0 dims; give it one score per class")
    single = len(shape) == 1
    if single:
        if aimed not in ((), (1,)):
            raise ArgumentError(f"{op}: Expected target of no dims for an input of one, got {list(aimed)}; one class per sample")
        input, target = input.reshape(1, shape[0]), target.reshape(1)
        shape, aimed = (1, *shape), (1,)
    if shape[0] != aimed[0] if aimed else True:
        raise ArgumentError(
            f"{op}: Expected input batch_size ({shape[0]}) to match target batch_size ({aimed[0] if aimed else 'none'}), got "
            f"{list(shape)} and {list(aimed)}; one class per sample"
        )
    if shape[2:] != aimed[1:]:
        raise ShapeError(f"{op}: Expected target size {[shape[0], *shape[2:]]}, got {list(aimed)}; one class per place")
    classes = shape[1]
    if weight is not None and tuple(weight.native.shape) != (classes,):
        raise ShapeError(f"{op}: weight tensor should be defined either for all {classes} classes or no classes, got {list(weight.shape)}; give {classes}")
    target = target if target.dtype is dtypes.int64 else target.to(dtypes.int64)
    if target.device.capabilities.host and prod(aimed):
        # On the host a look is cheap; elsewhere it would wait for the device.
        values = target.device.to_host(target.native)
        wrong = (values < 0) | (values >= classes)
        if wrong.any():
            wrong &= values != ignore_index
            if wrong.any():
                raise DimensionError(f"{op}: Target {values[wrong].flat[0]} is out of bounds, expected classes in [0, {classes - 1}], got it; or pass it as ignore_index")
    return input, target, single


def _classified(op: Fused, input: Tensor, target: Tensor, weight: Any, ignore_index: int, reduction: str) -> Tensor:
    input, target, single = _check_classes(op.name, input, target, weight, ignore_index)
    check_floating(op.name, input)
    made = op((input, target, weight), {"reduction": reduction, "ignore_index": int(ignore_index)})
    return made.reshape(()) if single and reduction == "none" else made


@operation(samples=samples.log_probabilities, method=False)
def nll_loss(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None, ignore_index: int = -100,
             reduce: Any = None, reduction: str = "mean") -> Tensor:  # fmt: skip
    """Negative log likelihood of the target classes.

    Args:
        input: log-probabilities ``(N, C, ...)`` or ``(C)``.
        target: class indices ``(N, ...)`` or ``()``; ``ignore_index`` among them counts for nothing.
        weight: one per class; ``mean`` divides by the sum of those met.
    """
    reduction = _reduction("nll_loss", reduction, size_average, reduce)
    return _classified(_nll_loss, input, target, weight, ignore_index, reduction)


@operation(samples=samples.classification, method=False)
def cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None,
                  ignore_index: int = -100, reduce: Any = None, reduction: str = "mean",
                  label_smoothing: float = 0.0) -> Tensor:  # fmt: skip
    """Cross entropy between the softmax of ``input`` and the target.

    Args:
        input: scores ``(N, C, ...)`` or ``(C)``.
        target: class indices ``(N, ...)`` or ``()``, or probabilities in the shape of ``input``.
        weight: one per class.
        label_smoothing: how much of the target's weight is spread evenly over all classes, 0 to 1.
    """
    reduction = _reduction("cross_entropy", reduction, size_average, reduce)
    _tensors("cross_entropy", input=input, target=target)
    if not 0.0 <= label_smoothing <= 1.0:
        raise ShapeError(f"cross_entropy: label_smoothing must be between 0.0 and 1.0, got {label_smoothing}; pass one in between")
    shape = tuple(input.native.shape)
    at = 0 if len(shape) == 1 else 1
    if target.dtype.is_floating_point and tuple(target.native.shape) == shape:
        if ignore_index >= 0:
            raise ShapeError(f"cross_entropy: ignore_index is not supported for floating point target, got {ignore_index}; leave it out")
        logs = log_softmax(input, at)
        if label_smoothing:
            target = target * (1.0 - label_smoothing) + label_smoothing / shape[at]
        if weight is not None:
            logs = logs * weight.reshape([-1 if i == at else 1 for i in range(len(shape))])
        each = -total(logs * target, at)
        if reduction == "mean":
            places = prod(shape) // max(shape[at], 1)
            return total(each) / float(max(places, 1))
        return _reduced(each, reduction)
    if target.dtype.is_floating_point:
        raise DtypeError(f"cross_entropy: expected scalar type Long for a target of classes, got {target.dtype}; or give probabilities in the input's shape")
    if not label_smoothing:
        return _classified(_cross_entropy, input, target, weight, ignore_index, reduction)
    input, target, single = _check_classes("cross_entropy", input, target, weight, ignore_index)
    classes = input.native.shape[1]
    logs = log_softmax(input, 1)
    options = {"ignore_index": int(ignore_index)}
    plain = _nll_loss((logs, target, weight), {"reduction": reduction, **options})
    if weight is not None:
        logs = logs * weight.reshape(1, -1, *[1] * (len(input.native.shape) - 2))
    counted = (target != ignore_index).to(input.dtype)
    smooth = -total(logs, 1) * counted
    if reduction == "mean":
        divisor = total(counted) if weight is None else total(weight * total(_one_hot(target, classes, input.dtype, ignore_index).transpose(0, 1).reshape(classes, -1), 1))
        smooth = total(smooth) / divisor
    else:
        smooth = _reduced(smooth, reduction)
    made = plain * (1.0 - label_smoothing) + smooth * (label_smoothing / classes)
    return made.reshape(()) if single and reduction == "none" else made


def _chances(op: str, input: Tensor, target: Tensor) -> None:
    _tensors(op, input=input, target=target)
    if tuple(input.native.shape) != tuple(target.native.shape):
        raise ArgumentError(
            f"{op}: Using a target size ({target.shape}) that is different to the input size ({input.shape}) is deprecated, got "
            f"them; Please ensure they have the same size"
        )


@operation(samples=samples.probabilities, method=False)
def binary_cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None,
                         reduce: Any = None, reduction: str = "mean") -> Tensor:  # fmt: skip
    """Cross entropy of probabilities of yes or no; logarithms are taken as at least -100."""
    reduction = _reduction("binary_cross_entropy", reduction, size_average, reduce)
    _chances("binary_cross_entropy", input, target)
    check_floating("binary_cross_entropy", input)
    if input.dtype is not target.dtype:
        raise DtypeError(f"binary_cross_entropy: expected input and target of one dtype, got {input.dtype} and {target.dtype}; convert one")
    if input.device.capabilities.host and input.numel():
        values = input.device.to_host(input.native)
        if (values < 0).any() or (values > 1).any():
            raise ShapeError("binary_cross_entropy: all elements of input should be between 0 and 1, got others; apply sigmoid first")
    yes, no = input.log().clamp(min=-100.0), (1.0 - input).log().clamp(min=-100.0)
    each = (target - 1.0) * no - target * yes
    return _reduced(each if weight is None else each * weight, reduction)


def _bce_logits(input: Tensor, target: Tensor, weight: Any, pos_weight: Any, *, reduction: str) -> Tensor:
    size = input.abs()
    # log(1 + exp(-x)) without overflow; (|x| - x) / 2 is max(-x, 0).
    soft = (1.0 + (-size).exp()).log() + (size - input) * 0.5
    factor = 1.0 if pos_weight is None else (pos_weight - 1.0) * target + 1.0
    each = (1.0 - target) * input + factor * soft
    return _reduced(each if weight is None else each * weight, reduction)


_bce_with_logits = Fused(
    "binary_cross_entropy_with_logits", "input target weight pos_weight", "Cross entropy of scores.", _bce_logits,
    backward_name="BinaryCrossEntropyWithLogitsBackward0",
)  # fmt: skip


@operation(samples=samples.scores, method=False)
def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None,
                                     reduce: Any = None, reduction: str = "mean",
                                     pos_weight: Tensor | None = None) -> Tensor:  # fmt: skip
    """Cross entropy of yes-or-no scores: sigmoid and ``binary_cross_entropy`` as one, without overflow.

    Args:
        weight: of each element, broadcast.
        pos_weight: of the positive examples of each class, broadcast.
    """
    reduction = _reduction("binary_cross_entropy_with_logits", reduction, size_average, reduce)
    _tensors("binary_cross_entropy_with_logits", input=input, target=target)
    if tuple(input.native.shape) != tuple(target.native.shape):
        raise ArgumentError(
            f"binary_cross_entropy_with_logits: Target size ({target.shape}) must be the same as input size ({input.shape}), "
            f"got others; reshape one"
        )
    check_floating("binary_cross_entropy_with_logits", input)
    if target.dtype is not input.dtype:
        target = target.to(result_type(input, target))
    for one in (weight, pos_weight):
        if one is not None:
            rules.broadcast("binary_cross_entropy_with_logits", tuple(one.native.shape), tuple(input.native.shape))
    return _bce_with_logits((input, target, weight, pos_weight), {"reduction": reduction})


@operation(samples=samples.divergence, method=False)
def kl_div(input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean",
           log_target: bool = False) -> Tensor:  # fmt: skip
    """Kullback-Leibler divergence of log-probabilities from target probabilities; ``batchmean`` divides by the batch."""
    _tensors("kl_div", input=input, target=target)
    if not (input.dtype.is_floating_point and target.dtype.is_floating_point):
        raise DtypeError(f"kl_div: Integral inputs not supported, got {input.dtype} and {target.dtype}; convert them with .float()")
    if reduction == "batchmean":
        made = total(_divergence(input, target, log_target))
        return made / float(input.native.shape[0]) if input.native.shape else made
    reduction = _reduction("kl_div", reduction, size_average, reduce)
    if reduction == "mean":
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size."
            "'batchmean' divides only by the batch size, and aligns with the KL div math definition.",
            stacklevel=2,
        )
    return _reduced(_divergence(input, target, log_target), reduction)


def _divergence(input: Tensor, target: Tensor, log_target: bool) -> Tensor:
    if log_target:
        return target.exp() * (target - input)
    # x log x is 0 at 0.
    some = (target.detach() != 0).to(target.dtype)
    return target * (target * some + (1.0 - some)).log() - target * input


# Distances and margins


@operation(samples=samples.two_vectors, method=False)
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between ``x1`` and ``x2`` along ``dim``; each length is at least ``eps``."""
    _tensors("cosine_similarity", x1=x1, x2=x2)
    kind = result_type(x1, x2)
    if not kind.is_floating_point:
        raise DtypeError(f"cosine_similarity: expected common dtype to be floating point, got {kind}; convert them with .float()")
    x1, x2 = x1.to(kind), x2.to(kind)
    lengths = [vector_norm(one, 2, dim, True).clamp(min=eps) for one in (x1, x2)]  # type: ignore[attr-defined]
    return total((x1 / lengths[0]) * (x2 / lengths[1]), dim)


@operation(samples=samples.two_vectors, method=False)
def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """The p-norm along the last dim of ``x1 - x2 + eps``."""
    return vector_norm(x1 - x2 + eps, p, -1, keepdim)


@operation(samples=samples.cosine_embedding, method=False)
def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, size_average: Any = None,
                          reduce: Any = None, reduction: str = "mean") -> Tensor:  # fmt: skip
    """``1 - cos`` where the target is 1, ``max(0, cos - margin)`` where it is -1."""
    reduction = _reduction("cosine_embedding_loss", reduction, size_average, reduce)
    _tensors("cosine_embedding_loss", input1=input1, input2=input2, target=target)
    dims = len(target.native.shape)
    if dims > 1 or len(input1.native.shape) != dims + 1 or len(input2.native.shape) != dims + 1:
        raise ShapeError(
            f"cosine_embedding_loss: {dims}D target tensor expects {dims + 1}D input tensors, got {list(input1.shape)} and "
            f"{list(input2.shape)}; one target per pair"
        )
    tiny = 1e-12
    product = total(input1 * input2, dims)
    squares = (total(input1 * input1, dims) + tiny) * (total(input2 * input2, dims) + tiny)
    cosine = product / squares.sqrt()  # type: ignore[attr-defined]
    same, apart = _marks(target, cosine.dtype)
    return _reduced(same * (1.0 - cosine) + apart * (cosine - margin).clamp(min=0.0), reduction)


def _marks(target: Tensor, dtype: Any) -> tuple[Tensor, Tensor]:
    """Where the target is 1, and where it is -1, as numbers."""
    return (target != 1).ne(True).to(dtype), (target != -1).ne(True).to(dtype)


@operation(samples=samples.embedding, method=False)
def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, size_average: Any = None, reduce: Any = None,
                         reduction: str = "mean") -> Tensor:  # fmt: skip
    """The input where the target is 1, ``max(0, margin - input)`` where it is -1."""
    reduction = _reduction("hinge_embedding_loss", reduction, size_average, reduce)
    _tensors("hinge_embedding_loss", input=input, target=target)
    _float_result("hinge_embedding_loss", input)
    hinge = (margin - input).clamp(min=0.0)
    near, far = (target != -1).to(input.dtype), (target != 1).to(input.dtype)
    return _reduced(hinge * far + input * near, reduction)


@operation(samples=samples.ranking, method=False)
def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, size_average: Any = None,
                        reduce: Any = None, reduction: str = "mean") -> Tensor:  # fmt: skip
    """``max(0, -target * (input1 - input2) + margin)``: the target says which of the two should rank higher."""
    reduction = _reduction("margin_ranking_loss", reduction, size_average, reduce)
    _tensors("margin_ranking_loss", input1=input1, input2=input2, target=target)
    if not len(input1.native.shape) == len(input2.native.shape) == len(target.native.shape):
        raise ShapeError(
            f"margin_ranking_loss: All input tensors should have same dimension but got sizes: input1: {input1.shape}, input2: "
            f"{input2.shape}, target: {target.shape}; reshape them"
        )
    return _reduced((-target * (input1 - input2) + margin).clamp(min=0.0), reduction)


@operation(samples=samples.triplet, method=False)
def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2.0,
                        eps: float = 1e-6, swap: bool = False, size_average: Any = None, reduce: Any = None,
                        reduction: str = "mean") -> Tensor:  # fmt: skip
    """``max(0, d(anchor, positive) - d(anchor, negative) + margin)`` with p-norm distances along the last dim.

    Args:
        swap: take the distance of positive and negative where it is the smaller one.
    """
    reduction = _reduction("triplet_margin_loss", reduction, size_average, reduce)
    _tensors("triplet_margin_loss", anchor=anchor, positive=positive, negative=negative)
    if margin <= 0:
        raise ArgumentError(f"triplet_margin_loss: margin must be greater than 0, got {margin}; pass e.g. 1.0")
    if not len(anchor.native.shape) == len(positive.native.shape) == len(negative.native.shape):
        raise ShapeError(
            f"triplet_margin_loss: The anchor, positive, and negative tensors are expected to have the same number of "
            f"dimensions, but got: anchor {anchor.ndim}D, positive {positive.ndim}D, and negative {negative.ndim}D inputs; reshape them"
        )
    near, far = pairwise_distance(anchor, positive, p, eps), pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = far.minimum(pairwise_distance(positive, negative, p, eps))  # type: ignore[attr-defined]
    return _reduced((near - far + margin).clamp(min=0.0), reduction)


@operation(samples=samples.embedding, method=False)
def soft_margin_loss(input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None,
                     reduction: str = "mean") -> Tensor:  # fmt: skip
    """``log(1 + exp(-target * input))``."""
    reduction = _reduction("soft_margin_loss", reduction, size_average, reduce)
    _tensors("soft_margin_loss", input=input, target=target)
    _float_result("soft_margin_loss", input)
    score = -target * input
    size = score.abs()
    return _reduced((1.0 + (-size).exp()).log() + (score + size) * 0.5, reduction)


# Likelihoods


@operation(samples=samples.gaussian, method=False)
def gaussian_nll_loss(input: Tensor, target: Tensor, var: Tensor | float, full: bool = False, eps: float = 1e-6,
                      reduction: str = "mean") -> Tensor:  # fmt: skip
    """Negative log likelihood of the target under normal distributions of mean ``input`` and variance ``var``.

    Args:
        var: at least ``eps``; of the input's shape, or with a last dim of 1, or without the last dim.
        full: add the constant ``log(2 pi) / 2``.
    """
    _tensors("gaussian_nll_loss", input=input, target=target)
    _float_result("gaussian_nll_loss", input)
    check_floating("gaussian_nll_loss", input)
    if not isinstance(var, Tensor):
        if var < 0:
            raise ArgumentError(f"gaussian_nll_loss: var has negative entry/entries, got {var}; variances are >= 0")
        var = input.new_full((), float(var)).expand(input.native.shape)
    elif var.device.capabilities.host and var.numel() and (var.device.to_host(var.native) < 0).any():
        raise ArgumentError("gaussian_nll_loss: var has negative entry/entries, got some; variances are >= 0")
    shape, have = tuple(input.native.shape), tuple(var.native.shape)
    if have != shape:
        if shape[:-1] == have:
            var = var.unsqueeze(-1)
        elif not (shape[:-1] == have[:-1] and have[-1:] == (1,)):
            raise ArgumentError(f"gaussian_nll_loss: var is of incorrect size, got {list(have)} for an input of {list(shape)}; give one per element or per row")
    if reduction not in ("none", "mean", "sum"):
        raise ArgumentError(f"gaussian_nll_loss: {reduction} is not valid, got {reduction!r}; pass none, mean or sum")
    # The variance counts as at least eps, and its gradient is the one it has without that bound.
    small = (var.detach() < eps).to(var.dtype)
    floor = (eps - var.detach()) * small
    var = var + floor
    away = input - target
    each = 0.5 * (var.log() + away * away / var)
    return _reduced(each + 0.5 * log(2 * pi) if full else each, reduction)


@operation(samples=samples.poisson, method=False)
def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool = True, full: bool = False, size_average: Any = None,
                     eps: float = 1e-8, reduce: Any = None, reduction: str = "mean") -> Tensor:  # fmt: skip
    """Negative log likelihood of counts under Poisson distributions.

    Args:
        log_input: the input is the logarithm of the rate, else the rate.
        full: add Stirling's approximation of ``log(target!)`` where the target is over 1.
    """
    reduction = _reduction("poisson_nll_loss", reduction, size_average, reduce)
    _tensors("poisson_nll_loss", input=input, target=target)
    each = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        big = (target.detach() > 1).to(target.dtype)
        safe = target * big + (1.0 - big)
        each = each + big * (target * safe.log() - target + 0.5 * (2 * pi * safe).log())
    return _reduced(each, reduction)
