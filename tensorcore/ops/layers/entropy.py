"""Losses of classification: negative log likelihood, cross entropies and the divergence of distributions."""

from __future__ import annotations

import warnings
from math import nan, prod
from typing import Any

from tensorcore import dtypes
from tensorcore.errors import ArgumentError, DtypeError, GradientError, ShapeError
from tensorcore.ops import rules
from tensorcore.ops.fused import Fused
from tensorcore.ops.kinds import composite, operation
from tensorcore.ops.layers.labels import is_plain, look, weighs
from tensorcore.ops.layers.loss import check_reduction, reduced
from tensorcore.ops.layers.norm import log_softmax
from tensorcore.ops.linalg.affine import linear
from tensorcore.ops.operands import check_optional, check_tensors, result_type
from tensorcore.ops.pointwise.choice import where
from tensorcore.ops.reductions.reduce import check_floating
from tensorcore.ops.reductions.reduce import sum as total
from tensorcore.ops.samples import loss as samples
from tensorcore.tape.mode import mode
from tensorcore.tensor import Tensor, new_tensor

__all__ = [
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cross_entropy", "kl_div", "linear_cross_entropy",
    "nll_loss",
]  # fmt: skip


def _chosen(target: Tensor, classes: int, ignore_index: int) -> Tensor:
    """Whether a place along dim 1 is the target's class; nowhere for what is ignored."""
    shape = tuple(target.native.shape)
    line = target.device.kernels["arange"](0, 1, classes, dtype=dtypes.int64)
    numbers = new_tensor(line, dtypes.int64, target.device).reshape(1, classes, *[1] * (len(shape) - 1))
    aimed = target.detach().unsqueeze(1)
    apart = (numbers != aimed) + (aimed != ignore_index).ne(True)
    return apart.ne(True)  # type: ignore[no-any-return]


def _nll(input: Tensor, target: Tensor, weight: Tensor | None, *, reduction: str, ignore_index: int) -> Tensor:
    chosen = _chosen(target, input.native.shape[1], ignore_index)
    shares = chosen.to(input.dtype)
    if weight is not None:
        shares = shares * weight.reshape(1, -1, *[1] * (len(input.native.shape) - 2))
    if reduction != "mean":
        return reduced(-total(where(chosen, input, 0.0) * shares, 1), reduction)
    # The mean of nothing is NaN, and its gradient is 0.
    count = total(shares)
    shares = shares / where(count == 0, 1.0, count)
    return where(count == 0, nan, 0.0).to(input.dtype) - total(where(chosen, input, 0.0) * shares)  # type: ignore[attr-defined]


def _log_nll(input: Tensor, target: Tensor, weight: Tensor | None, **options: Any) -> Tensor:
    return _nll(log_softmax(input, 1), target, weight, **options)


_nll_loss = Fused("nll_loss", "input target weight", "Negative log likelihood.", _nll)
_cross_entropy = Fused("cross_entropy", "input target weight", "Negative log likelihood of softmax.", _log_nll,
                       backward_name="NllLossBackward0")  # fmt: skip


