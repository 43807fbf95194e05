"""SGD: stochastic gradient descent, with momentum if asked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tensorcore.errors import ArgumentError, UsageError
from tensorcore.ops.creation.create import zeros_like
from tensorcore.ops.output import written
from tensorcore.optim.algorithm import Algorithm, check_fused, check_lr, check_modes, check_numbers, number
from tensorcore.tape.mode import no_grad
from tensorcore.tensor import Tensor

__all__ = ["SGD"]


class SGD(Algorithm):
    """Stochastic gradient descent (momentum as in Sutskever et al., ICML 2013, without their factor lr in the buffer).

    Args:
        params: what to optimize.
        lr: the step's length.
        momentum: how much of the last direction is kept.
        dampening: how much less of the new gradient enters it.
        weight_decay: an L2 penalty.
        nesterov: look ahead along the momentum; needs momentum and no dampening.
        maximize: climb instead of descending.
        foreach: how PyTorch computes the step; here every group takes one kernel, whatever it says.
        fused: let a GradScaler's step wait for nothing.
        differentiable: record the step itself.
    """

    arrays = ("momentum_buffer",)

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float | Tensor = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_lr(lr)
        check_numbers(momentum=momentum, weight_decay=weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ArgumentError(
                f"Nesterov momentum requires a momentum and zero dampening, got momentum={momentum}, "
                f"dampening={dampening}"
            )
        check_modes(foreach, differentiable, fused)
        defaults = {
            "lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay, "nesterov": nesterov,
            "maximize": maximize, "foreach": foreach, "differentiable": differentiable, "fused": fused,
        }  # fmt: skip
        super().__init__(params, defaults)

    def states_of(self, params: list[Tensor], group: dict[str, Any]) -> list[dict[str, Any]]:
        if group["momentum"] or group["fused"]:
            return super().states_of(params, group)
        return [{}] * len(params)

    def state_of(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """The state of a parameter: its momentum, once it has one."""
        if group["fused"]:
            check_fused(param)
        return self.state[param] if group["momentum"] else {}

    def numbers(self, param: Tensor, state: dict[str, Any], group: dict[str, Any]) -> dict[str, Any]:
        first = bool(group["momentum"]) and state.get("momentum_buffer") is None
        if first:
            state["momentum_buffer"] = zeros_like(param)
        return {
            "lr": group["lr"], "momentum": group["momentum"], "dampening": group["dampening"],
            "nesterov": group["nesterov"], "first": first,
        }  # fmt: skip

    def sparse(self, param: Any, gradient: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        """The step along a sparse gradient, without momentum or weight decay."""
        if group["momentum"] or group["weight_decay"]:
            raise UsageError(
                "SGD: expected neither momentum nor weight_decay with sparse gradients, got one; use SparseAdam"
            )
        length = number(group["lr"]) * (-1 if group["maximize"] else 1)
        at = tuple(gradient.indices().unbind(0))
        with no_grad():
            param[at] = param[at] - length * gradient.values()

    @staticmethod
    def formula(
        xp: Any, p: Any, g: Any, b: Any = None, *,
        lr: Any, momentum: float, dampening: float, nesterov: bool, first: bool,
    ) -> None:  # fmt: skip
        if b is not None:
            b *= momentum
            b += g if first else (1 - dampening) * g
            g = g + momentum * b if nesterov else b
        p -= lr * g

    def on_device(self, device: Any, group: dict[str, Any]) -> bool:
        # After a first step that did not happen, only without dampening is the next one like it.
        fits = group["fused"] and not group["dampening"] and not device.capabilities.host
        return bool(fits and device.kernels["sgd_step"])

    def fused(
        self,
        device: Any,
        params: list[Tensor],
        gradients: list[Any],
        states: list[dict[str, Any]],
        group: dict[str, Any],
    ) -> bool:
        """The step in the kernel ``sgd_step``, where the backend has it."""
        kernel = device.kernels["sgd_step"]
        if not kernel:
            return super().fused(device, params, gradients, states, group)
        options = {
            "lr": number(group["lr"]), "weight_decay": number(group["weight_decay"]),
            "momentum": group["momentum"], "dampening": group["dampening"], "nesterov": group["nesterov"],
            "maximize": group["maximize"],
        }  # fmt: skip
        beside = self.scaling(device) if self.on_device(device, group) else ()
        natives, sent = [one.native for one in params], [one.native for one in gradients]
        if not group["momentum"]:
            kernel(natives, sent, None, *beside, **options)
            written(*params)
            return True
        kept = [state.get("momentum_buffer") for state in states]
        # A kernel takes either parameters that have their first step or none of them.
        fresh = {i for i, one in enumerate(kept) if one is None}
        if not fresh:
            kernel(natives, sent, [one.native for one in kept], *beside, first=False, **options)
        else:
            for i in fresh:
                kept[i] = states[i]["momentum_buffer"] = zeros_like(params[i])
            for first in (True, False):
                some = [i for i in range(len(kept)) if (i in fresh) is first]
                if some:
                    held = [kept[i].native for i in some]
                    kernel([natives[i] for i in some], [sent[i] for i in some], held, *beside, first=first, **options)
        written(*params, *kept)
        return True
