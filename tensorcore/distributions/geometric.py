"""The geometric distribution."""

from __future__ import annotations

from typing import Any

from tensorcore.distributions import constraints
from tensorcore.distributions.odds import Odds, binary_cross_entropy
from tensorcore.distributions.utils import broadcast_all
from tensorcore.dtypes import finfo
from tensorcore.errors import ArgumentError
from tensorcore.ops.creation.create import zeros_like
from tensorcore.ops.operands import everywhere
from tensorcore.tape.mode import no_grad

__all__ = ["Geometric"]


class Geometric(Odds):
    """How many trials fail before the first that succeeds, each with probability ``probs`` or log odds ``logits``."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._take_odds(validate_args, probs, logits)
        if self._validate_args and probs is not None and not everywhere(self.probs > 0):
            raise ArgumentError(
                f"Geometric: Expected parameter probs ({type(self.probs).__name__} of shape {tuple(self.probs.shape)}) to be "
                f"positive, but found invalid values, got\n{self.probs}"
            )

    @property
    def mean(self) -> Any:
        return 1 / self.probs - 1

    @property
    def mode(self) -> Any:
        return zeros_like(self.probs)

    @property
    def variance(self) -> Any:
        return (1 / self.probs - 1) / self.probs

    def sample(self, sample_shape: Any = ()) -> Any:
        with no_grad():
            u = self._empty(sample_shape, self.probs).uniform_(finfo(self.probs.dtype).tiny, 1)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        value, probs = broadcast_all(value, self.probs)
        # No failure is certain where success is: 0 times the logarithm of 0 counts as 0.
        failures = probs.masked_fill((probs == 1) & (value == 0), 0)
        return value * (-failures).log1p() + self.probs.log()

    def entropy(self) -> Any:
        return binary_cross_entropy(self.logits, self.probs) / self.probs
