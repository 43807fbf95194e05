"""The Wishart distribution."""

from __future__ import annotations

import math
import warnings
from typing import Any

from tensorcore.distributions import constraints
from tensorcore.distributions.chi2 import Chi2
from tensorcore.distributions.exp_family import ExponentialFamily
from tensorcore.distributions.gaussian import half_log_det
from tensorcore.distributions.multivariate_normal import chosen_matrix, factor_of
from tensorcore.distributions.utils import lazy_property, vec_to_tril_matrix
from tensorcore.dtypes import finfo
from tensorcore.errors import ArgumentError
from tensorcore.formats import Size
from tensorcore.ops.creation.create import arange
from tensorcore.ops.creation.create import tensor as tensor_of
from tensorcore.ops.creation.random import randn
from tensorcore.ops.linalg.cholesky import cholesky_inverse, cholesky_solve
from tensorcore.ops.linalg.determinant import slogdet
from tensorcore.ops.pointwise.explog import mvlgamma
from tensorcore.ops.shapes.combine import broadcast_shapes
from tensorcore.tensor import Tensor

__all__ = ["Wishart"]


class Wishart(ExponentialFamily):
    """Sums of ``df`` outer products of normal vectors with themselves; ``df`` need not be whole.

    Exactly one of the normal vectors' covariance, its inverse and its lower triangular factor is given, in the shape
    (..., n, n); ``df`` is greater than n - 1.
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, df: Any, covariance_matrix: Any = None, precision_matrix: Any = None, scale_tril: Any = None,
                 validate_args: bool | None = None) -> None:  # fmt: skip
        name, matrix = chosen_matrix(
            "Wishart", covariance_matrix=covariance_matrix, precision_matrix=precision_matrix, scale_tril=scale_tril
        )
        if not isinstance(df, Tensor):
            df = tensor_of(df, dtype=matrix.dtype, device=matrix.device)
        batch_shape = broadcast_shapes(matrix.shape[:-2], df.shape)
        self.df = df.expand(batch_shape)
        self.__dict__[name] = matrix.expand(*batch_shape, -1, -1)
        count = matrix.shape[-1]
        if bool((self.df <= count - 1).any()):
            raise ArgumentError(f"Wishart: Value of df expected to be greater than ndim - 1 = {count - 1}, got {df}")
        if bool((self.df < count).any()):
            warnings.warn(
                "Low df values detected. Singular samples are highly likely to occur for ndim - 1 < df < ndim.",
                stacklevel=2,
            )
        super().__init__(batch_shape, matrix.shape[-2:], validate_args=validate_args)
        self._unbroadcasted_scale_tril = factor_of(name, matrix)
        steps = arange(count, dtype=matrix.dtype, device=matrix.device)
        self._dist_chi2 = Chi2(self.df.unsqueeze(-1) - steps)

    @property
    def arg_constraints(self) -> dict[str, Any]:
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self.event_shape[-1] - 1),
        }

    def _expanded(self, name: str, batch_shape: Size) -> Any:
        if name == "_dist_chi2":
            return self._dist_chi2.expand((*batch_shape, self.event_shape[-1]))
        return super()._expanded(name, batch_shape)

    @lazy_property
    def scale_tril(self) -> Any:
        """The lower triangular factor of the covariance."""
        return self._unbroadcasted_scale_tril.expand(self._batch_shape + self._event_shape)

    @lazy_property
    def covariance_matrix(self) -> Any:
        """The covariance."""
        factor = self._unbroadcasted_scale_tril
        return (factor @ factor.mT).expand(self._batch_shape + self._event_shape)

    @lazy_property
    def precision_matrix(self) -> Any:
        """The inverse of the covariance."""
        return cholesky_inverse(self._unbroadcasted_scale_tril).expand(self._batch_shape + self._event_shape)

    def _times(self, count: Any) -> Any:
        return count.reshape((*self._batch_shape, 1, 1)) * self.covariance_matrix

    @property
    def mean(self) -> Any:
        return self._times(self.df)

    @property
    def mode(self) -> Any:
        count = self.df - self.event_shape[-1] - 1
        return self._times(count.masked_fill(count <= 0, math.nan))

    @property
    def variance(self) -> Any:
        V = self.covariance_matrix
        diagonal = V.diagonal(dim1=-2, dim2=-1)
        both = V.square() + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        return self.df.reshape((*self._batch_shape, 1, 1)) * both

    def _drawn(self, sample_shape: Any) -> Any:
        """M. S. Bartlett, "On the theory of statistical regression" (1933): the factors of samples, multiplied out."""
        count = self._event_shape[-1]
        roots = self._dist_chi2.rsample(sample_shape).sqrt()
        roots = roots.clamp(min=finfo(roots.dtype).eps)
        below = (*sample_shape, *self._batch_shape, count * (count - 1) // 2)
        noise = roots.diag_embed()
        if count > 1:
            noise = noise + vec_to_tril_matrix(randn(below, dtype=roots.dtype, device=roots.device), diag=-1)
        factor = self._unbroadcasted_scale_tril @ noise
        return factor @ factor.mT

    def rsample(self, sample_shape: Any = (), max_try_correction: int | None = None) -> Any:
        """Samples, drawn again where they came out singular.

        PyTorch draws the others again instead at the first try; to have its numbers, so do we.

        Args:
            max_try_correction: how often at most, 10 times unless told otherwise.
        """
        made = self._drawn(sample_shape)
        again = self._any_of_batch(self.support.check(made))
        for _ in range(10 if max_try_correction is None else max_try_correction):
            if not bool(again.any()):
                break
            new = self._drawn((int(again.sum()),))
            made = made.clone()
            made[again] = new
            left = again.clone()
            left[again] = self._any_of_batch(~self.support.check(new))
            again = left
        return made

    def _any_of_batch(self, found: Any) -> Any:
        dims = tuple(range(-len(self._batch_shape), 0))
        return found.any(dims) if dims else found

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        nu, count = self.df, self._event_shape[-1]
        factor = self._unbroadcasted_scale_tril
        trace = cholesky_solve(value, factor).diagonal(dim1=-2, dim2=-1).sum(-1)
        scaling = nu * (count * math.log(2) / 2 + half_log_det(factor)) + mvlgamma(nu / 2, count)
        return (nu - count - 1) / 2 * slogdet(value).logabsdet - trace / 2 - scaling

    def entropy(self) -> Any:
        nu, count = self.df, self._event_shape[-1]
        steps = arange(count, dtype=nu.dtype, device=nu.device)
        slope = ((nu.unsqueeze(-1) - steps) / 2).digamma().sum(-1)  # of mvlgamma at nu / 2
        size = (count + 1) * (count * math.log(2) / 2 + half_log_det(self._unbroadcasted_scale_tril))
        return size + mvlgamma(nu / 2, count) - (nu - count - 1) / 2 * slope + nu * count / 2

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return -self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2

    def _log_normalizer(self, *natural_params: Any) -> Any:
        matrix, power = natural_params
        count = self._event_shape[-1]
        half = power + (count + 1) / 2
        return half * (count * math.log(2) - slogdet(-2 * matrix).logabsdet) + mvlgamma(half, count)
