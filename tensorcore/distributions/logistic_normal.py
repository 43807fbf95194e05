"""The logistic-normal distribution."""

from __future__ import annotations

from typing import Any

from tensorcore.distributions import constraints
from tensorcore.distributions.normal import Normal
from tensorcore.distributions.transformed_distribution import TransformedDistribution
from tensorcore.distributions.transforms import StickBreakingTransform

__all__ = ["LogisticNormal"]


class LogisticNormal(TransformedDistribution):
    """Points of a simplex: vectors of normal numbers that break a stick, see ``StickBreakingTransform``."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand((1,))
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    @property
    def loc(self) -> Any:
        """The means of the numbers that break the stick."""
        return self.base_dist.base_dist.loc

    @property
    def scale(self) -> Any:
        """Their standard deviations."""
        return self.base_dist.base_dist.scale
