"""The Poisson distribution."""

from __future__ import annotations

from typing import Any

from tensorcore.distributions import constraints
from tensorcore.distributions.exp_family import ExponentialFamily
from tensorcore.distributions.utils import broadcast_all
from tensorcore.ops.creation.draws import poisson
from tensorcore.ops.pointwise.explog import xlogy
from tensorcore.tape.mode import no_grad

__all__ = ["Poisson"]


class Poisson(ExponentialFamily):
    """Counts of mean ``rate``."""

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        self._take(validate_args, rate=rate)

    @property
    def mean(self) -> Any:
        return self.rate

    @property
    def mode(self) -> Any:
        return self.rate.floor()

    @property
    def variance(self) -> Any:
        return self.rate

    def sample(self, sample_shape: Any = ()) -> Any:
        with no_grad():
            return poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        rate, value = broadcast_all(self.rate, value)
        return xlogy(value, rate) - rate - (value + 1).lgamma()

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return (self.rate.log(),)

    def _log_normalizer(self, *natural_params: Any) -> Any:
        return natural_params[0].exp()
