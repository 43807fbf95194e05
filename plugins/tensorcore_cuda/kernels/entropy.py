"""Cross entropy and negative log likelihood of classes, forward and backward."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import numpy as np

from tensorcore_cuda.kernels.launch import C_TYPES, WIDE, Driver, family, vector_of
from tensorcore_cuda.kernels.rows import dense, teams

__all__ = ["kernels"]

Native = Any
Run = Callable[..., Any]

_INT64 = np.dtype(np.int64)


def kernels(driver: Driver, table: Mapping[str, Run]) -> dict[str, Run]:
    """The family's kernels; what they do not take goes to the table's."""
    find = family(driver, "entropy.cu")
    contiguous, empty = table["contiguous"], driver.empty

    def takes(x: Native, target: Native, weight: Any) -> bool:
        return (
            x.dtype in WIDE and x.size > 0 and x.ndim >= 2 and target.dtype == _INT64
            and (weight is None or weight.dtype == x.dtype)
        )  # fmt: skip

    def forward(name: str) -> Run:
        through_logs = name == "nll_loss"

        def kernel(x: Native, target: Native, weight: Any, *, reduction: str, ignore_index: int) -> Any:
            if not takes(x, target, weight):
                return table[name](x, target, weight, reduction=reduction, ignore_index=ignore_index)
            x, target = dense(x, contiguous), dense(target, contiguous)
            weight = None if weight is None else dense(weight, contiguous)
            wide, c_type = WIDE[x.dtype], C_TYPES[x.dtype]
            batch, classes, span = x.shape[0], x.shape[1], prod(x.shape[2:])
            logs = None if through_logs else empty((batch * span,), wide)
            each, losses = empty((batch, span), wide), empty((batch, span), wide)
            pointers = [0 if one is None else one.data.ptr for one in (x, target, weight, logs, each, losses)]
            if span == 1 and not through_logs:
                pack = vector_of(x.dtype.itemsize, classes, x.data.ptr)
                team, grid, block = teams(driver, batch, classes // pack)
                rows = find(f"entropy_rows<{c_type}, {pack}, {team}>", "PPPPPPqqq")
                rows(grid, block, 0, *pointers, batch, classes, ignore_index)
            else:
                columns = find(f"entropy_columns<{c_type}, {str(through_logs).lower()}>", "PPPPPPqqqq")
                grid = (driver.blocks(-(-batch * span // 256)), 1, 1)
                columns(grid, (256, 1, 1), 0, *pointers, batch, classes, span, ignore_index)
            weights = empty((), wide)
            if reduction == "none":
                made = table["cast"](losses.reshape(target.shape), dtype=_of(x.dtype))
            else:
                made = empty((), x.dtype)
                total = find(f"entropy_total<{c_type}>", "PPPPqi")
                outputs = made.data.ptr, weights.data.ptr
                total((1, 1, 1), (1024, 1, 1), 0, *pointers[4:], *outputs, batch * span, reduction == "mean")
            return (made, each, weights) if through_logs else (made, logs, each, weights)

        kernel.__name__ = name
        return kernel

    def backward(name: str) -> Run:
        through_logs = name == "nll_loss"

        def kernel(
            g: Native, x: Native, target: Native, weight: Any, *rest: Any, needs: Any, reduction: str, ignore_index: int
        ) -> Any:
            if not takes(x, target, weight) or g.dtype != x.dtype or (not through_logs and rest[0].ndim != 1):
                return table[f"{name}_backward"](
                    g, x, target, weight, *rest, needs=needs, reduction=reduction, ignore_index=ignore_index
                )
            g, x, target = dense(g, contiguous), dense(x, contiguous), dense(target, contiguous)
            logs = None if through_logs else rest[0]
            *_, each, weights = rest
            back = empty(x.shape, x.dtype)
            types = f"{C_TYPES[x.dtype]}, {str(through_logs).lower()}, {int(reduction == 'none')}"
            pointers = [0 if one is None else one.data.ptr for one in (g, x, target, logs, each, weights, back)]
            run = find(f"entropy_backward<{types}>", "PPPPPPPqqqi")
            sizes = x.size, x.shape[1], prod(x.shape[2:])
            run((driver.blocks(-(-x.size // 256)), 1, 1), (256, 1, 1), 0, *pointers, *sizes, reduction == "mean")
            return back, None, None

        kernel.__name__ = f"{name}_backward"
        return kernel

    return {
        "cross_entropy": forward("cross_entropy"),
        "nll_loss": forward("nll_loss"),
        "cross_entropy_backward": backward("cross_entropy"),
        "nll_loss_backward": backward("nll_loss"),
    }


def _of(dtype: np.dtype[Any]) -> Any:
    from tensorcore.plugin import dtypes

    return dtypes.from_numpy_dtype(dtype)
