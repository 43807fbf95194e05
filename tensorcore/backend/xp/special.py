"""Special functions in NumPy's arithmetic: the error function and its kin, and those of the gamma function."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorcore.backend.base import Kernel, Native
    from tensorcore.backend.xp import XPBackend

__all__ = ["kernels"]

# erf for single precision: an odd rational function on [-4, 4], as used by Eigen and XLA (error 4.5e-7).
_ERF32_P = (-2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05,
            -7.34990630306855e-04, -2.95459980854025e-03, -1.60960333262415e-02)  # fmt: skip
_ERF32_Q = (-1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03, -7.37332916720468e-03,
            -1.42647390514189e-02)  # fmt: skip

# erf and erfc for double precision: the rational functions published with Sun's fdlibm (1993), highest power
# first, on |x| < 0.84375, < 1.25, < 1/0.35 and < 28. The relative error is below 1 ulp each.
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
# So many elements take less time one by one than the 25 calls that a vector of any length takes.
_FEW = 64
_BLOCK = 16384


def _polynomial(x: Native, coefficients: tuple[float, ...]) -> Native:
    """Horner's rule, in place; the highest power comes first."""
    result = x * coefficients[0]
    for one in coefficients[1:-1]:
        result += one
        result *= x
    result += coefficients[-1]
    return result


