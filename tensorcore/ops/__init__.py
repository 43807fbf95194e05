"""The ops, one family a file. Importing this package installs them on Tensor."""

from __future__ import annotations

from tensorcore.ops import convert, create, elementwise, norm, reduce, scan, shape, sort, statistics

__all__ = ["FAMILIES"]

FAMILIES = (convert, create, elementwise, norm, reduce, scan, shape, sort, statistics, contract, conv, embedding, linalg, pad, pool)
