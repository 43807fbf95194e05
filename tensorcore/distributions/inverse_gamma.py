"""The inverse gamma distribution."""

from __future__ import annotations

import math
from typing import Any

from tensorcore.distributions import constraints
from tensorcore.distributions.gamma import Gamma
from tensorcore.distributions.transformed_distribution import TransformedDistribution
from tensorcore.distributions.transforms import PowerTransform
from tensorcore.ops.creation.create import ones_like
from tensorcore.ops.pointwise.choice import where

__all__ = ["InverseGamma"]


class InverseGamma(TransformedDistribution):
    """Reciprocals of gamma numbers."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        base = Gamma(concentration, rate, validate_args=validate_args)
        super().__init__(base, PowerTransform(-ones_like(base.rate)), validate_args=validate_args)

    @property
    def concentration(self) -> Any:
        """That of the gamma numbers."""
        return self.base_dist.concentration

    @property
    def rate(self) -> Any:
        """That of the gamma numbers."""
        return self.base_dist.rate

    @property
    def mean(self) -> Any:
        return where(self.concentration > 1, self.rate / (self.concentration - 1), math.inf)

    @property
    def mode(self) -> Any:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Any:
        c = self.concentration
        return where(c > 2, self.rate.square() / ((c - 1).square() * (c - 2)), math.inf)

    def entropy(self) -> Any:
        c = self.concentration
        return c + self.rate.log() + c.lgamma() - (1 + c) * c.digamma()
