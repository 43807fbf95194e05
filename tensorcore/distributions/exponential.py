"""The exponential distribution."""

from __future__ import annotations

from typing import Any

from tensorcore.distributions import constraints
from tensorcore.distributions.exp_family import ExponentialFamily
from tensorcore.ops.creation.create import zeros_like

__all__ = ["Exponential"]


class Exponential(ExponentialFamily):
    """Waiting times of mean ``1 / rate``."""

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        self._take(validate_args, rate=rate)

    @property
    def mean(self) -> Any:
        return self.rate.reciprocal()

    @property
    def mode(self) -> Any:
        return zeros_like(self.rate)

    @property
    def stddev(self) -> Any:
        return self.rate.reciprocal()

    @property
    def variance(self) -> Any:
        return self.rate.square().reciprocal()

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self._empty(sample_shape, self.rate).exponential_() / self.rate

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value: Any) -> Any:
        self._check(value)
        return 1 - (-self.rate * value).exp()

    def icdf(self, value: Any) -> Any:
        return -(-value).log1p() / self.rate

    def entropy(self) -> Any:
        return 1 - self.rate.log()

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return (-self.rate,)

    def _log_normalizer(self, *natural_params: Any) -> Any:
        return -(-natural_params[0]).log()
