"""Adam: steps scaled by running means of the gradients and of their squares."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tensorcore.errors import ArgumentError
from tensorcore.ops.creation.create import zeros_like
from tensorcore.ops.output import written
from tensorcore.optim.algorithm import (
    Algorithm,
    check_betas,
    check_lr,
    check_modes,
    check_numbers,
    check_pair,
    counted,
    counted_each,
    number,
)
from tensorcore.tensor import Tensor

__all__ = ["Adam"]


class Adam(Algorithm):
    """Adam (Kingma and Ba, arXiv:1412.6980).

    Args:
        params: what to optimize.
        lr: the step's length.
        betas: how slowly the two running means move.
        eps: added to the denominator.
        weight_decay: an L2 penalty; with ``decoupled_weight_decay`` a shrinking of the parameters themselves.
        amsgrad: divide by the largest second mean so far (Reddi et al., ICLR 2018).
        foreach: how PyTorch computes the step; here every group takes one kernel, whatever it says.
        fused: count the steps on the parameters' device, and let a GradScaler's step wait for nothing.
        capturable: count the steps on the parameters' device, as graphs need it.
        maximize: climb instead of descending.
        differentiable: record the step itself.
    """

    arrays = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-3,
        betas: tuple[Any, Any] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        check_pair("betas", betas)
        for name, value in {"lr": lr, "betas[0]": betas[0], "betas[1]": betas[1]}.items():
            if isinstance(value, Tensor):
                if foreach and not capturable:
                    raise ArgumentError(
                        f"{name} as a Tensor is not supported for capturable=False and foreach=True, got {value!r}; "
                        f"pass a float"
                    )
                if value.numel() != 1:
                    raise ArgumentError(f"Tensor {name} must be 1-element, got {value.numel()}; pass a float")
        check_lr(lr)
        check_numbers(epsilon=eps)
        check_betas(betas)
        check_numbers(weight_decay=weight_decay)
        if not any(all(isinstance(one, kind) for one in betas) for kind in (float, Tensor)):
            raise ArgumentError(f"betas must be either both floats or both Tensors, got {betas}; write 0.0 for 0")
        check_modes(foreach, differentiable, fused)
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad,
            "maximize": maximize, "foreach": foreach, "capturable": capturable, "differentiable": differentiable,
            "fused": fused, "decoupled_weight_decay": decoupled_weight_decay,
        }  # fmt: skip
        super().__init__(params, defaults)

    def begin(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {name: zeros_like(param) for name in self.arrays[: 3 if group["amsgrad"] else 2]}

    def numbers(self, param: Tensor, state: dict[str, Any], group: dict[str, Any]) -> dict[str, Any]:
        beta1, beta2 = group["betas"]
        if not group["differentiable"]:
            beta1, beta2 = number(beta1), number(beta2)
        return {"lr": group["lr"], "beta1": beta1, "beta2": beta2, "eps": group["eps"], "t": counted(state)}

    @staticmethod
    def formula(
        xp: Any, p: Any, g: Any, m: Any, v: Any, largest: Any = None, *,
        lr: Any, beta1: Any, beta2: Any, eps: float, t: float,
    ) -> None:  # fmt: skip
        m += (1 - beta1) * (g - m)
        v *= beta2
        v += (1 - beta2) * (g * g)
        if largest is not None:
            largest[...] = xp.maximum(largest, v)
            v = largest
        denominator = xp.sqrt(v) / (1 - beta2**t) ** 0.5 + eps
        p -= lr / (1 - beta1**t) * (m / denominator)

    def on_device(self, device: Any, group: dict[str, Any]) -> bool:
        counted_there = group["capturable"] or group["fused"]
        # The kernel takes the step's length as a number, for which the host would wait.
        lr_there = isinstance(group["lr"], Tensor) and not group["lr"].device.capabilities.host
        return bool(counted_there and not lr_there and not device.capabilities.host and device.kernels["adam_step"])

    def fused(
        self,
        device: Any,
        params: list[Tensor],
        gradients: list[Any],
        states: list[dict[str, Any]],
        group: dict[str, Any],
    ) -> bool:
        """The step in the kernel ``adam_step``, where the backend has it."""
        kernel = device.kernels["adam_step"]
        if not kernel:
            return super().fused(device, params, gradients, states, group)
        beta1, beta2 = group["betas"]
        averages, squares = [one["exp_avg"] for one in states], [one["exp_avg_sq"] for one in states]
        maxima = [one["max_exp_avg_sq"] for one in states] if group["amsgrad"] else []
        beside: list[Any] = []
        counts: list[Tensor] = []
        if self.on_device(device, group):
            counts = [one["step"] for one in states]
            beside = [[one.native for one in counts], *self.scaling(device)]
        kernel(
            [one.native for one in params],
            [one.native for one in gradients],
            [one.native for one in averages],
            [one.native for one in squares],
            [one.native for one in maxima] or None,
            *beside,
            steps=[] if beside else counted_each(states),
            lr=number(group["lr"]),
            beta1=number(beta1),
            beta2=number(beta2),
            eps=group["eps"],
            weight_decay=group["weight_decay"],
            decoupled=group["decoupled_weight_decay"],
            maximize=group["maximize"],
        )
        written(*params, *averages, *squares, *maxima, *counts)
        return True
