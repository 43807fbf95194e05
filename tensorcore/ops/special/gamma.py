"""The incomplete gamma functions and Hurwitz's zeta function.

The incomplete gamma functions: the power series below the parameter, Legendre's continued fraction (by the method of
W. J. Lentz) above it, and near large parameters the uniform expansion of N. M. Temme ("The asymptotic expansion of the
incomplete gamma functions", SIAM Journal on Mathematical Analysis 10, 1979): NIST Digital Library of Mathematical
Functions, 8.7, 8.9 and 8.12. Zeta: the sum of Euler and Maclaurin, 25.11.5 there.
"""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from typing import Any

from tensorcore import dtypes
from tensorcore.ops.define import without_derivative
from tensorcore.ops.pointwise.explog import lgamma
from tensorcore.ops.samples import special as samples
from tensorcore.ops.shapes.shape import broadcast_tensors
from tensorcore.ops.special.kind import of_two, polynomial, where

__all__ = ["igamma", "igammac", "zeta"]

# Parameters from here on have Temme's expansion where x is within this part of them.
_LARGE, _WITHIN = 100, 0.4
_STEPS, _LOOK = 512, 16


def _log_distance(mu: Any) -> Any:
    """``mu - log(1 + mu)`` without cancellation near 0."""
    series = polynomial(mu.clamp(-0.15, 0.15), tuple([(-1.0) ** k / k for k in range(20, 1, -1)]))
    return where(mu.abs() < 0.15, series * mu.square(), mu - mu.log1p())


def _stirling(a: Any) -> Any:
    """``lgamma(a + 1) - (a log(a) - a + log(2 pi a) / 2)`` for ``a`` from 10 on."""
    inverse = 1 / a
    terms = (-691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12)
    return polynomial(inverse.square(), terms) * inverse


def _density(a: Any, x: Any) -> Any:
    """``x**a exp(-x) / gamma(a + 1)``."""
    large = a.clamp_min(10)
    far = (-large * _log_distance(x / large - 1) - _stirling(large)).exp() / (large * (2 * math.pi)).sqrt()
    return where(a >= 10, far, (a * x.log() - x - lgamma(a + 1)).exp())


def _ended(changes: Any, done: float) -> bool:
    """Whether nothing changes any more; without values nobody knows, and one step gives the shape."""
    return not changes.device.capabilities.values or not bool((changes.abs() > done).any())


def _series(a: Any, x: Any) -> Any:
    """The sum of ``x**k / ((a + 1) ... (a + k))``."""
    term = x * 0 + 1
    total = term
    for k in range(1, _STEPS + 1):
        term = term * x / (a + k)
        total = total + term
        if k % _LOOK == 0 and _ended(term / total, 1e-17):
            break
    return total


def _fraction(a: Any, x: Any) -> Any:
    """``gamma(a, x) exp(x) / x**a`` by Legendre's continued fraction."""
    b = x + 1 - a
    c, d = b * 0 + 1e30, 1 / b
    made = d
    for k in range(1, _STEPS + 1):
        factor = (a - k) * k
        b = b + 2
        d, c = b + factor * d, b + factor / c
        d = 1 / where(d == 0, 1e-30, d)
        step = d * where(c == 0, 1e-30, c)
        made = made * step
        if k % _LOOK == 0 and _ended(step - 1, 1e-16):
            break
    return made


@functools.cache
def _temme(orders: int = 7, terms: int = 20) -> tuple[tuple[float, ...], ...]:
    """The power series in eta of Temme's coefficients, each with the highest power first.

    With mu = x / a - 1 and eta**2 / 2 = mu - log(1 + mu): the first is 1 / mu - 1 / eta, and each next one is the
    derivative of the one before over eta, and a multiple of 1 / mu that cancels its pole.
    """
    size = terms + 2 * orders + 2
    # mu = eta + eta**2 / 3 + ...: from mu' mu = eta (1 + mu), coefficient by coefficient.
    mu = [Fraction(0), Fraction(1)]
    for n in range(2, size + 2):
        rest = mu[n - 1] - sum([k * mu[k] * mu[n + 1 - k] for k in range(2, n)], Fraction(0))
        mu.append(rest / (n + 1))
    # eta / mu, a power series; 1 / mu is that over eta.
    inverse = [Fraction(1)]
    for n in range(1, size):
        inverse.append(-sum([mu[k + 1] * inverse[n - k] for k in range(1, n + 1)], Fraction(0)))
    made, current = [], inverse[1:]
    for _ in range(orders):
        made.append(tuple([float(one) for one in current[terms - 1 :: -1]]))
        # The derivative over eta starts with -(that of eta**1) / eta, which the pole of 1 / mu takes away.
        slope = [n * one for n, one in enumerate(current)][1:]
        weight = -slope[0]
        current = [slope[n + 1] + weight * inverse[n + 1] for n in range(min(len(slope), len(inverse)) - 1)]
    return tuple(made)


def _uniform(a: Any, mu: Any, upper: bool) -> Any:
    """Temme's expansion of either function."""
    half = _log_distance(mu)
    eta = (half * 2).sqrt().copysign(mu)
    inverse = 1 / a
    total: Any = 0.0
    for one in reversed(_temme()):
        total = total * inverse + polynomial(eta, one)
    rest = (-a * half).exp() / (a * (2 * math.pi)).sqrt() * total
    scaled = eta * (a * 0.5).sqrt()
    return scaled.erfc() * 0.5 + rest if upper else (-scaled).erfc() * 0.5 - rest


def _log_gamma_near_one(a: Any) -> Any:
    """``lgamma(1 + a)``; near 0 by its power series, whose first coefficients are Euler's constant and zeta(2) / 2."""
    small = a.clamp_max(1e-3)
    series = small * (-0.5772156649015329 + small * (0.8224670334241132 + small * (-0.40068563438653143 + small * (
        0.27058080842778454 + small * (-0.20738555102867398 + small * 0.1695571769974082)))))  # fmt: skip
    return where(a < 1e-3, series, lgamma(a + 1))


