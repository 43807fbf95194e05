"""SparseAdam: Adam that moves only the rows which have a gradient."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tensorcore.errors import ArgumentError, UsageError
from tensorcore.ops.creation.create import zeros_like
from tensorcore.optim.algorithm import check_lr, number
from tensorcore.optim.optimizer import Optimizer, closed
from tensorcore.tape.mode import no_grad
from tensorcore.tensor import Tensor

__all__ = ["SparseAdam"]


class SparseAdam(Optimizer):
    """Adam (Kingma and Ba, arXiv:1412.6980) for sparse gradients, such as those of ``Embedding(..., sparse=True)``.

    The running means of a row move only in the steps in which it has a gradient.

    Args:
        params: what to optimize.
        lr: the step's length.
        betas: how slowly the two running means move.
        eps: added to the denominator.
        maximize: climb instead of descending.
    """

    def __init__(self, params: Iterable[Any], lr: float | Tensor = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
                 eps: float = 1e-8, maximize: bool = False) -> None:  # fmt: skip
        check_lr(lr)
        for name, value, inside in (
            ("epsilon value", eps, eps > 0), ("beta parameter at index 0", betas[0], 0 <= betas[0] < 1),
            ("beta parameter at index 1", betas[1], 0 <= betas[1] < 1),
        ):  # fmt: skip
            if not inside:
                raise ArgumentError(f"Invalid {name}: {value}; expected a number from 0 to 1")
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change the rows that have a gradient once; ``closure`` computes the loss anew and returns it."""
        loss = closed(closure)
        with no_grad():
            for group in self.param_groups:
                for one in group["params"]:
                    if one.grad is not None:
                        self._move(one, group)
        return loss

    def _move(self, param: Any, group: dict[str, Any]) -> None:
        if not param.grad.is_sparse:
            raise UsageError("SparseAdam does not support dense gradients, please consider Adam instead, got one")
        state = self.state[param]
        if not state:
            state.update(step=0, exp_avg=zeros_like(param), exp_avg_sq=zeros_like(param))
        state["step"] += 1
        gradient = param.grad.coalesce()
        at, g = tuple(gradient.indices().unbind(0)), gradient.values()
        if not g.numel():
            return
        if group["maximize"]:
            g = -g
        (first, second), count = group["betas"], state["step"]
        mean = state["exp_avg"][at].mul_(first).add_(g, alpha=1 - first)
        square = state["exp_avg_sq"][at].mul_(second).addcmul_(g, g, value=1 - second)
        state["exp_avg"][at], state["exp_avg_sq"][at] = mean, square
        length = number(group["lr"]) * (1 - second**count) ** 0.5 / (1 - first**count)
        param[at] = param[at] - length * mean / (square.sqrt() + group["eps"])
