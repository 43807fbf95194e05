"""Probability distributions with samples, densities, moments and divergences: ``torch.distributions``."""

from __future__ import annotations

from importlib import import_module

# Where each is.
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

__all__ = list(_WHERE)

# All of them, as PyTorch has them: libraries of distributions walk through this module's names.
for _name, _place in _WHERE.items():
    globals()[_name] = getattr(import_module(f"tensorcore.distributions.{_place}"), _name)