def _check_classes(
    op: str, input: Tensor, target: Tensor, weight: Any, ignore_index: int
) -> tuple[Tensor, Tensor, bool]:
    """Input and target with a batch dim, and whether it was added; classes along dim 1."""
    if type(input) is not Tensor or type(target) is not Tensor:
        check_tensors(op, input=input, target=target)
    if weight is not None and type(weight) is not Tensor:
        check_tensors(op, weight=weight)
    if weight is not None and weight.node is not None and mode.enabled:
        raise GradientError(
            f"{op}: The function 'nll_loss_forward' is not differentiable with respect to argument 'weight'. This input "
            f"cannot have requires_grad True, got one that has; detach() it"
        )
    shape, aimed = tuple(input.native.shape), tuple(target.native.shape)
    if target.dtype not in (dtypes.int64, dtypes.uint8):
        raise DtypeError(
            f"{op}: expected scalar type Long or Byte for target, got {target.dtype}; convert it with .long()"
        )
    if not shape:
        raise ArgumentError(f"{op}: Expected 1 or more dimensions, got an input of 0 dims; give it one score per class")
    single = len(shape) == 1
    if single:
        if aimed not in ((), (1,)):
            raise ArgumentError(
                f"{op}: Expected target of no dims for an input of one, got {list(aimed)}; one class per sample"
            )
        input, target = input.reshape(1, shape[0]), target.reshape(1)
        shape, aimed = (1, *shape), (1,)
    if shape[0] != aimed[0] if aimed else True:
        raise ArgumentError(
            f"{op}: Expected input batch_size ({shape[0]}) to match target batch_size "
            f"({aimed[0] if aimed else 'none'}), got "
            f"{list(shape)} and {list(aimed)}; one class per sample"
        )
    if shape[2:] != aimed[1:]:
        raise ShapeError(f"{op}: Expected target size {[shape[0], *shape[2:]]}, got {list(aimed)}; one class per place")
    classes = shape[1]
    if weight is not None and tuple(weight.native.shape) != (classes,):
        raise ShapeError(
            f"{op}: weight tensor should be defined either for all {classes} classes or no classes, got "
            f"{list(weight.shape)}; give {classes}"
        )
    target = target if target.dtype is dtypes.int64 else target.to(dtypes.int64)
    look(op, target, classes, ignore_index)
    return input, target, single


def _classified(op: Fused, input: Tensor, target: Tensor, weight: Any, ignore_index: int, reduction: str) -> Tensor:
    input, target, single = _check_classes(op.name, input, target, weight, ignore_index)
    check_floating(op.name, input)
    made = op(
        (input, target, weight),
        {"reduction": reduction, "ignore_index": rules.whole(op.name, "ignore_index", ignore_index, vectors=True)},
    )
    return made.reshape(()) if single and reduction == "none" else made


