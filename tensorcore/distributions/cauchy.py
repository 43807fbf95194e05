"""The Cauchy distribution."""

from __future__ import annotations

import math
from typing import Any

from tensorcore.distributions import constraints
from tensorcore.distributions.distribution import Distribution
from tensorcore.ops.creation.create import full_like

__all__ = ["Cauchy"]


class Cauchy(Distribution):
    """Quotients of two normal numbers times ``scale`` around the median ``loc``; without mean and variance."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self._take(validate_args, loc=loc, scale=scale)

    @property
    def mean(self) -> Any:
        return full_like(self.loc, math.nan)

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        return full_like(self.loc, math.inf)

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self.loc + self._empty(sample_shape, self.loc).cauchy_() * self.scale

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        return -math.log(math.pi) - self.scale.log() - ((value - self.loc) / self.scale).square().log1p()

    def cdf(self, value: Any) -> Any:
        self._check(value)
        return ((value - self.loc) / self.scale).atan() / math.pi + 0.5

    def icdf(self, value: Any) -> Any:
        return (math.pi * (value - 0.5)).tan() * self.scale + self.loc

    def entropy(self) -> Any:
        return math.log(4 * math.pi) + self.scale.log()
