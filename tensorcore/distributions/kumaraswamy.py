"""The Kumaraswamy distribution."""

from __future__ import annotations

import math
from typing import Any

from tensorcore.distributions import constraints
from tensorcore.distributions.transformed_distribution import TransformedDistribution
from tensorcore.distributions.transforms import AffineTransform, PowerTransform
from tensorcore.distributions.uniform import Uniform
from tensorcore.distributions.utils import broadcast_all, euler_constant
from tensorcore.ops.creation.create import ones_like, zeros_like

__all__ = ["Kumaraswamy"]


class Kumaraswamy(TransformedDistribution):
    """Numbers between 0 and 1 with the cumulative distribution function ``1 - (1 - x**concentration1)**concentration0``.

    P. Kumaraswamy, "A generalized probability density function for double-bounded random processes" (1980); moments
    after M. C. Jones, "Kumaraswamy's distribution: a beta-type distribution with some tractability advantages" (2009).
    """

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        base = Uniform(zeros_like(self.concentration0), ones_like(self.concentration0), validate_args=validate_args)
        transforms = [
            PowerTransform(self.concentration0.reciprocal()),
            AffineTransform(1.0, -1.0),
            PowerTransform(self.concentration1.reciprocal()),
        ]
        super().__init__(base, transforms, validate_args=validate_args)

    def _moment(self, n: int) -> Any:
        b, power = self.concentration0, 1 + n / self.concentration1
        return b * (power.lgamma() + b.lgamma() - (power + b).lgamma()).exp()

    @property
    def mean(self) -> Any:
        return self._moment(1)

    @property
    def mode(self) -> Any:
        # Of a density without a peak inside there is none.
        a, b = self.concentration1, self.concentration0
        found = ((a - 1) / (a * b - 1)) ** a.reciprocal()
        return found.masked_fill((a < 1) | (b < 1), math.nan)

    @property
    def variance(self) -> Any:
        return self._moment(2) - self.mean.square()

    def entropy(self) -> Any:
        a, b = self.concentration1, self.concentration0
        harmonic = (b + 1).digamma() + euler_constant
        return 1 - b.reciprocal() + (1 - a.reciprocal()) * harmonic - a.log() - b.log()
