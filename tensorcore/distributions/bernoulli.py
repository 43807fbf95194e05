"""The Bernoulli distribution."""

from __future__ import annotations

import math
from typing import Any

from tensorcore.distributions import constraints
from tensorcore.distributions.exp_family import ExponentialFamily
from tensorcore.distributions.odds import Odds, binary_cross_entropy
from tensorcore.distributions.utils import broadcast_all
from tensorcore.ops.creation.create import arange
from tensorcore.ops.creation.random import bernoulli
from tensorcore.ops.pointwise.choice import where
from tensorcore.tape.mode import no_grad

__all__ = ["Bernoulli"]


class Bernoulli(Odds, ExponentialFamily):
    """Ones with probability ``probs``, or log odds ``logits``, else zeros."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._take_odds(validate_args, probs, logits)

    @property
    def mean(self) -> Any:
        return self.probs

    @property
    def mode(self) -> Any:
        return where(self.probs == 0.5, math.nan, (self.probs >= 0.5).to(self.probs))

    @property
    def variance(self) -> Any:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        with no_grad():
            return bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        return -binary_cross_entropy(*broadcast_all(self.logits, value))

    def entropy(self) -> Any:
        return binary_cross_entropy(self.logits, self.probs)

    def enumerate_support(self, expand: bool = True) -> Any:
        values = arange(2, dtype=self._param.dtype, device=self._param.device)
        return self._enumerated(values, expand)

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return (self.probs.logit(),)

    def _log_normalizer(self, *natural_params: Any) -> Any:
        return natural_params[0].exp().log1p()
