"""The uniform distribution."""

from __future__ import annotations

import math
from typing import Any

from tensorcore.distributions import constraints
from tensorcore.distributions.distribution import Distribution
from tensorcore.ops.creation.random import rand

__all__ = ["Uniform"]


class Uniform(Distribution):
    """Numbers from ``low`` up to, and not including, ``high``, all equally likely."""

    has_rsample = True

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self._take(validate_args, low=low, high=high)

    @property
    def arg_constraints(self) -> dict[str, Any]:
        return {"low": constraints.less_than(self.high), "high": constraints.greater_than(self.low)}

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        return constraints.interval(self.low, self.high)

    @property
    def mean(self) -> Any:
        return (self.high + self.low) / 2

    @property
    def mode(self) -> Any:
        return math.nan * self.high

    @property
    def stddev(self) -> Any:
        return (self.high - self.low) / math.sqrt(12)

    @property
    def variance(self) -> Any:
        return (self.high - self.low).square() / 12

    def rsample(self, sample_shape: Any = ()) -> Any:
        part = rand(self._extended_shape(sample_shape), dtype=self.low.dtype, device=self.low.device)
        return self.low + part * (self.high - self.low)

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        inside = ((self.low <= value) & (self.high > value)).type_as(self.low)
        return inside.log() - (self.high - self.low).log()

    def cdf(self, value: Any) -> Any:
        self._check(value)
        return ((value - self.low) / (self.high - self.low)).clamp(0, 1)

    def icdf(self, value: Any) -> Any:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Any:
        return (self.high - self.low).log()
