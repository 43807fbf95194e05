"""Random numbers in C, bit for bit those of the host's generator, for the draws that programs make most."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from tensorcore.plugin import dtypes

from . import choose, draw, serial_normals

__all__ = ["random"]

_LARGE = 1e30  # beyond it the generator's own checks decide
_FLOATS = (dtypes.float32, dtypes.float64)
_SPAN = 1 << 28  # from here on the generator draws two words for an integer


def random(source: Any, kind: str, shape: tuple[int, ...], dtype: Any, options: dict[str, Any]) -> Any:
    """An array of draws from ``source``; None where its own method has to make them, or to say what is wrong."""
    if draw is None:
        return None
    if kind == "uniform":
        a, b = options.get("low", 0.0), options.get("high", 1.0)
        if not -_LARGE < a < b < _LARGE or dtype not in _FLOATS:
            return None
    elif kind == "normal":
        a, b = options.get("mean", 0.0), options.get("std", 1.0)
        if not b >= 0.0 or dtype not in _FLOATS:
            return None
        if prod(shape) < 16:
            return source.lend_normal(serial_normals, shape, dtype.numpy, a, b)
        if dtype is not dtypes.float32:
            return None
    elif kind == "bernoulli":
        a, b = options["probability"], options.get("one", 1.0)
        if dtype not in _FLOATS or (b != 1.0 if type(a) is np.ndarray else type(a) is not float or not 0.0 <= a <= 1.0):
            return None
    elif kind == "exponential":
        a, b = options.get("rate", 1.0), 0.0
        if not 0.0 < a < _LARGE or dtype not in _FLOATS:
            return None
        a = -1.0 / a
    elif kind == "integers":
        a, b = options["low"], options["high"]
        if type(a) is not int or type(b) is not int or dtype is not dtypes.int64 or not -(1 << 53) < a < b < 1 << 53:
            return None
        b -= a
        if b >= _SPAN:
            return None
    elif kind == "multinomial":
        weights = options["weights"]
        one = shape[0] == 1 or not options["replacement"]
        return source.lend(choose, weights, shape[0]) if one and type(shape[0]) is int else None
    else:
        return None
    return source.lend(draw, kind, shape, dtype.numpy, a, b)
