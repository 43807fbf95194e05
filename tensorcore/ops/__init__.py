"""The ops, one family a file. Importing this package installs them on Tensor."""

from __future__ import annotations

from tensorcore.ops import (
    activation, arithmetic, choice, compare, complex, contract, conv, convert, create, dropout, embedding,
    entropy, explog, extreme, linalg, loss, norm, pad, pool, random, reduce, rounding, scan, shape, sort, statistics,
    trigonometry,
)  # fmt: skip

__all__ = ["FAMILIES"]

FAMILIES = (
    activation, arithmetic, choice, compare, complex, contract, conv, convert, create, dropout, embedding,
    entropy, explog, extreme, linalg, loss, norm, pad, pool, random, reduce, rounding, scan, shape, sort, statistics,
    trigonometry,
)  # fmt: skip
