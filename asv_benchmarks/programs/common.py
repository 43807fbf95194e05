"""What the programs of this folder share. A program is a function of the library, which makes what it needs and answers with its step;
a step is one round of the work and answers with a number, which is the same in both libraries."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any

__all__ = ["Step", "layers", "trained"]

Step = Callable[[], float]


def trained(torch: Any, loss_of: Callable[[], Any], optimizer: Any, clip: Iterable[Any] = ()) -> Step:
    """A step that takes the loss, its gradients and an update; the norm of ``clip``'s gradients is held to 1."""

    def step() -> float:
        loss = loss_of()
        optimizer.zero_grad()
        loss.backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(clip, 1.0)
        optimizer.step()
        return loss.item()

    return step


def layers(torch: Any, *sizes: int, between: str = "ReLU") -> Any:
    """A perceptron of these widths."""
    nn, made = torch.nn, []
    for inside, outside in itertools.pairwise(sizes):
        made += [nn.Linear(inside, outside), getattr(nn, between)()]
    return nn.Sequential(*made[:-1])
