"""The half-Cauchy distribution."""

from __future__ import annotations

import math
from typing import Any

from tensorcore.distributions.cauchy import Cauchy
from tensorcore.distributions.half_normal import FoldedDistribution
from tensorcore.ops.creation.create import full_like

__all__ = ["HalfCauchy"]


class HalfCauchy(FoldedDistribution):
    """Absolute values of Cauchy numbers around 0; without mean and variance."""

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Cauchy(0, scale, validate_args=False), validate_args)

    @property
    def mean(self) -> Any:
        return full_like(self.scale, math.inf)

    @property
    def variance(self) -> Any:
        return self.base_dist.variance
