"""Layers and losses as ``torch`` itself has them: other positions than in ``nn.functional``, and reductions as numbers."""

from __future__ import annotations

from typing import Any

from tensorcore.errors import ArgumentError, ArgumentTypeError
from tensorcore.ops.layers import ctc, entropy, loss, norm
from tensorcore.ops.layers import embedding as rows
from tensorcore.tensor import Tensor

__all__ = [
    "batch_norm", "binary_cross_entropy_with_logits", "cosine_embedding_loss", "ctc_loss", "embedding", "group_norm",
    "hinge_embedding_loss", "instance_norm", "kl_div", "layer_norm", "margin_ranking_loss", "poisson_nll_loss",
    "triplet_margin_loss",
]  # fmt: skip

_REDUCTIONS = ("none", "mean", "sum")
MEAN = 1


def _reduction(op: str, number: Any) -> str:
    if not isinstance(number, int) or isinstance(number, bool):
        raise ArgumentTypeError(
            f"{op}: argument 'reduction' must be int, got {number!r}; write torch.nn.functional.{op} for one by name"
        )
    if not 0 <= number < len(_REDUCTIONS):
        raise ArgumentError(f"{op}: expected reduction to be 0 (none), 1 (mean) or 2 (sum), got {number}")
    return _REDUCTIONS[number]


def embedding(
    weight: Tensor, indices: Tensor, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False
) -> Tensor:
    """Rows of ``weight`` by number; a ``padding_idx`` of -1 is none."""
    return rows.embedding(
        indices, weight, None if padding_idx < 0 else padding_idx, None, 2.0, scale_grad_by_freq, sparse
    )


def batch_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None,
               training: bool, momentum: float, eps: float, cudnn_enabled: bool) -> Tensor:  # fmt: skip
    """As ``nn.functional.batch_norm``, with the scale before the statistics; ``cudnn_enabled`` changes nothing."""
    return norm.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


def instance_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None,
                  use_input_stats: bool, momentum: float, eps: float, cudnn_enabled: bool) -> Tensor:  # fmt: skip
    """As ``nn.functional.instance_norm``, with the scale before the statistics; ``cudnn_enabled`` changes nothing."""
    return norm.instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)


def layer_norm(input: Tensor, normalized_shape: Any, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5,
               cudnn_enable: bool = True) -> Tensor:  # fmt: skip
    """As ``nn.functional.layer_norm``; ``cudnn_enable`` changes nothing."""
    return norm.layer_norm(input, normalized_shape, weight, bias, eps)


def group_norm(input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5,
               cudnn_enabled: bool = True) -> Tensor:  # fmt: skip
    """As ``nn.functional.group_norm``; ``cudnn_enabled`` changes nothing."""
    return norm.group_norm(input, num_groups, weight, bias, eps)


def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight: Tensor | None = None, pos_weight: Tensor | None = None,
                                     reduction: int = MEAN) -> Tensor:  # fmt: skip
    """As that of ``nn.functional``, with ``pos_weight`` before the reduction."""
    by = _reduction("binary_cross_entropy_with_logits", reduction)
    return entropy.binary_cross_entropy_with_logits(input, target, weight, reduction=by, pos_weight=pos_weight)


def kl_div(input: Tensor, target: Tensor, reduction: int = MEAN, *, log_target: bool = False) -> Tensor:
    """As ``nn.functional.kl_div``; a mean is over all elements."""
    return entropy.kl_div(input, target, reduction=_reduction("kl_div", reduction), log_target=log_target)


def ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: int = 0, reduction: int = MEAN,
             zero_infinity: bool = False) -> Tensor:  # fmt: skip
    """As ``nn.functional.ctc_loss``."""
    by = _reduction("ctc_loss", reduction)
    return ctc.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, by, zero_infinity)


def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = MEAN
) -> Tensor:
    """As ``nn.functional.cosine_embedding_loss``."""
    by = _reduction("cosine_embedding_loss", reduction)
    return loss.cosine_embedding_loss(input1, input2, target, margin, reduction=by)


def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, reduction: int = MEAN) -> Tensor:
    """As ``nn.functional.hinge_embedding_loss``."""
    return loss.hinge_embedding_loss(input, target, margin, reduction=_reduction("hinge_embedding_loss", reduction))


def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = MEAN
) -> Tensor:
    """As ``nn.functional.margin_ranking_loss``."""
    by = _reduction("margin_ranking_loss", reduction)
    return loss.margin_ranking_loss(input1, input2, target, margin, reduction=by)


def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int) -> Tensor:
    """As ``nn.functional.poisson_nll_loss``."""
    by = _reduction("poisson_nll_loss", reduction)
    return loss.poisson_nll_loss(input, target, log_input, full, eps=eps, reduction=by)


def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6,
                        swap: bool = False, reduction: int = MEAN) -> Tensor:  # fmt: skip
    """As ``nn.functional.triplet_margin_loss``."""
    by = _reduction("triplet_margin_loss", reduction)
    return loss.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction=by)
