"""Scans as functions of functions, by the name of the module that programs import them from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorcore import deeper
from tensorcore.errors import ArgumentError
from tensorcore.func import vmap
from tensorcore.func.trees import tree_flatten, tree_unflatten
from tensorcore.ops.shapes.join import cat, stack
from tensorcore.tensor import Tensor

__all__ = ["associative_scan"]


def associative_scan(
    combine_fn: Callable[[Any, Any], Any], xs: Any, dim: int, reverse: bool = False, combine_mode: str = "pointwise"
) -> Any:
    """Along ``dim``, each entry combined with all before it, as ``cumsum`` is for ``+``; in as many rounds as doublings.

    Args:
        combine_fn: of two trees like ``xs`` without ``dim``; ``f(f(a, b), c) == f(a, f(b, c))``.
        xs: a tensor, or a tree of tensors that have the same size along ``dim``.
        reverse: from the end.
        combine_mode: ``"generic"``, or ``"pointwise"`` for elementwise functions, which PyTorch has on CUDA alone.
    """
    leaves, spec = tree_flatten(xs)
    if not leaves or not all(isinstance(one, Tensor) for one in leaves):
        raise ArgumentError(f"associative_scan: expected tensors, got {xs!r}; xs leaves must be a Tensor")
    if combine_mode not in ("pointwise", "generic"):
        raise ArgumentError(f"associative_scan: expected combine_mode 'pointwise' or 'generic', got {combine_mode!r}")
    if combine_mode == "pointwise" and any(one.device.type == "cpu" for one in leaves):
        raise ArgumentError(
            "associative_scan: expected combine_mode='generic' for tensors on the host, got 'pointwise'"
        )
    if len({one.shape[dim] for one in leaves}) != 1 or not leaves[0].shape[dim]:
        raise ArgumentError(
            f"associative_scan: expected one size along dim {dim}, at least 1, got {[list(one.shape) for one in leaves]}"
        )
    rows = [one.movedim(dim, 0) for one in leaves]
    rows = [one.flip(0) for one in rows] if reverse else rows
    combine = vmap(combine_fn)

    def combined(left: list[Tensor], right: list[Tensor]) -> list[Tensor]:
        return tree_flatten(combine(tree_unflatten(left, spec), tree_unflatten(right, spec)))[0]

    made = _scanned(combined, rows)
    made = [one.flip(0) for one in made] if reverse else made
    return tree_unflatten([one.movedim(0, dim) for one in made], spec)


def _scanned(combined: Callable[[list[Tensor], list[Tensor]], list[Tensor]], rows: list[Tensor]) -> list[Tensor]:
    """Pairs are combined and scanned, which gives every second entry; those between take one more combination."""
    count = len(rows[0])
    if count < 2:
        return rows
    odd = _scanned(combined, combined([one[: count - 1 : 2] for one in rows], [one[1::2] for one in rows]))
    between = combined([one[: (count - 1) // 2] for one in odd], [one[2::2] for one in rows]) if count > 2 else None
    made = []
    for i, row in enumerate(rows):
        even = row[:1] if between is None else cat([row[:1], between[i]])
        paired = stack([even[: len(odd[i])], odd[i]], 1).flatten(0, 1)
        made.append(cat([paired, even[len(odd[i]) :]]) if count % 2 else paired)
    return made


deeper.module(f"{__name__}.associative_scan", associative_scan=associative_scan)
__path__: list[str] = []
