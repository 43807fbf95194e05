"""What distributions have in common that are given either probabilities or log odds."""

from __future__ import annotations

from typing import Any

from tensorcore.distributions.distribution import Distribution
from tensorcore.distributions.utils import broadcast_all, lazy_property, logits_to_probs, probs_to_logits
from tensorcore.errors import ArgumentError
from tensorcore.formats import Size

__all__ = ["Odds", "binary_cross_entropy", "chosen"]


def chosen(name: str, probs: Any, logits: Any) -> tuple[str, Any]:
    """Which of the two is given, and its value. Raises ArgumentError for both or none."""
    if (probs is None) == (logits is None):
        raise ArgumentError(
            f"{name}: Either `probs` or `logits` must be specified, but not both, got {'none' if probs is None else 'both'}"
        )
    return ("logits", logits) if probs is None else ("probs", probs)


def binary_cross_entropy(logits: Any, target: Any) -> Any:
    """Minus the logarithm of the probability of ``target``, element by element."""
    from tensorcore.ops.layers.entropy import binary_cross_entropy_with_logits

    return binary_cross_entropy_with_logits(logits, target, reduction="none")


class Odds(Distribution):
    """A distribution given by ``probs`` or ``logits``: what was not given is computed when asked for."""

    _is_binary = True
    _given: str

    @lazy_property
    def probs(self) -> Any:
        """The probabilities."""
        return logits_to_probs(self.logits, self._is_binary)

    @lazy_property
    def logits(self) -> Any:
        """The log odds, or the logarithms of the probabilities."""
        return probs_to_logits(self.probs, self._is_binary)

    @property
    def _param(self) -> Any:
        return self.__dict__[self._given]

    @property
    def param_shape(self) -> Size:
        """The shape of the probabilities."""
        return self._param.shape

    def _take_odds(self, validate_args: bool | None, probs: Any, logits: Any, **others: Any) -> None:
        """Be a distribution over single numbers, of probabilities or log odds and other parameters."""
        self._given, value = chosen(type(self).__name__, probs, logits)
        *given, value = broadcast_all(*others.values(), value)
        given = [one.type_as(value) for one in given]
        self._take(validate_args, **dict(zip(others, given, strict=True)), **{self._given: value})
