"""Which elements lie beyond the edges of a dim that is padded by what it holds."""

from __future__ import annotations

import numpy as np

__all__ = ["beyond_edges"]


def beyond_edges(mode: str, n: int, before: int, after: int) -> np.ndarray:
    """The places of a dim of ``n`` elements in the order in which they stand once it is padded; negative amounts take away.

    Args:
        mode: ``reflect`` (without the edge), ``replicate`` (the edge) or ``circular``.
    """
    if mode == "replicate":
        return np.clip(np.arange(-before, n + after), 0, n - 1)
    if mode == "reflect":
        at = np.abs(np.arange(-before, n + after))
        return np.where(at >= n, 2 * (n - 1) - at, at)
    # What is taken away is gone before the rest goes around.
    left = np.arange(max(-before, 0), n - max(-after, 0))
    return left[np.arange(-max(before, 0), len(left) + max(after, 0)) % max(len(left), 1)]
