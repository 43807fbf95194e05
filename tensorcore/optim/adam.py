"""Adam and AdamW: steps scaled by running means of the gradients and of their squares."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tensorcore import dtypes
from tensorcore.errors import ArgumentError
from tensorcore.ops.create import tensor, zeros_like
from tensorcore.ops.output import written
from tensorcore.ops.placement import host_device
from tensorcore.optim.optimizer import Optimizer, check_lr, check_modes, closed, number, recording, with_gradients
from tensorcore.tensor import Tensor

__all__ = ["Adam", "AdamW"]


class Adam(Optimizer):
    """Adam (Kingma and Ba, arXiv:1412.6980).

    Args:
        params: what to optimize.
        lr: the step's length.
        betas: how slowly the two running means move.
        eps: added to the denominator.
        weight_decay: an L2 penalty; with ``decoupled_weight_decay`` a shrinking of the parameters themselves.
        amsgrad: divide by the largest second mean so far (Reddi et al., ICLR 2018).
        foreach, capturable, fused: how PyTorch computes the step; here every group takes one kernel, whatever they say.
        maximize: climb instead of descending.
        differentiable: record the step itself.
    """

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
        check_lr(lr)
        if not eps >= 0.0:
            raise ArgumentError(f"Invalid epsilon value: {eps}; expected at least 0")
        for i, beta in enumerate(betas):
            if not 0.0 <= beta < 1.0:
                raise ArgumentError(f"Invalid beta parameter at index {i}: {beta}; expected 0 <= beta < 1")
        if not weight_decay >= 0.0:
            raise ArgumentError(f"Invalid weight_decay value: {weight_decay}; expected at least 0")
        check_modes(foreach, differentiable, fused)
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad,
            "maximize": maximize, "foreach": foreach, "capturable": capturable, "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }  # fmt: skip
        super().__init__(params, defaults)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change the parameters once."""
        loss = closed(closure)
        for group in self.param_groups:
            for (device, _), params in with_gradients(group).items():
                states = [self._state(one, group["amsgrad"]) for one in params]
                kernel = device.kernels["adam_step"]
                if group["differentiable"] or not kernel:
                    with recording(group):
                        for one, state in zip(params, states, strict=True):
                            self._step(one, state, group)
                    continue
                beta1, beta2 = group["betas"]
                averages, squares = [one["exp_avg"] for one in states], [one["exp_avg_sq"] for one in states]
                maxima = [one["max_exp_avg_sq"] for one in states] if group["amsgrad"] else []
                kernel(
                    [one.native for one in params],
                    [one.grad.native for one in params],
                    [one.native for one in averages],
                    [one.native for one in squares],
                    [one.native for one in maxima] or None,
                    steps=[_counted(one) for one in states],
                    lr=number(group["lr"]),
                    beta1=number(beta1),
                    beta2=number(beta2),
                    eps=group["eps"],
                    weight_decay=group["weight_decay"],
                    decoupled=group["decoupled_weight_decay"],
                    maximize=group["maximize"],
                )
                for one in (*params, *averages, *squares, *maxima):
                    written(one)
        return loss

    def _state(self, param: Tensor, amsgrad: bool) -> dict[str, Any]:
        state: dict[str, Any] = self.state[param]
        if not state:
            # Counted in a tensor, as PyTorch does, and on the host, where reading it waits for nobody.
            state["step"] = tensor(0.0, dtype=dtypes.float32, device=host_device())
            state["exp_avg"] = zeros_like(param)
            state["exp_avg_sq"] = zeros_like(param)
            if amsgrad:
                state["max_exp_avg_sq"] = zeros_like(param)
        return state

    def _step(self, param: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """The same in tensor operations, for a backend without the kernel and for steps that are recorded."""
        grad: Any = -param.grad if group["maximize"] else param.grad  # type: ignore[operator]
        lr, decay, (beta1, beta2), steps = group["lr"], group["weight_decay"], group["betas"], _counted(state)
        if decay and group["decoupled_weight_decay"]:
            param.mul_(1 - lr * decay)  # type: ignore[attr-defined]
        elif decay:
            grad = grad + param * decay
        average, square = state["exp_avg"], state["exp_avg_sq"]
        state["exp_avg"] = average = average + (grad - average) * (1 - beta1)
        state["exp_avg_sq"] = square = square * beta2 + grad * grad * (1 - beta2)
        if group["amsgrad"]:
            state["max_exp_avg_sq"] = square = state["max_exp_avg_sq"].maximum(square)
        denominator = square.sqrt() / (1 - beta2**steps) ** 0.5 + group["eps"]
        param.sub_(average / denominator * (lr / (1 - beta1**steps)))  # type: ignore[attr-defined]


class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov and Hutter, arXiv:1711.05101).

    Args:
        weight_decay: how much of each parameter a step takes away, in units of ``lr``.

    All others are those of :class:`Adam`.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-3,
        betas: tuple[Any, Any] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach, maximize=maximize, capturable=capturable,
            differentiable=differentiable, fused=fused, decoupled_weight_decay=True,
        )  # fmt: skip


def _counted(state: dict[str, Any]) -> float:
    """The number of steps with this one, which is noted."""
    held = state["step"]
    count: float = number(held) + 1.0
    if isinstance(held, Tensor):
        # Straight through the kernel: a count is no view and on no tape, and fill_ would look for both (5 us).
        held.device.kernels["fill"](held.native, count)
        written(held)
    else:
        state["step"] = count
    return count
