"""Adagrad: gradients divided by the root of the sum of their squares."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tensorcore.errors import UsageError
from tensorcore.ops.creation.create import full_like
from tensorcore.optim.algorithm import Algorithm, check_lr, check_modes, check_numbers, counted, plain
from tensorcore.tape.mode import no_grad
from tensorcore.tensor import Tensor

__all__ = ["Adagrad"]


class Adagrad(Algorithm):
    """Adagrad (Duchi, Hazan and Singer, JMLR 12, 2011).

    Args:
        params: what to optimize.
        lr: the first step's length.
        lr_decay: how fast it falls with the number of steps.
        weight_decay: an L2 penalty.
        initial_accumulator_value: where the sums of squares start.
        eps: added to the root.
        foreach, maximize, differentiable, fused: as for :class:`Adam`.
    """

    arrays = ("sum",)

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_lr(lr)
        check_numbers(
            lr_decay=lr_decay, weight_decay=weight_decay, initial_accumulator_value=initial_accumulator_value,
            epsilon=eps,
        )  # fmt: skip
        check_modes(foreach, differentiable, fused)
        defaults = {
            "lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value, "foreach": foreach, "maximize": maximize,
            "differentiable": differentiable, "fused": fused,
        }  # fmt: skip
        super().__init__(params, defaults)
        # The sums are there before the first step, so that they can be shared between processes.
        for group in self.param_groups:
            for one in group["params"]:
                self.state_of(one, group)

    def begin(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        start = self.defaults["initial_accumulator_value"]
        return {"sum": full_like(param, complex(start, start) if param.dtype.is_complex else start)}

    def share_memory(self) -> None:
        """Move the sums to memory that other processes can share."""
        for group in self.param_groups:
            for one in group["params"]:
                self.state[one]["sum"].share_memory_()

    def numbers(self, param: Tensor, state: dict[str, Any], group: dict[str, Any]) -> dict[str, Any]:
        return {"lr": group["lr"] / (1 + (counted(state) - 1) * group["lr_decay"]), "eps": group["eps"]}

    def sparse(self, param: Any, gradient: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        """The step along a sparse gradient, without weight decay: only of the rows that have one."""
        if group["weight_decay"]:
            raise UsageError(
                "Adagrad: weight_decay option is not compatible with sparse gradients, got it; leave it out"
            )
        numbers = self.numbers(param, state, plain(group))
        at, g = tuple(gradient.indices().unbind(0)), gradient.values()
        with no_grad():
            total = state["sum"][at] + g.square()
            state["sum"][at] = total
            param[at] = param[at] - (-numbers["lr"] if group["maximize"] else numbers["lr"]) * g / (
                total.sqrt() + numbers["eps"]
            )

    @staticmethod
    def formula(xp: Any, p: Any, g: Any, total: Any, *, lr: Any, eps: float) -> None:
        total += g * g
        p -= lr * (g / (xp.sqrt(total) + eps))
