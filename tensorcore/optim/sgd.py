"""SGD: stochastic gradient descent, with momentum if asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tensorcore.errors import ArgumentError
from tensorcore.ops.output import written
from tensorcore.optim.optimizer import Optimizer, check_lr, check_modes, closed, number, recording, with_gradients
from tensorcore.tensor import Tensor, new_tensor

__all__ = ["SGD"]


class SGD(Optimizer):
    """Stochastic gradient descent (momentum as in Sutskever et al., ICML 2013, without their factor lr in the buffer).

    Args:
        params: what to optimize.
        lr: the step's length.
        momentum: how much of the last direction is kept.
        dampening: how much less of the new gradient enters it.
        weight_decay: an L2 penalty.
        nesterov: look ahead along the momentum; needs momentum and no dampening.
        maximize: climb instead of descending.
        foreach, fused: how PyTorch computes the step; here every group takes one kernel, whatever they say.
        differentiable: record the step itself.
    """

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
        if not momentum >= 0.0:
            raise ArgumentError(f"Invalid momentum value: {momentum}; expected at least 0")
        if not weight_decay >= 0.0:
            raise ArgumentError(f"Invalid weight_decay value: {weight_decay}; expected at least 0")
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

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change the parameters once."""
        loss = closed(closure)
        for group in self.param_groups:
            for (device, dtype), params in with_gradients(group).items():
                kernel = device.kernels["sgd_step"]
                if group["differentiable"] or not kernel:
                    with recording(group):
                        for one in params:
                            self._step(one, group)
                    continue
                options = {
                    "lr": number(group["lr"]), "weight_decay": number(group["weight_decay"]),
                    "momentum": group["momentum"], "dampening": group["dampening"], "nesterov": group["nesterov"],
                    "maximize": group["maximize"],
                }  # fmt: skip
                if not group["momentum"]:
                    kernel([one.native for one in params], [one.grad.native for one in params], None, **options)
                else:
                    fresh = [one for one in params if self.state[one].get("momentum_buffer") is None]
                    for one in fresh:
                        buffer = device.allocate(tuple(one.native.shape), dtype)
                        self.state[one]["momentum_buffer"] = new_tensor(buffer, dtype, device)
                    # A kernel takes either parameters that have their first step or none of them.
                    old = [one for one in params if one not in set(fresh)] if fresh else params
                    for first, some in ((True, fresh), (False, old)):
                        if some:
                            buffers = [self.state[one]["momentum_buffer"] for one in some]
                            kernel(
                                [one.native for one in some], [one.grad.native for one in some],
                                [one.native for one in buffers], first=first, **options,
                            )  # fmt: skip
                            for one in buffers:
                                written(one)
                for one in params:
                    written(one)
        return loss

    def _step(self, param: Tensor, group: dict[str, Any]) -> None:
        """The same in tensor operations, for a backend without the kernel and for steps that are recorded."""
        grad: Any = -param.grad if group["maximize"] else param.grad  # type: ignore[operator]
        lr, momentum, decay = group["lr"], group["momentum"], group["weight_decay"]
        if decay:
            grad = grad + param * decay
        if momentum:
            buffer = self.state[param].get("momentum_buffer")
            if buffer is None:
                buffer = grad.clone() if group["differentiable"] else grad.detach().clone()
            elif group["differentiable"]:
                buffer = buffer * momentum + grad * (1 - group["dampening"])
            else:
                buffer.mul_(momentum).add_(grad * (1 - group["dampening"]))
            self.state[param]["momentum_buffer"] = buffer
            grad = grad + buffer * momentum if group["nesterov"] else buffer
        param.sub_(grad * lr)  # type: ignore[attr-defined]
