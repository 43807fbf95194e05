"""The binomial distribution."""

from __future__ import annotations

from typing import Any

from tensorcore.distributions import constraints
from tensorcore.distributions.odds import Odds
from tensorcore.ops.creation.create import arange
from tensorcore.ops.creation.draws import binomial
from tensorcore.ops.layers.activation import logsigmoid
from tensorcore.tape.mode import no_grad

__all__ = ["Binomial"]


class Binomial(Odds):
    """How many of ``total_count`` trials succeed, each with probability ``probs`` or log odds ``logits``."""

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True

    def __init__(
        self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._take_odds(validate_args, probs, logits, total_count=total_count)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Any:
        return self.total_count * self.probs

    @property
    def mode(self) -> Any:
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self) -> Any:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        ways = (self.total_count + 1).lgamma() - (value + 1).lgamma() - (self.total_count - value + 1).lgamma()
        return ways + value * self.logits + self.total_count * logsigmoid(-self.logits)

    def entropy(self) -> Any:
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(log_prob.exp() * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Any:
        count = int(self.total_count.max())
        if self.total_count.min() != count:
            raise NotImplementedError(
                "Binomial: Inhomogeneous total count not supported by `enumerate_support`, got several counts; "
                "enumerate one at a time"
            )
        values = arange(1 + count, dtype=self._param.dtype, device=self._param.device)
        return self._enumerated(values, expand)
