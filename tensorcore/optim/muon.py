"""Muon: momentum steps of matrices, made orthogonal."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from tensorcore import dtypes
from tensorcore.errors import ArgumentError, UsageError
from tensorcore.ops.creation.create import zeros_like
from tensorcore.optim.algorithm import check_lr, number, with_gradients
from tensorcore.optim.optimizer import Optimizer, closed
from tensorcore.tape.mode import no_grad

__all__ = ["Muon"]


class Muon(Optimizer):
    """Muon (Jordan et al., kellerjordan.github.io/posts/muon, 2024; step sizes of Liu et al., arXiv:2502.16982).

    Args:
        params: matrices of a network's hidden layers; leave embeddings, vectors and heads to AdamW.
        lr: the step's length.
        weight_decay: how much of each parameter a step takes away, in units of ``lr``.
        momentum: how slowly the running mean of the gradients moves.
        nesterov: look ahead along it.
        ns_coefficients: of the quintic polynomial of each Newton-Schulz step.
        eps: the least norm to divide by.
        ns_steps: how many of them, below 100.
        adjust_lr_fn: ``original`` (longer steps for tall matrices; the same as None) or ``match_rms_adamw``.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        check_lr(lr, "Learning rate should be >= 0 but is")
        if not momentum >= 0.0:
            raise ArgumentError(f"momentum should be >= 0 but is: {momentum}")
        if not weight_decay >= 0.0:
            raise ArgumentError(f"weight decay should be >= 0 but is: {weight_decay}")
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ArgumentError(
                f"Adjust learning rate function {adjust_lr_fn} is not supported; pass 'original' or 'match_rms_adamw'"
            )
        defaults = {
            "lr": lr, "weight_decay": weight_decay, "momentum": momentum, "nesterov": nesterov,
            "ns_coefficients": ns_coefficients, "eps": eps, "ns_steps": ns_steps, "adjust_lr_fn": adjust_lr_fn,
        }  # fmt: skip
        super().__init__(params, defaults)
        for group in self.param_groups:
            for one in group["params"]:
                if one.ndim != 2:
                    raise ArgumentError(
                        f"Muon only supports 2D parameters whereas we found a parameter with size: {one.size()}; "
                        f"give it to AdamW"
                    )

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
            raise UsageError("Muon does not support complex parameters, got one; leave it to AdamW")
        g, lr, momentum, state = p.grad, number(group["lr"]), group["momentum"], self.state[p]
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = zeros_like(g)
        mean = state["momentum_buffer"].lerp_(g, 1 - momentum)
        update = g.lerp(mean, momentum) if group["nesterov"] else mean
        update = _orthogonal(update, group["ns_coefficients"], group["ns_steps"], group["eps"])
        rows, columns = p.shape
        ratio = 0.2 * math.sqrt(max(p.shape)) if group["adjust_lr_fn"] == "match_rms_adamw" else (
            math.sqrt(max(1, rows / columns))
        )  # fmt: skip
        p.mul_(1 - lr * group["weight_decay"])
        p.add_(update, alpha=-lr * ratio)


def _orthogonal(x: Any, coefficients: tuple[float, ...], steps: int, eps: float) -> Any:
    """A matrix with the singular vectors of ``x``, and singular values near 1, in bfloat16, by Newton-Schulz steps."""
    if steps >= 100:
        raise ArgumentError(f"Number of steps must be less than 100 for computational efficiency, got {steps}")
    if len(coefficients) != 3:
        raise ArgumentError(f"Coefficients must be a tuple of exactly 3 values, got {coefficients}")
    a, b, c = coefficients
    tall = x.shape[0] > x.shape[1]
    x = x.to(dtypes.bfloat16)
    x = x.T if tall else x
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.T
        x = x.addmm(gram.addmm(gram, gram, beta=b, alpha=c), x, beta=a)
    return x.T if tall else x
