"""The continuous Bernoulli distribution."""

from __future__ import annotations

import math
from typing import Any

from tensorcore.distributions import constraints
from tensorcore.distributions.exp_family import ExponentialFamily
from tensorcore.distributions.odds import Odds, binary_cross_entropy
from tensorcore.distributions.utils import broadcast_all, clamp_probs, lazy_property, logits_to_probs
from tensorcore.ops.creation.random import rand
from tensorcore.ops.pointwise.choice import where

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(Odds, ExponentialFamily):
    """Numbers between 0 and 1 with a density in proportion to ``probs**x * (1 - probs)**(1 - x)``.

    G. Loaiza-Ganem and J. P. Cunningham, "The continuous Bernoulli: fixing a pervasive error in variational
    autoencoders" (2019).

    Args:
        lims: between these probabilities the formulas, which divide 0 by 0 at one half, give way to power series.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, probs: Any = None, logits: Any = None, lims: tuple[float, float] = (0.499, 0.501),
                 validate_args: bool | None = None) -> None:  # fmt: skip
        self._lims = lims
        self._take_odds(validate_args, probs, logits)
        if probs is not None:
            self.probs = clamp_probs(self.probs)

    @lazy_property
    def probs(self) -> Any:
        """The probabilities, kept off 0 and 1."""
        return clamp_probs(logits_to_probs(self.logits, True))

    def _outside(self) -> tuple[Any, Any, Any]:
        """Where the formulas hold; probabilities with one for which they do elsewhere; and the log odds of those."""
        outside = (self.probs <= self._lims[0]) | (self.probs > self._lims[1])
        p = where(outside, self.probs, self._lims[0])
        return outside, p, p.log() - (-p).log1p()

    def _log_norm(self) -> Any:
        outside, p, logits = self._outside()
        square = (self.probs - 0.5).square()
        series = math.log(2) + (4 / 3 + 104 / 45 * square) * square
        return where(outside, logits.abs().log() - (1 - 2 * p).abs().log(), series)

    @property
    def mean(self) -> Any:
        outside, p, logits = self._outside()
        away = self.probs - 0.5
        series = 0.5 + (1 / 3 + 16 / 45 * away.square()) * away
        return where(outside, p / (2 * p - 1) - 1 / logits, series)

    @property
    def stddev(self) -> Any:
        return self.variance.sqrt()

    @property
    def variance(self) -> Any:
        outside, p, logits = self._outside()
        square = (self.probs - 0.5).square()
        series = 1 / 12 - (1 / 15 - 128 / 945 * square) * square
        return where(outside, p * (p - 1) / (1 - 2 * p).square() + 1 / logits.square(), series)

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self.icdf(rand(self._extended_shape(sample_shape), dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        return self._log_norm() - binary_cross_entropy(*broadcast_all(self.logits, value))

    def cdf(self, value: Any) -> Any:
        self._check(value)
        outside, p, _ = self._outside()
        found = (p**value * (1 - p) ** (1 - value) + p - 1) / (2 * p - 1)
        return where(value <= 0, 0.0, where(value >= 1, 1.0, where(outside, found, value)))

    def icdf(self, value: Any) -> Any:
        outside, p, logits = self._outside()
        return where(outside, ((value * (2 * p - 1) - p).log1p() - (-p).log1p()) / logits, value)

    def entropy(self) -> Any:
        against = (-self.probs).log1p()
        return self.mean * (against - self.probs.log()) - self._log_norm() - against

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return (self.logits,)

    def _log_normalizer(self, *natural_params: Any) -> Any:
        (x,) = natural_params
        outside = (x <= self._lims[0] - 0.5) | (x > self._lims[1] - 0.5)
        held = where(outside, x, self._lims[0] - 0.5)
        series = 0.5 * x + x**2 / 24 - x**4 / 2880
        return where(outside, held.expm1().abs().log() - held.abs().log(), series)
