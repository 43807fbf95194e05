"""Bessel functions of orders 0 and 1, plain, modified and spherical, and Airy's function.

Rational approximations for small arguments, and modulus and phase (or exponential) with rational corrections for large
ones: F. W. J. Olver and others, NIST Digital Library of Mathematical Functions, 9.7, 10.8, 10.17, 10.31 and 10.40.
"""

from __future__ import annotations

import math
from typing import Any

from tensorcore.ops.samples import special as samples
from tensorcore.ops.special import tables as table
from tensorcore.ops.special.kind import of_one, ratio, where

__all__ = [
    "airy_ai", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "i0", "i0e", "i1", "i1e", "modified_bessel_i0",
    "modified_bessel_i1", "modified_bessel_k0", "modified_bessel_k1", "scaled_modified_bessel_k0",
    "scaled_modified_bessel_k1", "spherical_bessel_j0",
]  # fmt: skip

# Modified, of the first kind

_FAR = 18


def _i(x: Any, small: Any, large: Any, scaled: bool) -> Any:
    """Of ``|x|``: for order 0 the function, for order 1 the function over ``|x|`` where that is small."""
    size = x.abs()
    near = size.clamp_max(_FAR)
    low = ratio(near.square(), small)
    if small is table.I1_SMALL:
        low = low * near
    far = ratio(1 / size.clamp_min(_FAR), large) / size.sqrt()
    if scaled:
        return where(size <= _FAR, low * (-near).exp(), far)
    return where(size <= _FAR, low, size.exp() * far)


def _i0_grad(g: Any, input: Any) -> Any:
    return g * i1(input)


def _i0e_grad(g: Any, input: Any, out: Any) -> Any:
    return g * (i1e(input) - input.sgn() * out)


def _over(input: Any, out: Any, shift: Any) -> Any:
    """``out * (shift + 1 / input)``, and 1/2 where both are 0."""
    some = input.abs() > 2.0**-52
    return some, where(some, out * (shift + 1 / where(some, input, 1.0)), 0.5)


def _i1_grad(g: Any, input: Any, out: Any) -> Any:
    some, term = _over(input, out, 0.0)
    return g * where(some, i0(input) - term, 0.5)


def _i1e_grad(g: Any, input: Any, out: Any) -> Any:
    some, term = _over(input, out, input.sgn())
    return g * where(some, i0e(input) - term, 0.5)


i0 = of_one("i0", "The modified Bessel function of the first kind, of order 0.",
            lambda x: _i(x, table.I0_SMALL, table.I0_LARGE, False), grad=_i0_grad, samples=samples.around,
            method=True, writes=True)  # fmt: skip
i0e = of_one("i0e", "``i0`` times ``exp(-|x|)``.", lambda x: _i(x, table.I0_SMALL, table.I0_LARGE, True), grad=_i0e_grad,
             samples=samples.around, backward_name="SpecialI0EBackward0")  # fmt: skip
i1 = of_one("i1", "The modified Bessel function of the first kind, of order 1.",
            lambda x: _i(x, table.I1_SMALL, table.I1_LARGE, False).copysign(x), grad=_i1_grad, samples=samples.around,
            backward_name="SpecialI1Backward0")  # fmt: skip
i1e = of_one("i1e", "``i1`` times ``exp(-|x|)``.",
             lambda x: _i(x, table.I1_SMALL, table.I1_LARGE, True).copysign(x), grad=_i1e_grad, samples=samples.around,
             backward_name="SpecialI1EBackward0")  # fmt: skip
modified_bessel_i0 = of_one("modified_bessel_i0", "As ``i0``, without a derivative.",
                            lambda x: _i(x, table.I0_SMALL, table.I0_LARGE, False), samples=samples.around)  # fmt: skip
modified_bessel_i1 = of_one("modified_bessel_i1", "As ``i1``, without a derivative.",
                            lambda x: _i(x, table.I1_SMALL, table.I1_LARGE, False).copysign(x), samples=samples.around)  # fmt: skip

# Modified, of the second kind


def _k(x: Any, order: int, scaled: bool) -> Any:
    small, large, until = (table.K1_SMALL, table.K1_LARGE, 2) if order else (table.K0_SMALL, table.K0_LARGE, 1)
    near, far = x.clamp(0, until), x.clamp_min(until)
    square = near.square()
    first = ratio(square, table.I1_SMALL) * near if order else ratio(square, table.I0_SMALL)
    log = (near / 2).log() * first
    low = ratio(square, small) / near + log if order else ratio(square, small) - log
    high = ratio(1 / far, large) / far.sqrt()
    low, high = (low * near.exp(), high) if scaled else (low, high * (-far).exp())
    made = where(x <= until, low, high)
    return where(x > 0, made, where(x == 0, math.inf, math.nan))


modified_bessel_k0 = of_one("modified_bessel_k0", "The modified Bessel function of the second kind, of order 0.",
                            lambda x: _k(x, 0, False), samples=samples.over_zero)  # fmt: skip
