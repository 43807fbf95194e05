"""Little programs about autograd, each a function of the library and of nothing else: PyTorch must answer the same.

A program returns tensors, numbers, strings or nested lists of them; or it raises.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

PROGRAMS: dict[str, Callable[[Any], Any]] = {}


def program(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Enter a program under its own name."""
    PROGRAMS[function.__name__] = function
    return function


def leaf(t: Any, *shape: int) -> Any:
    """0, 1, 2, ... plus one half, as a leaf that requires grad."""
    count = 1
    for size in shape:
        count *= size
    return (t.arange(count, dtype=t.float64) + 0.5).reshape(shape).requires_grad_()


def seen(tensor: Any) -> Any:
    """What a user can see of a tensor's place on the tape."""
    fn = tensor.grad_fn
    return [
        tensor.detach().clone(),
        tensor.requires_grad,
        tensor.is_leaf,
        tensor._version,
        None if fn is None else fn.name(),
    ]
