"""Distributions of transformed samples."""

from __future__ import annotations

from typing import Any

from tensorcore.distributions import constraints
from tensorcore.distributions.distribution import Distribution
from tensorcore.distributions.independent import Independent
from tensorcore.distributions.transform import ComposeTransform, Transform
from tensorcore.distributions.utils import _sum_rightmost
from tensorcore.errors import ArgumentError
from tensorcore.formats import Size
from tensorcore.tape.mode import no_grad

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """The distribution of ``t(x)`` for samples x of a distribution.

    Its density is that of x over ``|dy/dx|``.

    Args:
        transforms: one transform, or a list of them of which the first comes first.
    """

    arg_constraints: Any = {}

    def __init__(self, base_distribution: Any, transforms: Any, validate_args: bool | None = None) -> None:
        self.transforms = [transforms] if isinstance(transforms, Transform) else transforms
        if not isinstance(self.transforms, list) or not all(isinstance(one, Transform) for one in self.transforms):
            raise ArgumentError(
                f"TransformedDistribution: transforms must be a Transform or list, but was {transforms!r}: got "
                f"{type(transforms).__name__}"
            )
        shape = base_distribution.batch_shape + base_distribution.event_shape
        base_dims = len(base_distribution.event_shape)
        chain = ComposeTransform(self.transforms)
        if len(shape) < chain.domain.event_dim:
            raise ArgumentError(
                f"TransformedDistribution: base_distribution needs to have shape with size at least "
                f"{chain.domain.event_dim}, got {shape}; expand it"
            )
        result = chain.forward_shape(shape)
        # The base is expanded to the batch that the transforms' own parameters have.
        wider = chain.inverse_shape(result)
        if shape != wider:
            base_distribution = base_distribution.expand(wider[: len(wider) - base_dims])
        more = chain.domain.event_dim - base_dims
        if more > 0:
            base_distribution = Independent(base_distribution, more)
        self.base_dist = base_distribution
        dims = chain.codomain.event_dim + max(base_dims - chain.domain.event_dim, 0)
        if len(result) < dims:
            raise ArgumentError(f"TransformedDistribution: expected results of at least {dims} dims, got {len(result)}")
        cut = len(result) - dims
        super().__init__(result[:cut], result[cut:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        chain = ComposeTransform(self.transforms)
        shape = chain.inverse_shape(new._batch_shape + self._event_shape)
        new.base_dist = self.base_dist.expand(shape[: len(shape) - len(self.base_dist.event_shape)])
        return new

    def _expanded(self, name: str, batch_shape: Size) -> Any:
        return self.base_dist if name == "base_dist" else super()._expanded(name, batch_shape)

    @property
    def has_rsample(self) -> bool:
        return self.base_dist.has_rsample

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Any:
        if not self.transforms:
            return self.base_dist.support
        found = self.transforms[-1].codomain
        more = len(self.event_shape) - found.event_dim
        return constraints.independent(found, more) if more > 0 else found

    def sample(self, sample_shape: Any = ()) -> Any:
        with no_grad():
            return self._forward(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self._forward(self.base_dist.rsample(sample_shape))

    def _forward(self, x: Any) -> Any:
        for transform in self.transforms:
            x = transform(x)
        return x

    def _backward(self, y: Any) -> Any:
        for transform in reversed(self.transforms):
            y = transform.inv(y)
        return y

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        dims = len(self.event_shape)
        found: Any = 0.0
        y = value
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            dims += transform.domain.event_dim - transform.codomain.event_dim
            slope = transform.log_abs_det_jacobian(x, y)
            found = found - _sum_rightmost(slope, dims - transform.domain.event_dim)
            y = x
        return found + _sum_rightmost(self.base_dist.log_prob(y), dims - len(self.base_dist.event_shape))

    def cdf(self, value: Any) -> Any:
        self._check(value)
        return self._turned(self.base_dist.cdf(self._backward(value)))

    def icdf(self, value: Any) -> Any:
        return self._forward(self.base_dist.icdf(self._turned(value)))

    def _turned(self, probability: Any) -> Any:
        """The probability, or one less it where the transforms turn small values into large ones."""
        sign: Any = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        return probability if isinstance(sign, int) and sign == 1 else sign * (probability - 0.5) + 0.5
