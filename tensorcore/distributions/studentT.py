"""Student's t-distribution."""

from __future__ import annotations

import math
from typing import Any

from tensorcore.distributions import constraints
from tensorcore.distributions.chi2 import Chi2
from tensorcore.distributions.distribution import Distribution
from tensorcore.distributions.utils import _standard_normal, broadcast_all
from tensorcore.ops.pointwise.choice import where

__all__ = ["StudentT"]


class StudentT(Distribution):
    """Normal numbers over the root of the mean of ``df`` squared ones, times ``scale``, around ``loc``."""

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df)
        super().__init__(self.df.shape, validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.loc.masked_fill(self.df <= 1, math.nan)

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        found = self.scale.square() * self.df / (self.df - 2)
        return where(self.df > 2, found, math.inf).masked_fill(self.df <= 1, math.nan)

    def rsample(self, sample_shape: Any = ()) -> Any:
        noise = _standard_normal(self._extended_shape(sample_shape), self.df.dtype, self.df.device)
        return self.loc + self.scale * (noise * (self._chi2.rsample(sample_shape) / self.df).rsqrt())

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        y = (value - self.loc) / self.scale
        half = 0.5 * self.df
        scaling = (
            self.scale.log() + 0.5 * self.df.log() + 0.5 * math.log(math.pi) + half.lgamma() - (half + 0.5).lgamma()
        )
        return -(half + 0.5) * (y.square() / self.df).log1p() - scaling

    def entropy(self) -> Any:
        half = 0.5 * self.df
        log_beta = math.lgamma(0.5) + half.lgamma() - (half + 0.5).lgamma()
        slope = (half + 0.5).digamma() - half.digamma()
        return self.scale.log() + (half + 0.5) * slope + 0.5 * self.df.log() + log_beta
