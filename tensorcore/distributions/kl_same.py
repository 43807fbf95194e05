"""Divergences between two distributions of one family, in closed form."""

from __future__ import annotations

import math
from typing import Any

from tensorcore.autograd.walks import grad
from tensorcore.distributions.bernoulli import Bernoulli
from tensorcore.distributions.beta import Beta
from tensorcore.distributions.binomial import Binomial
from tensorcore.distributions.categorical import Categorical
from tensorcore.distributions.cauchy import Cauchy
from tensorcore.distributions.continuous_bernoulli import ContinuousBernoulli
from tensorcore.distributions.dirichlet import Dirichlet
from tensorcore.distributions.exp_family import ExponentialFamily
from tensorcore.distributions.exponential import Exponential
from tensorcore.distributions.gamma import Gamma
from tensorcore.distributions.gaussian import (
    half_log_det,
    low_rank_mahalanobis,
    mahalanobis,
)
from tensorcore.distributions.geometric import Geometric
from tensorcore.distributions.gumbel import Gumbel
from tensorcore.distributions.half_normal import HalfNormal
from tensorcore.distributions.independent import Independent
from tensorcore.distributions.kl import kl_divergence, register_kl
from tensorcore.distributions.laplace import Laplace
from tensorcore.distributions.lowrank_multivariate_normal import LowRankMultivariateNormal
from tensorcore.distributions.multivariate_normal import MultivariateNormal
from tensorcore.distributions.normal import Normal
from tensorcore.distributions.one_hot_categorical import OneHotCategorical
from tensorcore.distributions.pareto import Pareto
from tensorcore.distributions.poisson import Poisson
from tensorcore.distributions.transformed_distribution import TransformedDistribution
from tensorcore.distributions.uniform import Uniform
from tensorcore.distributions.utils import _sum_rightmost, euler_constant
from tensorcore.errors import ArgumentError
from tensorcore.ops.linalg.triangular import solve_triangular
from tensorcore.ops.pointwise.choice import where
from tensorcore.ops.pointwise.explog import xlogy
from tensorcore.ops.shapes.combine import broadcast_shapes

__all__: list[str] = []


@register_kl(ExponentialFamily, ExponentialFamily)
def _family(p: Any, q: Any) -> Any:
    """The Bregman divergence of the log normaliser: Nielsen and Nock, "Entropies and cross-entropies of exponential
    families" (2010)."""
    if type(p) is not type(q):
        raise NotImplementedError(
            f"kl_divergence: The cross KL-divergence between different exponential families cannot be computed, got "
            f"{type(p).__name__} and {type(q).__name__}"
        )
    theta = [one.detach().requires_grad_() for one in p._natural_params]
    normalizer = p._log_normalizer(*theta)
    slopes = grad(normalizer.sum(), theta, create_graph=True)
    found = q._log_normalizer(*q._natural_params) - normalizer
    for mine, other, slope in zip(theta, q._natural_params, slopes, strict=True):
        found = found - _sum_rightmost((other - mine) * slope, len(q.event_shape))
    return found


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Any, q: Any) -> Any:
    # softplus(l) = -log(1 - p); where p is 0 or 1 itself, its product with the other's log odds decides alone.
    found = p.probs * (_softplus(-q.logits) - _softplus(-p.logits))
    found = where(q.probs == 0, math.inf, found).masked_fill(p.probs == 0, 0)
    rest = (1 - p.probs) * (_softplus(q.logits) - _softplus(p.logits))
    rest = where(q.probs == 1, math.inf, rest).masked_fill(p.probs == 1, 0)
    return found + rest


def _softplus(x: Any) -> Any:
    from tensorcore.ops.layers.activation import softplus

    return softplus(x)


@register_kl(Binomial, Binomial)
def _binomial(p: Any, q: Any) -> Any:
    # From https://math.stackexchange.com/questions/2214993 the counts cancel where they are equal.
    if bool((p.total_count < q.total_count).any()):
        raise NotImplementedError(
            "kl_divergence: KL between Binomials where q.total_count > p.total_count is not implemented, got such"
        )
    found = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    # Counts that q cannot reach.
    beyond = p.total_count > q.total_count
    return where(beyond, math.inf, found)


@register_kl(Categorical, Categorical)
def _categorical(p: Any, q: Any) -> Any:
    found = p.probs * (p.logits - q.logits)
    found = where((q.probs == 0).expand_as(found), math.inf, found)
    return where((p.probs == 0).expand_as(found), 0.0, found).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p: Any, q: Any) -> Any:
    return _categorical(p._categorical, q._categorical)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p: Any, q: Any) -> Any:
    rest = (-p.probs).log1p() - (-q.probs).log1p()
    return p.mean * (p.logits - q.logits) + p._log_norm() - q._log_norm() + rest


@register_kl(Beta, Beta)
def _beta(p: Any, q: Any) -> Any:
    return _dirichlet(p._dirichlet, q._dirichlet)


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Any, q: Any) -> Any:
    mine, other = p.concentration, q.concentration
    total = mine.sum(-1)
    scaling = total.lgamma() - other.sum(-1).lgamma() - (mine.lgamma() - other.lgamma()).sum(-1)
    return scaling + ((mine - other) * (mine.digamma() - total.digamma().unsqueeze(-1))).sum(-1)


@register_kl(Exponential, Exponential)
def _exponential(p: Any, q: Any) -> Any:
    ratio = q.rate / p.rate
    return ratio - ratio.log() - 1


@register_kl(Gamma, Gamma)
def _gamma(p: Any, q: Any) -> Any:
    scaling = q.concentration * (p.rate / q.rate).log() + q.concentration.lgamma() - p.concentration.lgamma()
    power = (p.concentration - q.concentration) * p.concentration.digamma()
    return scaling + power + (q.rate - p.rate) * (p.concentration / p.rate)