@operation(samples=samples.log_probabilities, method=False)
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """Negative log likelihood of the target classes.

    Args:
        input: log-probabilities ``(N, C, ...)`` or ``(C)``.
        target: class indices ``(N, ...)`` or ``()``; ``ignore_index`` among them counts for nothing.
        weight: one per class; ``mean`` divides by the sum of those met.
    """
    if is_plain(input, target, None, size_average, ignore_index, reduce, reduction) and weighs(weight, input):
        look("nll_loss", target, input.native.shape[1], ignore_index)
        return _nll_loss((input, target, weight), {"reduction": reduction, "ignore_index": ignore_index})  # type: ignore[no-any-return]
    reduction = check_reduction("nll_loss", reduction, size_average, reduce)
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
    usual = label_smoothing == 0 and is_plain(input, target, None, size_average, ignore_index, reduce, reduction)
    if usual and weighs(weight, input):
        look("cross_entropy", target, input.native.shape[1], ignore_index)
        return _cross_entropy((input, target, weight), {"reduction": reduction, "ignore_index": ignore_index})  # type: ignore[no-any-return]
    reduction = check_reduction("cross_entropy", reduction, size_average, reduce)
    check_tensors("cross_entropy", input=input, target=target)
    check_optional("cross_entropy", weight=weight)
    if not 0.0 <= label_smoothing <= 1.0:
        raise ShapeError(
            f"cross_entropy: label_smoothing must be between 0.0 and 1.0, got {label_smoothing}; pass one in between"
        )
    shape = tuple(input.native.shape)
    at = 0 if len(shape) == 1 else 1
    if target.dtype.is_floating_point and tuple(target.native.shape) == shape:
        if ignore_index >= 0:
            raise ShapeError(
                f"cross_entropy: ignore_index is not supported for floating point target, got {ignore_index}; leave "
                "it out"
            )
        logs = log_softmax(input, at)
        if label_smoothing:
            target = target * (1.0 - label_smoothing) + label_smoothing / max(shape[at], 1)
        if weight is not None:
            logs = logs * weight.reshape([-1 if i == at else 1 for i in range(len(shape))])
        each = -total(logs * target, at)
        if reduction == "mean":
            # Of no classes or no samples the mean is 0 / 0.
            return total(each) / (float(prod(shape) // shape[at]) if prod(shape) else 0.0)
        return reduced(each, reduction)
    if target.dtype.is_floating_point:
        if len(shape) > 1 and target.native.shape and shape[0] != target.native.shape[0]:
            raise ArgumentError(
                f"cross_entropy: Expected input batch_size ({shape[0]}) to match target batch_size "
                f"({target.native.shape[0]}), got {list(shape)} and {list(target.native.shape)}; give a target for each sample"
            )
        raise DtypeError(
            f"cross_entropy: expected scalar type Long for a target of classes, got {target.dtype}; or give "
            "probabilities in the input's shape"
        )
    if not label_smoothing:
        return _classified(_cross_entropy, input, target, weight, ignore_index, reduction)
    input, target, single = _check_classes("cross_entropy", input, target, weight, ignore_index)
    classes = input.native.shape[1]
    logs = log_softmax(input, 1)
    options = {"ignore_index": rules.whole("cross_entropy", "ignore_index", ignore_index, vectors=True)}
    plain = _nll_loss((logs, target, weight), {"reduction": reduction, **options})
    if weight is not None:
        logs = logs * weight.reshape(1, -1, *[1] * (len(input.native.shape) - 2))
    counted = target != ignore_index
    smooth = where(counted, -total(logs, 1), 0.0)  # no product, whose gradient would be a NaN where nothing is counted
    if reduction == "mean":
        divisor = (
            total(counted.to(input.dtype))
            if weight is None
            else total(
                weight
                * total(_chosen(target, classes, ignore_index).to(input.dtype).transpose(0, 1).reshape(classes, -1), 1)
            )
        )
        smooth = total(smooth) / divisor
    else:
        smooth = reduced(smooth, reduction)
    made = plain * (1.0 - label_smoothing) + smooth * (label_smoothing / max(classes, 1))
    return made.reshape(()) if single and reduction == "none" else made


@operation(samples=samples.linear_classification, method=False)
def linear_cross_entropy(input: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Tensor | None = None,
                         weight: Tensor | None = None, reduction: str = "mean", ignore_index: int | None = None,
                         label_smoothing: float = 0.0, options: Any = None) -> Tensor:  # fmt: skip
    """``cross_entropy`` of the scores that a linear layer gives.

    Args:
        input: ``(N, features)`` or ``(features)``.
        linear_weight: ``(C, features)``, or ``(C, ..., features)`` for a score at each of several places.
        linear_bias: ``(C, ...)``.
        target, weight, reduction, label_smoothing: as in :func:`cross_entropy`.
        ignore_index: -100 if None; not with probabilities as target.
        options: how PyTorch would cut the work in pieces; it changes nothing here.
    """
    op = "linear_cross_entropy"
    check_tensors(op, input=input, linear_weight=linear_weight, target=target)
    check_optional(op, linear_bias=linear_bias)
    shape, by = tuple(input.native.shape), tuple(linear_weight.native.shape)
    if len(shape) not in (1, 2) or len(by) < 2 or shape[-1] != by[-1] or (len(by) > 2 and len(shape) == 1):
        raise ShapeError(
            f"{op}: expected input with dimensionality 1 or 2, linear_weight with at least 2 and the same last dimension, and a "
            f"batched input for a weight of more, got {list(shape)} and {list(by)}; reshape one"
        )
    if linear_bias is not None and tuple(linear_bias.native.shape) != by[:-1]:
        raise ShapeError(
            f"{op}: expected linear_bias shape {by[:-1]}, got {list(linear_bias.native.shape)}; one per score"
        )
    scored = (*shape[:-1], *by[:-1])
    if ignore_index is not None and tuple(target.native.shape) == scored:
        raise ShapeError(
            f"{op}: ignore_index cannot be specified when target contains probabilities, got both; leave it out"
        )
    flat = linear_weight.reshape(-1, by[-1]) if len(by) > 2 else linear_weight
    shift = linear_bias.reshape(-1) if linear_bias is not None and len(by) > 2 else linear_bias
    scores = linear(input, flat, shift)
    if len(by) > 2:
        scores = scores.reshape(scored)
    at = -100 if ignore_index is None else ignore_index
    return cross_entropy(scores, target, weight, ignore_index=at, reduction=reduction, label_smoothing=label_smoothing)  # type: ignore[no-any-return]


def _chances(op: str, input: Tensor, target: Tensor) -> None:
    check_tensors(op, input=input, target=target)
    if tuple(input.native.shape) != tuple(target.native.shape):
        raise ArgumentError(
            f"{op}: Using a target size ({target.shape}) that is different to the input size ({input.shape}) is "
            "deprecated, got "
            f"them; Please ensure they have the same size"
        )


def _check_bce(input: Any, target: Any, weight: Any, size_average: Any, reduce: Any, reduction: str) -> str:
    reduction = check_reduction("binary_cross_entropy", reduction, size_average, reduce)
    check_optional("binary_cross_entropy", weight=weight)
    _chances("binary_cross_entropy", input, target)
    check_floating("binary_cross_entropy", input)
    if weight is not None:
        rules.broadcast("binary_cross_entropy", tuple(weight.native.shape), tuple(input.native.shape))
    if input.dtype is not target.dtype:
        raise DtypeError(
            f"binary_cross_entropy: expected input and target of one dtype, got {input.dtype} and {target.dtype}; "
            "convert one"
        )
    for name, one in (("input", input), ("target", target)):
        if one.device.capabilities.host and 0 not in one.native.shape:
            kernels, values = one.device.kernels, one.device.all_values
            least, largest = kernels["amin"](one.native), kernels["amax"](one.native)
            # Conditions, not the numbers, so that a replayed call goes on as long as they hold.
            inside = values(kernels["logical_and"](kernels["ge"](least, 0), kernels["le"](largest, 1)))
            if not (inside.all() if inside.ndim else inside):
                raise ShapeError(
                    f"binary_cross_entropy: all elements of {name} should be between 0 and 1, got others; apply sigmoid first"
                )
    return reduction


# Of a chance that is 0 or 1 the gradient is large, not infinite: a formula of its own, as PyTorch's.
@composite(
    inputs="input target", name="_chance_loss", samples=samples.chances, method=False,
    grads=dict(
        input=lambda g, input, target: g * (input - target) / (input * (1.0 - input)).clamp(min=1e-12),
        target=lambda g, input: g * ((1.0 - input).log() - input.log()),
    ),
)  # fmt: skip
def _chance_loss(input: Tensor, target: Tensor) -> Tensor:
    """Cross entropy of each probability; logarithms are taken as at least -100."""
    # input first: the result lies in memory as it does
    return _log(1.0 - input) * (target - 1.0) - target * _log(input)


def _bce(input: Tensor, target: Tensor, weight: Any, *, reduction: str) -> Tensor:
    each = _chance_loss(input, target)
    return reduced(each if weight is None else each * weight, reduction)


_binary = Fused("binary_cross_entropy", "input target weight", "Cross entropy of probabilities.", _bce,
                backward_name="BinaryCrossEntropyBackward0")  # fmt: skip


@operation(samples=samples.probabilities, method=False)
def binary_cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None,
                         reduce: Any = None, reduction: str = "mean") -> Tensor:  # fmt: skip
    """Cross entropy of probabilities of yes or no; logarithms are taken as at least -100."""
    reduction = _check_bce(input, target, weight, size_average, reduce, reduction)
    if weight is None or weight.dtype is input.dtype:
        return _binary((input, target, weight), {"reduction": reduction})  # type: ignore[no-any-return]
    return _bce(input, target, weight, reduction=reduction)


def _log(chance: Tensor) -> Tensor:
    return chance.log().clamp(min=-100.0)  # type: ignore[attr-defined, no-any-return]


def _bce_logits(input: Tensor, target: Tensor, weight: Any, pos_weight: Any, *, reduction: str) -> Tensor:
    size = input.abs()
    # log(1 + exp(-x)) without overflow; (|x| - x) / 2 is max(-x, 0).
    soft = (1.0 + (-size).exp()).log() + (size - input) * 0.5
    factor = 1.0 if pos_weight is None else (pos_weight - 1.0) * target + 1.0
    each = (1.0 - target) * input + factor * soft
    return reduced(each if weight is None else each * weight, reduction)


_bce_with_logits = Fused(
    "binary_cross_entropy_with_logits", "input target weight pos_weight", "Cross entropy of scores.", _bce_logits,
    backward_name="BinaryCrossEntropyWithLogitsBackward0",
)  # fmt: skip


@operation(samples=samples.scores, method=False)
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """Cross entropy of yes-or-no scores: sigmoid and ``binary_cross_entropy`` as one, without overflow.

    Args:
        weight: of each element, broadcast.
        pos_weight: of the positive examples of each class, broadcast.
    """
    reduction = check_reduction("binary_cross_entropy_with_logits", reduction, size_average, reduce)
    check_tensors("binary_cross_entropy_with_logits", input=input, target=target)
    if tuple(input.native.shape) != tuple(target.native.shape):
        raise ArgumentError(
            f"binary_cross_entropy_with_logits: Target size ({target.shape}) must be the same as input size "
            f"({input.shape}), "
            f"got others; reshape one"
        )
    check_floating("binary_cross_entropy_with_logits", input)
    wanted = target.dtype  # PyTorch writes its result over 1 - target
    check_optional("binary_cross_entropy_with_logits", weight=weight, pos_weight=pos_weight)
    for name, one in {"target": target, "weight": weight, "pos_weight": pos_weight}.items():
        if one is not None and (one.dtype.is_complex or (one is target and not wanted.is_floating_point)):
            source, goal = (input, one) if one is target else (one, input)
            raise DtypeError(
                f"binary_cross_entropy_with_logits: result type {source.dtype.name} can't be cast to the desired output type "
                f"{goal.dtype.name}, got a {name} of {one.dtype.name}; use .float()"
            )
    if target.dtype is not input.dtype:
        target = target.to(result_type(input, target))
    for one in (weight, pos_weight):
        if one is not None:
            rules.broadcast("binary_cross_entropy_with_logits", tuple(one.native.shape), tuple(input.native.shape))
    made = _bce_with_logits((input, target, weight, pos_weight), {"reduction": reduction})
    return made if made.dtype is wanted else made.to(wanted)


@operation(samples=samples.divergence, method=False)
def kl_div(input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean",
           log_target: bool = False) -> Tensor:  # fmt: skip
    """Kullback-Leibler divergence of log-probabilities from target probabilities; ``batchmean`` divides by
    the batch."""
    check_tensors("kl_div", input=input, target=target)
    if not (input.dtype.is_floating_point and target.dtype.is_floating_point):
        raise DtypeError(
            f"kl_div: Integral inputs not supported, got {input.dtype} and {target.dtype}; convert them with .float()"
        )
    if reduction == "batchmean":
        made = total(_divergence(input, target, log_target))
        return made / float(input.native.shape[0]) if input.native.shape else made
    reduction = check_reduction("kl_div", reduction, size_average, reduce)
    if reduction == "mean":
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size."
            "'batchmean' divides only by the batch size, and aligns with the KL div math definition.",
            stacklevel=2,
        )
    return reduced(_divergence(input, target, log_target), reduction)


def _divergence(input: Tensor, target: Tensor, log_target: bool) -> Tensor:
    if log_target:
        return target.exp() * (target - input)
    # x log x is 0 at 0.
    some = (target.detach() != 0).to(target.dtype)
    return target * (target * some + (1.0 - some)).log() - target * input
