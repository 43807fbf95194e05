"""The categorical distribution."""

from __future__ import annotations

import math
from typing import Any

from tensorcore.distributions import constraints
from tensorcore.distributions.distribution import Distribution
from tensorcore.distributions.odds import Odds, chosen
from tensorcore.dtypes import finfo
from tensorcore.errors import ArgumentError
from tensorcore.formats import Size
from tensorcore.ops.creation.create import arange
from tensorcore.ops.creation.random import multinomial
from tensorcore.ops.shapes.combine import broadcast_shapes
from tensorcore.tape.mode import no_grad

__all__ = ["Categorical", "OverCategories"]


class Categorical(Odds):
    """The numbers 0 to n - 1 with the probabilities along the last dim of ``probs``, or their logarithms ``logits``.

    Both are normalised: they may be given up to a factor, or a constant.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    _is_binary = False

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._given, value = chosen("Categorical", probs, logits)
        if value.dim() < 1:
            raise ArgumentError(
                f"Categorical: `{self._given}` parameter must be at least one-dimensional, got a number; put the "
                f"categories along the last dim"
            )
        if probs is None:
            self.logits = value - value.logsumexp(-1, keepdim=True)
        else:
            self.probs = value / value.sum(-1, keepdim=True)
        super().__init__(value.shape[:-1], validate_args=validate_args)

    @property
    def _num_events(self) -> int:
        return self._param.shape[-1]

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def mean(self) -> Any:
        return self._param.new_full(self._batch_shape, math.nan)

    @property
    def mode(self) -> Any:
        return self.probs.argmax(-1)

    @property
    def variance(self) -> Any:
        return self._param.new_full(self._batch_shape, math.nan)

    def sample(self, sample_shape: Any = ()) -> Any:
        with no_grad():
            rows = self.probs.reshape(-1, self._num_events)
            return multinomial(rows, Size(sample_shape).numel(), True).T.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        value = value.long().unsqueeze(-1)
        shape = broadcast_shapes(value.shape[:-1], self.logits.shape[:-1])
        logits = self.logits.expand(*shape, self._num_events)
        return logits.gather(-1, value.expand(*shape, 1)).squeeze(-1)

    def entropy(self) -> Any:
        logits = self.logits.clamp(min=finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Any:
        values = arange(self._num_events, device=self._param.device)
        return self._enumerated(values, expand)


class OverCategories(Distribution):
    """What distributions have in common whose samples are vectors over categories; parameters as in ``Categorical``."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._categorical = Categorical(probs, logits)
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    @property
    def probs(self) -> Any:
        """The probabilities."""
        return self._categorical.probs

    @property
    def logits(self) -> Any:
        """Their logarithms."""
        return self._categorical.logits

    @property
    def _param(self) -> Any:
        return self._categorical._param

    @property
    def param_shape(self) -> Size:
        """The shape of the probabilities."""
        return self._categorical.param_shape
