"""The beta distribution."""

from __future__ import annotations

from typing import Any

from tensorcore.distributions import constraints
from tensorcore.distributions.dirichlet import Dirichlet
from tensorcore.distributions.exp_family import ExponentialFamily
from tensorcore.distributions.utils import broadcast_all
from tensorcore.ops.shapes.join import stack

__all__ = ["Beta"]


class Beta(ExponentialFamily):
    """Numbers between 0 and 1: the first of a Dirichlet pair of concentrations ``concentration1, concentration0``."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self._dirichlet = Dirichlet(
            stack(broadcast_all(concentration1, concentration0), -1), validate_args=validate_args
        )
        super().__init__(self._dirichlet._batch_shape, validate_args=validate_args)

    @property
    def concentration1(self) -> Any:
        """The exponent of x in the density, plus one."""
        return self._dirichlet.concentration[..., 0]

    @property
    def concentration0(self) -> Any:
        """The exponent of 1 - x in the density, plus one."""
        return self._dirichlet.concentration[..., 1]

    @property
    def mean(self) -> Any:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> Any:
        return self._dirichlet.mode[..., 0]

    @property
    def variance(self) -> Any:
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total.square() * (total + 1))

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self._dirichlet.rsample(sample_shape)[..., 0]

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        return self._dirichlet.log_prob(stack([value, 1 - value], -1))

    def entropy(self) -> Any:
        return self._dirichlet.entropy()

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return self.concentration1, self.concentration0

    def _log_normalizer(self, *natural_params: Any) -> Any:
        one, zero = natural_params
        return one.lgamma() + zero.lgamma() - (one + zero).lgamma()
