"""Absolute values: the half-normal distribution, and what it shares with others."""

from __future__ import annotations

import math
from typing import Any

from tensorcore.distributions import constraints
from tensorcore.distributions.normal import Normal
from tensorcore.distributions.transformed_distribution import TransformedDistribution
from tensorcore.distributions.transforms import AbsTransform
from tensorcore.ops.creation.create import zeros_like
from tensorcore.ops.pointwise.choice import where

__all__ = ["FoldedDistribution", "HalfNormal"]


class FoldedDistribution(TransformedDistribution):
    """The absolute values of a distribution that is symmetric around 0."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, base_distribution: Any, validate_args: bool | None = None) -> None:
        super().__init__(base_distribution, AbsTransform(), validate_args=validate_args)

    @property
    def scale(self) -> Any:
        """The scale of the numbers whose absolute values these are."""
        return self.base_dist.scale

    @property
    def mode(self) -> Any:
        return zeros_like(self.scale)

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        return where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -math.inf)

    def cdf(self, value: Any) -> Any:
        self._check(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, value: Any) -> Any:
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self) -> Any:
        return self.base_dist.entropy() - math.log(2)


class HalfNormal(FoldedDistribution):
    """Absolute values of normal numbers of mean 0 and standard deviation ``scale``."""

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Normal(0, scale, validate_args=False), validate_args)

    @property
    def mean(self) -> Any:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Any:
        return self.scale.square() * (1 - 2 / math.pi)
