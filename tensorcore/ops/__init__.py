"""The ops, one family a file. Importing this package installs them on Tensor."""

from __future__ import annotations

from tensorcore.ops import arrange, convert, create, elementwise, grids, index, join, reduce, scatter, shape, views_part

__all__ = ["FAMILIES"]

FAMILIES = (arrange, convert, create, elementwise, grids, index, join, reduce, scatter, shape, views_part)
