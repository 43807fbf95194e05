"""The error function and its kin, and those of the gamma function, in double precision where the backend has that."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

from tensorcore import dtypes

if TYPE_CHECKING:
    from tensorcore.backend.base import Native
    from tensorcore.backend.composed.kernels import Kernels

__all__ = ["digamma", "erf", "erfc", "erfinv", "lgamma", "polygamma", "trigamma"]

# erf and erfc: the rational functions published with Sun's fdlibm (1993), highest power first, on |x| < 0.84375, < 1.25,
# < 1/0.35 and < 28. The relative error is below 1 ulp each.
_SMALL_P = (-2.37630166566501626084e-05, -5.77027029648944159157e-03, -2.84817495755985104766e-02,
            -3.25042107247001499370e-01, 1.28379167095512558561e-01)  # fmt: skip
_SMALL_Q = (-3.96022827877536812320e-06, 1.32494738004321644526e-04, 5.08130628187576562776e-03,
            6.50222499887672944485e-02, 3.97917223959155352819e-01, 1.0)  # fmt: skip
_ONE = 8.45062911510467529297e-01
_MIDDLE_P = (-2.16637559486879084300e-03, 3.54783043256182359371e-02, -1.10894694282396677476e-01,
             3.18346619901161753674e-01, -3.72207876035701323847e-01, 4.14856118683748331666e-01,
             -2.36211856075265944077e-03)  # fmt: skip
_MIDDLE_Q = (1.19844998467991074170e-02, 1.36370839120290507362e-02, 1.26171219808761642112e-01,
             7.18286544141962662868e-02, 5.40397917702171048937e-01, 1.06420880400844228286e-01, 1.0)  # fmt: skip
_LARGE_P = (-9.81432934416914548592e+00, -8.12874355063065934246e+01, -1.84605092906711035994e+02,
            -1.62396669462573470355e+02, -6.23753324503260060396e+01, -1.05586262253232909814e+01,
            -6.93858572707181764372e-01, -9.86494403484714822705e-03)  # fmt: skip
_LARGE_Q = (-6.04244152148580987438e-02, 6.57024977031928170135e+00, 1.08635005541779435134e+02,
            4.29008140027567833386e+02, 6.45387271733267880336e+02, 4.34565877475229228821e+02,
            1.37657754143519042600e+02, 1.96512716674392571292e+01, 1.0)  # fmt: skip
_TAIL_P = (-4.83519191608651397019e+02, -1.02509513161107724954e+03, -6.37566443368389627722e+02,
           -1.60636384855821916062e+02, -1.77579549177547519889e+01, -7.99283237680523006574e-01,
           -9.86494292470009928597e-03)  # fmt: skip
_TAIL_Q = (-2.24409524465858183362e+01, 4.74528541206955367215e+02, 2.55305040643316442583e+03,
           3.19985821950859553908e+03, 1.53672958608443695994e+03, 3.25792512996573918826e+02,
           3.03380607434824582924e+01, 1.0)  # fmt: skip

# Stirling's series of lgamma, and the asymptotic ones of its first and second derivative (Abramowitz and
# Stegun 6.1.41, 6.3.18, 6.4.12), in powers of 1/x**2, highest first; good to 1e-16 from x = 10 on.
_LGAMMA = (-3617 / 122400, 1 / 156, -691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12)
_DIGAMMA = (3617 / 8160, -1 / 12, 691 / 32760, -1 / 132, 1 / 240, -1 / 252, 1 / 120, -1 / 12)
_TRIGAMMA = (-3617 / 510, 7 / 6, -691 / 2730, 5 / 66, -1 / 30, 1 / 42, -1 / 30, 1 / 6)
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)
_SHIFT = 10


class _Values:
    """A native array with Python's operators, for long formulas."""

    __slots__ = ("k", "native")

    def __init__(self, k: Kernels, native: Native) -> None:
        self.k, self.native = k, native

    def __getattr__(self, name: str) -> Callable[..., _Values]:
        kernel = getattr(self.k, name)
        return lambda *rest: _Values(self.k, kernel(self.native, *map(_plain, rest)))

    def __add__(self, other: Any) -> _Values:
        return self.add(other)

    def __sub__(self, other: Any) -> _Values:
        return self.sub(other)

    def __mul__(self, other: Any) -> _Values:
        return self.mul(other)

    def __truediv__(self, other: Any) -> _Values:
        return self.div(other)

    def __rsub__(self, other: float) -> _Values:
        return _Values(self.k, self.k.sub(other, self.native))

    def __rtruediv__(self, other: float) -> _Values:
        return _Values(self.k, self.k.div(other, self.native))

    def __neg__(self) -> _Values:
        return self.neg()

    def __lt__(self, other: Any) -> _Values:
        return self.lt(other)

    __radd__, __rmul__ = __add__, __mul__


