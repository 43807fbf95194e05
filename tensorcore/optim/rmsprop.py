"""RMSprop: gradients divided by the root of their running mean square."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tensorcore.ops.creation.create import zeros_like
from tensorcore.optim.algorithm import Algorithm, check_lr, check_numbers, counted
from tensorcore.tensor import Tensor

__all__ = ["RMSprop"]


class RMSprop(Algorithm):
    """RMSprop (Hinton, Neural Networks for Machine Learning, lecture 6e; centered as in Graves, arXiv:1308.0850).

    Args:
        params: what to optimize.
        lr: the step's length.
        alpha: how slowly the running means move.
        eps: added to the root.
        weight_decay: an L2 penalty.
        momentum: how much of the last direction is kept.
        centered: divide by the standard deviation, for which the mean gradient is followed too.
        capturable, foreach, maximize, differentiable: as for :class:`Adam`.
    """

    arrays = ("square_avg", "momentum_buffer", "grad_avg")

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        check_numbers(epsilon=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha)
        defaults = {
            "lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps, "centered": centered,
            "weight_decay": weight_decay, "capturable": capturable, "foreach": foreach, "maximize": maximize,
            "differentiable": differentiable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def begin(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        wanted = {"square_avg": True, "momentum_buffer": group["momentum"] > 0, "grad_avg": group["centered"]}
        return {name: zeros_like(param) for name in self.arrays if wanted[name]}

    def numbers(self, param: Tensor, state: dict[str, Any], group: dict[str, Any]) -> dict[str, Any]:
        counted(state)
        return {name: group[name] for name in ("lr", "alpha", "eps", "momentum", "centered")}

    @staticmethod
    def formula(
        xp: Any, p: Any, g: Any, square: Any, *more: Any,
        lr: Any, alpha: float, eps: float, momentum: float, centered: bool,
    ) -> None:  # fmt: skip
        square *= alpha
        square += (1 - alpha) * (g * g)
        variance = square
        if centered:
            mean = more[-1]
            mean += (1 - alpha) * (g - mean)
            variance = square - mean * mean
        direction = g / (xp.sqrt(variance) + eps)
        if momentum > 0:
            buffer = more[0]
            buffer *= momentum
            buffer += direction
            direction = buffer
        p -= lr * direction
