"""The gradients of reducing scatters, written in tensor methods so that they differentiate again."""

from __future__ import annotations

from math import prod
from typing import Any

__all__ = ["REDUCED", "padded"]

Tensor = Any  # whose methods other families install


def padded(part: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The gradient of a ``src`` of which an index used only the first elements of each dim."""
    if tuple(part.native.shape) == tuple(shape) or not shape:
        return part.reshape(shape) if not shape else part
    made = part.new_zeros(shape)
    key = tuple([slice(n) for n in part.native.shape])
    made[key] = part
    return made


def reduce_gradients(
    g: Tensor, out: Tensor, input: Tensor, index: Tensor, src: Tensor, dim: int, reduce: str, include_self: bool
) -> tuple[Tensor, Tensor]:
    """The gradients of ``scatter_reduce`` with respect to input and src, as PyTorch defines them."""
    if not prod(index.native.shape):
        return g, g.new_zeros(src.shape)
    used = src[tuple([slice(n) for n in index.native.shape])] if src.native.shape else src
    if reduce == "sum":
        mine, theirs = g, g.gather(dim, index)
    elif reduce == "mean":
        ones = g.new_ones(g.shape) if include_self else g.new_zeros(g.shape)
        counts = ones.scatter_add(dim, index, g.new_ones(index.shape))
        counts = counts.masked_fill(counts.detach() == 0, 1)
        mine, theirs = g / counts, (g / counts).gather(dim, index)
    elif reduce == "prod":
        mine, theirs = _product_grads(g, out, input, index, used, dim, include_self)
    else:
        value = out.gather(dim, index)
        mine_is = (input == out).to(g.dtype)
        theirs_is = (used == value).to(g.dtype)
        start = mine_is if include_self else mine_is.new_zeros(mine_is.shape)
        shares = start.scatter_add(dim, index, theirs_is)
        shares = shares.masked_fill(shares == 0, 1)
        spread = g / shares
        mine, theirs = mine_is * spread, theirs_is * spread.gather(dim, index)
    if not include_self:
        mine = mine.scatter(dim, index, 0)
    return mine, padded(theirs, src.native.shape)


def _product_grads(
    g: Tensor, out: Tensor, input: Tensor, index: Tensor, src: Tensor, dim: int, include_self: bool
) -> tuple[Tensor, Tensor]:
    """Of a product: the product of all other factors, also where one of them is zero."""
    others = input.new_ones(input.shape).scatter_reduce(dim, index, src, "prod")
    mine = g * others
    zero = (src == 0).to(src.dtype)
    zeros = src.new_zeros(input.shape).scatter_add(dim, index, zero).gather(dim, index)
    # With one zero among the factors only that zero's gradient is not zero: the product of the others.
    factors = src.masked_fill(src == 0, 1)
    start = input if include_self else input.new_ones(input.shape)
    rest = start.scatter_reduce(dim, index, factors, "prod").gather(dim, index)
    alone = (zeros == zero).to(src.dtype)
    return mine, g.gather(dim, index) * rest / factors * alone


def _reduced(position: int) -> Any:
    return lambda g, out, input, index, src, dim, reduce, include_self: reduce_gradients(
        g, out, input, index, src, dim, reduce, include_self
    )[position]


REDUCED = dict(input=_reduced(0), src=_reduced(1))  # the formulas of an op that combines
