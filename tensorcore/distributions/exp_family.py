"""Exponential families: densities ``exp(<t(x), theta> - F(theta) + k(x))``."""

from __future__ import annotations

from typing import Any

from tensorcore.autograd.walks import grad
from tensorcore.distributions.distribution import Distribution

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """A distribution that knows its natural parameters theta and its log normaliser F.

    From these follow entropies and divergences: F. Nielsen and R. Nock, "Entropies and cross-entropies of exponential
    families" (2010).
    """

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        """Theta, as tensors."""
        raise NotImplementedError(f"{type(self).__name__}: natural parameters are not defined")

    def _log_normalizer(self, *natural_params: Any) -> Any:
        """F of theta."""
        raise NotImplementedError(f"{type(self).__name__}: the log normalizer is not defined")

    @property
    def _mean_carrier_measure(self) -> Any:
        """The mean of k."""
        raise NotImplementedError(f"{type(self).__name__}: the mean carrier measure is not defined")

    def entropy(self) -> Any:
        """``F(theta) - <theta, F'(theta)> - E k``."""
        theta = [one.detach().requires_grad_() for one in self._natural_params]
        normalizer = self._log_normalizer(*theta)
        slopes = grad(normalizer.sum(), theta, create_graph=True)
        found = normalizer - self._mean_carrier_measure
        for one, slope in zip(theta, slopes, strict=True):
            found = found - (one * slope).reshape((*self._batch_shape, -1)).sum(-1)
        return found
