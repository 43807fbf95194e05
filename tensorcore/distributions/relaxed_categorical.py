"""Categorical distributions relaxed to points of a simplex."""

from __future__ import annotations

import math
from typing import Any

from tensorcore.distributions import constraints
from tensorcore.distributions.categorical import OverCategories
from tensorcore.distributions.transformed_distribution import TransformedDistribution
from tensorcore.distributions.transforms import ExpTransform
from tensorcore.distributions.utils import broadcast_all, clamp_probs
from tensorcore.ops.creation.random import rand

__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]


class ExpRelaxedCategorical(OverCategories):
    """The logarithms of ``RelaxedOneHotCategorical`` samples.

    C. J. Maddison, A. Mnih and Y. W. Teh, "The concrete distribution: a continuous relaxation of discrete random
    variables" (2017), appendix C.3.

    Args:
        temperature: a tensor; the lower, the closer the samples are to corners.
    """

    support = constraints.real_vector  # their exponentials sum to one
    has_rsample = True

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self.temperature = temperature
        super().__init__(probs, logits, validate_args)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        uniform = clamp_probs(rand(shape, dtype=self.logits.dtype, device=self.logits.device))
        scores = (self.logits - (-uniform.log()).log()) / self.temperature
        return scores - scores.logsumexp(-1, keepdim=True)

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        count = self._event_shape[0]
        logits, value = broadcast_all(self.logits, value)
        scores = (logits - value * self.temperature).log_softmax(-1).sum(-1)
        return scores + math.lgamma(count) + self.temperature.log() * (count - 1)


class RelaxedOneHotCategorical(TransformedDistribution):
    """Points of a simplex, differentiable, that one-hot vectors are the limit of: see ``ExpRelaxedCategorical``."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    has_rsample = True

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    @property
    def temperature(self) -> Any:
        """How far from the corners the samples are."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Any:
        """The logarithms of the probabilities."""
        return self.base_dist.logits

    @property
    def probs(self) -> Any:
        """The probabilities."""
        return self.base_dist.probs
