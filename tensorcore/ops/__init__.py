"""The ops, one family a file. Importing this package installs them on Tensor."""

from __future__ import annotations

from tensorcore.ops import (
    activation, arithmetic, arrange, choice, compare, complex, contract, conv, convert, create, dropout,
    embedding, entropy, explog, extreme, grids, index, join, linalg, loss, masked, norm, pad, pool, random,
    reduce, replace, rounding, scan, scatter, shape, sort, statistics, trigonometry, views_part,
)  # fmt: skip

__all__ = ["FAMILIES"]

FAMILIES = (
    activation, arithmetic, arrange, choice, compare, complex, contract, conv, convert, create, dropout,
    embedding, entropy, explog, extreme, grids, index, join, linalg, loss, masked, norm, pad, pool, random,
    reduce, replace, rounding, scan, scatter, shape, sort, statistics, trigonometry, views_part,
)  # fmt: skip
