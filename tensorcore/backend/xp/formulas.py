"""Functions of one element that are several ops in the frontend, as one kernel each."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorcore import dtypes

if TYPE_CHECKING:
    from tensorcore.backend.base import Kernel, Native
    from tensorcore.backend.xp import XPBackend

__all__ = ["kernels"]

# How segments are joined, and what they start from.
_JOINS = {
    "sum": (np.add, 0.0), "mean": (np.add, 0.0), "prod": (np.multiply, 1.0), "amax": (np.maximum, -np.inf), "amin": (np.minimum, np.inf),
}  # fmt: skip


def kernels(backend: XPBackend) -> dict[str, Kernel]:
    """The family's kernels for one backend."""
    xp = backend.xp

    def placed(made: Native, out: Any) -> Native:
        if out is None:
            return xp.asarray(made)
        out[...] = made
        return out

    def single(kernel: Callable[..., Native]) -> Callable[..., Native]:
        """``kernel`` that computes with narrow floats in single precision, and rounds once."""

        @wraps(kernel)
        def run(x: Native, *others: Any, **options: Any) -> Native:
            if x.itemsize > 2 or x.dtype.kind in "biu":
                return kernel(x, *others, **options)
            out = options.pop("out", None)
            wide = [one.astype(np.float32) if hasattr(one, "astype") else one for one in (x, *others)]
            return placed(kernel(*wide, **options).astype(x.dtype), out)

        return run

    @single
    def hardsigmoid(x: Native) -> Native:
        return xp.asarray(xp.clip(x + 3, 0, 6) / 6)

    @single
    def hardswish(x: Native) -> Native:
        return xp.asarray(x * xp.clip(x + 3, 0, 6) / 6)

    def hardshrink(x: Native, *, lambd: float = 0.5) -> Native:
        return xp.where(xp.abs(x) <= x.dtype.type(lambd), x.dtype.type(0), x)

    @single
    def softshrink(x: Native, *, lambd: float = 0.5) -> Native:
        if lambd < 0:
            raise ValueError(f"expected lambd of at least 0, got {lambd}")
        return xp.asarray(x - xp.clip(x, -lambd, lambd))

    @single
    def threshold(x: Native, *, threshold: float, value: float) -> Native:
        """``value`` where an element is at most ``threshold``."""
        return xp.where(x <= x.dtype.type(threshold), x.dtype.type(value), x)

    def nan_to_num(x: Native, *, nan: Any = 0.0, posinf: Any = None, neginf: Any = None, out: Any = None) -> Native:
        """None stands for the largest and the least number of the dtype; of complex numbers part by part."""
        if x.dtype.kind == "c":
            made = xp.array(x, order="C")
            parts = made.reshape(-1).view(x.real.dtype)
            parts[...] = nan_to_num(parts, nan=nan, posinf=posinf, neginf=neginf)
            return placed(made, out)
        most = dtypes.finfo(backend.dtype_of(x)).max
        made = xp.where(xp.isnan(x), x.dtype.type(nan or 0), x)
        made = xp.where(made == np.inf, x.dtype.type(most if posinf is None else posinf), made)
        return placed(xp.where(made == -np.inf, x.dtype.type(-most if neginf is None else neginf), made), out)

    def logit(x: Native, *, eps: float | None = None, out: Any = None) -> Native:
        """Of each element kept within ``eps`` and ``1 - eps``, where that is a number; every step is rounded."""
        one = x.dtype.type(1)
        kept = x if eps is None else xp.clip(x, x.dtype.type(eps), one - x.dtype.type(eps)).astype(x.dtype, copy=False)
        return backend.kernels["log"](xp.asarray(kept / (one - kept)), out=out)

    def heaviside(x: Native, y: Native, out: Any = None) -> Native:
        return placed(xp.where(x == 0, y, (x > 0).astype(x.dtype)), out)

    @single
    def addcdiv(x: Native, y: Native, z: Native, *, value: Any = 1, out: Any = None) -> Native:
        """``x + value * y / z``"""
        return placed(x + (y * x.dtype.type(value)) / z, out)

    def add_scaled(x: Native, y: Native, *, alpha: Any = 1, out: Any = None) -> Native:
        """``x + alpha * y``"""
        return placed(x + y * x.dtype.type(alpha), out)

    @single
    def addcmul(x: Native, y: Native, z: Native, *, value: Any = 1, out: Any = None) -> Native:
        """``x + value * y * z``"""
        return placed(x + (y * x.dtype.type(value)) * z, out)

    def addr(x: Native, y: Native, z: Native, *, beta: Any = 1, alpha: Any = 1, out: Any = None) -> Native:
        """``beta * x + alpha * y * z`` of a matrix and each element of one vector beside each of another."""
        return placed(x * x.dtype.type(beta) + y[:, None] * x.dtype.type(alpha) * z, out)

    def polar(x: Native, y: Native) -> Native:
        """Complex numbers of the sizes ``x`` and the angles ``y``, in radians."""
        return backend.kernels["complex"](xp.asarray(x * xp.cos(y)), xp.asarray(x * xp.sin(y)))

    def frac(x: Native, out: Any = None) -> Native:
        return placed(x - xp.trunc(x), out)

    def over(sine: Native, angle: Native) -> Native:
        """Their quotient, 1 where the angle is 0."""
        return xp.where(angle == 0, angle.dtype.type(1), sine / xp.where(angle == 0, angle.dtype.type(1), angle))

    @single
    def sinc(x: Native, *, out: Any = None) -> Native:
        angle = x * x.dtype.type(np.pi)
        return placed(over(xp.sin(angle), angle), out)

    def spherical_bessel_j0(x: Native, *, out: Any = None) -> Native:
        return placed(xp.where(xp.isinf(x), x.dtype.type(0), over(xp.sin(x), x)), out)

    @single
    def lerp(x: Native, y: Native, weight: Any, out: Any = None) -> Native:
        """From whichever end is nearer; ``weight`` is a float or an array."""
        difference = y - x
        if isinstance(weight, (float, complex)):
            near = abs(weight) < 0.5
            one = x.dtype.type(1)
            rest = one - x.dtype.type(weight) if x.dtype.kind == "c" else x.dtype.type(1 - weight)
            made = x + x.dtype.type(weight) * difference if near else y - difference * rest
            return placed(made, out)
        return placed(xp.where(xp.abs(weight) < 0.5, x + weight * difference, y - difference * (1 - weight)), out)

    def frexp(x: Native) -> tuple[Native, Native]:
        """Mantissas and int32 exponents; of infinities and NaN the exponent is 0."""
        mantissa, exponent = xp.frexp(x)
        return mantissa, xp.where(xp.isfinite(x), exponent, 0).astype(np.int32)

    def ldexp(x: Native, n: Native, *, out: Any = None) -> Native:
        """``x`` times two to the power of integers, rounded once."""
        wide = x.astype(np.float32) if x.itemsize == 2 else x
        made = xp.ldexp(wide, xp.clip(n.astype(np.int64), -2200, 2200).astype(np.int32))
        return placed(made.astype(x.dtype, copy=False), out)

    def equal(x: Native, y: Native) -> bool:
        """Whether two arrays of one shape have equal elements."""
        return bool((x == y).all())

    def histc(x: Native, *, bins: int, low: float, high: float) -> Native:
        """How many elements of a vector fall into each of ``bins`` equal bins, of which the last holds ``high`` too."""
        half = x.itemsize == 2

        def rounded(one: Any) -> Any:
            """As a half type keeps it, in which PyTorch takes every step."""
            return xp.asarray(one, x.dtype).astype(np.float32) if half else one

        wide, first, last = rounded(x), rounded(low), rounded(high)
        inside = wide[(wide >= first) & (wide <= last)]
        places = rounded(rounded(rounded(inside - first) * rounded(bins)) / rounded(last - first))
        places = xp.where(places < bins, places, bins - 1).astype(np.int64)
        return xp.bincount(places, minlength=bins).astype(x.dtype)

    def histogram(x: Native, weight: Native | None, edges: list[Native]) -> Native:
        """How much weight of the points (n, dims) falls between the edges of each dim; each last bin holds its right edge too."""
        inside, places, size = xp.ones(x.shape[0], np.bool_), xp.zeros(x.shape[0], np.int64), 1
        for k, edge in enumerate(edges):
            column, bins = x[:, k], len(edge) - 1
            inside &= (column >= edge[0]) & (column <= edge[-1])
            places = places * bins + xp.clip(xp.searchsorted(edge, column, side="right") - 1, 0, bins - 1)
            size *= bins
        taken = None if weight is None else weight.reshape(-1)[inside]
        made = xp.bincount(places[inside], weights=taken, minlength=size)
        return made.astype(x.dtype).reshape([len(edge) - 1 for edge in edges])

    def isin(x: Native, among: Native) -> Native:
        """Whether each element is one of a few: all are compared with all."""
        return xp.asarray((x[..., None] == among.reshape(-1)).any(-1))

    def renorm(x: Native, *, p: float, dim: int, maxnorm: float, out: Any = None) -> Native:
        """Slices along ``dim`` whose p-norm is over ``maxnorm`` shortened to it."""
        others = tuple([i for i in range(x.ndim) if i != dim])
        size = backend.kernels["norm"](x, p=p, dim=others, keepdim=True)
        factor = xp.where(size > maxnorm, x.dtype.type(maxnorm) / (size + x.dtype.type(1e-7)), x.dtype.type(1))
        return placed(xp.ascontiguousarray(x * factor), out)

    def between(away: Native, p: float) -> Native:
        """The p-norms of differences along the last dim: of p = 0 how many are not 0, which is a NaN where one of them is."""
        if p == 0:
            return xp.minimum(xp.ceil(xp.abs(away)), away.dtype.type(1)).sum(-1)
        return backend.kernels["norm"](away, p=p, dim=(away.ndim - 1,))

    def pdist(x: Native, *, p: float) -> Native:
        """The p-norm distances of all pairs of the rows of a matrix."""
        first, second = [xp.asarray(one) for one in np.triu_indices(x.shape[0], 1)]
        return between(x[first] - x[second], p)

    def cdist(x: Native, y: Native, *, p: float) -> Native:
        """The p-norm distances of all rows of one matrix, or of each of a batch, to all of another."""
        return between(x[..., :, None, :] - y[..., None, :, :], p)

    def distances_gradient(g: Native, x: Native, y: Native | None, out: Native, *, p: float) -> Native:
        """The gradient with regard to ``x`` of ``cdist``, or without ``y`` of ``pdist``; of p = 1, 2 or infinity. ``out`` is the result."""
        if y is None:
            first, second = [xp.asarray(one) for one in np.triu_indices(x.shape[0], 1)]
            g, out = [matrix_of(one, x.shape[0], first, second) for one in (g, out)]
            y = x
        away = x[..., :, None, :] - y[..., None, :, :]
        if p == 2:
            return xp.asarray((away * xp.where(out == 0, out, g / xp.where(out == 0, 1, out))[..., None]).sum(-2))
        pull = xp.where(out == 0, out, g)[..., None] * xp.sign(away)
        return xp.asarray((pull if p == 1 else xp.where(xp.abs(away) == out[..., None], pull, 0)).sum(-2)).astype(
            x.dtype, copy=False
        )

    def matrix_of(pairs: Native, n: int, first: Native, second: Native) -> Native:
        made = xp.zeros((n, n), pairs.dtype)
        made[first, second] = made[second, first] = pairs
        return made

    def cosine_similarity(x: Native, y: Native, *, eps: float) -> Native:
        """The cosines of the angles between the rows of two arrays of one shape; each length is at least ``eps``."""
        axis = x.ndim - 1
        one, other = [
            each / xp.maximum(backend.kernels["norm"](each, p=2.0, dim=(axis,), keepdim=True), each.dtype.type(eps))
            for each in (x, y)
        ]
        return xp.asarray((one * other).sum(axis))

    def pairwise_distance(x: Native, y: Native, *, p: float, eps: float) -> Native:
        """The p-norms of the rows of ``x - y + eps``."""
        return backend.kernels["norm"](x - y + x.dtype.type(eps), p=p, dim=(x.ndim - 1,))

    def block_diag(xs: list[Native], *, shape: tuple[int, int]) -> Native:
        """Matrices along the diagonal of zeros."""
        made, copy = xp.zeros(shape, xs[0].dtype), backend.kernels["copy"]
        row = column = 0
        for x in xs:
            below, behind = row + x.shape[0], column + x.shape[1]
            copy(made[row:below, column:behind], x)
            row, column = below, behind
        return made

    def xor_bits(x: Native, *, dim: tuple[int, ...], keepdim: bool) -> Native:
        """The exclusive or of 64-bit elements over dims, as uint64."""
        return xp.asarray(xp.bitwise_xor.reduce(x.view(np.uint64), axis=dim, keepdims=keepdim))

    def segment_reduce(
        x: Native, given: Native, *, dim: int, reduce: str, initial: float | None, lengths: bool, whole: bool
    ) -> Native:
        """Segments along ``dim`` reduced by ``sum``, ``mean``, ``prod``, ``amax`` or ``amin``, each from one bound to the next.

        ``given`` are the bounds, or the segments' lengths. ValueError where bounds fall, lead outside or, where the segments
        are the ``whole`` dim, end before it.
        """
        bounds = np.insert(given.cumsum(-1), 0, 0, axis=-1) if lengths else given
        end, size = bounds[..., -1], x.shape[dim]
        if (
            (bounds[..., 0] < 0).any()
            or (bounds[..., 1:] < bounds[..., :-1]).any()
            or (end != size if whole else end > size).any()
        ):
            raise ValueError(f"expected bounds that rise, within {size} elements, got {bounds.tolist()}")
        join, start = _JOINS[reduce]
        start = start if initial is None else initial
        wide = np.float32 if x.dtype.itemsize == 2 else x.dtype
        made = xp.empty((*bounds.shape[:-1], bounds.shape[-1] - 1, *x.shape[dim + 1 :]), wide)
        for place in np.ndindex(*x.shape[:dim]):
            for i, (low, high) in enumerate(pairwise(bounds[place].tolist())):
                # One after the other, as sums at places are: `reduce` adds eight of them side by side.
                rows = x[place][low:high]
                some = join.accumulate(
                    np.concatenate([np.full_like(rows[:1], start, shape=(1, *rows.shape[1:])), rows]), 0, wide
                )[-1]
                if reduce == "mean":
                    some = some / (high - low) if high > low else np.nan if initial is None else start
                made[(*place, i)] = some
        return made.astype(x.dtype, copy=False)

    made: dict[str, Any] = {function.__name__: function for function in (
        hardsigmoid, hardswish, hardshrink, softshrink, threshold, nan_to_num, logit, heaviside, add_scaled, addcdiv, addcmul, addr,
        polar, frac, lerp, sinc, spherical_bessel_j0, frexp, ldexp, equal, histc, histogram, isin, pdist, cdist, distances_gradient, renorm,
        block_diag, cosine_similarity, pairwise_distance,
    )}  # fmt: skip
    if hasattr(xp.bitwise_xor, "reduce"):
        made["xor_bits"] = xor_bits
    return made | {"segment_reduce": segment_reduce} if xp is np else made
