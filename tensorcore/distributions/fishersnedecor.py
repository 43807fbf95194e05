"""The Fisher-Snedecor distribution."""

from __future__ import annotations

import math
from typing import Any

from tensorcore.distributions import constraints
from tensorcore.distributions.distribution import Distribution
from tensorcore.distributions.gamma import Gamma
from tensorcore.distributions.utils import broadcast_all
from tensorcore.dtypes import finfo
from tensorcore.ops.pointwise.choice import where

__all__ = ["FisherSnedecor"]


class FisherSnedecor(Distribution):
    """Quotients of two mean squares of ``df1`` and of ``df2`` standard normal numbers."""

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = broadcast_all(df1, df2)
        self._gamma1 = Gamma(self.df1 * 0.5, self.df1)
        self._gamma2 = Gamma(self.df2 * 0.5, self.df2)
        super().__init__(self.df1.shape, validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return where(self.df2 > 2, self.df2 / (self.df2 - 2), math.nan)

    @property
    def mode(self) -> Any:
        found = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return found.masked_fill(self.df1 <= 2, math.nan)

    @property
    def variance(self) -> Any:
        one, two = self.df1, self.df2
        found = 2 * two.square() * (one + two - 2) / (one * (two - 2).square() * (two - 4))
        return where(two > 4, found, math.nan)

    def rsample(self, sample_shape: Any = ()) -> Any:
        above, below = self._gamma1.rsample(sample_shape), self._gamma2.rsample(sample_shape)
        made = above / below
        made.detach().clamp_(min=finfo(made.dtype).tiny)
        return made

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        one, two = self.df1 * 0.5, self.df2 * 0.5
        ratio = self.df1 / self.df2
        scaling = (one + two).lgamma() - one.lgamma() - two.lgamma()
        return scaling + one * ratio.log() + (one - 1) * value.log() - (one + two) * (ratio * value).log1p()
