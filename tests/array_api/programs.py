"""Programs of other libraries on arrays of any kind: ``python -m tests.array_api.programs`` runs them on NumPy's and on tensors.

It is a process of its own because SciPy reads ``SCIPY_ARRAY_API`` when it is imported.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

os.environ["SCIPY_ARRAY_API"] = "1"

import einops.array_api as einops
import numpy as np
import scipy.cluster.vq
import scipy.fft
import scipy.integrate
import scipy.ndimage
import scipy.signal
import scipy.special
import scipy.stats
import sklearn
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import Ridge
from sklearn.preprocessing import MinMaxScaler, Normalizer, StandardScaler

import tensorcore as tc

__all__ = ["PROGRAMS", "main"]

Program = Callable[[Any], Any]


def fitted(make: Callable[[], Any], target: Callable[[Any], Any] | None, use: Callable[[Any, Any], Any]) -> Program:
    """Fit an estimator and use it on the same data."""

    def program(x: Any) -> Any:
        with sklearn.config_context(array_api_dispatch=not isinstance(x, np.ndarray)):
            return use(make().fit(x, None if target is None else target(x)), x)

    return program


def _classes(x: Any) -> Any:
    return (x[:, 0] + x[:, 1] > 0) * 1


def _transformed(model: Any, x: Any) -> Any:
    return abs(model.transform(x))  # components are unique up to signs


PROGRAMS: dict[str, Program] = {
    "scikit-learn StandardScaler": fitted(StandardScaler, None, lambda model, x: model.transform(x)),
    "scikit-learn MinMaxScaler": fitted(MinMaxScaler, None, lambda model, x: model.transform(x)),
    "scikit-learn Normalizer": fitted(Normalizer, None, lambda model, x: model.transform(x)),
    "scikit-learn PCA": fitted(lambda: PCA(2, svd_solver="full"), None, _transformed),
    "scikit-learn PCA by covariance": fitted(lambda: PCA(2, svd_solver="covariance_eigh"), None, _transformed),
    "scikit-learn PCA at random": fitted(
        lambda: PCA(2, svd_solver="randomized", random_state=0, power_iteration_normalizer="QR"), None, _transformed),
    "scikit-learn Ridge": fitted(lambda: Ridge(0.5, solver="svd"), lambda x: x[:, 0] * 2 + x[:, 1],
                                 lambda model, x: model.predict(x)),
    "scikit-learn LinearDiscriminantAnalysis": fitted(LinearDiscriminantAnalysis, _classes,
                                                      lambda model, x: model.predict_proba(x)),
    "scipy.special.expit": scipy.special.expit,
    "scipy.special.logsumexp": lambda x: scipy.special.logsumexp(x, axis=0),
    "scipy.special.gammaln": lambda x: scipy.special.gammaln(abs(x)),
    "scipy.special.rel_entr": lambda x: scipy.special.rel_entr(abs(x), abs(x) + 1),
    "scipy.stats.zscore": lambda x: scipy.stats.zscore(x, axis=0),
    "scipy.stats.skew": lambda x: scipy.stats.skew(x, axis=0),
    "scipy.stats.ttest_ind": lambda x: scipy.stats.ttest_ind(x, x + 0.3, axis=0).pvalue,
    "scipy.stats.pearsonr": lambda x: scipy.stats.pearsonr(x[:, 0], x[:, 1]).statistic,
    "scipy.stats.entropy": lambda x: scipy.stats.entropy(abs(x), axis=0),
    "scipy.stats.rankdata": lambda x: scipy.stats.rankdata(x, axis=0),
    "scipy.stats.quantile": lambda x: scipy.stats.quantile(x, 0.3, axis=0),
    "scipy.signal.detrend": lambda x: scipy.signal.detrend(x, axis=0),
    "scipy.signal.hilbert": lambda x: abs(scipy.signal.hilbert(x, axis=0)),
    "scipy.signal.fftconvolve": lambda x: scipy.signal.fftconvolve(x, x),
    "scipy.fft.dct": lambda x: scipy.fft.dct(x, axis=0),
    "scipy.fft.fht": lambda x: scipy.fft.fht(x[:, 0], dln=0.1, mu=0.5),
    "scipy.integrate.trapezoid": lambda x: scipy.integrate.trapezoid(x, axis=0),
    "scipy.cluster.vq.kmeans": lambda x: scipy.cluster.vq.kmeans(x, x[:3])[0],
    "scipy.ndimage.gaussian_filter": lambda x: scipy.ndimage.gaussian_filter(x, 1.0),
    "einops.rearrange": lambda x: einops.rearrange(x, "(a b) c -> b (c a)", b=3),
    "einops.reduce": lambda x: einops.reduce(x, "(a b) c -> a c", "mean", b=3),
    "einops.repeat": lambda x: einops.repeat(x, "a b -> a b c", c=2),
}  # fmt: skip


def main() -> None:
    """Print, for each program, the kind of its result and how far it is from NumPy's, or the error."""
    values = np.random.default_rng(0).normal(size=(30, 4))
    found: dict[str, Any] = {}
    for name, program in PROGRAMS.items():
        expected = program(values.copy())
        try:
            result = program(tc.from_numpy(values.copy()))
            away = (
                np.abs(np.asarray(result) - expected).max()
                if tuple(result.shape) == expected.shape
                else "another shape"
            )
            found[name] = [type(result).__module__ + "." + type(result).__name__, float(away)]
        except Exception as error:
            found[name] = [type(error).__name__, str(error)]
    print(json.dumps(found))


if __name__ == "__main__":
    main()