def kernels(backend: XPBackend) -> dict[str, Kernel]:
    """The family's kernels for one backend."""
    xp = backend.xp
    on_host = backend.capabilities.host
    float32, float64 = np.dtype(np.float32), np.dtype(np.float64)

    def widened(function: Callable[[Native], Native], single: Callable[[Native], Native] | None = None) -> Kernel:
        """A kernel for all floating dtypes from one for double precision, and one for single where there is."""

        def kernel(x: Native, out: Any = None) -> Native:
            if x.dtype == float64:
                result = function(x)
            elif single is not None:
                result = single(x if x.dtype == float32 else x.astype(float32))
            else:
                result = function(x.astype(float64))
            if out is not None:
                out[...] = result
                return out
            return xp.asarray(result, dtype=x.dtype)

        kernel.__name__, kernel.__doc__ = function.__name__, function.__doc__
        return kernel

    def erf32(x: Native) -> Native:
        if on_host and x.size <= _FEW:
            return xp.array([math.erf(one) for one in x.ravel().tolist()], float32).reshape(x.shape)
        if on_host and x.size > _BLOCK:
            # 25 passes over memory: in blocks, all but the first find it in the cache (9.2 against 3 ms for 1e6).
            flat = xp.ravel(x)
            made = xp.empty_like(flat)
            for start in range(0, flat.size, _BLOCK):
                made[start : start + _BLOCK] = erf32(flat[start : start + _BLOCK])
            return made.reshape(x.shape)
        x = xp.clip(x, np.float32(-4), np.float32(4))
        square = x * x
        result = _polynomial(square, _ERF32_P)
        result /= _polynomial(square, _ERF32_Q)
        result *= x
        return result

    def pieces(x: Native, complement: bool) -> Native:
        """erf or erfc, range by range; a range without elements costs one comparison."""
        flat = xp.ravel(x)
        size = xp.abs(flat)
        made = xp.where(flat < 0, 2.0, 0.0) if complement else xp.sign(flat)
        made[flat != flat] = xp.nan
        for low, high, function in (
            (-1.0, 0.84375, small), (0.84375, 1.25, middle), (1.25, 1 / 0.35, large), (1 / 0.35, 28.0, tail),
        ):  # fmt: skip
            inside = xp.flatnonzero((size >= low) & (size < high))
            if inside.size:
                made[inside] = function(flat[inside], complement)
        return made.reshape(x.shape)

    def small(x: Native, complement: bool) -> Native:
        square = x * x
        ratio = _polynomial(square, _SMALL_P) / _polynomial(square, _SMALL_Q)
        if not complement:
            return x + x * ratio
        return xp.where(x < 0.25, 1.0 - (x + x * ratio), 0.5 - (x - 0.5 + x * ratio))

    def middle(x: Native, complement: bool) -> Native:
        past = xp.abs(x) - 1.0
        ratio = _polynomial(past, _MIDDLE_P) / _polynomial(past, _MIDDLE_Q)
        if not complement:
            return xp.copysign(_ONE + ratio, x)
        return xp.where(x >= 0, 1.0 - _ONE - ratio, 1.0 + (_ONE + ratio))

    def decaying(x: Native, complement: bool, p: tuple[float, ...], q: tuple[float, ...]) -> Native:
        size = xp.abs(x)
        inverse = 1.0 / (size * size)
        ratio = _polynomial(inverse, p) / _polynomial(inverse, q)
        # exp(-x*x) in two factors: the square of a number of 26 bits is exact, and the rest is small.
        head = (size.view(np.int64) & ~0xFFFFFFFF).view(np.float64)
        rest = xp.exp(-head * head - 0.5625) * xp.exp((head - size) * (head + size) + ratio) / size
        if not complement:
            return xp.copysign(1.0 - rest, x)
        return xp.where(x > 0, rest, 2.0 - rest)

    def large(x: Native, complement: bool) -> Native:
        return decaying(x, complement, _LARGE_P, _LARGE_Q)

    def tail(x: Native, complement: bool) -> Native:
        return decaying(x, complement, _TAIL_P, _TAIL_Q)

    def erf(x: Native) -> Native:
        return pieces(x, False)

    def erfc(x: Native) -> Native:
        return pieces(x, True)

    def erfinv(y: Native) -> Native:
        """Winitzki's closed form (2008), good to 2e-3, and three of Halley's steps."""
        size = xp.abs(y)
        inside = xp.minimum(size, 1.0 - 2.0**-53)
        log = xp.log1p(-inside * inside)
        half = 2.0 / (np.pi * 0.147) + log / 2
        x = xp.sqrt(xp.sqrt(half * half - log / 0.147) - half)
        for _ in range(3):
            # Near 1 the difference of two erfs has no digits left, that of two erfcs has all.
            error = xp.where(inside < 0.5, pieces(x, False) - inside, (1.0 - inside) - pieces(x, True))
            step = error / (2 / np.sqrt(np.pi) * xp.exp(-x * x))
            x = x - step / (1 + x * step)
        x = xp.where(size == 1, xp.inf, xp.where(size <= 1, x, xp.nan))
        return xp.copysign(x, y)

    def shifted(x: Native) -> tuple[Native, list[Native]]:
        """``x`` raised to at least 10 by steps of one, and the values it passed (1 where it passed none)."""
        passed = []
        for _ in range(_SHIFT):
            low = x < _SHIFT
            passed.append(xp.where(low, x, xp.inf))
            x = xp.where(low, x + 1, x)
        return x, passed

    def lgamma(x: Native) -> Native:
        below = x < 0.5
        # Gamma(x) Gamma(1-x) = pi / sin(pi x) leads from the left half to the right.
        y, passed = shifted(xp.where(below, 1 - x, x))
        product = xp.ones_like(y)
        for one in passed:
            product = product * xp.where(one == xp.inf, 1.0, one)
        inverse = 1 / y
        series = _polynomial(inverse * inverse, _LGAMMA) * inverse
        right = (y - 0.5) * xp.log(y) - y + 0.5 * np.log(2 * np.pi) + series - xp.log(product)
        right = xp.where(xp.isinf(y), xp.inf, xp.where((x == 1) | (x == 2), 0.0, right))
        part = xp.abs(x - xp.rint(x))
        # pi / sin(pi x) = 1 / x / sinc(x): pi times a denormal has few digits, their quotient has all.
        left = -xp.log(part) - xp.log(xp.sin(np.pi * part) / (np.pi * part)) - right
        result = xp.where(below, xp.where(part == 0, xp.inf, left), right)
        return xp.where(xp.isinf(x), xp.inf, result)

    def digamma(x: Native) -> Native:
        below = x < 0
        y, passed = shifted(xp.where(below, 1 - x, x))
        inverse = 1 / y
        square = inverse * inverse
        right = xp.log(y) - 0.5 * inverse + _polynomial(square, _DIGAMMA) * square
        for one in passed:
            right = right - 1 / one
        part = x - xp.rint(x)
        left = right - np.pi / xp.tan(np.pi * part)
        return xp.where(below, xp.where(part == 0, xp.nan, left), xp.where(x == 0, -xp.copysign(xp.inf, x), right))

    def trigamma(x: Native) -> Native:
        """The second derivative of the logarithm of the gamma function."""
        below = x < 0.5
        y, passed = shifted(xp.where(below, 1 - x, x))
        inverse = 1 / y
        square = inverse * inverse
        right = inverse + 0.5 * square + _polynomial(square, _TRIGAMMA) * square * inverse
        for one in passed:
            right = right + 1 / (one * one)
        sine = xp.sin(np.pi * (x - xp.rint(x)))
        return xp.where(below, np.pi * np.pi / (sine * sine) - right, right)

    def polygamma(x: Native, *, n: int, out: Any = None) -> Native:
        """The n-th derivative of digamma; from n = 2 on by the series of Hurwitz' zeta function."""
        if n < 2:
            lower: Any = by_name["digamma"] if n == 0 else by_name["trigamma"]
            return lower(x, out=out)

        # Along x, cot(pi x) has the derivative -pi (1 + cot**2), and so on: polynomials in cot, lowest power first.
        slope = np.array([0.0, 1.0])
        for _ in range(n):
            slope = -np.pi * np.convolve(slope[1:] * np.arange(1, len(slope)), [1.0, 0.0, 1.0])

        def derivative(x: Native) -> Native:
            # psi_n(x) = (-1)**n psi_n(1 - x) - pi d^n cot(pi x) leads from the left half to the right.
            below = x < 0.5
            right = on_right(xp.where(below, 1 - x, x))
            part = x - xp.rint(x)
            left = (-1) ** n * right - np.pi * _polynomial(1 / xp.tan(np.pi * part), tuple(slope[::-1].tolist()))
            left = xp.where(part == 0, (-1) ** (n + 1) * xp.inf, left)
            return xp.where(below, xp.where(xp.isinf(x), xp.nan, left), right)

        def on_right(x: Native) -> Native:
            # -(-1)**n n! sum((x + k)**-(n + 1)), summed up to a start, by Euler and Maclaurin from there. Terms of
            # their series grow with n: it starts further out.
            power, start = n + 1, _SHIFT + 2 * n
            total, y = xp.zeros_like(x), x
            for _ in range(start):
                low = y < start
                total = total + xp.where(low, xp.where(low, y, 1.0) ** -power, 0.0)
                y = xp.where(low, y + 1, y)
            total = total + y ** (1 - power) / (power - 1) + 0.5 * y**-power
            factor = 1.0 * power
            for j, bernoulli in enumerate(_BERNOULLI, 1):
                total = total + bernoulli / math.factorial(2 * j) * factor * y ** (1 - power - 2 * j)
                factor *= (power + 2 * j - 1) * (power + 2 * j)
            return (-1) ** (n + 1) * math.factorial(n) * total

        return widened(derivative)(x, out=out)

    def rational(x: Native, out: Native | None = None, *, above: tuple[float, ...], below: tuple[float, ...]) -> Native:
        """The ratio of two polynomials, the highest power first, in the dtype of ``x``."""
        if x.size > _BLOCK and on_host:
            flat = xp.ravel(x)
            made = xp.empty_like(flat)
            for start in range(0, flat.size, _BLOCK):
                made[start : start + _BLOCK] = rational(flat[start : start + _BLOCK], above=above, below=below)
            result = made.reshape(x.shape)
        else:
            result = _polynomial(x, above)
            result = xp.asarray(result if len(below) == 1 else result / _polynomial(x, below))
        if out is None:
            return result
        out[...] = result
        return out

    by_name: dict[str, Kernel] = {
        "erf": widened(erf, erf32), "erfc": widened(erfc), "erfinv": widened(erfinv),
        "lgamma": widened(lgamma), "digamma": widened(digamma), "trigamma": widened(trigamma),
        "polygamma": polygamma, "rational": rational,
    }  # fmt: skip
    return by_name
