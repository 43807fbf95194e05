"""Adadelta: steps in the units of the parameters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tensorcore.errors import ArgumentError
from tensorcore.optim.algorithm import Algorithm, check_lr, check_numbers, counted
from tensorcore.tensor import Tensor

__all__ = ["Adadelta"]


class Adadelta(Algorithm):
    """Adadelta (Zeiler, arXiv:1212.5701).

    Args:
        params: what to optimize.
        lr: what the paper's step is multiplied with.
        rho: how slowly the running means of the squares of gradients and steps move.
        eps: added under both roots.
        weight_decay: an L2 penalty.
        foreach, capturable, maximize, differentiable: as for :class:`Adam`.
    """

    arrays = ("square_avg", "acc_delta")

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        if not 0.0 <= rho <= 1.0:
            raise ArgumentError(f"Invalid rho value: {rho}; expected 0 <= rho <= 1")
        check_numbers(epsilon=eps, weight_decay=weight_decay)
        defaults = {
            "lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize,
            "capturable": capturable, "foreach": foreach, "differentiable": differentiable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def numbers(self, param: Tensor, state: dict[str, Any], group: dict[str, Any]) -> dict[str, Any]:
        counted(state)
        return {name: group[name] for name in ("lr", "rho", "eps")}

    @staticmethod
    def formula(xp: Any, p: Any, g: Any, squares: Any, moves: Any, *, lr: Any, rho: float, eps: float) -> None:
        squares *= rho
        squares += (1 - rho) * (g * g)
        move = xp.sqrt(moves + eps) / xp.sqrt(squares + eps) * g
        moves *= rho
        moves += (1 - rho) * (move * move)
        p -= lr * move
