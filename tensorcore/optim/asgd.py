"""ASGD: stochastic gradient descent whose parameters are averaged."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tensorcore.optim.algorithm import Algorithm, check_lr, check_numbers, counted, note, number, scalar
from tensorcore.tape.mode import no_grad
from tensorcore.tensor import Tensor

__all__ = ["ASGD"]


class ASGD(Algorithm):
    """Averaged stochastic gradient descent (Polyak and Juditsky, SIAM J. Control Optim. 30, 1992).

    The average is in ``state[param]["ax"]``.

    Args:
        params: what to optimize.
        lr: the first step's length.
        lambd: how much of each parameter a step takes away, in units of the step's length.
        alpha: the power by which the length falls.
        t0: the step from which on parameters are averaged.
        weight_decay: an L2 penalty.
        foreach, maximize, differentiable, capturable: as for :class:`Adam`.
    """

    arrays = ("ax",)

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_lr(lr)
        check_numbers(weight_decay=weight_decay)
        defaults = {
            "lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay, "foreach": foreach,
            "maximize": maximize, "differentiable": differentiable, "capturable": capturable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def begin(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        lr = number(group["lr"])
        return {"eta": scalar(lr, param, group), "mu": scalar(1.0, param, group), **super().begin(param, group)}

    def numbers(self, param: Tensor, state: dict[str, Any], group: dict[str, Any]) -> dict[str, Any]:
        t, lr, lambd = counted(state), group["lr"], group["lambd"]
        if isinstance(t, Tensor):  # nothing of this is read: a replay computes it anew
            made = {"eta": state["eta"].clone(), "mu": state["mu"].clone(), "lambd": lambd}
            with no_grad():
                state["eta"].copy_(lr / (1 + lambd * lr * t) ** group["alpha"])
                state["mu"].copy_(1 / (t - group["t0"]).clamp(min=1.0))
            return made
        lr = number(lr)
        made = {"eta": state["eta"].item(), "mu": state["mu"].item(), "lambd": lambd}
        note(state["eta"], lr / (1 + lambd * lr * t) ** group["alpha"])
        note(state["mu"], 1 / max(1.0, t - group["t0"]))
        return made

    @staticmethod
    def formula(xp: Any, p: Any, g: Any, average: Any, *, eta: Any, mu: Any, lambd: float) -> None:
        p *= 1 - lambd * eta
        p -= eta * g
        if isinstance(mu, float) and mu == 1:
            average[...] = p
        else:
            average += mu * (p - average)
