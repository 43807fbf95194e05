"""Adamax: Adam with the infinity norm."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tensorcore.optim.algorithm import Algorithm, check_betas, check_lr, check_numbers, counted
from tensorcore.tensor import Tensor

__all__ = ["Adamax"]


class Adamax(Algorithm):
    """Adamax (Kingma and Ba, arXiv:1412.6980, section 7.1).

    Args:
        params: what to optimize.
        lr: the step's length.
        betas: how slowly the mean moves, and how slowly the largest gradient is forgotten.
        eps: added to each gradient's size.
        weight_decay: an L2 penalty.
        foreach, maximize, differentiable, capturable: as for :class:`Adam`.
    """

    arrays = ("exp_avg", "exp_inf")

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_lr(lr)
        check_numbers(epsilon=eps)
        check_betas(betas)
        check_numbers(weight_decay=weight_decay)
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "foreach": foreach,
            "maximize": maximize, "differentiable": differentiable, "capturable": capturable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def numbers(self, param: Tensor, state: dict[str, Any], group: dict[str, Any]) -> dict[str, Any]:
        beta1, beta2 = group["betas"]
        return {"lr": group["lr"], "beta1": beta1, "beta2": beta2, "eps": group["eps"], "t": counted(state)}

    @staticmethod
    def formula(
        xp: Any, p: Any, g: Any, m: Any, u: Any, *, lr: Any, beta1: float, beta2: float, eps: float, t: float
    ) -> None:
        m += (1 - beta1) * (g - m)
        u[...] = xp.maximum(beta2 * u, xp.abs(g) + eps)
        p -= lr / (1 - beta1**t) * (m / u)
