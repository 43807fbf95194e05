"""Orthogonal polynomials of any order: Chebyshev's of four kinds, Hermite's of two, Laguerre's and Legendre's.

Three-term recurrences from order 0 up (NIST Digital Library of Mathematical Functions, table 18.9.1), and inside [-1, 1]
the trigonometric forms of Chebyshev's (18.5.1 to 18.5.4) where orders are high.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorcore.ops.samples import special as samples
from tensorcore.ops.shapes.shape import broadcast_tensors
from tensorcore.ops.special.kind import of_two, where

__all__ = [
    "chebyshev_polynomial_t", "chebyshev_polynomial_u", "chebyshev_polynomial_v", "chebyshev_polynomial_w",
    "hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p",
    "shifted_chebyshev_polynomial_t", "shifted_chebyshev_polynomial_u", "shifted_chebyshev_polynomial_v",
    "shifted_chebyshev_polynomial_w",
]  # fmt: skip

# No order beyond this one is computed by recurrence: the results leave the range of numbers long before.
_HIGHEST = 1024

Step = Callable[[Any, Any, Any, int], Any]


def _recurrence(x: Any, n: Any, first: Any, step: Step) -> Any:
    """The polynomials of the orders ``n``, from ``first`` of order 1 by ``step(x, last, before, k)`` to order k + 1."""
    x, n = broadcast_tensors(x, n)
    values = x.device.capabilities.values and x.numel()
    highest = min(int(n.nan_to_num(0.0).amax().item()), _HIGHEST) if values else 1
    before, last = x.new_ones(x.shape), first
    made = where(n < 0, 0.0, where(n == 0, before, last))
    for k in range(1, highest):
        before, last = last, step(x, last, before, k)
        made = where(n > k, last, made)
    return made


def _chebyshev(x: Any, n: Any, kind: str) -> Any:
    n = n.trunc()
    first = {"t": x, "u": x * 2, "v": x * 2 - 1, "w": x * 2 + 1}[kind]
    inside = (x.abs() < 1) & (n > 6)
    # What the trigonometric form gives needs no recurrence.
    low = _recurrence(x, where(inside, 0.0, n), first, lambda x, last, before, k: x * last * 2 - before)
    turn = x.clamp(-1, 1).acos()
    if kind == "t":
        high = (n * turn).cos()
    elif kind == "u":
        high = ((n + 1) * turn).sin() / turn.sin()
    elif kind == "v":
        high = ((n + 0.5) * turn).cos() / (turn * 0.5).cos()
    else:
        high = ((n + 0.5) * turn).sin() / (turn * 0.5).sin()
    return where(inside, high, low)


def _hermite(x: Any, n: Any, factor: int) -> Any:
    return _recurrence(x, n.trunc(), x * factor, lambda x, last, before, k: (x * last - before * k) * factor)


def _laguerre(x: Any, n: Any) -> Any:
    return _recurrence(x, n.trunc(), 1 - x, lambda x, last, before, k: ((2 * k + 1 - x) * last - before * k) / (k + 1))


def _legendre(x: Any, n: Any) -> Any:
    return _recurrence(x, n.trunc(), x, lambda x, last, before, k: (x * last * (2 * k + 1) - before * k) / (k + 1))


def _named(name: str, what: str, formula: Any) -> Any:
    return of_two(
        name, f"{what} of order ``n`` (0 for negative ones), element by element.", formula, samples=samples.orders
    )


_KINDS = {"t": "first", "u": "second", "v": "third", "w": "fourth"}


def _of_kind(kind: str, shifted: bool) -> Any:
    name = f"{'shifted_' if shifted else ''}chebyshev_polynomial_{kind}"
    text = f"Chebyshev's polynomial of the {_KINDS[kind]} kind{', at 2 x - 1,' if shifted else ''}"
    return _named(name, text, lambda x, n: _chebyshev(x * 2 - 1 if shifted else x, n, kind))


chebyshev_polynomial_t, chebyshev_polynomial_u = _of_kind("t", False), _of_kind("u", False)
chebyshev_polynomial_v, chebyshev_polynomial_w = _of_kind("v", False), _of_kind("w", False)
shifted_chebyshev_polynomial_t, shifted_chebyshev_polynomial_u = _of_kind("t", True), _of_kind("u", True)
shifted_chebyshev_polynomial_v, shifted_chebyshev_polynomial_w = _of_kind("v", True), _of_kind("w", True)
hermite_polynomial_h = _named(
    "hermite_polynomial_h", "Hermite's polynomial, the physicists',", lambda x, n: _hermite(x, n, 2)
)
hermite_polynomial_he = _named(
    "hermite_polynomial_he", "Hermite's polynomial, the statisticians',", lambda x, n: _hermite(x, n, 1)
)
laguerre_polynomial_l = _named("laguerre_polynomial_l", "Laguerre's polynomial", _laguerre)
legendre_polynomial_p = _named("legendre_polynomial_p", "Legendre's polynomial", _legendre)
