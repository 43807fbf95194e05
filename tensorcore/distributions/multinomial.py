"""The multinomial distribution."""

from __future__ import annotations

import math
from typing import Any

from tensorcore.distributions import constraints
from tensorcore.distributions.binomial import Binomial
from tensorcore.distributions.categorical import OverCategories
from tensorcore.distributions.utils import broadcast_all
from tensorcore.errors import ArgumentError
from tensorcore.ops.creation.create import arange, ones_like, zeros

__all__ = ["Multinomial"]


class Multinomial(OverCategories):
    """How often each category comes up in ``total_count`` draws; parameters as in ``Categorical``."""

    def __init__(
        self, total_count: int = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError(
                f"Multinomial: inhomogeneous total_count is not supported, got {type(total_count).__name__}; pass an int"
            )
        if total_count < 0 and validate_args is not False:
            raise ArgumentError(f"Multinomial: expected a total_count of 0 or more, got {total_count}; draw some")
        self.total_count = total_count
        super().__init__(probs, logits, validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Any:
        return self.probs * self.total_count

    @property
    def variance(self) -> Any:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        drawn = self._categorical.sample((self.total_count, *sample_shape)).movedim(0, -1)
        counts = zeros(self._extended_shape(sample_shape), dtype=drawn.dtype, device=drawn.device)
        return counts.scatter_add(-1, drawn, ones_like(drawn)).type_as(self.probs)

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        # A category that cannot come up and did not counts for nothing.
        logits = logits.masked_fill((value == 0) & (logits == -math.inf), 0)
        return (value.sum(-1) + 1).lgamma() - (value + 1).lgamma().sum(-1) + (logits * value).sum(-1)

    def entropy(self) -> Any:
        # The mean of log_prob: draw by draw, and the logarithms of factorials by the marginal counts, which are binomial.
        count = self.total_count
        counts = arange(1, count + 1, dtype=self._param.dtype, device=self._param.device)
        counts = counts.reshape(-1, *[1] * self._param.dim())
        marginal = Binomial(count, probs=self.probs).log_prob(counts).exp()
        factorials = (marginal * (counts + 1).lgamma()).sum((0, -1))
        return count * self._categorical.entropy() - math.lgamma(count + 1) + factorials
