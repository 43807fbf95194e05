"""Mixtures of distributions of one family."""

from __future__ import annotations

from typing import Any

from tensorcore.distributions import constraints
from tensorcore.distributions.categorical import Categorical
from tensorcore.distributions.distribution import Distribution
from tensorcore.errors import ArgumentError
from tensorcore.formats import Size
from tensorcore.tape.mode import no_grad

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """A component is drawn for each sample, and then the sample from it.

    Args:
        mixture_distribution: a ``Categorical`` over the components.
        component_distribution: the components, as the last dim of its batch.
    """

    arg_constraints: Any = {}

    def __init__(
        self, mixture_distribution: Any, component_distribution: Any, validate_args: bool | None = None
    ) -> None:
        op = "MixtureSameFamily"
        if not isinstance(mixture_distribution, Categorical):
            raise ArgumentError(
                f"{op}: The Mixture distribution needs to be a Categorical, got {mixture_distribution!r}"
            )
        if not isinstance(component_distribution, Distribution):
            raise ArgumentError(
                f"{op}: The Component distribution needs to be a Distribution, got {component_distribution!r}"
            )
        mixed, batch = mixture_distribution.batch_shape, component_distribution.batch_shape[:-1]
        if any(
            one not in (1, other) and other != 1 for one, other in zip(reversed(mixed), reversed(batch), strict=False)
        ):
            raise ArgumentError(
                f"{op}: `mixture_distribution.batch_shape` is not compatible with `component_distribution.batch_shape`, got "
                f"{mixed} and {batch}"
            )
        count = mixture_distribution.logits.shape[-1]
        if component_distribution.batch_shape[-1:] != (count,):
            raise ArgumentError(
                f"{op}: `mixture_distribution component` does not equal `component_distribution.batch_shape[-1]`, got {count} "
                f"and {component_distribution.batch_shape}"
            )
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        self._num_component = count
        self._event_ndims = len(component_distribution.event_shape)
        super().__init__(batch, component_distribution.event_shape, validate_args=validate_args)

    def _expanded(self, name: str, batch_shape: Size) -> Any:
        if name == "_component_distribution":
            return self._component_distribution.expand((*batch_shape, self._num_component))
        return super()._expanded(name, batch_shape)

    @constraints.dependent_property
    def support(self) -> Any:
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self) -> Any:
        """The distribution over the components."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Any:
        """The components."""
        return self._component_distribution

    def _averaged(self, values: Any) -> Any:
        """The mean over the components of values of the shape of their samples."""
        probs = self._mixture_distribution.probs
        return (probs.reshape((*probs.shape, *[1] * self._event_ndims)) * values).sum(-1 - self._event_ndims)

    @property
    def mean(self) -> Any:
        return self._averaged(self._component_distribution.mean)

    @property
    def variance(self) -> Any:
        # The law of total variance: the mean of the variances and the variance of the means.
        components = self._component_distribution
        away = components.mean - self.mean.unsqueeze(-1 - self._event_ndims)
        return self._averaged(components.variance) + self._averaged(away.square())

    def cdf(self, value: Any) -> Any:
        found = self._component_distribution.cdf(value.unsqueeze(-1 - self._event_ndims))
        return (found * self._mixture_distribution.probs).sum(-1)

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        found = self._component_distribution.log_prob(value.unsqueeze(-1 - self._event_ndims))
        return (found + self._mixture_distribution.logits.log_softmax(-1)).logsumexp(-1)

    def sample(self, sample_shape: Any = ()) -> Any:
        with no_grad():
            mixture = self._mixture_distribution
            if mixture.batch_shape != self._batch_shape:
                mixture = mixture.expand(self._batch_shape)
            which = mixture.sample(sample_shape)
            drawn = self._component_distribution.sample(sample_shape)
            dim = which.dim()
            which = which.reshape((*which.shape, 1, *[1] * self._event_ndims))
            return drawn.gather(dim, which.expand((*which.shape[: dim + 1], *self._event_shape))).squeeze(dim)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(\n  {self.mixture_distribution},\n  {self.component_distribution})"
