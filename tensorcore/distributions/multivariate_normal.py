"""The multivariate normal distribution."""

from __future__ import annotations

import math
from typing import Any

from tensorcore.distributions import constraints
from tensorcore.distributions.distribution import Distribution
from tensorcore.distributions.gaussian import half_log_det, mahalanobis, scale_tril_of_precision
from tensorcore.distributions.utils import _standard_normal, lazy_property
from tensorcore.errors import ArgumentError
from tensorcore.ops.linalg.cholesky import cholesky, cholesky_inverse
from tensorcore.ops.shapes.combine import broadcast_shapes

__all__ = ["MultivariateNormal", "chosen_matrix", "factor_of"]


class MultivariateNormal(Distribution):
    """Normal vectors of mean ``loc``, with one of a covariance, its inverse, or its lower triangular factor.

    Shapes: ``loc`` (..., n), the matrices (..., n, n).
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc: Any, covariance_matrix: Any = None, precision_matrix: Any = None, scale_tril: Any = None,
                 validate_args: bool | None = None) -> None:  # fmt: skip
        if loc.dim() < 1:
            raise ArgumentError("MultivariateNormal: loc must be at least one-dimensional, got a number; use Normal")
        name, matrix = chosen_matrix(
            "MultivariateNormal", covariance_matrix=covariance_matrix, precision_matrix=precision_matrix,
            scale_tril=scale_tril,
        )  # fmt: skip
        batch_shape = broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        self.loc = loc.expand(*batch_shape, -1)
        self.__dict__[name] = matrix.expand(*batch_shape, -1, -1)
        super().__init__(batch_shape, self.loc.shape[-1:], validate_args=validate_args)
        self._unbroadcasted_scale_tril = factor_of(name, matrix)

    @lazy_property
    def scale_tril(self) -> Any:
        """The lower triangular factor of the covariance."""
        return self._unbroadcasted_scale_tril.expand(self._batch_shape + self._event_shape + self._event_shape)

    @lazy_property
    def covariance_matrix(self) -> Any:
        """The covariance."""
        factor = self._unbroadcasted_scale_tril
        return (factor @ factor.mT).expand(self._batch_shape + self._event_shape + self._event_shape)

    @lazy_property
    def precision_matrix(self) -> Any:
        """The inverse of the covariance."""
        inverse = cholesky_inverse(self._unbroadcasted_scale_tril)
        return inverse.expand(self._batch_shape + self._event_shape + self._event_shape)

    @property
    def mean(self) -> Any:
        return self.loc

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        return self._unbroadcasted_scale_tril.square().sum(-1).expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape: Any = ()) -> Any:
        noise = _standard_normal(self._extended_shape(sample_shape), self.loc.dtype, self.loc.device)
        return self.loc + (self._unbroadcasted_scale_tril @ noise.unsqueeze(-1)).squeeze(-1)

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        factor = self._unbroadcasted_scale_tril
        distance = mahalanobis(factor, value - self.loc)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + distance) - half_log_det(factor)

    def entropy(self) -> Any:
        found = 0.5 * self._event_shape[0] * (1 + math.log(2 * math.pi)) + half_log_det(self._unbroadcasted_scale_tril)
        return found.expand(self._batch_shape)


def chosen_matrix(op: str, **matrices: Any) -> tuple[str, Any]:
    """The one that is given, by name. Raises ArgumentError for none, several, or a vector."""
    given = [(name, matrix) for name, matrix in matrices.items() if matrix is not None]
    if len(given) != 1:
        raise ArgumentError(
            f"{op}: Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified, got {len(given)}"
        )
    name, matrix = given[0]
    if matrix.dim() < 2:
        raise ArgumentError(
            f"{op}: {name} must be at least two-dimensional, with optional leading batch dimensions, got {matrix.dim()} dims"
        )
    return name, matrix


def factor_of(name: str, matrix: Any) -> Any:
    """The lower triangular factor of the covariance, from the matrix of that name."""
    if name == "scale_tril":
        return matrix
    return cholesky(matrix) if name == "covariance_matrix" else scale_tril_of_precision(matrix)
