"""Kullback-Leibler divergences: the table of formulas by types, and the search in it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

from tensorcore.errors import ArgumentTypeError

__all__ = ["kl_divergence", "register_kl"]

_REGISTRY: dict[tuple[type, type], Callable[[Any, Any], Any]] = {}
_FOUND: dict[tuple[type, type], Callable[[Any, Any], Any] | None] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: let a function of ``(p, q)`` be the divergence of these types and their subclasses.

    The most specific types win; where that leaves two functions, the one whose first type is more specific does, with
    a RuntimeWarning. Types that stand beside ``Distribution``, as those of libraries that wrap it, are taken too.
    """
    for one in (type_p, type_q):
        if not isinstance(one, type):
            raise ArgumentTypeError(f"register_kl: Expected types, got {one!r}")

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        _REGISTRY[type_p, type_q] = function
        _FOUND.clear()
        return function

    return register


def kl_divergence(p: Any, q: Any) -> Any:
    """The divergence of p from q, the mean under p of ``log p(x) - log q(x)``, for each of the batch.

    Raises:
        NotImplementedError: where nothing is registered for the two types.
    """
    # The formulas import every distribution: not before somebody asks.
    import_module("tensorcore.distributions.kl_same")
    import_module("tensorcore.distributions.kl_mixed")
    key = type(p), type(q)
    if key not in _FOUND:
        _FOUND[key] = _search(*key)
    function = _FOUND[key]
    if function is None:
        raise NotImplementedError(
            f"kl_divergence: No KL(p || q) is implemented for p type {key[0].__name__} and q type {key[1].__name__}, got "
            f"them; register_kl() one"
        )
    return function(p, q)


def _search(type_p: type, type_q: type) -> Callable[[Any, Any], Any] | None:
    """The function of the most specific types that fit."""
    fits = [key for key in _REGISTRY if issubclass(type_p, key[0]) and issubclass(type_q, key[1])]
    if not fits:
        return None
    above_p, above_q = type_p.__mro__, type_q.__mro__
    left = min(fits, key=lambda key: (above_p.index(key[0]), above_q.index(key[1])))
    right = min(fits, key=lambda key: (above_q.index(key[1]), above_p.index(key[0])))
    if _REGISTRY[left] is not _REGISTRY[right]:
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). Please register_kl({left[0].__name__}, "
            f"{right[1].__name__})",
            RuntimeWarning,
            stacklevel=3,
        )
    return _REGISTRY[left]
