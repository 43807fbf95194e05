"""Special functions by the library beside the namespace: ``scipy.special`` beside NumPy, ``cupyx.scipy.special`` beside CuPy.

Imported when one of them is first called. A namespace of another kind names its own as its attribute ``special``; what that
lacks, or where there is none, is made of other kernels and ops.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from math import factorial
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tensorcore.backend.base import Kernel, Native
    from tensorcore.backend.xp import XPBackend

__all__ = ["kernels"]

# Kernel name -> function of the library.
UNARY = {
    "bessel_j0": "j0", "bessel_j1": "j1", "bessel_y0": "y0", "bessel_y1": "y1", "digamma": "psi", "entr": "entr",
    "erf": "erf", "erfc": "erfc", "erfcx": "erfcx", "i0": "i0", "i0e": "i0e", "i1": "i1", "i1e": "i1e", "log_ndtr": "log_ndtr",
    "modified_bessel_i0": "i0", "modified_bessel_i1": "i1", "modified_bessel_k0": "k0", "modified_bessel_k1": "k1",
    "ndtr": "ndtr", "ndtri": "ndtri", "scaled_modified_bessel_k0": "k0e", "scaled_modified_bessel_k1": "k1e",
}  # fmt: skip

# Those of the third and fourth kind are differences and sums of the second.
POLYNOMIALS = {
    **{f"chebyshev_polynomial_{kind}": "eval_chebyt" if kind == "t" else "eval_chebyu" for kind in "tuvw"},
    **{f"shifted_chebyshev_polynomial_{kind}": "eval_sh_chebyt" if kind == "t" else "eval_sh_chebyu" for kind in "tuvw"},
    "hermite_polynomial_h": "eval_hermite", "hermite_polynomial_he": "eval_hermitenorm",
    "laguerre_polynomial_l": "eval_laguerre", "legendre_polynomial_p": "eval_legendre",
}  # fmt: skip
# No order beyond this one is computed by recurrence, which takes as many steps.
_HIGHEST = 1 << 20


def _library(xp: Any) -> Any:
    return import_module("scipy.special") if xp is np else getattr(xp, "special", None)


def kernels(backend: XPBackend) -> dict[str, Kernel]:
    """The family's kernels for one backend: those that its library has."""
    xp = backend.xp
    library = _library(xp)
    on_host = backend.capabilities.host  # a look at the values would make a device wait for itself

    def of_one(function: Callable[..., Native]) -> Kernel:
        def kernel(x: Native, out: Any = None) -> Native:
            if x.dtype.itemsize == 2:
                return _placed(function(x.astype(np.float32)).astype(x.dtype), out)
            return function(x) if out is None else _placed(function(x), out)

        return kernel

    def of_two(function: Callable[..., Native]) -> Kernel:
        def kernel(x: Native, y: Native, out: Any = None) -> Native:
            if x.dtype.itemsize == 2:
                return _placed(function(x.astype(np.float32), y.astype(np.float32)).astype(x.dtype), out)
            return function(x, y) if out is None else _placed(function(x, y), out)

        return kernel

    def of_two_with_log(function: Callable[..., Native], log: Callable[..., Native]) -> Kernel:
        def narrow(x: Native, y: Native) -> Native:
            """PyTorch rounds the logarithm, and then the product."""
            wide, other = x.astype(np.float32), y.astype(np.float32)
            with np.errstate(all="ignore"):
                rounded = log(other).astype(y.dtype).astype(np.float32)
                return xp.where((wide == 0) & (other == other), np.float32(0), wide * rounded).astype(x.dtype)

        def kernel(x: Native, y: Native, out: Any = None) -> Native:
            made = narrow(x, y) if x.dtype.itemsize == 2 else function(x, y)
            return made if out is None else _placed(made, out)

        return kernel

    # Where the library's corners are not PyTorch's

    def erfinv(x: Native) -> Native:
        return xp.copysign(library.erfinv(x), x)

    def lgamma(x: Native) -> Native:
        result = xp.asarray(library.gammaln(x))
        endless = xp.isinf(result)
        if on_host and not endless.any():
            return result
        # At minus infinity, and at numbers whose inverse is larger than any: there log(1 / x) is -log(x).
        size = xp.abs(x)
        return xp.where(endless & ((size < 1) | (size == np.inf)), xp.abs(xp.log(size)), result)

    def airy_ai(x: Native) -> Native:
        result = xp.asarray(library.airy(x)[0])
        result[(result != result) & (x > 0) & (x < np.inf)] = 0
        return result

    def zeta(s: Native, q: Native) -> Native:
        return xp.where((q == np.inf) & (s != 1), xp.asarray(np.nan, s.dtype), library.zeta(s, q))

    def incomplete(function: Callable[..., Native], upper: bool) -> Callable[..., Native]:
        def kernel(a: Native, x: Native) -> Native:
            result = xp.asarray(function(a, x))
            unclear = result != result
            if on_host and not unclear.any():
                return result
            # One of the two decides where it can, even beside NaN.
            within = unclear & ~((x < 0) | (a < 0) | (a == 0))
            far = xp.isinf(a) & ~xp.isinf(x)
            result[within & ((x == 0) | far)] = upper
            result[within & xp.isinf(x) & ~xp.isinf(a)] = not upper
            return result

        return kernel

    def polygamma(x: Native, *, n: int, out: Any = None) -> Native:
        """The n-th derivative of digamma; to the right of 0 by Hurwitz' zeta function."""
        if n == 0:
            return table["digamma"](x, out=out)
        if x.dtype.itemsize == 2:
            return _placed(polygamma(x.astype(np.float32), n=n).astype(x.dtype), out)
        if not (x > 0).all():
            return backend.without("trigamma")(x, out=out) if n == 1 else backend.without("polygamma")(x, n=n, out=out)
        sign = 1.0 if n % 2 else -1.0
        return _placed(library.zeta(x.dtype.type(n + 1), x) * x.dtype.type(sign * factorial(n)), out)

    def trigamma(x: Native, out: Any = None) -> Native:
        """The second derivative of the logarithm of the gamma function."""
        return polygamma(x, n=1, out=out)

    def orthogonal(name: str) -> Callable[..., Native]:
        """Of any order in ``n``: 0 for negative ones, and for those beyond an integer of 64 bits."""
        family, _, kind = name.rpartition("_polynomial_")
        evaluate = getattr(library, POLYNOMIALS[name])

        def function(x: Native, n: Native) -> Native:
            order = xp.where((n > -1) & (n < 2.0**63), n, -1.0)
            counted = xp.minimum(order, _HIGHEST).astype(np.int64)
            wide = x.astype(np.float64)
            result = evaluate(counted, wide)
            if kind in ("v", "w"):
                before = evaluate(xp.maximum(counted - 1, 0), wide)
                result = xp.where(counted > 0, result - before if kind == "v" else result + before, result)
            if family.endswith("chebyshev") and (order > _HIGHEST).any():
                point = 2 * wide - 1 if family.startswith("shifted") else wide
                result = xp.where((order > _HIGHEST) & (xp.abs(point) < 1), by_angle(point, order, kind), result)
            return xp.where(order > -1, result, 0.0).astype(x.dtype)

        return function

    def by_angle(x: Native, n: Native, kind: str) -> Native:
        turn, n = xp.arccos(xp.clip(x, -1, 1)), xp.trunc(n)
        if kind == "t":
            return xp.cos(n * turn)
        if kind == "u":
            return xp.sin((n + 1) * turn) / xp.sin(turn)
        if kind == "v":
            return xp.cos((n + 0.5) * turn) / xp.cos(turn / 2)
        return xp.sin((n + 0.5) * turn) / xp.sin(turn / 2)

    if library is None:
        return {}
    table = {name: of_one(getattr(library, own)) for name, own in UNARY.items() if hasattr(library, own)}
    for name, log in (("xlogy", xp.log), ("xlog1py", xp.log1p)):
        if hasattr(library, name):
            table[name] = of_two_with_log(getattr(library, name), log)
    for own, name, kernel in (
        ("erfinv", "erfinv", of_one(erfinv)), ("gammaln", "lgamma", of_one(lgamma)), ("airy", "airy_ai", of_one(airy_ai)),
        ("zeta", "zeta", of_two(zeta)), ("zeta", "polygamma", polygamma), ("zeta", "trigamma", trigamma),
    ):  # fmt: skip
        if hasattr(library, own) and (on_host or name not in ("polygamma", "trigamma")):
            table[name] = kernel
    table.update({name: of_two(orthogonal(name)) for name, own in POLYNOMIALS.items() if hasattr(library, own)})
    for name, own in (("igamma", "gammainc"), ("igammac", "gammaincc")):
        if hasattr(library, own):
            table[name] = of_two(incomplete(getattr(library, own), name == "igammac"))
    return table


def _placed(result: Native, out: Any) -> Native:
    if out is None:
        return result
    out[...] = result
    return out
