"""Probability distributions with samples, densities, moments and divergences: ``torch.distributions``."""

from __future__ import annotations

from importlib import import_module
from typing import Any

# Where each is, imported when a program first names it: most programs use two or three of them.
_WHERE = {
    "Bernoulli": "bernoulli", "Beta": "beta", "Binomial": "binomial", "Categorical": "categorical", "Cauchy": "cauchy",
    "Chi2": "chi2", "ContinuousBernoulli": "continuous_bernoulli", "Dirichlet": "dirichlet",
    "Distribution": "distribution", "Exponential": "exponential", "ExponentialFamily": "exp_family",
    "FisherSnedecor": "fishersnedecor", "Gamma": "gamma", "GeneralizedPareto": "generalized_pareto",
    "Geometric": "geometric", "Gumbel": "gumbel", "HalfCauchy": "half_cauchy", "HalfNormal": "half_normal",
    "Independent": "independent", "InverseGamma": "inverse_gamma", "Kumaraswamy": "kumaraswamy",
    "LKJCholesky": "lkj_cholesky", "Laplace": "laplace", "LogNormal": "log_normal", "LogisticNormal": "logistic_normal",
    "LowRankMultivariateNormal": "lowrank_multivariate_normal", "MixtureSameFamily": "mixture_same_family",
    "Multinomial": "multinomial", "MultivariateNormal": "multivariate_normal",
    "NegativeBinomial": "negative_binomial", "Normal": "normal", "OneHotCategorical": "one_hot_categorical",
    "OneHotCategoricalStraightThrough": "one_hot_categorical", "Pareto": "pareto", "Poisson": "poisson",
    "RelaxedBernoulli": "relaxed_bernoulli", "RelaxedOneHotCategorical": "relaxed_categorical", "StudentT": "studentT",
    "TransformedDistribution": "transformed_distribution", "Uniform": "uniform", "VonMises": "von_mises",
    "Weibull": "weibull", "Wishart": "wishart", "biject_to": "constraint_registry",
    "transform_to": "constraint_registry", "kl_divergence": "kl", "register_kl": "kl",
    **dict.fromkeys([
        "AbsTransform", "AffineTransform", "CatTransform", "ComposeTransform", "CorrCholeskyTransform",
        "CumulativeDistributionTransform", "ExpTransform", "IndependentTransform", "LowerCholeskyTransform",
        "PositiveDefiniteTransform", "PowerTransform", "ReshapeTransform", "SigmoidTransform", "SoftmaxTransform",
        "SoftplusTransform", "StackTransform", "StickBreakingTransform", "TanhTransform", "Transform",
        "identity_transform",
    ], "transforms"),
}  # fmt: skip
_ROOMS = (*dict.fromkeys(_WHERE.values()), "constraints", "transforms", "utils")

__all__ = list(_WHERE)


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        found = getattr(import_module(f"tensorcore.distributions.{_WHERE[name]}"), name)
        globals()[name] = found
        return found
    if name in _ROOMS:
        return import_module(f"tensorcore.distributions.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE, *_ROOMS})
