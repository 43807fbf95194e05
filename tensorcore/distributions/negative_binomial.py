"""The negative binomial distribution."""

from __future__ import annotations

from typing import Any

from tensorcore.distributions import constraints
from tensorcore.distributions.gamma import Gamma
from tensorcore.distributions.odds import Odds
from tensorcore.distributions.utils import lazy_property
from tensorcore.ops.creation.draws import poisson
from tensorcore.ops.layers.activation import logsigmoid
from tensorcore.tape.mode import no_grad

__all__ = ["NegativeBinomial"]


class NegativeBinomial(Odds):
    """How many trials succeed before ``total_count`` have failed, each with probability ``probs`` or log odds ``logits``."""

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(
        self, total_count: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._take_odds(validate_args, probs, logits, total_count=total_count)

    @property
    def mean(self) -> Any:
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> Any:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0)

    @property
    def variance(self) -> Any:
        return self.mean / (-self.logits).sigmoid()

    @lazy_property
    def _gamma(self) -> Any:
        return Gamma(self.total_count, (-self.logits).exp(), validate_args=False)

    def sample(self, sample_shape: Any = ()) -> Any:
        with no_grad():
            return poisson(self._gamma.sample(sample_shape))

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        tries = self.total_count * logsigmoid(-self.logits) + value * logsigmoid(self.logits)
        ways = (1 + value).lgamma() + self.total_count.lgamma() - (self.total_count + value).lgamma()
        return tries - ways.masked_fill(self.total_count + value == 0, 0)
