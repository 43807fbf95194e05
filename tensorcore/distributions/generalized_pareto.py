"""The generalised Pareto distribution."""

from __future__ import annotations

import math
from typing import Any

from tensorcore.distributions import constraints
from tensorcore.distributions.distribution import Distribution
from tensorcore.ops.creation.create import ones_like
from tensorcore.ops.creation.random import rand
from tensorcore.ops.pointwise.choice import where

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """What numbers beyond a threshold ``loc`` tend to be distributed like.

    They are greater than x with the probability ``(1 + c z)**(-1 / c)`` for ``z = (x - loc) / scale`` and the
    concentration c, or ``exp(-z)`` where that is 0: J. Pickands, "Statistical inference using extreme order
    statistics" (1975).
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self._take(validate_args, loc=loc, scale=scale, concentration=concentration)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        c = self.concentration
        return constraints.interval(self.loc, where(c < 0, self.loc - self.scale / c, math.inf))

    def _split(self) -> tuple[Any, Any]:
        """Where the concentration is as good as 0, and the concentrations with 1 in those places."""
        exponential = self.concentration.abs() <= 1e-8
        return exponential, where(exponential, 1.0, self.concentration)

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self.icdf(rand(self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device))

    def log_survival_function(self, value: Any) -> Any:
        """The logarithm of the probability of more than each value."""
        self._check(value)
        z = (value - self.loc) / self.scale
        exponential, c = self._split()
        return where(exponential, -z, -(c * z).log1p() / c)

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        z = (value - self.loc) / self.scale
        exponential, c = self._split()
        power = 1 / c + ones_like(z)
        return -self.scale.log() - where(exponential, z, where(power == 0, power, power * (c * z).log1p()))

    def log_cdf(self, value: Any) -> Any:
        """The logarithm of ``cdf``."""
        return (-self.log_survival_function(value).exp()).log1p()

    def cdf(self, value: Any) -> Any:
        return self.log_cdf(value).exp()

    def icdf(self, value: Any) -> Any:
        exponential, c = self._split()
        log = (-value).log1p()
        return self.loc + self.scale * where(exponential, -log, (-c * log).expm1() / c)

    @property
    def mean(self) -> Any:
        c = self.concentration
        return where(c < 1, self.loc + self.scale / (1 - where(c < 1, c, 0.5)), math.nan)

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        c = where(self.concentration < 0.5, self.concentration, 0.25)
        found = self.scale.square() / ((1 - c).square() * (1 - 2 * c))
        return where(self.concentration < 0.5, found, math.nan)

    def entropy(self) -> Any:
        return self.scale.log() + self.concentration + 1
