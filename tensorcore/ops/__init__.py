"""The ops, one family a file. Importing this package installs them on Tensor."""

from __future__ import annotations

from tensorcore.ops import (
    activation,
    arithmetic,
    choice,
    compare,
    complex,
    convert,
    create,
    explog,
    reduce,
    rounding,
    shape,
    trigonometry,
)

__all__ = ["FAMILIES"]

FAMILIES = (
    activation, arithmetic, choice, compare, complex, convert, create, explog, reduce, rounding, shape, trigonometry,
)  # fmt: skip