@register_kl(Geometric, Geometric)
def _geometric(p: Any, q: Any) -> Any:
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Any, q: Any) -> Any:
    ratio = p.scale / q.scale
    away = (q.loc - p.loc) / q.scale
    log = (away + (1 + ratio).lgamma()).exp()
    return -ratio.log() - away + ratio * euler_constant + log - (1 + euler_constant)


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: Any, q: Any) -> Any:
    return _normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _laplace(p: Any, q: Any) -> Any:
    ratio = p.scale / q.scale
    away = (p.loc - q.loc).abs()
    return -ratio.log() + away / q.scale + ratio * (-away / p.scale).exp() - 1


@register_kl(Normal, Normal)
def _normal(p: Any, q: Any) -> Any:
    ratio = (p.scale / q.scale).square()
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).square() - 1 - ratio.log())


@register_kl(Pareto, Pareto)
def _pareto(p: Any, q: Any) -> Any:
    ratio = q.alpha / p.alpha
    found = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return where(p.support.lower_bound < q.support.lower_bound, math.inf, found)


@register_kl(Poisson, Poisson)
def _poisson(p: Any, q: Any) -> Any:
    return xlogy(p.rate, p.rate / q.rate) - (p.rate - q.rate)


@register_kl(Uniform, Uniform)
def _uniform(p: Any, q: Any) -> Any:
    found = ((q.high - q.low) / (p.high - p.low)).log()
    return where((q.low > p.low) | (q.high < p.high), math.inf, found)


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Any, q: Any) -> Any:
    """F. Chyzak and F. Nielsen, "A closed-form formula for the Kullback-Leibler divergence between Cauchy distributions"
    (2019)."""
    apart = (p.scale + q.scale).square() + (p.loc - q.loc).square()
    return apart.log() - (4 * p.scale * q.scale).log()


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: Any, q: Any) -> Any:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError("kl_divergence: expected the same transforms and event shapes, got others")
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Independent, Independent)
def _independent(p: Any, q: Any) -> Any:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError(
            f"kl_divergence: expected the same reinterpreted_batch_ndims, got {p.reinterpreted_batch_ndims} and "
            f"{q.reinterpreted_batch_ndims}"
        )
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


# Normal vectors: half of log det Q - log det P + trace(Q^-1 P) + the squared distance of the means - n.


@register_kl(MultivariateNormal, MultivariateNormal)
def _normal_vectors(p: Any, q: Any) -> Any:
    _check_events(p, q)
    mine, other = p._unbroadcasted_scale_tril, q._unbroadcasted_scale_tril
    return (
        half_log_det(other) - half_log_det(mine)
        + 0.5 * (_trace(other, mine) + mahalanobis(other, q.loc - p.loc) - p.event_shape[0])
    )  # fmt: skip


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _low_rank_of_normal(p: Any, q: Any) -> Any:
    _check_events(p, q)
    other = q._unbroadcasted_scale_tril
    diagonal = p._unbroadcasted_cov_diag.sqrt().diag_embed()
    trace = _trace(other, p._unbroadcasted_cov_factor) + _trace(other, diagonal)
    sizes = 2 * half_log_det(other) - p._log_det()
    return 0.5 * (sizes + trace + mahalanobis(other, q.loc - p.loc) - p.event_shape[0])


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _normal_of_low_rank(p: Any, q: Any) -> Any:
    _check_events(p, q)
    mine = p._unbroadcasted_scale_tril
    sizes = q._log_det() - 2 * half_log_det(mine)
    return 0.5 * (sizes + _low_rank_trace(q, mine) + _low_rank_distance(p, q) - p.event_shape[0])


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _low_rank(p: Any, q: Any) -> Any:
    _check_events(p, q)
    diagonal = p._unbroadcasted_cov_diag.sqrt().diag_embed()
    trace = _low_rank_trace(q, p._unbroadcasted_cov_factor) + _low_rank_trace(q, diagonal)
    return 0.5 * (q._log_det() - p._log_det() + trace + _low_rank_distance(p, q) - p.event_shape[0])


def _check_events(p: Any, q: Any) -> None:
    if p.event_shape != q.event_shape:
        raise ArgumentError(
            f"kl_divergence: KL-divergence between two {type(p).__name__} with different event shapes cannot be computed, got "
            f"{p.event_shape} and {q.event_shape}"
        )


def _trace(factor: Any, X: Any) -> Any:
    """The trace of ``(L L^T)^-1 X X^T``."""
    batch = broadcast_shapes(factor.shape[:-2], X.shape[:-2])
    wide = factor.expand(*batch, -1, -1), X.expand(*batch, -1, -1)
    return solve_triangular(*wide, upper=False).square().sum((-2, -1))


def _low_rank_trace(q: Any, X: Any) -> Any:
    """The trace of ``(W W^T + D)^-1 X X^T``: the squared distances of the columns of X, added up."""
    W, d = q._unbroadcasted_cov_factor, q._unbroadcasted_cov_diag.unsqueeze(-2)
    columns = X.mT
    factor = q._capacitance_tril
    if factor.dim() > 2:
        factor = factor.unsqueeze(-3)
    return low_rank_mahalanobis(W.unsqueeze(-3), d, columns, factor).sum(-1)


def _low_rank_distance(p: Any, q: Any) -> Any:
    W, d = q._unbroadcasted_cov_factor, q._unbroadcasted_cov_diag
    return low_rank_mahalanobis(W, d, q.loc - p.loc, q._capacitance_tril)
