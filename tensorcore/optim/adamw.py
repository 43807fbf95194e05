"""AdamW: Adam whose weight decay shrinks the parameters themselves."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tensorcore.optim.adam import Adam
from tensorcore.tensor import Tensor

__all__ = ["AdamW"]


class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov and Hutter, arXiv:1711.05101).

    Args:
        weight_decay: how much of each parameter a step takes away, in units of ``lr``.

    All others are those of :class:`Adam`.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-3,
        betas: tuple[Any, Any] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach, maximize=maximize, capturable=capturable,
            differentiable=differentiable, fused=fused, decoupled_weight_decay=True,
        )  # fmt: skip