def _plain(value: Any) -> Any:
    return value.native if type(value) is _Values else value


def _where(condition: _Values, x: Any, y: Any) -> _Values:
    return _Values(condition.k, condition.k.where(condition.native, _plain(x), _plain(y)))


def _of_values(formula: Callable[..., _Values]) -> Callable[..., Native]:
    """A kernel from a formula of values in the widest floating dtype that the backend has."""

    @wraps(formula)
    def kernel(k: Kernels, x: Native, out: Native | None = None, **options: Any) -> Native:
        own = k.dtype(x)
        wide = dtypes.float64 if "float64" in k.backend.capabilities.dtypes else dtypes.float32
        made = formula(_Values(k, x if own is wide else k.cast(x, dtype=wide)), **options).native
        return k.placed(made if own is wide else k.cast(made, dtype=own), out)

    return kernel


def _polynomial(x: _Values, coefficients: tuple[float, ...]) -> _Values:
    """Horner's rule; the highest power comes first."""
    made = x * coefficients[0] + coefficients[1]
    for one in coefficients[2:]:
        made = made * x + one
    return made


# The error function


def _small(x: _Values, complement: bool) -> _Values:
    square = x * x
    rest = x * (_polynomial(square, _SMALL_P) / _polynomial(square, _SMALL_Q))
    if not complement:
        return x + rest
    return _where(x < 0.25, 1.0 - (x + rest), 0.5 - (x - 0.5 + rest))


def _middle(size: _Values, x: _Values, complement: bool) -> _Values:
    past = size - 1.0
    ratio = _polynomial(past, _MIDDLE_P) / _polynomial(past, _MIDDLE_Q)
    if not complement:
        return (ratio + _ONE).copysign(x)
    return _where(x < 0, ratio + _ONE + 1.0, (1.0 - _ONE) - ratio)


def _decaying(size: _Values, x: _Values, complement: bool) -> _Values:
    inverse = 1.0 / (size * size)
    large = _polynomial(inverse, _LARGE_P) / _polynomial(inverse, _LARGE_Q)
    tail = _polynomial(inverse, _TAIL_P) / _polynomial(inverse, _TAIL_Q)
    # exp(-x*x) in two factors: the square of a number of 21 bits is exact, and the rest is small.
    head = (size * 65536.0).round() / 65536.0
    rest = (head * head * -1.0 - 0.5625).exp()
    rest = rest * ((head - size) * (head + size) + _where(size < 1 / 0.35, large, tail)).exp() / size
    if not complement:
        return (1.0 - rest).copysign(x)
    return _where(x < 0, 2.0 - rest, rest)


def _pieces(x: _Values, complement: bool) -> _Values:
    size = x.abs()
    made = _small(x.clamp(-0.84375, 0.84375), complement)
    made = _where(size < 0.84375, made, _middle(size.clamp(0.84375, 1.25), x, complement))
    made = _where(size < 1.25, made, _decaying(size.clamp(1.25, 28.0), x, complement))
    return _where(x.isnan(), x, made)


@_of_values
def erf(x: _Values) -> _Values:
    return _pieces(x, False)


@_of_values
def erfc(x: _Values) -> _Values:
    return _pieces(x, True)


@_of_values
def erfinv(y: _Values) -> _Values:
    """Winitzki's closed form (2008), good to 2e-3, and three of Halley's steps."""
    size = y.abs()
    inside = size.minimum(1.0 - 2.0**-53)
    log = (inside * inside * -1.0).log1p()
    half = log * 0.5 + 2.0 / (math.pi * 0.147)
    x = ((half * half - log / 0.147).sqrt() - half).sqrt()
    for _ in range(3):
        # Near 1 the difference of two erfs has no digits left, that of two erfcs has all.
        error = _where(inside < 0.5, _pieces(x, False) - inside, (1.0 - inside) - _pieces(x, True))
        step = error / ((x * x * -1.0).exp() * (2 / math.sqrt(math.pi)))
        x = x - step / (x * step + 1.0)
    x = _where(size < 1.0, x, _where(size.eq(1.0), math.inf, size * math.nan))
    return x.copysign(y)


# The gamma function


def _shifted(x: _Values) -> tuple[_Values, list[_Values]]:
    """``x`` raised to at least 10 by steps of one, and the values it passed (infinite where it passed none)."""
    passed = []
    for _ in range(_SHIFT):
        low = x < _SHIFT
        passed.append(_where(low, x, math.inf))
        x = _where(low, x + 1.0, x)
    return x, passed


