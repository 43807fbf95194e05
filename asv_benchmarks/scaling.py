"""A cost model of collectives, fitted to measured times: so many seconds for each message, so many for each byte.

An all_reduce of n bytes among p ranks in a ring sends 2 (p - 1) messages one after the other, of n / p bytes each:
t = 2 (p - 1) (alpha + n / p beta). A tree sends 2 log2(p) messages of n bytes. The faster of the two is what counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, log2
from typing import NamedTuple

import numpy as np

__all__ = ["Cost", "fit", "predicted", "ring", "step", "tree"]


class Cost(NamedTuple):
    """Seconds of a message, seconds of a byte, and how far the fit is off: the median of the relative errors."""

    alpha: float
    beta: float
    error: float


def ring(cost: Cost, nbytes: float, ranks: int) -> float:
    """Seconds of an all_reduce in a ring."""
    return 2 * (ranks - 1) * (cost.alpha + nbytes / ranks * cost.beta)


def tree(cost: Cost, nbytes: float, ranks: int) -> float:
    """Seconds of an all_reduce up and down a tree."""
    return 2 * ceil(log2(ranks)) * (cost.alpha + nbytes * cost.beta)


def predicted(cost: Cost, nbytes: float, ranks: int) -> float:
    """Seconds of an all_reduce by the better way."""
    return min(ring(cost, nbytes, ranks), tree(cost, nbytes, ranks)) if ranks > 1 else 0.0


def fit(times: Sequence[tuple[int, float]], ranks: int = 2) -> Cost:
    """The costs that explain times of all_reduce (bytes, seconds) among some ranks best.

    Relative errors are made small, not absolute ones: the small sizes tell alpha and the large ones beta.
    """
    sizes = np.array([one for one, _ in times], float)
    seconds = np.array([one for _, one in times], float)
    rows = np.stack([2 * (ranks - 1) * np.ones_like(sizes), 2 * (ranks - 1) / ranks * sizes], 1)
    weight = 1 / seconds
    found = np.zeros(2)
    for _ in range(50):  # reweighted, so that one row that something else disturbed does not count for all
        found = np.linalg.lstsq(rows * weight[:, None], seconds * weight, rcond=None)[0]
        found = np.maximum(found, 1e-15)
        off = np.abs(rows @ found / seconds - 1)
        weight = 1 / seconds / np.sqrt(np.maximum(off, 1e-3))
    return Cost(float(found[0]), float(found[1]), float(np.median(np.abs(rows @ found / seconds - 1))))


def step(cost: Cost, computing: float, nbytes: float, ranks: int, hidden: float) -> float:
    """Seconds of a training step: what is computed, and what of the messages computing does not hide.

    Args:
        computing: seconds of a step of one rank alone.
        hidden: the seconds of messages that computing hides at most, as backward can.
    """
    return computing + max(0.0, predicted(cost, nbytes, ranks) - hidden)
