"""Losses by margins between classes and between labels, and their gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tensorcore.backend.base import Kernel, Native
    from tensorcore.backend.xp import XPBackend

__all__ = ["kernels"]


def kernels(backend: XPBackend) -> dict[str, Kernel]:
    """The family's kernels for one backend: what they take stands with the ops, ops/layers/margin.py.

    Half types are computed in float32. A margin that is NaN counts for nothing, as in PyTorch.
    """
    xp = backend.xp

    def wide(x: Native) -> Native:
        return x.astype(np.float32) if x.dtype.itemsize <= 2 else x

    def finish(rows: Native, reduction: str, dtype: Any) -> Native:
        made = (
            rows
            if reduction == "none"
            else (rows.mean() if rows.size else np.nan)
            if reduction == "mean"
            else rows.sum()
        )
        return xp.asarray(made).astype(dtype, copy=False)

    def shares(g: Native, x: Native, reduction: str) -> Native:
        """The gradient of each row's sum, as a column."""
        count = x.shape[1] * (x.shape[0] if reduction == "mean" else 1)
        return xp.broadcast_to(wide(g).reshape(-1, 1) / (count or 1), (x.shape[0], 1))

    # One class

    def hinges(x: Native, target: Native, margin: float) -> tuple[Native, Native]:
        """How much each other class falls short of the margin, 0 for the target's own; and where that stands."""
        at = target[:, None]
        away = x.dtype.type(margin) - xp.take_along_axis(x, at, 1) + x
        short = xp.where(away > 0, away, x.dtype.type(0))
        xp.put_along_axis(short, at, x.dtype.type(0), 1)
        return short, at

    def multi_margin_loss(
        x: Native, target: Native, weight: Native | None, *, p: int, margin: float, reduction: str
    ) -> Native:
        """The mean over the classes of the hinges' powers, times the weight of the target."""
        short, _ = hinges(wide(x), target, margin)
        rows = (short if p == 1 else short * short).sum(1) / x.shape[1]
        return finish(rows if weight is None else rows * wide(weight)[target], reduction, x.dtype)

    def multi_margin_loss_backward(
        g: Native,
        x: Native,
        target: Native,
        weight: Native | None,
        *,
        needs: Any,
        p: int,
        margin: float,
        reduction: str,
    ) -> Any:
        short, at = hinges(wide(x), target, margin)
        share = shares(g, x, reduction)
        share = share if weight is None else share * wide(weight)[at]
        made = (short > 0) * share if p == 1 else 2 * short * share
        xp.put_along_axis(made, at, -made.sum(1, keepdims=True), 1)
        return made.astype(x.dtype, copy=False), None, None

    # Several labels

    def apart(x: Native, labels: Native) -> tuple[Native, Native]:
        """(rows, labels, classes): how much each class that is no label falls short of each label's margin; and the labels."""
        valid = xp.cumsum(labels < 0, axis=1) == 0
        at = xp.where(valid, labels, 0)
        mine = xp.zeros(x.shape, np.int64)
        for k in range(x.shape[1]):
            mine[xp.arange(x.shape[0]), at[:, k]] += valid[:, k]
        short = 1 - xp.take_along_axis(x, at, 1)[:, :, None] + x[:, None, :]
        counts = valid[:, :, None] & (mine == 0)[:, None, :] & (short > 0)
        return xp.where(counts, short, x.dtype.type(0)), at

    def multilabel_margin_loss(x: Native, labels: Native, *, reduction: str) -> Native:
        """The hinges between all labels and all other classes, divided by the classes."""
        short, _ = apart(wide(x), labels)
        return finish(short.sum((1, 2)) / x.shape[1], reduction, x.dtype)

    def multilabel_margin_loss_backward(g: Native, x: Native, labels: Native, *, needs: Any, reduction: str) -> Any:
        short, at = apart(wide(x), labels)
        made = (short > 0).sum(1).astype(short.dtype)
        lost = (short > 0).sum(2)
        for k in range(x.shape[1]):
            made[xp.arange(x.shape[0]), at[:, k]] -= lost[:, k]
        return (made * shares(g, x, reduction)).astype(x.dtype, copy=False), None

    return {function.__name__: function for function in (
        multi_margin_loss, multi_margin_loss_backward, multilabel_margin_loss, multilabel_margin_loss_backward,
    )}  # fmt: skip
