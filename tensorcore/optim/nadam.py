"""NAdam: Adam with Nesterov's momentum."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tensorcore.optim.algorithm import Algorithm, check_betas, check_lr, check_numbers, counted, scalar
from tensorcore.tensor import Tensor

__all__ = ["NAdam"]


class NAdam(Algorithm):
    """NAdam (Dozat, ICLR 2016 workshop, openreview OM0jvwB8jIp57ZJjtNEZ).

    Args:
        params: what to optimize.
        lr: the step's length.
        betas: how slowly the two running means move.
        eps: added to the denominator.
        weight_decay: an L2 penalty; with ``decoupled_weight_decay`` a shrinking of the parameters themselves.
        momentum_decay: how fast the momentum comes up to ``betas[0]``.
        foreach, maximize, capturable, differentiable: as for :class:`Adam`.
    """

    arrays = ("exp_avg", "exp_avg_sq")

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
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
        check_numbers(weight_decay=weight_decay, momentum_decay=momentum_decay)
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay, "maximize": maximize, "foreach": foreach,
            "capturable": capturable, "differentiable": differentiable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def begin(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {"mu_product": scalar(1.0, param, group), **super().begin(param, group)}

    def numbers(self, param: Tensor, state: dict[str, Any], group: dict[str, Any]) -> dict[str, Any]:
        beta1, beta2 = group["betas"]
        t = counted(state)

        def momentum(t: float) -> float:
            return beta1 * (1.0 - 0.5 * 0.96 ** (t * group["momentum_decay"]))  # type: ignore[no-any-return]

        mu, mu_next = momentum(t), momentum(t + 1)
        product = state["mu_product"].mul_(mu)
        if product.device.capabilities.host:
            product = product.item()
        return {
            "lr": group["lr"], "beta1": beta1, "beta2": beta2, "eps": group["eps"], "t": t,
            "now": (1.0 - mu) / (1.0 - product), "ahead": mu_next / (1.0 - product * mu_next),
        }  # fmt: skip

    @staticmethod
    def formula(
        xp: Any, p: Any, g: Any, m: Any, v: Any, *,
        lr: Any, beta1: float, beta2: float, eps: float, t: float, now: float, ahead: float,
    ) -> None:  # fmt: skip
        m += (1 - beta1) * (g - m)
        v *= beta2
        v += (1 - beta2) * (g * g)
        p -= lr * ((now * g + ahead * m) / (xp.sqrt(v / (1 - beta2**t)) + eps))
