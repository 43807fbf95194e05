"""The Cholesky factors of LKJ-distributed correlation matrices."""

from __future__ import annotations

import math
from typing import Any

from tensorcore.distributions import constraints
from tensorcore.distributions.beta import Beta
from tensorcore.distributions.distribution import Distribution
from tensorcore.distributions.utils import broadcast_all
from tensorcore.dtypes import finfo
from tensorcore.errors import ArgumentError
from tensorcore.formats import Size
from tensorcore.ops.creation.create import arange
from tensorcore.ops.creation.random import randn
from tensorcore.ops.pointwise.explog import mvlgamma
from tensorcore.tape.mode import no_grad

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Cholesky factors of ``dim`` x ``dim`` correlation matrices M of a density in proportion to ``det(M)**(concentration - 1)``.

    D. Lewandowski, D. Kurowicka and H. Joe, "Generating random correlation matrices based on vines and extended onion
    method" (2009), section 3.
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None) -> None:
        if dim < 2:
            raise ArgumentError(f"LKJCholesky: Expected dim to be an integer greater than or equal to 2, got dim={dim}")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        # The squared length of the part of row i left of the diagonal is beta distributed; of the first there is none.
        row = arange(dim, dtype=self.concentration.dtype, device=self.concentration.device) - 1
        row = row.clamp(min=0)
        left = self.concentration.unsqueeze(-1) + 0.5 * (dim - 2) - 0.5 * row
        self._beta = Beta(row + 0.5, left)
        super().__init__(self.concentration.shape, (dim, dim), validate_args=validate_args)

    def _expanded(self, name: str, batch_shape: Size) -> Any:
        return self._beta.expand((*batch_shape, self.dim)) if name == "_beta" else super()._expanded(name, batch_shape)

    def sample(self, sample_shape: Any = ()) -> Any:
        with no_grad():
            square = self._beta.sample(sample_shape).unsqueeze(-1)
            noise = randn(self._extended_shape(sample_shape), dtype=square.dtype, device=square.device).tril(-1)
            direction = noise / noise.norm(dim=-1, keepdim=True)
            direction[..., 0, :] = 0
            made = square.sqrt() * direction
            rest = (1 - made.square().sum(-1)).clamp(min=finfo(made.dtype).tiny)
            return made + rest.sqrt().diag_embed()

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        diagonal = value.diagonal(dim1=-2, dim2=-1)[..., 1:]
        row = arange(2, self.dim + 1, device=self.concentration.device)
        power = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - row
        count = self.dim - 1
        alpha = self.concentration + 0.5 * count
        # The normaliser is of page 1999 of the paper.
        scaling = 0.5 * count * math.log(math.pi) + mvlgamma(alpha - 0.5, count) - alpha.lgamma() * count
        return (power * diagonal.log()).sum(-1) - scaling
