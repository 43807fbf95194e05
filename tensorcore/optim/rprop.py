"""Rprop: steps by the signs of the gradients alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tensorcore.errors import ArgumentError
from tensorcore.ops.creation.create import full_like, zeros_like
from tensorcore.optim.algorithm import Algorithm, check_lr, counted, number
from tensorcore.tensor import Tensor

__all__ = ["Rprop"]


class Rprop(Algorithm):
    """Resilient backpropagation (Riedmiller and Braun, ICNN 1993; the variant that forgets a gradient after a turn).

    Args:
        params: what to optimize; with the gradient of all data, not of a batch.
        lr: every element's first step.
        etas: the factors of an element's step after its gradient changed its sign, and after it kept it.
        step_sizes: the shortest and the longest step.
        capturable, foreach, maximize, differentiable: as for :class:`Adam`.
    """

    arrays = ("prev", "step_size")

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ArgumentError(f"Invalid eta values: {etas[0]}, {etas[1]}; expected 0 < first < 1 < second")
        defaults = {
            "lr": lr, "etas": etas, "step_sizes": step_sizes, "foreach": foreach, "maximize": maximize,
            "differentiable": differentiable, "capturable": capturable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def begin(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        lr = number(group["lr"])
        # A complex number steps like two real ones.
        size = full_like(param, complex(lr, lr) if param.dtype.is_complex else lr)
        return {"prev": zeros_like(param), "step_size": size}

    def numbers(self, param: Tensor, state: dict[str, Any], group: dict[str, Any]) -> dict[str, Any]:
        counted(state)
        (shorter, longer), (shortest, longest) = group["etas"], group["step_sizes"]
        return {"shorter": shorter, "longer": longer, "shortest": shortest, "longest": longest}

    @staticmethod
    def formula(
        xp: Any, p: Any, g: Any, before: Any, size: Any, *,
        shorter: float, longer: float, shortest: float, longest: float,
    ) -> None:  # fmt: skip
        turn = xp.sign(g * before)
        size[...] = xp.clip(
            xp.where(turn > 0, longer * size, xp.where(turn < 0, shorter * size, size)), shortest, longest
        )
        g = xp.where(turn < 0, 0.0, g)
        p -= xp.sign(g) * size
        before[...] = g
