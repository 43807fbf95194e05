"""Draws that take as many random words as it takes: Poisson, binomial and gamma numbers, number for number PyTorch's.

Parameters are arrays of floating dtypes, of the shape of the result. Each element tries candidates until one is accepted,
so the elements come one after the other in Python; the CPU plugin draws the same bits in C. The methods are those of
PyTorch's CPU kernels:
W. Hormann, "The transformed rejection method for generating Poisson random variables" (Insurance: Mathematics and Economics
12, 1993) and "The generation of binomial random variates" (Journal of Statistical Computation and Simulation 46, 1993);
G. Marsaglia and W. W. Tsang, "A simple method for generating gamma variables" (ACM Transactions on Mathematical Software 26,
2000).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tensorcore.backend.twister import RandomError, Twister
from tensorcore.dtypes import finfo, float64
from tensorcore.errors import DtypeError

if TYPE_CHECKING:
    from tensorcore.dtypes import dtype

__all__ = ["binomial", "dirichlet", "gamma", "poisson"]

Array = npt.NDArray[Any]

_BLOCK = 256


def poisson(source: Twister, rate: Array, shape: tuple[int, ...], dtype: dtype) -> Array:
    """Poisson numbers of the rates, which are at least 0 (``torch.poisson``)."""
    _floating("poisson", dtype)
    if not np.all(rate >= 0):
        raise RandomError(
            "poisson: invalid Poisson rate, expected rate to be non-negative, got a negative one; clamp it"
        )
    return _each(source, _poisson, rate).astype(dtype.numpy)


def binomial(source: Twister, count: Array, probability: Array, shape: tuple[int, ...], dtype: dtype) -> Array:
    """How many of ``count`` trials of that probability succeed (``torch.binomial``)."""
    _floating("binomial", dtype)
    return _each(source, _binomial, count, probability).astype(dtype.numpy)


def gamma(source: Twister, alpha: Array, shape: tuple[int, ...], dtype: dtype) -> Array:
    """Gamma numbers of scale 1 and the shapes ``alpha`` (``torch._standard_gamma``), never 0."""
    _floating("gamma", dtype)
    made = _each(source, _gamma if dtype is float64 else _gamma_single, alpha)
    made = made.astype(dtype.numpy)
    np.maximum(made, dtype.numpy.type(finfo(dtype).tiny), out=made)
    return made


def dirichlet(source: Twister, alpha: Array, shape: tuple[int, ...], dtype: dtype) -> Array:
    """Points of the simplex along the last dim (``torch._sample_dirichlet``), never 0 or 1."""
    _floating("dirichlet", dtype)
    drawn = np.maximum(_each(source, _gamma, alpha), finfo(float64).tiny)
    made: Array = (drawn / drawn.sum(-1, keepdims=True)).astype(dtype.numpy)
    one = dtype.numpy.type(1)
    np.clip(made, dtype.numpy.type(finfo(dtype).tiny), np.nextafter(one, one - one), out=made)
    return made


def _floating(op: str, dtype: dtype) -> None:
    if not dtype.is_floating_point:
        raise DtypeError(f"{op}: expected a floating dtype, got {dtype}; pass e.g. torch.float32")


class _Stream:
    """Uniform float64 numbers one by one; ``close`` leaves the generator where the last one was taken."""

    def __init__(self, source: Twister) -> None:
        self.source = source
        self.before: Any = None
        self.values: list[float] = []
        self.at = 0
        self.kept = source._normal

    def uniform(self) -> float:
        if self.at == len(self.values):
            self.before = self.source.get_state()
            draws = self.source.draw64(_BLOCK)
            self.values = ((draws & np.uint64((1 << 53) - 1)).astype(np.float64) * 2.0**-53).tolist()
            self.at = 0
        value = self.values[self.at]
        self.at += 1
        return value

    def normal(self) -> float:
        """A standard normal, as ``Twister.serial_normals`` makes one; the second of a pair is kept for the next call."""
        if self.kept is not None:
            made, self.kept = self.kept, None
            return made
        angle = 2.0 * math.pi * self.uniform()
        radius = math.sqrt(-2.0 * math.log1p(-self.uniform()))
        self.kept = radius * math.sin(angle)
        return radius * math.cos(angle)

    def close(self) -> None:
        if self.before is not None:
            self.source.set_state(self.before)
            self.source.draw64(self.at)
        self.source._normal = self.kept


def _each(source: Twister, draw: Callable[..., float], *parameters: Array) -> Array:
    with source._lock:
        stream = _Stream(source)
        try:
            made = [
                draw(stream, *one)
                for one in zip(*[array.astype(np.float64).ravel().tolist() for array in parameters], strict=True)
            ]
        finally:
            stream.close()
    return np.array(made, np.float64).reshape(parameters[0].shape)


def _poisson(stream: _Stream, rate: float) -> float:
    if rate == 0:
        return 0.0
    if rate < 10:
        end, product, count = math.exp(-rate), 1.0, 0
        while True:
            product *= stream.uniform()
            if product <= end:
                return float(count)
            count += 1
    log = math.log(rate)
    b = 0.931 + 2.53 * math.sqrt(rate)
    a = -0.059 + 0.02483 * b
    inverse, accepted = 1.1239 + 1.1328 / (b - 3.4), 0.9277 - 3.6224 / (b - 2)
    while True:
        u, v = stream.uniform() - 0.5, stream.uniform()
        us = 0.5 - abs(u)
        k = math.floor((2 * a / us + b) * u + rate + 0.43) if us else -1
        if us >= 0.07 and v <= accepted:
            return float(k)
        if k < 0 or (us < 0.013 and v > us):
            continue
        if math.log(v) + math.log(inverse) - math.log(a / (us * us) + b) <= -rate + k * log - math.lgamma(k + 1.0):
            return float(k)


def _binomial(stream: _Stream, count: float, probability: float) -> float:
    if count <= 0 or probability <= 0:
        return 0.0
    if probability >= 1:
        return count
    low = min(probability, 1.0 - probability)
    made = _many(stream, count, low) if count * low >= 10 else _few(stream, count, low)
    return made if probability <= 0.5 else count - made


def _few(stream: _Stream, count: float, probability: float) -> float:
    """By the gaps between successes, which are geometric."""
    log, total, found = math.log1p(-probability), 0.0, 0
    while True:
        u = stream.uniform()
        total += math.ceil(math.log(u) / log) if u else math.inf
        if total > count:
            return float(found)
        found += 1


_TAILS = (
    0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509, 0.0166446911898211,
    0.0138761288230707, 0.0118967099458917, 0.0104112652619720, 0.00925546218271273, 0.00833056343336287,
)  # fmt: skip


def _tail(k: float) -> float:
    """What Stirling's formula of log(k!) lacks."""
    if k <= 9:
        return _TAILS[int(k)]
    square = (k + 1) * (k + 1)
    return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1)


