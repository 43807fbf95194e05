"""The Dirichlet distribution."""

from __future__ import annotations

from typing import Any

from tensorcore.distributions import constraints
from tensorcore.distributions.exp_family import ExponentialFamily
from tensorcore.errors import ArgumentError
from tensorcore.ops.creation.draws import _sample_dirichlet
from tensorcore.ops.creation.grids import one_hot
from tensorcore.ops.pointwise.choice import where
from tensorcore.ops.pointwise.explog import xlogy

__all__ = ["Dirichlet"]


class Dirichlet(ExponentialFamily):
    """Points of the simplex along the last dim, of these concentrations."""

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Any, validate_args: bool | None = None) -> None:
        if concentration.dim() < 1:
            raise ArgumentError(
                "Dirichlet: `concentration` parameter must be at least one-dimensional, got a number; put the "
                "concentrations along the last dim"
            )
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args=validate_args)

    def rsample(self, sample_shape: Any = ()) -> Any:
        return _sample_dirichlet(self.concentration.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        c = self.concentration
        return xlogy(c - 1, value).sum(-1) + c.sum(-1).lgamma() - c.lgamma().sum(-1)

    @property
    def mean(self) -> Any:
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self) -> Any:
        above = (self.concentration - 1).clamp(min=0)
        inner = above / above.sum(-1, True)
        # Where all concentrations are below 1 the density is greatest in the corners.
        corner = one_hot(inner.argmax(-1), above.shape[-1]).to(inner)
        return where((self.concentration < 1).all(-1, keepdim=True), corner, inner)

    @property
    def variance(self) -> Any:
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total.square() * (total + 1))

    def entropy(self) -> Any:
        c, count = self.concentration, self.concentration.size(-1)
        total = c.sum(-1)
        spread = (count - total) * total.digamma() + ((c - 1) * c.digamma()).sum(-1)
        return c.lgamma().sum(-1) - total.lgamma() - spread

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return (self.concentration,)

    def _log_normalizer(self, *natural_params: Any) -> Any:
        (c,) = natural_params
        return c.lgamma().sum(-1) - c.sum(-1).lgamma()
