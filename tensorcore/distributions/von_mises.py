"""The von Mises distribution."""

from __future__ import annotations

import math
from typing import Any

from tensorcore.distributions import constraints
from tensorcore.distributions.distribution import Distribution
from tensorcore.distributions.utils import lazy_property
from tensorcore.dtypes import float64
from tensorcore.ops.creation.create import zeros
from tensorcore.ops.creation.random import rand
from tensorcore.ops.pointwise.choice import where
from tensorcore.ops.special.bessel import i0e, i1e
from tensorcore.tape.mode import no_grad

__all__ = ["VonMises"]


class VonMises(Distribution):
    """Angles, in radians, of a density in proportion to ``exp(concentration * cos(x - loc))``."""

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self._take(validate_args, loc=loc, concentration=concentration)

    @property
    def mean(self) -> Any:
        """The circular mean."""
        return self.loc

    @property
    def mode(self) -> Any:
        return self.loc

    @lazy_property
    def variance(self) -> Any:
        """The circular variance."""
        return 1 - i1e(self.concentration) / i0e(self.concentration)

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        # i0e is scaled by exp(-concentration).
        away = self.concentration * ((value - self.loc).cos() - 1)
        return away - math.log(2 * math.pi) - i0e(self.concentration).log()

    def sample(self, sample_shape: Any = ()) -> Any:
        """D. J. Best and N. I. Fisher, "Efficient simulation of the von Mises distribution" (1979), in double precision."""
        shape = self._extended_shape(sample_shape)
        with no_grad():
            kappa = self.concentration.double()
            tau = 1 + (1 + 4 * kappa.square()).sqrt()
            rho = (tau - (2 * tau).sqrt()) / (2 * kappa)
            r = where(kappa < 1e-5, 1 / kappa + kappa, (1 + rho.square()) / (2 * rho))
            made = zeros(shape, dtype=float64, device=kappa.device)
            done = zeros(shape, device=kappa.device).bool()
            while not bool(done.all()):
                u1, u2, u3 = rand((3, *shape), dtype=float64, device=kappa.device).unbind()
                z = (math.pi * u1).cos()
                f = (1 + r * z) / (r + z)
                c = kappa * (r - f)
                accepted = (c * (2 - c) - u2 > 0) | ((c / u2).log() + 1 - c >= 0)
                # An angle that was accepted before is replaced as well, which is PyTorch's order of numbers.
                made = where(accepted, (u3 - 0.5).sign() * f.acos(), made)
                done = done | accepted
            angle = (made + math.pi + self.loc.double()) % (2 * math.pi) - math.pi
            return angle.to(self.loc.dtype)