def _many(stream: _Stream, count: float, probability: float) -> float:
    """By transformed rejection."""
    deviation = math.sqrt(count * probability * (1 - probability))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * probability
    c, accepted, ratio = count * probability + 0.5, 0.92 - 4.2 / b, probability / (1 - probability)
    alpha, m = (2.83 + 5.1 / b) * deviation, math.floor((count + 1) * probability)
    while True:
        u, v = stream.uniform() - 0.5, stream.uniform()
        us = 0.5 - abs(u)
        k = math.floor((2 * a / us + b) * u + c) if us else -1
        if us >= 0.07 and v <= accepted:
            return float(k)
        if k < 0 or k > count:
            continue
        left = math.log(v * alpha / (a / (us * us) + b)) if v else -math.inf
        bound = (
            (m + 0.5) * math.log((m + 1) / (ratio * (count - m + 1)))
            + (count + 1) * math.log((count - m + 1) / (count - k + 1))
            + (k + 0.5) * math.log(ratio * (count - k + 1) / (k + 1))
            + _tail(m) + _tail(count - m) - _tail(k) - _tail(count - k)
        )  # fmt: skip
        if left <= bound:
            return float(k)


# PyTorch writes these as float constants in a kernel that otherwise computes in double precision.
_THIRD, _SQUEEZE = float(np.float32(1) / np.float32(3)), float(np.float32(0.0331))


def _gamma_single(stream: _Stream, alpha: float) -> float:
    return _gamma(stream, alpha, True)


def _gamma(stream: _Stream, alpha: float, single: bool = False) -> float:
    scale = 1.0
    if alpha < 1:
        if alpha == 0:
            return 0.0
        power = float(np.float32(1) / np.float32(alpha)) if single else 1.0 / alpha
        scale = (1.0 - stream.uniform()) ** power
        alpha = float(np.float32(alpha) + np.float32(1)) if single else alpha + 1.0
    d = float(np.float32(alpha) - np.float32(_THIRD)) if single else alpha - _THIRD
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x = stream.normal()
        y = 1.0 + c * x
        if y <= 0:
            continue
        v = y * y * y
        u = 1.0 - stream.uniform()
        square = x * x
        if u < 1.0 - _SQUEEZE * square * square:
            return scale * d * v
        if math.log(u) < 0.5 * square + d * (1.0 - v + math.log(v)):
            return scale * d * v