def _upper_near_zero(a: Any, x: Any) -> Any:
    """The upper function for x up to about 1, where one less the lower one has few digits left."""
    term = x * 0 + 1
    total = x * 0
    for n in range(1, 24):
        term = term * (-x / n)
        total = total + term / (a + n)
    log = a * x.log() - _log_gamma_near_one(a)
    return -log.expm1() - log.exp() * a * total


def _some(mask: Any) -> bool:
    """Whether any element is meant: a method that none needs is skipped."""
    return not mask.device.capabilities.values or bool(mask.any())


def _ordinary(a: Any, x: Any, upper: bool, below: Any, above: Any) -> Any:
    """The function by series where ``below``, and by the continued fraction where ``above``."""
    density = _density(a, x)
    made = x * 0
    if _some(below):
        low = density * _series(where(below, a, 1.0), where(below, x, 1.0))
        made = 1 - low if upper else low
        tiny = below & (a < 1) & (x < 1.1)
        if upper and _some(tiny):
            made = where(tiny, _upper_near_zero(a.clamp_max(1), x.clamp_max(1.1)), made)
    if _some(above):
        high = density * _fraction(where(above, a, 1.0), where(above, x, 3.0)) * a
        made = where(above, high if upper else 1 - high, made)
    return made


def _incomplete(a: Any, x: Any, upper: bool) -> Any:
    if a.dtype is dtypes.float32:
        return _incomplete(a.double(), x.double(), upper).float()
    a, x = broadcast_tensors(a, x)
    ordinary = (a > 0) & (x > 0) & (a < math.inf) & (x < math.inf)
    safe_a, safe_x = where(ordinary, a, 1.0), where(ordinary, x, 1.0)
    mu = (safe_x - safe_a) / safe_a
    near = (safe_a > _LARGE) & (mu.abs() < _WITHIN)
    below = safe_x <= safe_a + 1
    made = _ordinary(safe_a, safe_x, upper, below & ~near, ~(below | near))
    if _some(near):
        made = where(near, _uniform(where(near, safe_a, 1e3), where(near, mu, 0.0), upper), made)
    start, end = (1.0, 0.0) if upper else (0.0, 1.0)
    corner = where(x == 0, start, where((a == 0) | (x == math.inf), end, start))
    wrong = (a < 0) | (x < 0) | ((a == 0) & (x == 0)) | ((a == math.inf) & (x == math.inf)) | (a != a) | (x != x)
    return where(ordinary, made, where(wrong, math.nan, corner))


def _density_grad(g: Any, input: Any, other: Any) -> Any:
    return g * ((input - 1) * other.log() - other - lgamma(input)).exp()


igamma = of_two(
    "igamma", "The lower incomplete gamma function of ``other``, over gamma(``input``).", lambda a, x: _incomplete(a, x, False),
    grads=dict(input=without_derivative("igamma: input"), other=_density_grad), samples=samples.shape_and_limit, method=True,
    writes=True, numbers=False,
)  # fmt: skip
igammac = of_two(
    "igammac", "The upper incomplete gamma function of ``other``, over gamma(``input``).", lambda a, x: _incomplete(a, x, True),
    grads=dict(input=without_derivative("igammac: input"), other=lambda g, input, other: -_density_grad(g, input, other)),
    samples=samples.shape_and_limit, method=True, writes=True, numbers=False,
)  # fmt: skip

# Zeta

_TERMS, _FURTHEST = 10, 4096
# Bernoulli's numbers of even index over the factorial of it.
_BERNOULLI = tuple([
    b / math.factorial(2 * j) for j, b in enumerate(
        (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330,
         854513 / 138, -236364091 / 2730), 1)
])  # fmt: skip


def _zeta(s: Any, q: Any) -> Any:
    s, q = broadcast_tensors(s, q)
    usual = (s > 1) & (s < math.inf) & q.isfinite()
    power, start = where(usual, s, 2.0), where(usual, q, 1.0)
    lowest = float(start.amin().item()) if start.device.capabilities.values and start.numel() else 0.0
    total = power * 0
    for _ in range(math.ceil(min(max(-lowest, 0.0), _FURTHEST))):
        left = start < 0
        total = total + where(left, where(left, start, 1.0) ** -power, 0.0)
        start = where(left, start + 1, start)
    for k in range(_TERMS):
        total = total + (start + k) ** -power
    w = start + _TERMS
    last = w**-power
    total = total + last * w / (power - 1) + last * 0.5
    factor, term = power, last / w
    for j, one in enumerate(_BERNOULLI, 1):
        total = total + factor * term * one
        factor, term = factor * (power + (2 * j - 1)) * (power + 2 * j), term / w.square()
    made = where(usual, total, where(s == math.inf, where(q > 1, 0.0, where(q == 1, 1.0, math.inf)), 0.0))
    # Left of 0: a pole at each integer, and no real power between them but of integers.
    made = where(q <= 0, where(q == q.floor(), math.inf, where(s == s.floor(), made, math.nan)), made)
    # As PyTorch does, NaN at an infinite shift, where the sum is 0.
    return where((s != s) | (q != q) | (s < 1) | (q == math.inf), math.nan, where(s == 1, math.inf, made))


zeta = of_two(
    "zeta", "Hurwitz's zeta function: the sum of ``(k + other)**-input`` over k from 0 on.", _zeta,
    grads=dict(input=without_derivative("zeta"), other=lambda g, input, other: g * -input * zeta(input + 1, other)),
    samples=samples.zeta,
)  # fmt: skip
