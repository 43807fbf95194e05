"""RAdam: Adam that waits until it knows how much the gradients vary."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tensorcore.optim.algorithm import Algorithm, check_betas, check_lr, check_numbers, counted
from tensorcore.tensor import Tensor

__all__ = ["RAdam"]


class RAdam(Algorithm):
    """RAdam (Liu et al., arXiv:1908.03265): the variance of the step's length is rectified.

    Args:
        params: what to optimize.
        lr: the step's length.
        betas: how slowly the two running means move.
        eps: added to the denominator.
        weight_decay: an L2 penalty; with ``decoupled_weight_decay`` a shrinking of the parameters themselves.
        foreach, maximize, capturable, differentiable: as for :class:`Adam`.
    """

    arrays = ("exp_avg", "exp_avg_sq")

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        check_numbers(epsilon=eps)
        check_betas(betas)
        check_numbers(weight_decay=weight_decay)
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "maximize": maximize,
            "foreach": foreach, "capturable": capturable, "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def numbers(self, param: Tensor, state: dict[str, Any], group: dict[str, Any]) -> dict[str, Any]:
        beta1, beta2 = group["betas"]
        t = counted(state)
        # How many gradients the second mean is worth: in the long run, and by now.
        limit = 2 / (1 - beta2) - 1
        length = limit - 2 * t * beta2**t / (1 - beta2**t)
        enough = length > 5  # a tensor where the count is on a device
        rectified = None
        if enough is not False:
            rectified = ((length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length)) ** 0.5
        return {
            "lr": group["lr"], "beta1": beta1, "beta2": beta2, "eps": group["eps"], "t": t, "rectified": rectified,
            "enough": enough,
        }  # fmt: skip

    @staticmethod
    def formula(
        xp: Any, p: Any, g: Any, m: Any, v: Any, *,
        lr: Any, beta1: float, beta2: float, eps: float, t: Any, rectified: Any, enough: Any,
    ) -> None:  # fmt: skip
        m += (1 - beta1) * (g - m)
        v *= beta2
        v += (1 - beta2) * (g * g)
        size = lr / (1 - beta1**t)
        if enough is False:
            p -= size * m
        elif enough is True:
            p -= size * rectified * (1 - beta2**t) ** 0.5 * (m / (xp.sqrt(v) + eps))
        else:
            p -= size * m * xp.where(enough, rectified * (1 - beta2**t) ** 0.5 / (xp.sqrt(v) + eps), 1.0)
