"""The gamma distribution."""

from __future__ import annotations

from typing import Any

from tensorcore.distributions import constraints
from tensorcore.distributions.exp_family import ExponentialFamily
from tensorcore.dtypes import finfo
from tensorcore.ops.creation.draws import _standard_gamma
from tensorcore.ops.pointwise.explog import xlogy
from tensorcore.ops.special.gamma import igamma

__all__ = ["Gamma"]


class Gamma(ExponentialFamily):
    """Gamma numbers of shape ``concentration`` and mean ``concentration / rate``."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self._take(validate_args, concentration=concentration, rate=rate)

    @property
    def mean(self) -> Any:
        return self.concentration / self.rate

    @property
    def mode(self) -> Any:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Any:
        return self.concentration / self.rate.square()

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        made = _standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)
        made.detach().clamp_(min=finfo(made.dtype).tiny)  # off the tape: the gradient is as if nothing was done
        return made

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        value = value.to(self.rate)
        c, rate = self.concentration, self.rate
        return xlogy(c, rate) + xlogy(c - 1, value) - rate * value - c.lgamma()

    def cdf(self, value: Any) -> Any:
        self._check(value)
        return igamma(self.concentration, self.rate * value)

    def entropy(self) -> Any:
        c = self.concentration
        return c - self.rate.log() + c.lgamma() + (1 - c) * c.digamma()

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, *natural_params: Any) -> Any:
        power, slope = natural_params
        return (power + 1).lgamma() - (power + 1) * (-slope).log()
