"""Calls to test Fourier transforms with: short, prime and composite sizes, cut off and continued; see ``samples/__init__.py``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tensorcore.ops.samples import Call, Make

__all__: list[str] = []

_NORMS = (None, "backward", "ortho", "forward")


def _fixed(*calls: Callable[[Make], Call]) -> Callable[[Make], Iterator[Call]]:
    def calls_of(array: Make) -> Iterator[Call]:
        for one in calls:
            yield one(array)

    return calls_of


def _turned(values: Any) -> Any:
    """Complex numbers of the same sizes: half of the arguments of complex transforms."""
    return values * (0.8 + 0.6j)


one_dim = _fixed(
    *[lambda a, norm=norm: ((a(2, 5),), {"norm": norm}) for norm in _NORMS],
    lambda a: ((_turned(a(3, 6)), 4, 0), {}),
    lambda a: ((a(7), 9), {}),
    lambda a: ((a(3, 1),), {}),
)
one_dim_real = _fixed(
    *[lambda a, norm=norm: ((a(2, 5),), {"norm": norm}) for norm in _NORMS],
    lambda a: ((a(6, 3), 4, 0), {}),
    lambda a: ((a(6), 8), {}),
    lambda a: ((a(3, 1),), {}),
)
half = _fixed(
    *[lambda a, norm=norm: ((_turned(a(2, 4)),), {"norm": norm}) for norm in _NORMS],
    lambda a: ((_turned(a(4, 3)), 7, 0), {}),
    lambda a: ((a(4), 4), {}),
    lambda a: ((_turned(a(3, 5)), 1), {}),
)
several = _fixed(
    lambda a: ((a(3, 4),), {}),
    lambda a: ((_turned(a(2, 3, 4)), (5, 2)), {"norm": "ortho"}),
    lambda a: ((a(2, 3, 4),), {"dim": (0, 2), "norm": "forward"}),
    lambda a: ((a(2, 3), (-1, 4), (1, 0)), {}),
)
several_real = _fixed(
    lambda a: ((a(3, 4),), {}),
    lambda a: ((a(2, 3, 4), (5, 2)), {"norm": "ortho"}),
    lambda a: ((a(2, 3, 4),), {"dim": (0, 2), "norm": "forward"}),
)
several_half = _fixed(
    lambda a: ((_turned(a(3, 4)),), {}),
    lambda a: ((_turned(a(2, 3, 4)), (5, 5)), {"norm": "ortho"}),
    lambda a: ((_turned(a(2, 3, 4)),), {"dim": (2, 0), "norm": "forward"}),
)
plane = _fixed(lambda a: ((a(2, 3, 4),), {}), lambda a: ((_turned(a(3, 4)), (2, 5), (1, 0), "ortho"), {}))
plane_real = _fixed(lambda a: ((a(2, 3, 4),), {}), lambda a: ((a(3, 4), (2, 5), (1, 0), "ortho"), {}))
plane_half = _fixed(lambda a: ((_turned(a(2, 3, 4)),), {}), lambda a: ((_turned(a(3, 4)), (2, 5), (1, 0), "ortho"), {}))
shifts = _fixed(lambda a: ((a(4, 5),), {}), lambda a: ((a(4, 5), 1), {}), lambda a: ((a(2, 3, 4), (0, -1)), {}))
stft = _fixed(
    lambda a: ((a(2, 20), 8), {"return_complex": True}),
    lambda a: ((a(20), 8, 3, 6, a(6, low=0.5)), {"return_complex": False, "normalized": True}),
    lambda a: ((a(20), 8, 4), {"center": False, "onesided": False, "return_complex": True}),
    lambda a: ((a(2, 20), 7, 2, None, a(7, low=0.5), True, "constant"), {"return_complex": True}),
)
istft = _fixed(
    lambda a: ((_turned(a(5, 7)), 8, 2, None, a(8, low=0.5)), {}),
    lambda a: ((_turned(a(2, 5, 6)), 8, 2, 6, a(6, low=0.5)), {"normalized": True, "length": 9}),
    lambda a: ((_turned(a(8, 5)), 8, 3), {"center": False, "onesided": False, "return_complex": True}),
)
