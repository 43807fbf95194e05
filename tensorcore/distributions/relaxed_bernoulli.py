"""Bernoulli distributions relaxed to numbers between 0 and 1."""

from __future__ import annotations

from typing import Any

from tensorcore.distributions import constraints
from tensorcore.distributions.odds import Odds
from tensorcore.distributions.transformed_distribution import TransformedDistribution
from tensorcore.distributions.transforms import SigmoidTransform
from tensorcore.distributions.utils import broadcast_all, clamp_probs
from tensorcore.ops.creation.random import rand

__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli"]


class LogitRelaxedBernoulli(Odds):
    """The log odds of ``RelaxedBernoulli`` samples.

    C. J. Maddison, A. Mnih and Y. W. Teh, "The concrete distribution: a continuous relaxation of discrete random
    variables" (2017).

    Args:
        temperature: a tensor; the lower, the closer the samples are to 0 and 1.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    has_rsample = True

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self.temperature = temperature
        self._take_odds(validate_args, probs, logits)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        probs = clamp_probs(self.probs.expand(shape))
        uniform = clamp_probs(rand(shape, dtype=probs.dtype, device=probs.device))
        noise = uniform.log() - (-uniform).log1p()
        return (noise + probs.log() - (-probs).log1p()) / self.temperature

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        away = logits - value * self.temperature
        return self.temperature.log() + away - 2 * away.exp().log1p()


class RelaxedBernoulli(TransformedDistribution):
    """Numbers between 0 and 1 that a Bernoulli distribution rounds, differentiable: see ``LogitRelaxedBernoulli``."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        super().__init__(
            LogitRelaxedBernoulli(temperature, probs, logits), SigmoidTransform(), validate_args=validate_args
        )

    @property
    def temperature(self) -> Any:
        """How far from 0 and 1 the samples are."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Any:
        """The log odds."""
        return self.base_dist.logits

    @property
    def probs(self) -> Any:
        """The probabilities."""
        return self.base_dist.probs