def _part(x: _Values) -> _Values:
    """How far the nearest integer is."""
    return x - x.round()


@_of_values
def lgamma(x: _Values) -> _Values:
    below = x < 0.5
    # Gamma(x) Gamma(1-x) = pi / sin(pi x) leads from the left half to the right.
    y, passed = _shifted(_where(below, 1.0 - x, x))
    product = y * 0.0 + 1.0
    for one in passed:
        product = product * _where(one.isinf(), 1.0, one)
    inverse = 1.0 / y
    series = _polynomial(inverse * inverse, _LGAMMA) * inverse
    right = (y - 0.5) * y.log() - y + 0.5 * math.log(2 * math.pi) + series - product.log()
    right = _where(y.isinf(), math.inf, _where(x.eq(1.0).logical_or(x.eq(2.0)), 0.0, right))
    part = _part(x).abs()
    # pi / sin(pi x) = 1 / x / sinc(x): pi times a denormal has few digits, their quotient has all.
    turn = part * math.pi
    left = part.log() * -1.0 - (turn.sin() / turn).log() - right
    result = _where(below, _where(part.eq(0.0), math.inf, left), right)
    return _where(x.isinf(), math.inf, result)


@_of_values
def digamma(x: _Values) -> _Values:
    below = x < 0
    y, passed = _shifted(_where(below, 1.0 - x, x))
    inverse = 1.0 / y
    square = inverse * inverse
    right = y.log() - inverse * 0.5 + _polynomial(square, _DIGAMMA) * square
    for one in passed:
        right = right - 1.0 / one
    part = _part(x)
    left = right - math.pi / (part * math.pi).tan()
    zero = (x * 0.0 + math.inf).copysign(x) * -1.0
    return _where(below, _where(part.eq(0.0), math.nan, left), _where(x.eq(0.0), zero, right))


@_of_values
def trigamma(x: _Values) -> _Values:
    """The second derivative of the logarithm of the gamma function."""
    below = x < 0.5
    y, passed = _shifted(_where(below, 1.0 - x, x))
    inverse = 1.0 / y
    square = inverse * inverse
    right = inverse + square * 0.5 + _polynomial(square, _TRIGAMMA) * square * inverse
    for one in passed:
        right = right + 1.0 / (one * one)
    sine = (_part(x) * math.pi).sin()
    return _where(below, math.pi * math.pi / (sine * sine) - right, right)


def polygamma(k: Kernels, x: Native, out: Native | None = None, *, n: int) -> Native:
    """The n-th derivative of digamma; from n = 2 on by the series of Hurwitz' zeta function."""
    if n == 0:
        return k.digamma(x, out=out)
    return k.trigamma(x, out=out) if n == 1 else _higher(k, x, out=out, n=n)


@_of_values
def _higher(x: _Values, n: int) -> _Values:
    # Along x, cot(pi x) has the derivative -pi (1 + cot**2), and so on: polynomials in cot, lowest power first.
    slope = [0.0, 1.0]
    for _ in range(n):
        rising = [i * one for i, one in enumerate(slope)][1:]
        slope = [-math.pi * (a + b) for a, b in zip([*rising, 0.0, 0.0], [0.0, 0.0, *rising], strict=True)]
    # psi_n(x) = (-1)**n psi_n(1 - x) - pi d^n cot(pi x) leads from the left half to the right.
    below, sign = x < 0.5, (-1.0) ** n
    right = _by_sum(_where(below, 1.0 - x, x), n)
    part = _part(x)
    left = right * sign - _polynomial(1.0 / (part * math.pi).tan(), tuple(reversed(slope))) * math.pi
    left = _where(part.eq(0.0).logical_or(x.isinf()), -sign * math.inf, left)
    return _where(below, left, right)


def _by_sum(x: _Values, n: int) -> _Values:
    # -(-1)**n n! sum((x + k)**-(n + 1)), summed up to a start, by Euler and Maclaurin from there. Terms of
    # their series grow with n: it starts further out.
    power, start = n + 1, _SHIFT + 2 * n
    total, y = x * 0.0, x
    for _ in range(start):
        low = y < start
        total = total + _where(low, _where(low, y, 1.0).pow(-power), 0.0)
        y = _where(low, y + 1.0, y)
    total = total + y.pow(1 - power) / (power - 1) + y.pow(-power) * 0.5
    factor = 1.0 * power
    for j, bernoulli in enumerate(_BERNOULLI, 1):
        total = total + y.pow(1 - power - 2 * j) * (bernoulli / math.factorial(2 * j) * factor)
        factor *= (power + 2 * j - 1) * (power + 2 * j)
    return total * ((-1.0) ** (n + 1) * math.factorial(n))
