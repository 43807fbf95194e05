"""The Weibull distribution."""

from __future__ import annotations

from typing import Any

from tensorcore.distributions import constraints
from tensorcore.distributions.exponential import Exponential
from tensorcore.distributions.transformed_distribution import TransformedDistribution
from tensorcore.distributions.transforms import AffineTransform, PowerTransform
from tensorcore.distributions.utils import broadcast_all, euler_constant
from tensorcore.formats import Size
from tensorcore.ops.creation.create import ones_like

__all__ = ["Weibull"]


class Weibull(TransformedDistribution):
    """Numbers with the cumulative distribution function ``1 - exp(-(x / scale)**concentration)``."""

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()
        base = Exponential(ones_like(self.scale), validate_args=validate_args)
        transforms = [PowerTransform(self.concentration_reciprocal), AffineTransform(0, self.scale)]
        super().__init__(base, transforms, validate_args=validate_args)

    def _expanded(self, name: str, batch_shape: Size) -> Any:
        if name == "concentration_reciprocal":
            return self.concentration_reciprocal.expand(batch_shape)
        return super()._expanded(name, batch_shape)

    @property
    def mean(self) -> Any:
        return self.scale * (1 + self.concentration_reciprocal).lgamma().exp()

    @property
    def mode(self) -> Any:
        return self.scale * ((self.concentration - 1) / self.concentration) ** self.concentration_reciprocal

    @property
    def variance(self) -> Any:
        part = self.concentration_reciprocal
        return self.scale.square() * ((1 + 2 * part).lgamma().exp() - (2 * (1 + part).lgamma()).exp())

    def entropy(self) -> Any:
        part = self.concentration_reciprocal
        return euler_constant * (1 - part) + (self.scale * part).log() + 1
