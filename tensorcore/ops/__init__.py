"""The ops, one family a file. Importing this package installs them on Tensor."""

from __future__ import annotations

from tensorcore.ops import contract, conv, convert, create, dropout, elementwise, embedding, linalg, pad, pool, random, reduce, shape

__all__ = ["FAMILIES"]

FAMILIES = (contract, conv, convert, create, dropout, elementwise, embedding, linalg, pad, pool, random, reduce, shape)
