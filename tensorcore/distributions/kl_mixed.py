"""Divergences between distributions of two families: minus the entropy of p, less the mean under p of ``log q(x)``.

Each q says what that mean is in terms of a few means under p, such as those of x and ``log x``; each p says what
those are. Only the pairs of PyTorch are registered.
"""

from __future__ import annotations

import math
from typing import Any

from tensorcore.distributions.bernoulli import Bernoulli
from tensorcore.distributions.beta import Beta
from tensorcore.distributions.binomial import Binomial
from tensorcore.distributions.continuous_bernoulli import ContinuousBernoulli
from tensorcore.distributions.exponential import Exponential
from tensorcore.distributions.gamma import Gamma
from tensorcore.distributions.gumbel import Gumbel
from tensorcore.distributions.kl import register_kl
from tensorcore.distributions.laplace import Laplace
from tensorcore.distributions.normal import Normal
from tensorcore.distributions.pareto import Pareto
from tensorcore.distributions.poisson import Poisson
from tensorcore.distributions.uniform import Uniform
from tensorcore.distributions.utils import euler_constant
from tensorcore.ops.creation.create import full_like
from tensorcore.ops.pointwise.choice import where
from tensorcore.ops.pointwise.explog import xlogy

__all__: list[str] = []

# For each p those q that put no weight where p may be: the divergence is infinite.
_INFINITE = {
    Beta: (Pareto,),
    ContinuousBernoulli: (Pareto,),
    Exponential: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gamma: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gumbel: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Laplace: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Normal: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Pareto: (Beta, ContinuousBernoulli, Uniform),
    Poisson: (Bernoulli, Binomial),
}
_FINITE = {
    Beta: (ContinuousBernoulli, Exponential, Gamma, Normal, Uniform),
    ContinuousBernoulli: (Exponential, Normal, Uniform),
    Exponential: (Gamma, Gumbel, Normal),
    Gamma: (Exponential, Gumbel, Normal),
    Gumbel: (Normal,),
    Laplace: (Normal,),
    Normal: (Gumbel, Laplace),
    Pareto: (Exponential, Gamma, Normal),
    Uniform: (Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Normal, Pareto),
}


# Means under p


def _log(p: Any) -> Any:
    """That of ``log x``."""
    if isinstance(p, Beta):
        return p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma()
    if isinstance(p, Exponential):
        return -euler_constant - p.rate.log()
    if isinstance(p, Gamma):
        return p.concentration.digamma() - p.rate.log()
    if isinstance(p, Pareto):
        return p.scale.log() + p.alpha.reciprocal()
    return (xlogy(p.high, p.high) - xlogy(p.low, p.low)) / (p.high - p.low) - 1  # uniform


def _log_rest(p: Any) -> Any:
    """That of ``log(1 - x)`` of uniform numbers."""
    low, high = 1 - p.high, 1 - p.low
    return (xlogy(high, high) - xlogy(low, low)) / (high - low) - 1


def _decay(p: Any, rate: Any) -> Any:
    """That of ``exp(-rate x)``."""
    if isinstance(p, Exponential):
        return p.rate / (p.rate + rate)
    if isinstance(p, Gamma):
        return (1 + rate / p.rate) ** -p.concentration
    if isinstance(p, Normal):
        return (0.5 * (p.scale * rate).square() - p.loc * rate).exp()
    return ((-rate * p.low).exp() - (-rate * p.high).exp()) / (rate * (p.high - p.low))  # uniform


def _distance(p: Any, point: Any) -> Any:
    """That of ``|x - point|`` of normal numbers."""
    away = (p.loc - point) / p.scale
    height = (-0.5 * away.square()).exp() * math.sqrt(2 / math.pi)
    return p.scale * (height + away * (away / math.sqrt(2)).erf())


# Means of log q(x) under p


def _of_beta(p: Any, q: Any) -> Any:
    one, zero = q.concentration1, q.concentration0
    scaling = one.lgamma() + zero.lgamma() - (one + zero).lgamma()
    return (one - 1) * _log(p) + (zero - 1) * _log_rest(p) - scaling


def _of_continuous_bernoulli(p: Any, q: Any) -> Any:
    return p.mean * q.logits + (-q.probs).log1p() + q._log_norm()


def _of_exponential(p: Any, q: Any) -> Any:
    return q.rate.log() - q.rate * p.mean


def _of_gamma(p: Any, q: Any) -> Any:
    c = q.concentration
    return c * q.rate.log() - c.lgamma() + (c - 1) * _log(p) - q.rate * p.mean


def _of_gumbel(p: Any, q: Any) -> Any:
    rate = q.scale.reciprocal()
    return rate.log() + (q.loc - p.mean) * rate - (q.loc * rate).exp() * _decay(p, rate)


def _of_laplace(p: Any, q: Any) -> Any:
    return -(2 * q.scale).log() - _distance(p, q.loc) / q.scale


def _of_normal(p: Any, q: Any) -> Any:
    square = (p.variance + (p.mean - q.loc).square()) / q.scale.square()
    return -0.5 * (math.log(2 * math.pi) + square) - q.scale.log()


def _of_pareto(p: Any, q: Any) -> Any:
    return q.alpha.log() + q.alpha * q.scale.log() - (q.alpha + 1) * _log(p)


def _of_uniform(p: Any, q: Any) -> Any:
    return -(q.high - q.low).log()


_CROSS = {
    Beta: _of_beta,
    ContinuousBernoulli: _of_continuous_bernoulli,
    Exponential: _of_exponential,
    Gamma: _of_gamma,
    Gumbel: _of_gumbel,
    Laplace: _of_laplace,
    Normal: _of_normal,
    Pareto: _of_pareto,
    Uniform: _of_uniform,
}


def _outside(p: Any, q: Any) -> Any:
    """Whether p puts weight where a q of bounded support has none; None for a q whose support holds that of every p."""
    if isinstance(q, Uniform):
        return (q.low > 0) | (q.high < 1)  # where beta and continuous Bernoulli numbers are
    if not isinstance(p, Uniform) or isinstance(q, Normal | Gumbel):
        return None
    if isinstance(q, Pareto):
        return p.low < q.scale
    return (p.low < 0) | (p.high > 1) if isinstance(q, Beta | ContinuousBernoulli) else p.low < 0


def _finite(cross: Any) -> Any:
    def divergence(p: Any, q: Any) -> Any:
        found = -p.entropy() - cross(p, q)
        outside = _outside(p, q)
        return found if outside is None else where(outside, math.inf, found)

    return divergence


def _infinite(p: Any, q: Any) -> Any:
    return full_like(p.rate if isinstance(p, Poisson) else p.entropy(), math.inf)


for _p, _others in _INFINITE.items():
    for _q in _others:
        register_kl(_p, _q)(_infinite)
for _p, _others in _FINITE.items():
    for _q in _others:
        register_kl(_p, _q)(_finite(_CROSS[_q]))


@register_kl(Bernoulli, Poisson)
def _bernoulli_of_poisson(p: Any, q: Any) -> Any:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)
