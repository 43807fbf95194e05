"""The ops, one family a file. Importing this package installs them on Tensor."""

from __future__ import annotations

from tensorcore.ops import (
    contract, conv, convert, create, elementwise, embedding, linalg, norm, pad, pool, reduce, scan, shape, sort, statistics,
)  # fmt: skip

__all__ = ["FAMILIES"]

FAMILIES = (
    contract, conv, convert, create, elementwise, embedding, linalg, norm, pad, pool, reduce, scan, shape, sort, statistics,
)
