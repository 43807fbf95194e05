"""The Gumbel distribution."""

from __future__ import annotations

import math
from typing import Any

from tensorcore.distributions import constraints
from tensorcore.distributions.transformed_distribution import TransformedDistribution
from tensorcore.distributions.transforms import AffineTransform, ExpTransform
from tensorcore.distributions.uniform import Uniform
from tensorcore.distributions.utils import broadcast_all, euler_constant
from tensorcore.dtypes import finfo
from tensorcore.ops.creation.create import full_like, ones_like

__all__ = ["Gumbel"]


class Gumbel(TransformedDistribution):
    """Numbers with the cumulative distribution function ``exp(-exp(-(x - loc) / scale))``."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        limits = finfo(self.loc.dtype)
        base = Uniform(
            full_like(self.loc, limits.tiny), full_like(self.loc, 1 - limits.eps), validate_args=validate_args
        )
        transforms = [
            ExpTransform().inv,
            AffineTransform(0, -ones_like(self.scale)),
            ExpTransform().inv,
            AffineTransform(self.loc, -self.scale),
        ]
        super().__init__(base, transforms, validate_args=validate_args)

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        y = (self.loc - value) / self.scale
        return y - y.exp() - self.scale.log()

    @property
    def mean(self) -> Any:
        return self.loc + self.scale * euler_constant

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def stddev(self) -> Any:
        return (math.pi / math.sqrt(6)) * self.scale

    @property
    def variance(self) -> Any:
        return self.stddev.square()

    def entropy(self) -> Any:
        return self.scale.log() + (1 + euler_constant)
