"""Adafactor: running means of squared gradients that are kept by rows and columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tensorcore import dtypes
from tensorcore.errors import ArgumentError, UsageError
from tensorcore.ops.creation.create import zeros_like
from tensorcore.optim.algorithm import check_lr, counted, number, scalar, with_gradients
from tensorcore.optim.optimizer import Optimizer, closed
from tensorcore.tape.mode import no_grad
from tensorcore.tensor import Tensor

__all__ = ["Adafactor"]


class Adafactor(Optimizer):
    """Adafactor (Shazeer and Stern, arXiv:1804.04235), where lr bounds the relative step and weighs the decay.

    Args:
        params: what to optimize, not complex.
        lr: the largest relative step.
        beta2_decay: the power by which the running mean slows down.
        eps: the least variance's root, where None the dtype's own eps; and the least root mean square of a parameter.
        d: the root mean square at which a step is clipped.
        weight_decay: how much of each parameter a step takes away, in units of ``lr``.
        foreach: how PyTorch computes the step; changes nothing here.
        maximize: climb instead of descending.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        check_lr(lr, "Learning rate should be >= 0 but is")
        if not beta2_decay <= 0.0:
            raise ArgumentError(f"beta2_decay should be <= 0 but is: {beta2_decay}, got a mean that would speed up")
        if eps[0] is not None and not eps[0] >= 0.0:
            raise ArgumentError(f"epsilon1 should be >= 0 but is: {eps[0]}")
        if not eps[1] >= 0.0:
            raise ArgumentError(f"epsilon2 should be >= 0 but is: {eps[1]}")
        if not d >= 1.0:
            raise ArgumentError(f"Clipping threshold d should be >= 1 but is: {d}")
        if not weight_decay >= 0.0:
            raise ArgumentError(f"weight_decay should be >= 0 but is: {weight_decay}")
        defaults = {
            "lr": lr, "beta2_decay": beta2_decay, "eps": eps, "d": d, "weight_decay": weight_decay,
            "foreach": foreach, "maximize": maximize,
        }  # fmt: skip
        super().__init__(params, defaults)

    @no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change the parameters once; ``closure`` computes the loss anew and returns it."""
        loss = closed(closure)
        for group in self.param_groups:
            for params, _ in with_gradients(group).values():
                for one in params:
                    self._move(one, group)
        return loss

    def _move(self, p: Any, group: dict[str, Any]) -> None:
        if p.dtype.is_complex:
            raise UsageError("Adafactor does not support complex parameters, got one; optimize its real view")
        g = -p.grad if group["maximize"] else p.grad
        state = self.state[p]
        if not state:
            state["step"] = scalar(0.0, p, group)
            if g.dim() > 1:
                state["row_var"] = g.new_zeros((*g.shape[:-1], 1))
                state["col_var"] = g.new_zeros((*g.shape[:-2], 1, g.shape[-1]))
            else:
                state["variance"] = zeros_like(g)
        lr, (eps1, eps2), t = number(group["lr"]), group["eps"], counted(state)
        eps1 = dtypes.finfo(p.dtype).eps if eps1 is None else eps1
        towards = t ** group["beta2_decay"]  # 1 - beta2 of this step
        size = max(eps2, _rms(p)) * min(lr, 1 / t**0.5)
        if group["weight_decay"]:
            p.mul_(1 - lr * group["weight_decay"])
        if g.dim() > 1:
            square, rows, columns = g * g, state["row_var"], state["col_var"]
            rows += towards * (square.mean(-1, True) - rows)
            columns += towards * (square.mean(-2, True) - columns)
            variance = rows @ columns / rows.mean(-2, True).clamp_(min=eps1)
        else:
            variance = state["variance"]
            variance += towards * (g * g - variance)
        update = variance.clamp(min=eps1 * eps1).rsqrt_().mul_(g)
        p -= size / max(1.0, _rms(update) / group["d"]) * update


def _rms(x: Any) -> float:
    """The root mean square of all elements."""
    return ((x * x).sum().item() / x.numel()) ** 0.5  # type: ignore[no-any-return]
