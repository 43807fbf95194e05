"""Losses with linear maps of their own: over very many classes, and from features straight to the loss."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any

from tensorcore.errors import ArgumentError, ShapeError, UsageError
from tensorcore.nn import functional as F
from tensorcore.nn.containers import ModuleList, Sequential
from tensorcore.nn.linear import Linear
from tensorcore.nn.module import Module
from tensorcore.ops.pointwise.choice import where
from tensorcore.ops.shapes.join import cat
from tensorcore.tensor import Tensor

__all__ = ["AdaptiveLogSoftmaxWithLoss", "LinearCrossEntropyLoss", "LinearCrossEntropyOptions"]

_Result = namedtuple("ASMoutput", ["output", "loss"])


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log-softmax and its loss over classes that are sorted by how often they occur (Grave et al., arXiv:1609.04309).

    Args:
        cutoffs: where each cluster of rarer classes starts.
        div_value: how many times smaller each further cluster's vectors are.
        head_bias: whether the scores of the frequent classes and of the clusters have a bias.
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        starts = list(cutoffs)
        if not starts:
            raise ArgumentError("cutoffs should be a sequence of length larger than 0, got an empty one")
        rising = all(a < b for a, b in pairwise([0, *starts, n_classes]))
        if not rising or any(int(one) != one for one in starts):
            raise ArgumentError(
                f"cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each "
                f"value is between 1 and n_classes-1, got {starts} for {n_classes} classes"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*starts, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = starts[0]
        self.n_clusters = len(starts)
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias, device=device, dtype=dtype)
        self.tail = ModuleList()
        for i, (low, high) in enumerate(pairwise(self.cutoffs)):
            width = int(in_features // (div_value ** (i + 1)))
            self.tail.append(
                Sequential(
                    Linear(in_features, width, bias=False, device=device, dtype=dtype),
                    Linear(width, high - low, bias=False, device=device, dtype=dtype),
                )
            )

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        self.head.reset_parameters()
        for one in self.tail:
            for layer in one:  # type: ignore[attr-defined]
                layer.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _Result:
        """The log-probability of each target class, and the mean of their negatives.

        Args:
            input_: (N, in_features) or (in_features).
            target_: (N) classes, or one.
        """
        if target_.dim() > 1:
            raise ShapeError(
                f"0D or 1D target tensor expected, multi-target not supported, got {target_.dim()}D; call it for each"
            )
        if input_.dim() != target_.dim() + 1:
            raise ShapeError(
                f"{target_.dim()}D target tensor expects {target_.dim() + 1}D input tensors, but found inputs with "
                f"size {input_.shape}"
            )
        if target_.dim() and input_.shape[0] != target_.shape[0]:
            raise ShapeError(
                f"Input and target should have the same size in the batch dimension, got {input_.shape[0]} and "
                f"{target_.shape[0]}"
            )
        input: Any = input_ if target_.dim() else input_.unsqueeze(0)  # type: ignore[attr-defined]
        target: Any = target_ if target_.dim() else target_.unsqueeze(0)  # type: ignore[attr-defined]
        if bool(((target < 0) | (target >= self.n_classes)).any()):
            raise UsageError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                f"[{target.min().item()}, {target.max().item()}] were found. "
            )
        of_head = target
        output = input.new_zeros(target.shape[0])
        for i, (low, high) in enumerate(pairwise(self.cutoffs)):
            rows = ((target >= low) & (target < high)).nonzero().squeeze(1)
            if not rows.numel():
                continue
            scores = F.log_softmax(self.tail[i](input.index_select(0, rows)), 1)
            found = scores.gather(1, (target.index_select(0, rows) - low).unsqueeze(1))
            output = output.index_copy(0, rows, found.squeeze(1))
            of_head = where((target >= low) & (target < high), self.shortlist_size + i, of_head)
        output = output + F.log_softmax(self.head(input), 1).gather(1, of_head.unsqueeze(1)).squeeze(1)
        loss = (-output).mean()
        return _Result(output if target_.dim() else output.squeeze(0), loss)

    def log_prob(self, input: Tensor) -> Tensor:
        """The log-probability of every class: (N, in_features) to (N, n_classes)."""
        head = F.log_softmax(self.head(input), 1)
        parts = [head[:, : self.shortlist_size]]
        for i, cluster in enumerate(self.tail):
            at = self.shortlist_size + i
            parts.append(F.log_softmax(cluster(input), 1) + head[:, at : at + 1])
        return cat(parts, 1)

    def predict(self, input: Tensor) -> Tensor:
        """The likeliest class of each row: (N, in_features) to (N)."""
        found = self.head(input).argmax(1)
        rare = found >= self.shortlist_size
        if not bool(rare.any()):
            return found  # type: ignore[no-any-return]
        # The head puts a cluster first: which of all classes is likeliest, only the whole distribution tells.
        return where(rare, self.log_prob(input).argmax(1), found)


@dataclass(frozen=True)
class LinearCrossEntropyOptions:
    """How PyTorch cuts the work of LinearCrossEntropyLoss in pieces. It changes no results, and nothing here."""

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str = "auto"
    acc_policy: str = "auto"
    acc_dtype: Any = None


class LinearCrossEntropyLoss(Module):
    """The cross entropy of the scores that a linear map gives its input.

    Args:
        out_features: the places that have scores of ``num_classes`` each; none for one.
        bias: whether the map has one.
        weight, reduction, ignore_index, label_smoothing: as CrossEntropyLoss.
    """

    weight: Tensor | None

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: Any = None,
        dtype: Any = None,
        reduction: str = "mean",
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: LinearCrossEntropyOptions | None = None,
    ) -> None:
        if weight is not None and tuple(weight.shape) != (num_classes,):
            raise ShapeError(f"expected weight shape to be {(num_classes,)}, got {tuple(weight.shape)}")
        if not 0 <= label_smoothing <= 1:
            raise UsageError(f"expected label_smoothing to be in range [0, 1], got {label_smoothing}")
        super().__init__()
        self.reduction = reduction
        self.register_buffer("weight", weight)
        self.num_classes = num_classes
        self.out_features = out_features
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        self.linear = Linear(in_features, prod(out_features, start=num_classes), bias=bias, device=device, dtype=dtype)
        self.options = options

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss of (N, in_features) and (N, *out_features) classes or (N, num_classes, *out_features) probabilities."""
        scores = (self.num_classes, *self.out_features)
        linear: Any = self.linear
        return F.linear_cross_entropy(  # type: ignore[no-any-return]
            input, linear.weight.reshape(*scores, linear.in_features), target,
            linear_bias=None if linear.bias is None else linear.bias.reshape(*scores), weight=self.weight,
            reduction=self.reduction, ignore_index=self.ignore_index, label_smoothing=self.label_smoothing,
            options=self.options,
        )  # fmt: skip

    def extra_repr(self) -> str:
        return (
            f"in_features={self.linear.in_features}, num_classes={self.num_classes}, out_features={self.out_features}, "
            f"bias={self.linear.bias is not None}, reduction={self.reduction}, ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, options={self.options}"
        )
