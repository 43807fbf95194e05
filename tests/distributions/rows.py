"""Every distribution by construction, and every transform and constraint with values for it. See test_distributions.py."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

__all__ = ["BAD", "CONSTRAINTS", "KL", "ROWS", "TRANSFORMS", "Row", "a", "build"]


class Row(NamedTuple):
    """One construction.

    Attributes:
        make: given a library's ``distributions`` and the parameters, the distribution.
        parameters: arrays, of which tensors that ask for gradients are made.
    """

    make: Any
    parameters: tuple[Any, ...] = ()


def a(*values: Any) -> np.ndarray:
    """Numbers in single precision."""
    return np.array(values, np.float32)


def build(lib: Any, row: Row, dtype: Any = np.float32) -> tuple[Any, list[Any]]:
    """The distribution of a row in a library, and its parameters as leaves."""
    leaves = [lib.tensor(one.astype(dtype), requires_grad=True) for one in row.parameters]
    return row.make(lib.distributions, *leaves), leaves


def _random(*shape: int, seed: int = 8) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


LOC, SCALE = a(0.5, -1.0, 3.0), a(1.0, 0.3, 2.5)
CHANCES = a(0.2, 0.7, 0.5)
WEIGHTS = a([0.2, 0.3, 0.5], [1.0, 2.0, 1.0])
LOGITS = a([0.2, -1.0, 0.5], [3.0, 2.0, -4.0])
TRIL = a([1.5, 0.0, 0.0], [0.4, 0.8, 0.0], [-0.3, 0.2, 1.1])
COVARIANCE = TRIL @ TRIL.T
BATCH = np.stack([COVARIANCE, 2 * COVARIANCE])
ROWS: dict[str, Row] = {
    "Normal": Row(lambda d, *p: d.Normal(*p), (LOC, SCALE)),
    "Normal of numbers": Row(lambda d: d.Normal(0.5, 2)),
    "Normal broadcast": Row(lambda d, *p: d.Normal(*p), (LOC, a([1.0], [2.0]))),
    "Normal of a number": Row(lambda d, p: d.Normal(0, p), (SCALE,)),
    "Uniform": Row(lambda d, *p: d.Uniform(*p), (LOC, LOC + SCALE)),
    "Bernoulli": Row(lambda d, p: d.Bernoulli(p), (CHANCES,)),
    "Bernoulli of logits": Row(lambda d, p: d.Bernoulli(logits=p), (LOC,)),
    "Bernoulli of a number": Row(lambda d: d.Bernoulli(0.3)),
    "Bernoulli certain": Row(lambda d, p: d.Bernoulli(p), (a(0.0, 1.0),)),
    "Binomial": Row(lambda d, p: d.Binomial(7, p), (CHANCES,)),
    "Binomial of logits": Row(lambda d, p: d.Binomial(4, logits=p), (LOC,)),
    "Binomial of counts": Row(lambda d, n, p: d.Binomial(n.detach(), p), (a(1.0, 5.0, 40.0), CHANCES)),
    "Categorical": Row(lambda d, p: d.Categorical(p), (WEIGHTS,)),
    "Categorical of logits": Row(lambda d, p: d.Categorical(logits=p), (LOGITS,)),
    "Categorical without batch": Row(lambda d, p: d.Categorical(p), (CHANCES,)),
    "Categorical with a zero": Row(lambda d, p: d.Categorical(p), (a(0.0, 1.0, 3.0),)),
    "OneHotCategorical": Row(lambda d, p: d.OneHotCategorical(p), (WEIGHTS,)),
    "OneHotCategorical of logits": Row(lambda d, p: d.OneHotCategorical(logits=p), (LOGITS,)),
    "OneHotCategoricalStraightThrough": Row(lambda d, p: d.OneHotCategoricalStraightThrough(p), (WEIGHTS,)),
    "Multinomial": Row(lambda d, p: d.Multinomial(6, p), (WEIGHTS,)),
    "Multinomial of logits": Row(lambda d, p: d.Multinomial(3, logits=p), (LOGITS,)),
    "Beta": Row(lambda d, *p: d.Beta(*p), (a(0.5, 2.0, 30.0), a(1.5, 2.0, 4.0))),
    "Beta of numbers": Row(lambda d: d.Beta(0.5, 2)),
    "Gamma": Row(lambda d, *p: d.Gamma(*p), (a(0.5, 2.0, 30.0), a(1.5, 2.0, 0.1))),
    "Dirichlet": Row(lambda d, p: d.Dirichlet(p), (a([0.5, 2.0, 3.0], [1.0, 7.0, 0.2], [0.3, 0.4, 0.5]),)),
    "Exponential": Row(lambda d, p: d.Exponential(p), (SCALE,)),
    "Laplace": Row(lambda d, *p: d.Laplace(*p), (LOC, SCALE)),
    "LogNormal": Row(lambda d, *p: d.LogNormal(*p), (LOC, SCALE)),
    "Poisson": Row(lambda d, p: d.Poisson(p), (a(0.3, 4.0, 25.0),)),
    "StudentT": Row(lambda d, *p: d.StudentT(*p), (a(0.7, 1.5, 8.0), LOC, SCALE)),
    "StudentT of one number": Row(lambda d: d.StudentT(3)),
    "Cauchy": Row(lambda d, *p: d.Cauchy(*p), (LOC, SCALE)),
    "HalfNormal": Row(lambda d, p: d.HalfNormal(p), (SCALE,)),
    "HalfCauchy": Row(lambda d, p: d.HalfCauchy(p), (SCALE,)),
    "Chi2": Row(lambda d, p: d.Chi2(p), (a(0.7, 3.0, 9.0),)),
    "FisherSnedecor": Row(lambda d, *p: d.FisherSnedecor(*p), (a(1.0, 3.0, 9.0), a(5.0, 1.5, 3.0))),
    "Geometric": Row(lambda d, p: d.Geometric(p), (a(0.2, 0.7, 0.99),)),
    "Geometric of logits": Row(lambda d, p: d.Geometric(logits=p), (LOC,)),
    "Gumbel": Row(lambda d, *p: d.Gumbel(*p), (LOC, SCALE)),
    "GeneralizedPareto": Row(lambda d, *p: d.GeneralizedPareto(*p), (LOC, SCALE, a(-0.4, 0.0, 0.7))),
    "Kumaraswamy": Row(lambda d, *p: d.Kumaraswamy(*p), (a(0.5, 2.0, 3.0), a(1.5, 2.0, 0.5))),
    "LKJCholesky": Row(lambda d, p: d.LKJCholesky(3, p), (a(0.5, 2.0),)),
    "LKJCholesky of a number": Row(lambda d: d.LKJCholesky(4, 1.5)),
    "LogisticNormal": Row(lambda d, *p: d.LogisticNormal(*p), (LOC, SCALE)),
    "LowRankMultivariateNormal": Row(
        lambda d, *p: d.LowRankMultivariateNormal(*p), (LOC, _random(3, 2), SCALE)
    ),
    "LowRankMultivariateNormal batched": Row(
        lambda d, *p: d.LowRankMultivariateNormal(*p), (_random(2, 3), _random(3, 1), np.exp(_random(2, 3)))
    ),
    "MultivariateNormal": Row(lambda d, m, c: d.MultivariateNormal(m, c), (LOC, COVARIANCE)),
    "MultivariateNormal of a factor": Row(
        lambda d, m, c: d.MultivariateNormal(m, scale_tril=c), (_random(2, 3), TRIL)
    ),
    "MultivariateNormal of precisions": Row(
        lambda d, m, c: d.MultivariateNormal(m, precision_matrix=c), (LOC, BATCH)
    ),
    "NegativeBinomial": Row(lambda d, n, p: d.NegativeBinomial(n, p), (a(1.0, 3.5, 7.0), CHANCES)),
    "NegativeBinomial of logits": Row(lambda d, p: d.NegativeBinomial(4, logits=p), (-SCALE,)),
    "Pareto": Row(lambda d, *p: d.Pareto(*p), (SCALE, a(0.5, 1.5, 4.0))),
    "RelaxedBernoulli": Row(lambda d, t, p: d.RelaxedBernoulli(t, p), (a(0.5), CHANCES)),
    "RelaxedBernoulli of logits": Row(lambda d, t, p: d.RelaxedBernoulli(t, logits=p), (a(2.0), LOC)),
    "RelaxedOneHotCategorical": Row(lambda d, t, p: d.RelaxedOneHotCategorical(t, p), (a(0.5), WEIGHTS)),
    "RelaxedOneHotCategorical of logits": Row(
        lambda d, t, p: d.RelaxedOneHotCategorical(t, logits=p), (a(1.5), LOGITS)
    ),
    "VonMises": Row(lambda d, *p: d.VonMises(*p), (LOC, a(0.1, 1.0, 40.0))),
    "Weibull": Row(lambda d, *p: d.Weibull(*p), (SCALE, a(1.0, 1.5, 4.0))),
    "Wishart": Row(lambda d, n, c: d.Wishart(n, c), (np.array(4.5, np.float32), COVARIANCE)),
    "Wishart of factors": Row(lambda d, n, c: d.Wishart(n, scale_tril=c), (a(3.5, 9.0), TRIL)),
    "ContinuousBernoulli": Row(lambda d, p: d.ContinuousBernoulli(p), (a(0.2, 0.7, 0.4995),)),
    "ContinuousBernoulli of logits": Row(lambda d, p: d.ContinuousBernoulli(logits=p), (LOC,)),
    "InverseGamma": Row(lambda d, *p: d.InverseGamma(*p), (a(0.5, 2.0, 30.0), a(1.5, 2.0, 0.1))),
    "Independent": Row(lambda d, *p: d.Independent(d.Normal(*p), 1), (_random(2, 3), SCALE)),
    "Independent of nothing": Row(lambda d, p: d.Independent(d.Bernoulli(p), 0), (CHANCES,)),
    "MixtureSameFamily": Row(
        lambda d, w, *p: d.MixtureSameFamily(d.Categorical(w), d.Normal(*p)), (CHANCES, LOC, SCALE)
    ),
    "MixtureSameFamily of vectors": Row(
        lambda d, w, m, s: d.MixtureSameFamily(d.Categorical(logits=w), d.Independent(d.Normal(m, s), 1)),
        (LOGITS, _random(2, 3, 4), a(0.5)),
    ),
    "TransformedDistribution": Row(
        lambda d, *p: d.TransformedDistribution(d.Normal(*p), [d.AffineTransform(1.0, -2.0), d.SigmoidTransform()]),
        (LOC, SCALE),
    ),
    "TransformedDistribution of vectors": Row(
        lambda d, m, s: d.TransformedDistribution(d.Normal(m, s), d.StickBreakingTransform()), (_random(2, 3), SCALE)
    ),
    "TransformedDistribution of nothing": Row(lambda d, p: d.TransformedDistribution(d.Exponential(p), []), (SCALE,)),
}  # fmt: skip

# Two of each type that has a divergence: rows above, and others with the supports that some pairs need.
KL: dict[str, list[Row]] = {
    "Bernoulli": [Row(lambda d, p: d.Bernoulli(p), (CHANCES,)), Row(lambda d, p: d.Bernoulli(p), (a(0.0, 1.0, 0.3),))],
    "Beta": [ROWS["Beta"], Row(lambda d, *p: d.Beta(*p), (SCALE, a(3.0, 0.2, 1.0)))],
    "Binomial": [ROWS["Binomial"], Row(lambda d, p: d.Binomial(7, p), (a(0.6, 0.1, 0.9),))],
    "Categorical": [ROWS["Categorical"], ROWS["Categorical of logits"]],
    "Cauchy": [ROWS["Cauchy"], Row(lambda d, *p: d.Cauchy(*p), (-LOC, a(2.0, 1.0, 0.5)))],
    "ContinuousBernoulli": [ROWS["ContinuousBernoulli"], ROWS["ContinuousBernoulli of logits"]],
    "Dirichlet": [ROWS["Dirichlet"], Row(lambda d, p: d.Dirichlet(p), (a(1.0, 0.4, 2.0),))],
    "Exponential": [ROWS["Exponential"], Row(lambda d, p: d.Exponential(p), (a(2.0, 1.0, 0.5),))],
    "Gamma": [ROWS["Gamma"], Row(lambda d, *p: d.Gamma(*p), (SCALE, a(2.0, 1.0, 0.5)))],
    "Geometric": [ROWS["Geometric"], ROWS["Geometric of logits"]],
    "Gumbel": [ROWS["Gumbel"], Row(lambda d, *p: d.Gumbel(*p), (-LOC, a(2.0, 1.0, 0.5)))],
    "HalfNormal": [ROWS["HalfNormal"], Row(lambda d, p: d.HalfNormal(p), (a(2.0, 1.0, 0.5),))],
    "Independent": [ROWS["Independent"], Row(lambda d, *p: d.Independent(d.Normal(*p), 1), (_random(3, seed=9), SCALE))],
    "Laplace": [ROWS["Laplace"], Row(lambda d, *p: d.Laplace(*p), (-LOC, a(2.0, 1.0, 0.5)))],
    "LowRankMultivariateNormal": [ROWS["LowRankMultivariateNormal"], ROWS["LowRankMultivariateNormal batched"]],
    "MultivariateNormal": [ROWS["MultivariateNormal of precisions"], ROWS["MultivariateNormal of a factor"]],
    "Normal": [ROWS["Normal"], Row(lambda d, *p: d.Normal(*p), (-LOC, a(2.0, 1.0, 0.5)))],
    "OneHotCategorical": [ROWS["OneHotCategorical"], ROWS["OneHotCategorical of logits"]],
    "Pareto": [Row(lambda d, *p: d.Pareto(*p), (SCALE, a(2.5, 3.5, 4.0))),
               Row(lambda d, *p: d.Pareto(*p), (a(0.2, 0.1, 4.0), a(2.2, 3.0, 2.5)))],
    "Poisson": [ROWS["Poisson"], Row(lambda d, p: d.Poisson(p), (a(2.0, 1.0, 0.5),))],
    "TransformedDistribution": [ROWS["TransformedDistribution of nothing"], ROWS["LogNormal"]],
    # Not with the ends of the unit interval itself, see test_divergences_at_the_ends.
    "Uniform": [Row(lambda d, *p: d.Uniform(*p), (a(0.25, 1.0, -1.0), a(0.75, 3.0, 0.5))),
                Row(lambda d, *p: d.Uniform(*p), (a(-1.0, 0.1, 0.2), a(2.0, 4.0, 0.9)))],
}  # fmt: skip

# Transforms, each with values that it takes.
TRANSFORMS: dict[str, tuple[Any, Any]] = {
    "Abs": (lambda t, lib: t.AbsTransform(), LOC),
    "Affine": (lambda t, lib: t.AffineTransform(1.0, -3.0), LOC),
    "Affine of tensors": (lambda t, lib: t.AffineTransform(lib.tensor([1.0, 2.0, 3.0]), lib.tensor([1.0, -2.0, 3.0])), LOC),
    "Affine of vectors": (
        lambda t, lib: t.AffineTransform(lib.tensor([1.0, 2.0, 3.0]), lib.tensor([1.0, -2.0, 3.0]), event_dim=1),
        _random(2, 3),
    ),
    "Cat": (
        lambda t, lib: t.CatTransform([t.ExpTransform(), t.identity_transform, t.SigmoidTransform()], 1, [1, 2, 1]),
        _random(2, 4),
    ),
    "Cat of two": (lambda t, lib: t.CatTransform([t.ExpTransform(), t.TanhTransform()], 0), _random(2, 3)),
    "Compose": (lambda t, lib: t.ComposeTransform([t.ExpTransform(), t.AffineTransform(1.0, 2.0)]), LOC),
    "Compose of vectors": (
        lambda t, lib: t.ComposeTransform([t.AffineTransform(1.0, 2.0), t.StickBreakingTransform()]), _random(2, 3)
    ),
    "Compose of nothing": (lambda t, lib: t.identity_transform, LOC),
    "CorrCholesky": (lambda t, lib: t.CorrCholeskyTransform(), _random(2, 6)),
    "CumulativeDistribution": (
        lambda t, lib: t.CumulativeDistributionTransform(lib.distributions.Normal(0.5, 2.0)), LOC
    ),
    "Exp": (lambda t, lib: t.ExpTransform(), LOC),
    "Exp inverted": (lambda t, lib: t.ExpTransform().inv, SCALE),
    "Independent": (lambda t, lib: t.IndependentTransform(t.ExpTransform(), 1), _random(2, 3)),
    "LowerCholesky": (lambda t, lib: t.LowerCholeskyTransform(), _random(2, 3, 3)),
    "PositiveDefinite": (lambda t, lib: t.PositiveDefiniteTransform(), _random(2, 3, 3)),
    "Power": (lambda t, lib: t.PowerTransform(lib.tensor(2.5)), SCALE),
    "Power negative": (lambda t, lib: t.PowerTransform(lib.tensor([-1.0, 2.0, 0.5])), SCALE),
    "Reshape": (lambda t, lib: t.ReshapeTransform((2, 3), (6,)), _random(2, 2, 3)),
    "Sigmoid": (lambda t, lib: t.SigmoidTransform(), a(-3.0, 0.0, 200.0)),
    "Softmax": (lambda t, lib: t.SoftmaxTransform(), _random(2, 3)),
    "Softplus": (lambda t, lib: t.SoftplusTransform(), a(-3.0, 0.5, 5.0)),
    "Stack": (lambda t, lib: t.StackTransform([t.ExpTransform(), t.identity_transform], 1), _random(3, 2)),
    "StickBreaking": (lambda t, lib: t.StickBreakingTransform(), _random(2, 3)),
    "Tanh": (lambda t, lib: t.TanhTransform(), a(-3.0, 0.0, 2.0)),
}  # fmt: skip

_CORR = np.linalg.cholesky(a([1.0, 0.3], [0.3, 1.0]))
# Constraints, each with values inside and outside.
CONSTRAINTS: dict[str, tuple[Any, list[Any]]] = {
    "boolean": (lambda c: c.boolean, [a(0.0, 1.0, 0.5, np.nan)]),
    "cat": (lambda c: c.cat([c.positive, c.real], 0, [1, 2]), [a(-1.0, 2.0, -3.0)]),
    "corr_cholesky": (lambda c: c.corr_cholesky, [_CORR, 2 * _CORR, a([1.0, 0.3], [0.0, 1.0])]),
    "greater_than": (lambda c: c.greater_than(2.0), [a(1.0, 2.0, 3.0, np.nan)]),
    "greater_than_eq": (lambda c: c.greater_than_eq(2.0), [a(1.0, 2.0, 3.0)]),
    "half_open_interval": (lambda c: c.half_open_interval(0.0, 1.0), [a(-0.1, 0.0, 0.5, 1.0)]),
    "independent": (lambda c: c.independent(c.positive, 1), [a([1.0, 2.0], [1.0, -1.0])]),
    "integer_interval": (lambda c: c.integer_interval(0, 3), [a(-1.0, 0.0, 1.5, 3.0, 4.0)]),
    "interval": (lambda c: c.interval(-1.0, 2.0), [a(-1.5, -1.0, 2.0, 2.5)]),
    "less_than": (lambda c: c.less_than(2.0), [a(1.0, 2.0, 3.0)]),
    "lower_cholesky": (lambda c: c.lower_cholesky, [TRIL, -TRIL, COVARIANCE]),
    "lower_triangular": (lambda c: c.lower_triangular, [TRIL, -TRIL, COVARIANCE]),
    "multinomial": (lambda c: c.multinomial(3), [a([1.0, 2.0], [2.0, 2.0], [-1.0, 1.0])]),
    "nonnegative": (lambda c: c.nonnegative, [a(-1.0, 0.0, 1.0)]),
    "nonnegative_integer": (lambda c: c.nonnegative_integer, [a(-1.0, 0.0, 1.0, 1.5)]),
    "one_hot": (lambda c: c.one_hot, [a([1.0, 0.0], [1.0, 1.0], [0.5, 0.5])]),
    "positive": (lambda c: c.positive, [a(-1.0, 0.0, 1.0)]),
    "positive_definite": (lambda c: c.positive_definite, [COVARIANCE, -COVARIANCE, TRIL, BATCH]),
    "positive_integer": (lambda c: c.positive_integer, [a(0.0, 1.0, 1.5)]),
    "positive_semidefinite": (lambda c: c.positive_semidefinite, [COVARIANCE, -COVARIANCE, TRIL]),
    "real": (lambda c: c.real, [a(-1.0, np.inf, np.nan)]),
    "real_vector": (lambda c: c.real_vector, [a([-1.0, np.nan], [1.0, 2.0])]),
    "simplex": (lambda c: c.simplex, [a([0.25, 0.75], [0.5, 0.6], [-0.5, 1.5])]),
    "square": (lambda c: c.square, [TRIL, _random(2, 3)]),
    "stack": (lambda c: c.stack([c.positive, c.real], 0), [a(-1.0, 2.0)]),
    "symmetric": (lambda c: c.symmetric, [TRIL, COVARIANCE, BATCH]),
    "unit_interval": (lambda c: c.unit_interval, [a(-0.1, 0.0, 1.0, 1.5)]),
    "dependent": (lambda c: c.dependent, [a(1.0)]),
}

# Calls that must fail, and in what way: the distributions, and what makes tensors.
BAD: dict[str, Any] = {
    "a scale below 0": lambda d, t: d.Normal(t(0.0), t(-1.0)),
    "NaN": lambda d, t: d.Normal(t(float("nan")), t(1.0)),
    "shapes that do not fit": lambda d, t: d.Normal(t([0.0, 1.0]), t([1.0, 2.0, 3.0])),
    "words": lambda d, t: d.Normal("0", 1.0),
    "no scale": lambda d, t: d.Normal(t(0.0)),
    "high below low": lambda d, t: d.Uniform(t(1.0), t(0.0)),
    "chances above 1": lambda d, t: d.Bernoulli(t(1.5)),
    "probs and logits": lambda d, t: d.Bernoulli(t(0.5), logits=t(0.5)),
    "neither probs nor logits": lambda d, t: d.Categorical(),
    "categories of a number": lambda d, t: d.Categorical(t(0.5)),
    "weights below 0": lambda d, t: d.Categorical(t([-1.0, 2.0])),
    "NaN among logits": lambda d, t: d.Categorical(logits=t([float("nan"), 0.0])),
    "counts below 0": lambda d, t: d.Binomial(-1, t(0.5)),
    "fewer draws than none": lambda d, t: d.Multinomial(-1, t([0.5, 0.5])),
    "counts of several sizes": lambda d, t: d.Multinomial(t([1, 2]), t([0.5, 0.5])),
    "no enumeration of several counts": lambda d, t: d.Binomial(t([1.0, 2.0]), t(0.5)).enumerate_support(),
    "concentration of a number": lambda d, t: d.Dirichlet(t(1.0)),
    "a concentration of 0": lambda d, t: d.Beta(t(0.0), t(1.0)),
    "certain failure": lambda d, t: d.Geometric(t(0.0)),
    "a covariance that is not definite": lambda d, t: d.MultivariateNormal(t([0.0, 0.0]), t([[1.0, 2.0], [2.0, 1.0]])),
    "a factor that is not triangular": lambda d, t: d.MultivariateNormal(
        t([0.0, 0.0]), scale_tril=t([[1.0, 2.0], [2.0, 1.0]])
    ),
    "two matrices": lambda d, t: d.MultivariateNormal(t([0.0]), t([[1.0]]), t([[1.0]])),
    "a vector as covariance": lambda d, t: d.MultivariateNormal(t([0.0]), t([1.0])),
    "no vector": lambda d, t: d.MultivariateNormal(t(0.0), t([[1.0]])),
    "low rank that does not fit": lambda d, t: d.LowRankMultivariateNormal(t([0.0, 1.0]), t([[1.0]]), t([1.0, 1.0])),
    "too few degrees of freedom": lambda d, t: d.Wishart(t(1.0), t([[1.0, 0.0], [0.0, 1.0]])),
    "too small correlations": lambda d, t: d.LKJCholesky(1),
    "more dims than there are": lambda d, t: d.Independent(d.Normal(t(0.0), t(1.0)), 1),
    "a mixture by no Categorical": lambda d, t: d.MixtureSameFamily(d.Normal(0.0, 1.0), d.Normal(t([0.0]), t([1.0]))),
    "components of another number": lambda d, t: d.MixtureSameFamily(
        d.Categorical(t([0.5, 0.5])), d.Normal(t([0.0]), t([1.0]))
    ),
    "a mixture of no distribution": lambda d, t: d.MixtureSameFamily(d.Categorical(t([0.5, 0.5])), 3),
    "transforms that are none": lambda d, t: d.TransformedDistribution(d.Normal(0.0, 1.0), "exp"),
    "a vector transform of numbers": lambda d, t: d.TransformedDistribution(
        d.Normal(t(0.0), t(1.0)), d.StickBreakingTransform()
    ),
    "a value below the support": lambda d, t: d.Gamma(t(1.0), t(1.0)).log_prob(t(-1.0)),
    "a value that is no integer": lambda d, t: d.Poisson(t(1.0)).log_prob(t(0.5)),
    "a number as value": lambda d, t: d.Normal(t(0.0), t(1.0)).log_prob(0.5),
    "a value of another event": lambda d, t: d.Dirichlet(t([1.0, 1.0])).log_prob(t([0.3, 0.3, 0.4])),
    "a value of another batch": lambda d, t: d.Normal(t([0.0, 1.0]), t(1.0)).log_prob(t([0.0, 1.0, 2.0])),
    "cdf outside": lambda d, t: d.Exponential(t(1.0)).cdf(t(-1.0)),
    "a category too high": lambda d, t: d.Categorical(t([0.5, 0.5])).log_prob(t(2)),
    "no rsample": lambda d, t: d.Bernoulli(t(0.5)).rsample(),
    "no cdf": lambda d, t: d.Poisson(t(0.5)).cdf(t(1.0)),
    "expanded to what does not fit": lambda d, t: d.Normal(t([0.0, 1.0]), t(1.0)).expand((3,)),
    "no divergence": lambda d, t: d.kl_divergence(d.Normal(0.0, 1.0), d.Poisson(1.0)),
    "divergence of no types": lambda d, t: d.register_kl(3, d.Normal),
    "a cache of two": lambda d, t: d.ExpTransform(cache_size=2),
    "shapes of other sizes": lambda d, t: d.transforms.ReshapeTransform((2, 3), (5,)),
    "too few dims": lambda d, t: d.StickBreakingTransform().forward_shape(()),
    "no such correlations": lambda d, t: d.CorrCholeskyTransform().forward_shape((4,)),
    "no transform of the boolean": lambda d, t: d.biject_to(d.constraints.boolean),
    "a registry of no constraint": lambda d, t: d.biject_to.register(int, int),
    "validation neither on nor off": lambda d, t: d.Distribution.set_default_validate_args(3),
}
