"""Categorical distributions over vectors with a single one."""

from __future__ import annotations

from typing import Any

from tensorcore.distributions import constraints
from tensorcore.distributions.categorical import OverCategories
from tensorcore.ops.creation.grids import eye, one_hot

__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]


class OneHotCategorical(OverCategories):
    """Vectors with a one in place i with probability ``probs[i]``, else zeros; parameters as in ``Categorical``."""

    support = constraints.one_hot
    has_enumerate_support = True

    @property
    def mean(self) -> Any:
        return self.probs

    @property
    def mode(self) -> Any:
        return one_hot(self.probs.argmax(-1), self.probs.shape[-1]).type_as(self.probs)

    @property
    def variance(self) -> Any:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        return one_hot(self._categorical.sample(sample_shape), self._event_shape[0]).to(self.probs)

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        return self._categorical.log_prob(value.max(-1)[1])

    def entropy(self) -> Any:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Any:
        count = self._event_shape[0]
        values = eye(count, dtype=self._param.dtype, device=self._param.device)
        return self._enumerated(values, expand)


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """One-hot vectors whose gradient is that of the probabilities.

    The straight-through estimator of Y. Bengio, N. Leonard and A. Courville, "Estimating or propagating gradients
    through stochastic neurons for conditional computation" (2013).
    """

    has_rsample = True

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self.sample(sample_shape) + (self.probs - self.probs.detach())
