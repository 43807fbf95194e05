"""Multivariate normal distributions whose covariance is a diagonal and a matrix of low rank."""

from __future__ import annotations

import math
from typing import Any

from tensorcore.distributions import constraints
from tensorcore.distributions.distribution import Distribution
from tensorcore.distributions.gaussian import capacitance, low_rank_log_det, low_rank_mahalanobis
from tensorcore.distributions.utils import _standard_normal, lazy_property
from tensorcore.errors import ArgumentError
from tensorcore.ops.creation.grids import eye
from tensorcore.ops.linalg.cholesky import cholesky
from tensorcore.ops.linalg.triangular import solve_triangular
from tensorcore.ops.shapes.combine import broadcast_shapes

__all__ = ["LowRankMultivariateNormal"]


class LowRankMultivariateNormal(Distribution):
    """Normal vectors of mean ``loc`` and covariance ``cov_factor cov_factor^T + diag(cov_diag)``.

    Shapes: ``loc`` and ``cov_diag`` (..., n), ``cov_factor`` (..., n, rank). Only matrices of the rank's size are
    factored.
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc: Any, cov_factor: Any, cov_diag: Any, validate_args: bool | None = None) -> None:
        op = "LowRankMultivariateNormal"
        if loc.dim() < 1:
            raise ArgumentError(f"{op}: loc must be at least one-dimensional, got a number; use Normal")
        if cov_factor.dim() < 2:
            raise ArgumentError(f"{op}: cov_factor must be at least two-dimensional, got {cov_factor.dim()} dims")
        event_shape = loc.shape[-1:]
        if cov_factor.shape[-2:-1] != event_shape:
            raise ArgumentError(
                f"{op}: cov_factor must be a batch of matrices with shape {event_shape[0]} x m, got {list(cov_factor.shape)}"
            )
        if cov_diag.shape[-1:] != event_shape:
            raise ArgumentError(
                f"{op}: cov_diag must be a batch of vectors with shape {event_shape}, got {cov_diag.shape}"
            )
        try:
            batch_shape = broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        except RuntimeError:
            raise ArgumentError(
                f"{op}: Incompatible batch shapes: got loc {loc.shape}, cov_factor {cov_factor.shape}, cov_diag "
                f"{cov_diag.shape}"
            ) from None
        self.loc = loc.expand(*batch_shape, -1)
        self.cov_factor = cov_factor.expand(*batch_shape, -1, -1)
        self.cov_diag = cov_diag.expand(*batch_shape, -1)
        self._unbroadcasted_cov_factor = cov_factor
        self._unbroadcasted_cov_diag = cov_diag
        self._capacitance_tril = capacitance(cov_factor, cov_diag)
        super().__init__(batch_shape, event_shape, validate_args=validate_args)

    def _matrix(self, unbroadcasted: Any) -> Any:
        return unbroadcasted.expand(self._batch_shape + self._event_shape + self._event_shape)

    @lazy_property
    def scale_tril(self) -> Any:
        """The lower triangular factor of the covariance."""
        root = self._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)
        scaled = self._unbroadcasted_cov_factor / root
        identity = eye(self._event_shape[0], dtype=scaled.dtype, device=scaled.device)
        return self._matrix(root * cholesky(scaled @ scaled.mT + identity))

    @lazy_property
    def covariance_matrix(self) -> Any:
        """The covariance."""
        W = self._unbroadcasted_cov_factor
        return self._matrix(W @ W.mT + self._unbroadcasted_cov_diag.diag_embed())

    @lazy_property
    def precision_matrix(self) -> Any:
        """The inverse of the covariance."""
        d = self._unbroadcasted_cov_diag
        inner = solve_triangular(
            self._capacitance_tril, (self._unbroadcasted_cov_factor / d.unsqueeze(-1)).mT, upper=False
        )
        return self._matrix(d.reciprocal().diag_embed() - inner.mT @ inner)

    @property
    def mean(self) -> Any:
        return self.loc

    @property
    def mode(self) -> Any:
        return self.loc

    @lazy_property
    def variance(self) -> Any:
        found = self._unbroadcasted_cov_factor.square().sum(-1) + self._unbroadcasted_cov_diag
        return found.expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        W = self._unbroadcasted_cov_factor
        low = _standard_normal(shape[:-1] + W.shape[-1:], self.loc.dtype, self.loc.device)
        noise = _standard_normal(shape, self.loc.dtype, self.loc.device)
        return self.loc + (W @ low.unsqueeze(-1)).squeeze(-1) + self._unbroadcasted_cov_diag.sqrt() * noise

    def _log_det(self) -> Any:
        return low_rank_log_det(self._unbroadcasted_cov_diag, self._capacitance_tril)

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        distance = low_rank_mahalanobis(
            self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag, value - self.loc, self._capacitance_tril
        )
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + self._log_det() + distance)

    def entropy(self) -> Any:
        found = 0.5 * (self._event_shape[0] * (1 + math.log(2 * math.pi)) + self._log_det())
        return found.expand(self._batch_shape)