modified_bessel_k1 = of_one("modified_bessel_k1", "The modified Bessel function of the second kind, of order 1.",
                            lambda x: _k(x, 1, False), samples=samples.over_zero)  # fmt: skip
scaled_modified_bessel_k0 = of_one("scaled_modified_bessel_k0", "``modified_bessel_k0`` times ``exp(x)``.",
                                   lambda x: _k(x, 0, True), samples=samples.over_zero)  # fmt: skip
scaled_modified_bessel_k1 = of_one("scaled_modified_bessel_k1", "``modified_bessel_k1`` times ``exp(x)``.",
                                   lambda x: _k(x, 1, True), samples=samples.over_zero)  # fmt: skip

# Plain

# The squares of the first zeros of J0 and J1.
_ZEROS = (5.783185962946784, 14.681970642123893)
_NEAR = 5


def _hankel(x: Any, order: int, second: bool) -> Any:
    """Hankel's expansion from 5 on: ``sqrt(2 / (pi x))`` times (P cos t - Q sin t) or (P sin t + Q cos t)."""
    inverse = _NEAR / x
    square = inverse.square()
    p = ratio(square, table.P1 if order else table.P0)
    q = ratio(square, table.Q1 if order else table.Q0) * inverse
    # cos and sin of x - pi/4 without the rounding of that difference; a quarter turn more for order 1.
    sine, cosine = x.sin(), x.cos()
    c, s = (sine + cosine) * math.sqrt(0.5), (sine - cosine) * math.sqrt(0.5)
    if order:
        c, s = s, -c
    return (p * s + q * c if second else p * c - q * s) * (math.sqrt(2 / math.pi) / x.sqrt())


def _j_near(x: Any, order: int) -> Any:
    square = x.square()
    made = ratio(square, table.J1_SMALL if order else table.J0_SMALL) * (square - _ZEROS[order])
    return made * x if order else made


def _j(x: Any, order: int) -> Any:
    size = x.abs()
    made = where(size <= _NEAR, _j_near(size.clamp_max(_NEAR), order), _hankel(size.clamp_min(_NEAR), order, False))
    return where(x < 0, -made, made) if order else made


def _y(x: Any, order: int) -> Any:
    near = x.clamp(0, _NEAR)
    smooth = ratio(near.square(), table.Y1_SMALL if order else table.Y0_SMALL)
    log = near.log() * _j_near(near, order)
    low = smooth * near + (log - 1 / near) * (2 / math.pi) if order else smooth + log * (2 / math.pi)
    made = where(x <= _NEAR, low, _hankel(x.clamp_min(_NEAR), order, True))
    return where(x > 0, made, where(x == 0, -math.inf, math.nan))


bessel_j0 = of_one("bessel_j0", "The Bessel function of the first kind, of order 0.", lambda x: _j(x, 0),
                   samples=samples.near)  # fmt: skip
bessel_j1 = of_one("bessel_j1", "The Bessel function of the first kind, of order 1.", lambda x: _j(x, 1),
                   samples=samples.near)  # fmt: skip
bessel_y0 = of_one("bessel_y0", "The Bessel function of the second kind, of order 0.", lambda x: _y(x, 0),
                   samples=samples.near_over_zero)  # fmt: skip
bessel_y1 = of_one("bessel_y1", "The Bessel function of the second kind, of order 1.", lambda x: _y(x, 1),
                   samples=samples.near_over_zero)  # fmt: skip


def _spherical(x: Any) -> Any:
    series = 1 - x.square() / 6 * (1 - x.square() / 20 * (1 - x.square() / 42 * (1 - x.square() / 72)))
    return where(x.abs() == math.inf, 0.0, where(x.abs() < 0.05, series, x.sin() / x))


spherical_bessel_j0 = of_one("spherical_bessel_j0", "The spherical Bessel function of order 0: ``sin(x) / x``.", _spherical,
                             samples=samples.around)  # fmt: skip

# Airy's

_MIDDLE = 2


def _airy(x: Any) -> Any:
    middle = ratio(x.clamp(-_MIDDLE, _MIDDLE), table.AIRY_MIDDLE)
    size = x.abs().clamp_min(_MIDDLE)
    root = size.sqrt()
    phase = size * root * (2 / 3)
    inverse = 1 / phase
    right = (-phase).exp() * ratio(inverse.clamp_max(0.54), table.AIRY_RIGHT) / (root.sqrt() * (2 * math.sqrt(math.pi)))
    sine, cosine = phase.sin(), phase.cos()
    c, s = (sine + cosine) * math.sqrt(0.5), (sine - cosine) * math.sqrt(0.5)
    square = inverse.square()
    left = ratio(square, table.AIRY_P) * c + ratio(square, table.AIRY_Q) * inverse * s
    left = left / (root.sqrt() * math.sqrt(math.pi))
    # As PyTorch does, NaN at both infinities.
    right = where(x == math.inf, math.nan, right)
    return where(x > _MIDDLE, right, where(x < -_MIDDLE, left, middle))


airy_ai = of_one("airy_ai", "Airy's function Ai.", _airy, samples=samples.around)
