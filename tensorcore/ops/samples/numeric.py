"""Calls to test the numeric families with: divisors, quantiles, histograms, distances, transforms; see ``samples/__init__.py``."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from tensorcore.ops.samples import Call, Make, unary

__all__ = ["unary"]

I64 = np.int64


def _fixed(*calls: Callable[[Make], Call]) -> Callable[[Make], Iterator[Call]]:
    def calls_of(array: Make) -> Iterator[Call]:
        for one in calls:
            yield one(array)

    return calls_of


def _ints(*values: int) -> np.ndarray:
    return np.array(values, I64)


MATRIX = np.array([[0, 12, -18], [7, -4, 0]], I64)

whole_pair = _fixed(lambda a: ((MATRIX, _ints(8, 12, 0)), {}), lambda a: ((_ints(5, -10), _ints(15, 4)), {}))
exponents = _fixed(lambda a: ((a(3, 4),), {}), lambda a: ((a(4, high=1e6),), {}))
ldexp = _fixed(lambda a: ((a(3, 4), _ints(0, 1, -3, 10)), {}), lambda a: ((a(3, 1), a(4)), {}))
quantile = _fixed(
    lambda a: ((a(3, 5), 0.3), {}),
    lambda a: ((a(3, 5), 0.45, 1), {"keepdim": True}),
    lambda a: ((a(3, 5), a(2, low=0.0, high=1.0), 0), {}),
    *[lambda a, how=how: ((a(2, 7), 0.61, 1), {"interpolation": how}) for how in ("lower", "higher", "midpoint", "nearest")],
    lambda a: ((np.where(np.arange(12).reshape(3, 4) % 5 == 1, np.nan, a(3, 4)), 0.4, -1), {}),
)  # fmt: skip
diff = _fixed(
    lambda a: ((a(3, 5),), {}),
    lambda a: ((a(3, 5), 2, 0), {}),
    lambda a: ((a(3, 5), 1, 1, a(3, 1), a(3, 2)), {}),
    lambda a: ((a(3), 7), {}),
    lambda a: ((a(3), 0), {}),
)
trapezoid = _fixed(
    lambda a: ((a(3, 5),), {}),
    lambda a: ((a(3, 5),), {"dx": 0.5, "dim": 0}),
    lambda a: ((a(3, 5), np.sort(a(5))), {}),
    lambda a: ((a(3, 5), a(3, 5)), {"dim": 0}),
)
gradient = _fixed(
    lambda a: ((a(4, 5),), {}),
    lambda a: ((a(4, 5),), {"spacing": 0.5, "dim": 1, "edge_order": 2}),
    lambda a: ((a(4, 5),), {"spacing": (2.0, 0.5), "dim": (0, 1)}),
    lambda a: ((a(4, 5),), {"spacing": (np.array([0.0, 1.0, 3.0, 4.5]), np.array([0.0, 0.5, 0.7, 2.0, 2.2])), "edge_order": 2}),
    lambda a: ((a(2),), {}),
)  # fmt: skip
cov = _fixed(
    lambda a: ((a(3, 5),), {}),
    lambda a: ((a(3, 5),), {"correction": 0, "fweights": _ints(1, 2, 3, 1, 2)}),
    lambda a: ((a(3, 5),), {"fweights": _ints(1, 2, 3, 1, 2), "aweights": np.array([0.5, 1.0, 2.0, 0.25, 1.5])}),
    lambda a: ((a(5),), {}),
)
corrcoef = _fixed(lambda a: ((a(3, 5),), {}), lambda a: ((a(5),), {}))
histc = _fixed(
    lambda a: ((a(3, 5), 4), {}),
    lambda a: ((a(3, 5),), {"bins": 5, "min": -1, "max": 1}),
    lambda a: ((np.array([0.5, 0.5]), 3), {}),
)
histogram = _fixed(
    lambda a: ((a(3, 5), 4), {"range": (-3.0, 3.0)}),
    lambda a: ((a(3, 5), 3), {"range": (-1.0, 1.0), "density": True}),
    lambda a: ((a(3, 5), np.array([-2.0, -0.5, 0.1, 2.0])), {"weight": a(3, 5, low=0.1)}),
)
histogramdd = _fixed(
    lambda a: ((a(6, 2), [3, 2]), {"range": [-2.0, 2.0, -3.0, 3.0]}),
    lambda a: ((a(2, 3, 2), [3, 2]), {"range": [-1.0, 1.0, -2.0, 2.0], "density": True}),
    lambda a: ((a(6, 2), [np.array([-2.0, 0.1, 2.0]), np.array([-1.0, 0.0, 1.0])]), {"weight": a(6, low=0.1)}),
)
dist = _fixed(
    lambda a: ((a(3, 4), a(3, 4)), {}), lambda a: ((a(3, 4), a(4), 1), {}), lambda a: ((a(3, 4), a(3, 4), 0.5), {}),
    lambda a: ((a(3, 4), a(3, 4), float("inf")), {}),
)  # fmt: skip
cdist = _fixed(
    lambda a: ((a(3, 4), a(5, 4)), {}),
    lambda a: ((a(2, 3, 4), a(5, 4), 1.0), {}),
    lambda a: ((a(3, 4), a(5, 4), 3.0), {}),
    lambda a: ((a(3, 4), a(5, 4), float("inf")), {}),
    lambda a: ((a(3, 4), a(5, 4), 2.0, "use_mm_for_euclid_dist"), {}),
    lambda a: ((a(3, 4), a(5, 4), 0.0), {}),
)
euclidean = _fixed(lambda a: ((a(3, 4), a(5, 4)), {}))
renorm = _fixed(lambda a: ((a(3, 4), 2, 0, 1.5), {}), lambda a: ((a(2, 3, 4), 1, -1, 4.0), {}))
block_diag = _fixed(lambda a: ((a(2, 3), a(3), a()), {}), lambda a: ((a(2, 2),), {}))
combinations = _fixed(
    lambda a: ((a(4),), {}), lambda a: ((a(4), 3), {}), lambda a: ((a(3), 2, True), {}), lambda a: ((a(3), 0), {})
)
vander = _fixed(lambda a: ((a(4),), {}), lambda a: ((a(3), 5, True), {}), lambda a: ((a(3), 1), {}))
isin = _fixed(
    lambda a: ((np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([2.0, 4.0, 7.0])), {}),
    lambda a: ((np.array([1.0, 2.0]), np.array([2.0])), {"invert": True}),
    lambda a: ((_ints(1, 2, 3), 2), {}),
    lambda a: ((2, _ints(1, 2, 3)), {}),
)
fill = _fixed(lambda a: ((a(3, 4), 1.5), {}), lambda a: ((a(3), a()), {}))
same_size = _fixed(lambda a: ((a(3, 4), a(3, 4)), {}), lambda a: ((a(3), a(1)), {}))
one_element = _fixed(lambda a: ((a(1),), {}), lambda a: ((a(),), {}))
slices = _fixed(lambda a: ((a(5, 4), 0, 1, 4, 2), {}), lambda a: ((a(5, 4), 1), {"start": -2}))
split_size = _fixed(lambda a: ((a(5, 4), 2), {}), lambda a: ((a(5, 4), 3, 1), {}))
